/* codes -- see the header. */
#include "stages/formats/codes.h"

#include "base/harmonics.h"

#include "kernels/math/real.h"
#include "kernels/math/real64.h"

#include <math.h>
#include <string.h>

void kiln_code_logits(float table[256])
{
    for (int b = 0; b < 256; b++)
        table[b] = b == 255 ? HUGE_VALF : (float)kiln_log_f64((double)b / (255.0 - (double)b));
}

void kiln_code_colours(float table[256])
{
    for (int b = 0; b < 256; b++) table[b] = (float)(((double)b / 255.0 - 0.5) / KILN_SH_C0_F64);
}

/* ln(m 2^e) = 2 artanh(t) + e ln 2 with t = (m - 1) / (m + 1), m in [2/3, 4/3), so |t| <= 1/5: its
 * series to t^13, in double. What is left out is below 2 |t| 5^-14 / 15, a part in 5000 of the last
 * place of a float. */
static inline float log_of_parts(double m, int32_t e)
{
    const double t = (m - 1.0) / (m + 1.0), t2 = t * t, ln2 = 0.69314718055994530942;
    double sum = t2 * (1.0 / 13) + 1.0 / 11;
    sum = sum * t2 + 1.0 / 9;
    sum = sum * t2 + 1.0 / 7;
    sum = sum * t2 + 1.0 / 5;
    sum = sum * t2 + 1.0 / 3;
    return (float)((2 * t + 2 * t * t2 * sum) + (double)e * ln2);
}

static inline float log_of(float x)
{
    const int tiny = x < 1.17549435e-38f; /* denormal, zero or negative */
    const uint32_t u = kiln_bits_of(tiny ? x * 8388608.0f : x);
    const uint32_t above = u - 0x3f2aaaabu;
    const int32_t e = (int32_t)above >> 23;
    float y = log_of_parts((double)kiln_float_of(u - ((uint32_t)e << 23)), tiny ? e - 23 : e);
    y = x > 3.40282347e38f ? x : y; /* +infinity */
    y = x > 0.0f ? y : NAN;         /* negative, NaN */
    return x == 0.0f ? -HUGE_VALF : y;
}

void kiln_log_scales(uint64_t n, const float *linear, float *logs)
{
#pragma omp simd
    for (uint64_t i = 0; i < n; i++) logs[i] = log_of(linear[i]);
}

/* The quotient stays a double: as a float it would lose half of the digits of logits around 0. */
void kiln_alpha_logits(uint64_t n, const double *alphas, float *logits)
{
    for (uint64_t i = 0; i < n; i++) {
        const double a = alphas[i], odds = a > 1e-300 && a < 1.0 ? a / (1.0 - a) : 1.0;
        uint64_t u;
        double m;
        memcpy(&u, &odds, sizeof u);
        const int32_t e = (int32_t)((uint32_t)(u >> 32) - 0x3fe55556u) >> 20;
        u -= (uint64_t)(uint32_t)e << 52;
        memcpy(&m, &u, sizeof m);
        const float y = log_of_parts(m, e);
        logits[i] = a >= 1.0 ? HUGE_VALF : a > 1e-300 ? y : a == a ? -HUGE_VALF : NAN;
    }
}
