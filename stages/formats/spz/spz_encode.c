/* spz_encode -- see the header.
 *
 * Rows are planar and codes lie row by row: a component of 64 rows is rounded into a small table,
 * in vector code, and bytes are put where they belong from there.
 */
#include "stages/formats/spz/spz_encode.h"

#include "base/endian.h"
#include "base/harmonics.h"
#include "kernels/math/real.h"
#include "kernels/math/real64.h"
#include "stages/formats/spz/spz_rows.h"
#include "stages/formats/turn.h"

#include <math.h>

enum { STEP = 64, SH_MAX = 72, CODES = 256 };

/* PLY's frame to RUB, and nothing. */
static const int half_turn[3] = {1, -1, -1}, no_turn[3] = {1, 1, 1};

/* The code nearest to v, halves away from 0: of 0 to 255. */
static inline unsigned char nearest_code(float v)
{
    const float within = v < 0.0f ? 0.0f : v > 255.0f ? 255.0f : v;
    const int32_t below = (int32_t)within;
    return (unsigned char)(below + (within - (float)below >= 0.5f));
}

static inline bool is_beyond(float v) { return (v < -0.5f) | (v > 255.5f); }

/* Round of C, of |v| < 2^31: v itself plus a half would round once more. */
static inline int32_t nearest_whole(float v)
{
    const int32_t whole = (int32_t)v;
    const float rest = v - (float)whole; /* exact */
    return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

/* ---- positions ------------------------------------------------------------------------------- */

static void put_positions(const kiln_spz_coding *coding, const kiln_spz_values *v,
                          unsigned char *out)
{
    const int *sign = coding->to_rub ? half_turn : no_turn;
    const double most = KILN_SPZ_POSITION_MOST;
    for (uint64_t c = 0; c < 3; c++) {
        const double scale = ldexp(sign[c], (int)coding->fraction);
        const float *means = v->means + c * v->stride;
        for (uint64_t i = 0; i < v->n; i++) {
            const double exact = (double)means[i] * scale, at = exact > most         ? most
                                                                : exact >= -most - 1 ? exact
                                                                                     : -most - 1;
            const int32_t whole = (int32_t)at;
            const double rest = at - whole;
            const uint32_t code = (uint32_t)(whole + (rest >= 0.5) - (rest <= -0.5));
            unsigned char *p = out + 9 * i + 3 * c;
            p[0] = (unsigned char)code;
            p[1] = (unsigned char)(code >> 8);
            p[2] = (unsigned char)(code >> 16);
        }
    }
}

/* What is below rounds to the largest code at most. */
bool kiln_spz_fits(double farthest, uint32_t fraction)
{
    return ldexp(farthest, (int)fraction) < KILN_SPZ_POSITION_MOST + 0.5;
}

uint32_t kiln_spz_needed_fraction(const float *v, uint64_t n)
{
    int32_t most = 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t bits = kiln_bits_of(v[i]), stored = bits >> 23 & 255,
                       exponent = stored ? stored : 1;
        /* v = digits 2^(exponent - 150) */
        const uint32_t digits = (bits & 0x7fffff) | (stored ? 0x800000u : 0);
        const int32_t needed = digits ? 150 - (int32_t)exponent - __builtin_ctz(digits) : 0;
        most = needed > most ? needed : most;
    }
    return (uint32_t)most;
}

bool kiln_spz_choose_fraction(double farthest, double half_edge, uint32_t *out)
{
    const int usual = KILN_SPZ_FRACTION;
    int fits = KILN_SPZ_FRACTION_MAX, exponent;
    while (fits > 0 && !kiln_spz_fits(farthest, (uint32_t)fits)) fits--;
    (void)frexp(half_edge, &exponent); /* half_edge is at least 2^(exponent - 1), */
    /* so that this gives 4096 steps of it, and 8192 of the edge */
    const int fine = usual + 1 - exponent;
    const int wanted = fine > usual ? fine : usual;
    *out = (uint32_t)(wanted < fits ? wanted : fits);
    return kiln_spz_fits(farthest, *out) && (int)*out >= fine - 1;
}

/* ---- alphas ---------------------------------------------------------------------------------- */

/* The least logit of each code but 0: where 255 sigmoid is half a step below it. */
static void fill_thresholds(float table[CODES - 1])
{
    for (int b = 1; b < CODES; b++) table[b - 1] = (float)kiln_log_f64((b - 0.5) / (255.5 - b));
}

