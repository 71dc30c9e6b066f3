/* compressed_ply_rows -- see the header. */
#include "stages/formats/compressed_ply/compressed_ply_rows.h"

#include "base/endian.h"
#include "base/harmonics.h"
#include "kernels/math/real64.h"
#include "stages/formats/linear.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

_Static_assert(sizeof(kiln_half_packed) == 44, "a row in scratch has no padding");

enum { TILE = 256 };
static const float SCALE_LIMIT = 20.0f; /* of splat-transform's bounds */

/* ---- a row by itself ------------------------------------------------------------------------- */

/* The code of a component that lies in -sqrt(1/2) .. sqrt(1/2). */
static uint32_t part_code(double c)
{
    const uint32_t most = KILN_PACKED_MOST(KILN_PACKED_PART_BITS);
    const double u = (c * 0.70710678118654752 + 0.5) * (double)most + 0.5; /* sqrt(1/2) */
    return u < 0 ? 0 : u > (double)most ? most : (uint32_t)u;
}

/* A unit quaternion without its component `place`, whose sign is made positive: that turns all four
 * around. */
static uint32_t pack_without(const double unit[4], uint32_t place)
{
    uint32_t v = place;
    for (uint32_t c = 0; c < 4; c++)
        if (c != place)
            v = v << KILN_PACKED_PART_BITS | part_code(unit[place] < 0 ? -unit[c] : unit[c]);
    return v;
}

/* Does a reader make just these floats of v? As compressed_ply_read.c computes them. */
static bool means_exactly(uint32_t v, const float q[4])
{
    double rest = 1.0;
    int at = 2 * KILN_PACKED_PART_BITS;
    double parts[3];
    for (uint32_t c = 0, k = 0; c < 4; c++) {
        if (c == v >> KILN_PACKED_LARGEST_AT) continue;
        parts[k] = kiln_packed_part(v, at);
        if ((float)parts[k++] != q[c]) return false;
        at -= KILN_PACKED_PART_BITS;
    }
    rest -= parts[0] * parts[0] + parts[1] * parts[1] + parts[2] * parts[2];
    return (float)sqrt(rest > 0 ? rest : 0.0) == q[v >> KILN_PACKED_LARGEST_AT];
}

/* The largest component is left out; of equal ones the first. Of a quaternion that came from a
 * code, another component may have become the largest by the code's own rounding, or its length may
 * not be 1: if it is one of the codes, it is written with that again. */
static uint32_t pack_rotation(const float q[4])
{
    double unit[4], sum = 0;
    uint32_t place = 0;
    kiln_unit_quat(q, unit);
    for (uint32_t c = 1; c < 4; c++)
        if (fabs(unit[c]) > fabs(unit[place])) place = c;
    for (uint32_t c = 0; c < 4; c++) sum += (double)q[c] * (double)q[c];
    /* codes of three large components: at most 3/2 */
    const bool is_long = sum > 1.0001 && sum < 2.0;
    for (uint32_t c = 0; c < 4; c++) {
        if (!is_long && (c == place || fabs(unit[c]) < 0.995 * fabs(unit[place]))) continue;
        const double as_is[4] = {(double)q[0], (double)q[1], (double)q[2], (double)q[3]};
        const uint32_t v = pack_without(as_is, c);
        if (means_exactly(v, q)) return v;
    }
    return pack_without(unit, place);
}

uint64_t kiln_half_pack(const kiln_packing_planes *p, uint64_t first, uint64_t n,
                        kiln_half_packed *out)
{
    uint64_t moved = 0;
    uint8_t alphas[TILE];
    for (uint64_t at = 0; at < n; at += TILE) {
        const uint64_t m = n - at < TILE ? n - at : TILE, row = first + at;
        kiln_opacity_codes(m, p->opacity_logits + row, alphas, 1);
        for (uint64_t i = 0; i < m; i++) {
            kiln_half_packed *h = &out[at + i];
            float q[4];
            for (uint64_t c = 0; c < 3; c++) {
                const float s = p->log_scales[c * p->n + row + i];
                const float kept =
                    s > -SCALE_LIMIT ? s < SCALE_LIMIT ? s : SCALE_LIMIT : -SCALE_LIMIT;
                moved += kept != s;
                h->log_scale[c] = kept;
                h->position[c] = p->means[c * p->n + row + i];
                h->colour[c] = (float)((double)p->sh0[c * p->n + row + i] * KILN_SH_C0_F64 + 0.5);
            }
            for (uint64_t c = 0; c < 4; c++) q[c] = p->quats[c * p->n + row + i];
            h->rotation = pack_rotation(q);
            h->alpha = alphas[i];
        }
    }
    return moved;
}

/* ---- a group --------------------------------------------------------------------------------- */

/* What a group's values of one column lie between, and the steps from the first to the last. */
typedef struct {
    double lo, steps_per_unit, steps;
} column_range;

static column_range range_of(float lo, float hi, double steps)
{
    const double width = (double)hi - (double)lo; /* of floats: not 0 unless they are equal */
    return (column_range){
        .lo = (double)lo, .steps_per_unit = width > 0 ? steps / width : 0.0, .steps = steps};
}

static uint32_t range_code(const column_range *r, float v)
{
    const double u = ((double)v - r->lo) * r->steps_per_unit + 0.5;
    return u > 0 ? u < r->steps ? (uint32_t)u : (uint32_t)r->steps : 0;
}

