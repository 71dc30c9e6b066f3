/* linear -- see the header. Loops without branches on values, which the compiler makes vectors
 * of. */
#include "stages/formats/linear.h"

#include "base/harmonics.h"

#include "kernels/math/real.h"

#include <math.h>
#include <string.h>

enum { TILE = 256 };

/* exp(x) = 2^k exp(r), |r| <= ln2 / 2; exp(r) by its series to r^10 / 10!. What is left out is
 * below 3e-13 of it, a part in 200,000 of the last place of a float. -700 <= x <= 700. */
static inline double exp_of(double x)
{
    /* 1.5 * 2^52: adding it rounds to an integer, which then is the low bits */
    const double magic = 6755399441055744.0;
    /* 1 / ln 2 */
    const double shifted = x * 1.4426950408889634 + magic, k = shifted - magic;
    /* ln 2 in two parts (real64.h) */
    const double r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
    double sum = r * (1.0 / 3628800) + 1.0 / 362880, power;
    sum = sum * r + 1.0 / 40320;
    sum = sum * r + 1.0 / 5040;
    sum = sum * r + 1.0 / 720;
    sum = sum * r + 1.0 / 120;
    sum = sum * r + 1.0 / 24;
    sum = sum * r + 1.0 / 6;
    sum = sum * r + 1.0 / 2;
    sum = sum * r + 1.0;
    sum = sum * r + 1.0;
    uint64_t u;
    memcpy(&u, &shifted, sizeof u);
    u = (u + 1023) << 52;
    memcpy(&power, &u, sizeof power);
    return sum * power;
}

static inline double within(double x, double lo, double hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

void kiln_linear_scales(uint64_t n, const float *logs, float *linear)
{
#pragma omp simd
    for (uint64_t i = 0; i < n; i++) {
        const float x = logs[i], y = (float)exp_of(within((double)x, -105, 89));
        linear[i] = x == x ? y : x;
    }
}

uint64_t kiln_alphas(uint64_t n, const float *logits, float *alphas)
{
    const float least = 1.17549435e-38f, most = 0.99999994f; /* 1 - 2^-24 */
    uint32_t held = 0;
#pragma omp simd reduction(+ : held)
    for (uint64_t i = 0; i < n; i++) {
        const float a = (float)(1.0 / (1.0 + exp_of(within(-(double)logits[i], -105, 105))));
        held += a < least || a > most;
        alphas[i] = a < least ? least : a > most ? most : a;
    }
    return held;
}

void kiln_unit_quats(uint64_t n, const float *quats, float *unit)
{
    for (uint64_t i = 0; i < n; i++) {
        const double w = (double)quats[i], x = (double)quats[n + i], y = (double)quats[2 * n + i],
                     z = (double)quats[3 * n + i];
        const double squared = w * w + x * x + y * y + z * z, off = squared - 1.0;
        const double by = off < 0x1p-16 && off > -0x1p-16 ? 1.0
                          : squared > 0                   ? 1.0 / sqrt(squared)
                                                          : 0.0;
        unit[i] = by == 0.0 ? 1.0f : (float)(w * by);
        unit[n + i] = (float)(x * by);
        unit[2 * n + i] = (float)(y * by);
        unit[3 * n + i] = (float)(z * by);
    }
}

uint64_t kiln_colour_codes(uint64_t n, const float *sh0, uint8_t *codes)
{
    uint32_t clamped = 0;
#pragma omp simd reduction(+ : clamped)
    for (uint64_t i = 0; i < n; i++) {
        const float c = (float)((double)sh0[i] * KILN_SH_C0_F64 + 0.5) * 255.0f;
        clamped += c < -0.5f || c > 255.5f;
        codes[i] = (uint8_t)(int32_t)((c < 0 ? 0 : c > 255 ? 255 : c) + 0.5f);
    }
    return clamped;
}

void kiln_opacity_codes(uint64_t n, const float *logits, uint8_t *codes, uint64_t stride)
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
    /* of floats, whose squares neither overflow nor vanish in double */
    for (int c = 0; c < 4; c++) sum += unit[c] * unit[c];
    if (!(largest > 0 && sum < HUGE_VAL)) {
        unit[0] = 1, unit[1] = unit[2] = unit[3] = 0;
        return;
    }
    const double length = sqrt(sum);
    for (int c = 0; c < 4; c++) unit[c] /= length;
}
