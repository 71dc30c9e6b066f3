/* ksplat_rows -- see the header. A column at a time, of few enough rows that their records stay in
 * the cache. */
#include "stages/formats/ksplat/ksplat_rows.h"

#include "base/endian.h"
#include "base/harmonics.h"
#include "kernels/math/half_math.h"
#include "stages/formats/linear.h"

#include <math.h>
#include <stdbool.h>

/* One bucket's rows. */
typedef struct {
    const kiln_ksplat_layout *l;
    uint64_t n;
    unsigned char *out;
    uint64_t *counts;
} records;

/* ---- rotations ------------------------------------------------------------------------------- */

void kiln_ksplat_quats(uint32_t level, uint64_t n, const float *quats, float *unit)
{
    /* the reference cuts halves off: its lengths are down to 1 - 2^-10 */
    const double off = 0x1p-8;
    kiln_unit_quats(n, quats, unit);
    for (uint64_t i = 0; i < n && level; i++) {
        double squared = 0;
        bool are_halves = true;
        for (uint64_t c = 0; c < 4; c++) {
            const float q = quats[c * n + i];
            squared += (double)q * (double)q;
            are_halves &= kiln_half_round(q) == q;
        }
        for (uint64_t c = 0; c < 4 && are_halves && fabs(squared - 1) < off; c++)
            unit[c * n + i] = quats[c * n + i];
    }
}

/* ---- what the headers need ------------------------------------------------------------------- */

void kiln_ksplat_rows_box(const kiln_ksplat_rows *r, uint64_t at, uint64_t n, kiln_ksplat_box *out)
{
    kiln_ksplat_box_clear(out);
    for (uint64_t c = 0; c < 3 && n > 0; c++) {
        const float *v = r->means + c * r->n + at;
        float lo = v[0], hi = v[0];
#pragma omp simd reduction(min : lo) reduction(max : hi)
        for (uint64_t i = 0; i < n; i++) {
            lo = v[i] < lo ? v[i] : lo;
            hi = v[i] > hi ? v[i] : hi;
        }
        out->lo[c] = (double)lo + r->origin[c];
        out->hi[c] = (double)hi + r->origin[c];
    }
}

void kiln_ksplat_rows_range(const kiln_ksplat_rows *r, uint32_t sh_degree, float *least,
                            float *most)
{
    float lo = *least, hi = *most;
    const uint64_t n = kiln_sh_components(sh_degree) * r->n; /* higher degrees stand behind these */
#pragma omp simd reduction(min : lo) reduction(max : hi)
    for (uint64_t i = 0; i < n; i++) {
        lo = r->shN[i] < lo ? r->shN[i] : lo;
        hi = r->shN[i] > hi ? r->shN[i] : hi;
    }
    *least = lo;
    *most = hi;
}

/* ---- columns --------------------------------------------------------------------------------- */

static void put_words(const records *t, const uint16_t *words, uint64_t offset)
{
    for (uint64_t i = 0; i < t->n; i++)
        kiln_put_u16(t->out + i * t->l->row_bytes + offset, words[i]);
}

static void put_floats(const records *t, const float *v, uint64_t offset)
{
    for (uint64_t i = 0; i < t->n; i++) kiln_put_f32(t->out + i * t->l->row_bytes + offset, v[i]);
}

static void put_bytes(const records *t, const uint8_t *codes, uint64_t offset)
{
    for (uint64_t i = 0; i < t->n; i++) t->out[i * t->l->row_bytes + offset] = codes[i];
}

static void put_halves(const records *t, const float *v, uint64_t offset)
{
    uint16_t halves[KILN_KSPLAT_BUCKET_ROWS];
    for (uint64_t i = 0; i < t->n; i++) halves[i] = kiln_half_of(v[i]);
    put_words(t, halves, offset);
}

static uint64_t count_beyond_halves(const float *v, uint64_t n)
{
    uint64_t beyond = 0;
    /* what rounds to more than 65504 */
    for (uint64_t i = 0; i < n; i++) beyond += fabsf(v[i]) >= 65520.0f;
    return beyond;
}

static void put_real(const records *t, const float *v, uint64_t offset)
{
    if (t->l->level == 0)
        put_floats(t, v, offset);
    else
        put_halves(t, v, offset);
}

/* A length that is too small for a half becomes the least that is one: readers make very different
 * things of 0. Only what import has clamped (its logarithm is -87) is 0 again. */
static void put_lengths(const records *t, const float *v, uint64_t offset)
{
    const float clamped = 1.7e-38f; /* above exp(-87) */
    uint16_t halves[KILN_KSPLAT_BUCKET_ROWS];
    if (t->l->level == 0) {
        put_floats(t, v, offset);
        return;
    }
    uint64_t raised = 0;
    for (uint64_t i = 0; i < t->n; i++) {
        halves[i] = kiln_half_of(v[i]);
        const uint16_t raise = halves[i] == 0 && v[i] > clamped;
        halves[i] = (uint16_t)(halves[i] + raise);
        raised += raise;
    }
    put_words(t, halves, offset);
    t->counts[KILN_KSPLAT_LENGTHS] += raised + count_beyond_halves(v, t->n);
}