static void put_alphas(const kiln_spz_values *v, unsigned char *out)
{
    float least[CODES - 1];
    fill_thresholds(least);
    for (uint64_t i = 0; i < v->n; i++) {
        const float logit = v->opacity_logits[i];
        uint32_t code = 0;
        for (uint32_t step = CODES / 2; step; step /= 2)
            code += logit >= least[code + step - 1] ? step : 0;
        out[i] = (unsigned char)code;
    }
}

/* ---- colours, scales ------------------------------------------------------------------------- */

/* Codes of factor (v + before) + behind, each operation in float32 as in nianticlabs/spz; before or
 * behind is 0. Returns rows with a value that no code is near. */
static uint64_t put_linear(const float *v, uint64_t n, uint64_t stride, float before, float factor,
                           float behind, unsigned char *out)
{
    uint64_t beyond = 0;
    for (uint64_t at = 0; at < n; at += STEP) {
        const uint64_t k = n - at < STEP ? n - at : STEP;
        unsigned char far[STEP] = {0};
        for (uint64_t c = 0; c < 3; c++)
#pragma omp simd
            for (uint64_t i = 0; i < k; i++) {
                const float code = (v[c * stride + at + i] + before) * factor + behind;
                out[3 * (at + i) + c] = nearest_code(code);
                far[i] |= is_beyond(code);
            }
        for (uint64_t i = 0; i < k; i++) beyond += far[i];
    }
    return beyond;
}

/* ---- rotations ------------------------------------------------------------------------------- */

/* Components x, y, z, w of length 1. float32 as in nianticlabs/spz, where squares have a place in
 * it. */
static void make_unit(const float wxyz[4], float q[4])
{
    const float x = wxyz[1], y = wxyz[2], z = wxyz[3], w = wxyz[0],
                sum = x * x + y * y + z * z + w * w;
    const double length = sum > 1e-30f && sum < 1e30f
                              ? (double)sqrtf(sum)
                              : sqrt((double)x * (double)x + (double)y * (double)y +
                                     (double)z * (double)z + (double)w * (double)w);
    q[0] = (float)((double)x / length);
    q[1] = (float)((double)y / length);
    q[2] = (float)((double)z / length);
    q[3] = (float)((double)w / length);
}

static uint32_t smallest_three(const float q[4], uint32_t largest, bool signed_zeros)
{
    const bool negate = q[largest] < 0.0f;
    const uint32_t most = KILN_SPZ_SMALLEST_MOST;
    uint32_t word = largest;
    for (uint32_t c = 0; c < 4; c++) {
        if (c == largest) continue;
        const bool negative = signed_zeros ? signbit(q[c]) != 0 : q[c] < 0.0f;
        const uint32_t size =
            (uint32_t)((float)most * (fabsf(q[c]) / (float)KILN_SPZ_SQRT_HALF) + 0.5f);
        word = word << KILN_SPZ_SMALLEST_BITS | (negative != negate ? KILN_SPZ_SMALLEST_SIGN : 0u) |
               (size < most ? size : most);
    }
    return word;
}

/* Is this the quaternion that the word stands for, float by float, or its negative? */
static bool decodes_to(uint32_t word, const float wxyz[4])
{
    float d[4];
    kiln_spz_smallest_three(word, d);
    return (d[0] == wxyz[0] && d[1] == wxyz[1] && d[2] == wxyz[2] && d[3] == wxyz[3]) ||
           (d[0] == -wxyz[0] && d[1] == -wxyz[1] && d[2] == -wxyz[2] && d[3] == -wxyz[3]);
}

/* Is another component so near to the largest that rounding can exchange them? */
static bool has_rival(const float q[4], uint32_t largest)
{
    const float near = fabsf(q[largest]) - 0.01f; /* seven steps of a code */
    int n = 0;
    for (uint32_t c = 0; c < 4; c++) n += fabsf(q[c]) > near;
    return n > 1;
}

/* The component that is left out is the largest, of two equal ones the first. Rounding to a code
 * can make the second largest the largest, so that of what was read from a code another one would
 * be left out now. Where it is that close, the word that gives the floats back is the one that they
 * were read from. */
static uint32_t word_of(const float wxyz[4], bool signed_zeros)
{
    float q[4];
    uint32_t largest = 0;
    make_unit(wxyz, q);
    for (uint32_t c = 1; c < 4; c++)
        if (fabsf(q[c]) > fabsf(q[largest])) largest = c;
    const uint32_t word = smallest_three(q, largest, signed_zeros);
    if (!has_rival(q, largest) || decodes_to(word, wxyz)) return word;
    for (uint32_t c = 0; c < 4; c++) {
        /* the largest of four is at least a half */
        if (c == largest || fabsf(q[c]) < 0.49f) continue;
        const uint32_t other = smallest_three(q, c, signed_zeros);
        if (decodes_to(other, wxyz)) return other;
    }
    return word;
}