static uint32_t vector_code(const column_range r[3], const float v[3])
{
    return range_code(&r[0], v[0]) << KILN_PACKED_X_AT |
           range_code(&r[1], v[1]) << KILN_PACKED_Y_AT |
           range_code(&r[2], v[2]) << KILN_PACKED_Z_AT;
}

/* Least and largest of each of the nine columns, in the order of their floats in a row. */
static void find_bounds(const kiln_half_packed *rows, uint32_t n, float lo[9], float hi[9])
{
    memcpy(lo, &rows[0], 9 * sizeof *lo);
    memcpy(hi, &rows[0], 9 * sizeof *hi);
    for (uint32_t i = 1; i < n; i++) {
        float v[9];
        memcpy(v, &rows[i], sizeof v);
        for (int c = 0; c < 9; c++) {
            lo[c] = v[c] < lo[c] ? v[c] : lo[c];
            hi[c] = v[c] > hi[c] ? v[c] : hi[c];
        }
    }
}

/* log_step: of the group's positions, the largest. */
static bool is_below(const float log_scale[3], double log_step)
{
    return (double)log_scale[0] < log_step && (double)log_scale[1] < log_step &&
           (double)log_scale[2] < log_step;
}

uint64_t kiln_pack_group(const kiln_half_packed *rows, uint32_t n,
                         unsigned char bounds[KILN_PACKED_BOUNDS_BYTES], unsigned char *vertices)
{
    static const int bits[9] = {
        KILN_PACKED_XZ_BITS,     KILN_PACKED_Y_BITS,      KILN_PACKED_XZ_BITS,
        KILN_PACKED_XZ_BITS,     KILN_PACKED_Y_BITS,      KILN_PACKED_XZ_BITS,
        KILN_PACKED_COLOUR_BITS, KILN_PACKED_COLOUR_BITS, KILN_PACKED_COLOUR_BITS};
    double steps[9];
    float lo[9], hi[9];
    double step = 0x1p-149;
    uint64_t coarse = 0;
    column_range r[9];
    find_bounds(rows, n, lo, hi);
    for (int c = 0; c < 9; c++) {
        const int first = c / 3 * 6 + c % 3; /* of the bounds */
        kiln_put_f32(bounds + 4 * first, lo[c]);
        kiln_put_f32(bounds + 4 * (first + 3), hi[c]);
        steps[c] = KILN_PACKED_MOST(bits[c]);
        r[c] = range_of(lo[c], hi[c], steps[c]);
    }
    for (int c = 0; c < 3; c++) step = fmax(step, ((double)hi[c] - (double)lo[c]) / steps[c]);
    const double log_step = kiln_log_f64(step);
    for (uint32_t i = 0; i < n; i++) {
        const kiln_half_packed *h = &rows[i];
        const float *p = h->position, *s = h->log_scale, *k = h->colour;
        unsigned char *at = vertices + i * KILN_PACKED_ROW_BYTES;
        at = kiln_put_u32(at, vector_code(&r[0], p));
        at = kiln_put_u32(at, h->rotation);
        at = kiln_put_u32(at, vector_code(&r[3], s));
        kiln_put_u32(at, range_code(&r[6], k[0]) << KILN_PACKED_RED_AT |
                             range_code(&r[7], k[1]) << KILN_PACKED_GREEN_AT |
                             range_code(&r[8], k[2]) << KILN_PACKED_BLUE_AT | h->alpha);
        coarse += is_below(s, log_step);
    }
    return coarse;
}

/* ---- SH -------------------------------------------------------------------------------------- */

/* The border between 0 and 1 that gives the nearer one is at -127.25 steps. All but the last step
 * is exact. */
static int32_t sh_code(float v)
{
    const float most = KILN_PACKED_SH_LIMIT;
    float x = v > -most ? v : -most; /* NaN too */
    x = (x < most ? x : most) * KILN_PACKED_SH_STEPS;
    const int32_t toward_zero = (int32_t)x;
    int32_t code = toward_zero - ((float)toward_zero > x) + 128;
    code = code < 1 ? 1 : code;
    code = code > 254 ? 254 : code;
    code = x < -127.25f ? 0 : code;
    return x > 127.25f ? 255 : code;
}

uint64_t kiln_pack_sh(const kiln_packing_planes *p, uint64_t first, uint64_t n,
                      uint32_t n_coefficients, uint8_t *sh)
{
    const uint64_t width = 3ull * n_coefficients;
    uint64_t moved = 0;
    for (uint64_t at = 0; at < n; at += TILE) {
        const uint64_t m = n - at < TILE ? n - at : TILE;
        for (uint64_t k = 0; k < n_coefficients; k++)
            for (uint64_t c = 0; c < 3; c++) {
                const float *from = p->shN + (3 * k + c) * p->n + first + at;
                uint8_t *to = sh + at * width + c * n_coefficients + k;
                int32_t codes[TILE], beyond = 0;
#pragma omp simd reduction(+ : beyond)
                for (uint64_t i = 0; i < m; i++) {
                    codes[i] = sh_code(from[i]);
                    beyond +=
                        !(from[i] >= -KILN_PACKED_SH_LIMIT && from[i] <= KILN_PACKED_SH_LIMIT);
                }
                for (uint64_t i = 0; i < m; i++) to[i * width] = (uint8_t)codes[i];
                moved += (uint64_t)beyond;
            }
    }
    return moved;
}
