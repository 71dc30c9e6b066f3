/* byte_codes -- see the header. Everything is computed in double and rounded once. */
#include "stages/export/byte_codes.h"

#include <math.h>
#include <string.h>

enum { TILE = 256 };

/* exp(x) = 2^k exp(r), |r| <= ln2/2, exp(r) by its Taylor series to r^9 / 9!: what is left out is below a part in 10^11, a part in
 * 8,000 of half a float's last place. Straight-line code of additions and products, which compilers turn into vector code. x is
 * within -110 .. 100. */
static inline double exp_of(double x)
{
    const double magic = 6755399441055744.0;               /* 1.5 * 2^52: adding it rounds to an integer */
    const double shifted = x * 1.4426950408889634 + magic; /* 1 / ln 2 */
    const double k = shifted - magic, r = x - k * 0.69314718055994530942;
    double sum = 1.0 / 362880;
    sum = sum * r + 1.0 / 40320;
    sum = sum * r + 1.0 / 5040;
    sum = sum * r + 1.0 / 720;
    sum = sum * r + 1.0 / 120;
    sum = sum * r + 1.0 / 24;
    sum = sum * r + 1.0 / 6;
    sum = sum * r + 0.5;
    sum = sum * r + 1.0;
    sum = sum * r + 1.0;
    uint64_t bits, exponent;
    memcpy(&exponent, &shifted, sizeof exponent);
    memcpy(&bits, &sum, sizeof bits);
    bits += exponent << 52; /* the low bits of the shifted number are k; those above are shifted out */
    memcpy(&sum, &bits, sizeof sum);
    return sum;
}

void kiln_linear_scales(uint64_t n, const float *logs, float *linear)
{
#pragma omp simd
    for (uint64_t i = 0; i < n; i++) {
        const float x = logs[i];
        double v = (double)x;
        v = v > 100.0 ? 100.0 : v;   /* already beyond the largest float */
        v = v < -110.0 ? -110.0 : v; /* already below half the least one */
        const float y = (float)exp_of(v);
        linear[i] = x == x ? y : x;
    }
}

void kiln_alpha_codes(uint64_t n, const float *logits, uint8_t *codes, uint64_t stride)
{
    int32_t tile[TILE];
    for (uint64_t at = 0; at < n; at += TILE) {
        const uint64_t m = n - at < TILE ? n - at : TILE;
#pragma omp simd
        for (uint64_t i = 0; i < m; i++) {
            double v = (double)logits[at + i];
            v = v > -30.0 ? v : -30.0; /* NaN too; at 30 the code is 0 or 255 by far */
            v = v < 30.0 ? v : 30.0;
            tile[i] = (int32_t)(255.0 / (1.0 + exp_of(-v)) + 0.5);
        }
        for (uint64_t i = 0; i < m; i++) codes[(at + i) * stride] = (uint8_t)tile[i];
    }
}

void kiln_unit_quat(const float q[4], double unit[4])
{
    double largest = 0, sum = 0;
    for (int c = 0; c < 4; c++) {
        const double size = fabs((double)q[c]);
        unit[c] = (double)q[c];
        largest = size > largest || size != size ? size : largest;
    }
    for (int c = 0; c < 4; c++) sum += unit[c] * unit[c]; /* of floats, whose squares neither overflow nor vanish in double */
    if (!(largest > 0 && sum < HUGE_VAL)) {
        unit[0] = 1, unit[1] = unit[2] = unit[3] = 0;
        return;
    }
    const double length = sqrt(sum);
    for (int c = 0; c < 4; c++) unit[c] /= length;
}