/* x, y, z of the unit quaternion whose w is not negative; readers take w from them. */
static void put_first_three(const float wxyz[4], unsigned char out[3])
{
    float q[4];
    make_unit(wxyz, q);
    const float sign = q[3] < 0.0f ? -KILN_SPZ_FIRST_THREE : KILN_SPZ_FIRST_THREE;
    for (int c = 0; c < 3; c++) out[c] = nearest_code(q[c] * sign + KILN_SPZ_FIRST_THREE);
}

static void put_rotations(const kiln_spz_coding *coding, const kiln_spz_values *v,
                          unsigned char *out)
{
    const int *turn = coding->to_rub ? half_turn : no_turn;
    int sign[4], of_sh[24];
    kiln_turn_signs(turn, sign, of_sh);
    for (uint64_t i = 0; i < v->n; i++) {
        float q[4];
        for (uint64_t c = 0; c < 4; c++) q[c] = (float)sign[c] * v->quats[c * v->stride + i];
        if (coding->first_three) {
            put_first_three(q, out + 3 * i);
            continue;
        }
        const uint32_t word = word_of(q, coding->signed_zeros);
        kiln_put_u32(out + 4 * i, word);
    }
}

/* ---- spherical harmonics --------------------------------------------------------------------- */

/* Codes of n <= STEP values; marks the rows whose value is beyond. bucket: codes are its multiples,
 * but for 255. Nearest multiples at once: nianticlabs/spz rounds to a whole number first, and half
 * a multiple always up, so that one value in `bucket` is wrong and all colours move to one side. */
static void code_sh(const float *v, uint64_t n, float sign, int32_t bucket, unsigned char *codes,
                    unsigned char *far)
{
    /* a power of two, so products are exact */
    const float scale = sign * KILN_SPZ_SH_STEPS / (float)bucket;
#pragma omp simd
    for (uint64_t i = 0; i < n; i++) {
        const float x = v[i], within = x < -4.0f ? -4.0f : x > 4.0f ? 4.0f : x;
        int32_t code = nearest_whole(within * scale) * bucket + KILN_SPZ_SH_ZERO;
        code = code < 0 ? 0 : code;
        codes[i] = (unsigned char)(code > 255 ? 255 : code);
        far[i] |= (x < -1.0f) | (x > 1.0f);
    }
}

static uint64_t put_sh(const kiln_spz_coding *coding, const kiln_spz_values *v, unsigned char *out)
{
    const uint32_t coefficients = kiln_sh_coefficients(coding->sh_degree),
                   components = 3 * coefficients;
    const int *turn = coding->to_rub ? half_turn : no_turn;
    uint64_t beyond = 0;
    int of_quat[4], sign[24];
    kiln_turn_signs(turn, of_quat, sign);
    for (uint64_t at = 0; at < v->n && components; at += STEP) {
        const uint64_t k = v->n - at < STEP ? v->n - at : STEP;
        unsigned char codes[SH_MAX][STEP], far[STEP] = {0};
        for (uint32_t c = 0; c < components; c++) {
            const uint32_t bits = c < 9 ? coding->first_bits : coding->other_bits;
            code_sh(v->shN + c * v->stride + at, k, (float)sign[c / 3], 1 << (8 - bits), codes[c],
                    far);
        }
        for (uint64_t i = 0; i < k; i++) {
            unsigned char *row = out + (at + i) * components;
            for (uint32_t c = 0; c < components; c++) row[c] = codes[c][i];
            beyond += far[i];
        }
    }
    return beyond;
}

void kiln_spz_encode(const kiln_spz_coding *coding, const kiln_spz_values *v,
                     unsigned char *const planes[KILN_SPZ_PLANES], kiln_spz_clamped *clamped)
{
    put_positions(coding, v, planes[KILN_SPZ_POSITIONS]);
    put_alphas(v, planes[KILN_SPZ_ALPHAS]);
    clamped->colours +=
        put_linear(v->sh0, v->n, v->stride, 0.0f, (float)(255 * KILN_SPZ_COLOUR_SCALE), 255 * 0.5f,
                   planes[KILN_SPZ_COLOURS]);
    clamped->scales += put_linear(v->log_scales, v->n, v->stride, -KILN_SPZ_SCALE_LEAST,
                                  KILN_SPZ_SCALE_STEPS, 0.0f, planes[KILN_SPZ_SCALES]);
    put_rotations(coding, v, planes[KILN_SPZ_ROTATIONS]);
    clamped->sh += put_sh(coding, v, planes[KILN_SPZ_SH]);
}