/* Steps from the centre, both exact; their sum is rounded once. */
static void put_steps(const records *t, const float *mean, double origin, double centre,
                      double per_step, uint64_t offset)
{
    uint16_t codes[KILN_KSPLAT_BUCKET_ROWS];
    uint32_t clamped = 0;
#pragma omp simd reduction(+ : clamped)
    for (uint64_t i = 0; i < t->n; i++) {
        const double u = ((double)mean[i] + origin - centre) * per_step + (KILN_KSPLAT_RANGE + 0.5);
        const double most = 2 * KILN_KSPLAT_RANGE + 0.5;
        clamped += u < 0 || u > most + 0.5;
        codes[i] = (uint16_t)(int32_t)(u < 0 ? 0 : u > most ? most : u);
    }
    put_words(t, codes, offset);
    t->counts[KILN_KSPLAT_POSITIONS] += clamped;
}

static void count_coarse(const records *t, const kiln_ksplat_rows *r, uint64_t at, float step)
{
    const float *x = r->scales + at, *y = x + r->n, *z = y + r->n;
    uint32_t coarse = 0;
    for (uint64_t i = 0; i < t->n; i++) coarse += x[i] < step && y[i] < step && z[i] < step;
    t->counts[KILN_KSPLAT_STEPS] += coarse;
}

static void put_coefficients(const records *t, kiln_ksplat_sh_range range, const float *v,
                             uint64_t offset)
{
    uint8_t codes[KILN_KSPLAT_BUCKET_ROWS];
    const double width = (double)range.most - (double)range.least,
                 per = width > 0 ? 255 / width : 0;
    if (t->l->level < 2) {
        put_real(t, v, offset);
        if (t->l->level) t->counts[KILN_KSPLAT_COEFFICIENTS] += count_beyond_halves(v, t->n);
        return;
    }
#pragma omp simd
    for (uint64_t i = 0; i < t->n; i++) {
        const double code = ((double)v[i] - (double)range.least) * per + 0.5;
        codes[i] = (uint8_t)(int32_t)(code < 0 ? 0 : code > 255 ? 255 : code);
    }
    put_bytes(t, codes, offset);
}

/* ---- records --------------------------------------------------------------------------------- */

static void put_colours(const records *t, const kiln_ksplat_rows *r, uint64_t at, uint64_t offset)
{
    uint8_t codes[KILN_KSPLAT_BUCKET_ROWS];
    for (uint64_t c = 0; c < 3; c++) {
        t->counts[KILN_KSPLAT_COLOURS] += kiln_colour_codes(t->n, r->sh0 + c * r->n + at, codes);
        put_bytes(t, codes, offset + c);
    }
    kiln_opacity_codes(t->n, r->opacity_logits + at, t->out + offset + 3, t->l->row_bytes);
}

static void put_means(const records *t, const float centre[3], const kiln_ksplat_rows *r,
                      uint64_t at)
{
    float absolute[KILN_KSPLAT_BUCKET_ROWS];
    const int step = t->l->level ? t->l->step[kiln_ksplat_bucket_section(
                                       t->l, (r->first + at) / KILN_KSPLAT_BUCKET_ROWS)]
                                 : 0;
    if (t->l->level) count_coarse(t, r, at, ldexpf(1, step));
    for (uint64_t c = 0; c < 3; c++) {
        const float *v = r->means + c * r->n + at;
        if (t->l->level) {
            put_steps(t, v, r->origin[c], (double)centre[c], ldexp(1, -step), 2 * c);
            continue;
        }
        for (uint64_t i = 0; i < t->n; i++) absolute[i] = (float)((double)v[i] + r->origin[c]);
        put_floats(t, absolute, 4 * c);
    }
}

void kiln_ksplat_encode(const kiln_ksplat_layout *l, kiln_ksplat_sh_range range,
                        const kiln_ksplat_rows *r, const kiln_ksplat_bucket *b, unsigned char *out,
                        uint64_t counts[KILN_KSPLAT_COUNTS])
{
    const uint64_t at = b->at;
    const records t = {l, b->n, out, counts};
    const kiln_ksplat_record f = kiln_ksplat_record_of(l->level);
    put_means(&t, b->centre, r, at);
    for (uint64_t c = 0; c < 3; c++)
        put_lengths(&t, r->scales + c * r->n + at, f.scales + c * f.real);
    for (uint64_t c = 0; c < 4; c++) put_real(&t, r->quats + c * r->n + at, f.quats + c * f.real);
    put_colours(&t, r, at, f.colours);
    for (uint32_t v = 0; v < kiln_sh_components(l->sh_degree); v++)
        put_coefficients(&t, range, r->shN + kiln_ksplat_sh_plane(v) * r->n + at,
                         f.sh + v * f.coefficient);
}
