/* real64 -- exp, log, and sine and cosine of degrees, of doubles with the same bits on every
 * machine. For what is computed once, or once a row, and then rounded to float.
 *
 * Only + - * / and operations that are exact (ldexp, frexp, fmod): no libm call decides a bit.
 * Relative error of exp and absolute error of log below 4e-16 times the size of the result, over
 * the whole range; sine and cosine are right to 4e-16. Limits at +-Inf and 0; NaN gives NaN.
 */
#ifndef KILN_KERNELS_MATH_REAL64_H
#define KILN_KERNELS_MATH_REAL64_H

#include <math.h>

/* ln 2 in two parts: the first has 21 trailing zero bits, so that k * KILN_LN2_HI is exact for |k|
 * < 2^20 (fdlibm's split) */
#define KILN_LN2_HI 6.93147180369123816490e-01
#define KILN_LN2_LO 1.90821492927058770002e-10

/* exp(x) = 2^k exp(r), |r| <= ln2/2, exp(r) by its Taylor series to r^17 / 17!: below 1 ulp of 1 */
static inline double kiln_exp_f64(double x)
{
    if (x != x) return x;
    if (x > 709.78) return HUGE_VAL;
    if (x < -745.2) return 0.0;
    int k = (int)(x * 1.4426950408889634 + (x < 0 ? -0.5 : 0.5)); /* 1 / ln 2 */
    double r = (x - k * KILN_LN2_HI) - k * KILN_LN2_LO, sum = 1.0;
    for (int i = 17; i > 0; i--) sum = 1.0 + r * sum / i;
    return ldexp(sum, k);
}

/* log(m 2^k), m in [sqrt 1/2, sqrt 2): 2 artanh(t) with t = (m - 1) / (m + 1), |t| < 0.172, by its
 * series to t^21 */
static inline double kiln_log_f64(double x)
{
    if (x != x || x < 0) return (x - x) / (x - x); /* NaN */
    if (x == 0) return -HUGE_VAL;
    if (x > 1.7976931348623157e308) return x;
    int k;
    double m = frexp(x, &k);
    if (m < 0.70710678118654752) {
        m *= 2;
        k--;
    }
    double t = (m - 1) / (m + 1), t2 = t * t, sum = 0;
    for (int i = 21; i > 0; i -= 2) sum = sum * t2 + 1.0 / i;
    return k * KILN_LN2_HI + (2 * t * sum + k * KILN_LN2_LO);
}

/* Sine and cosine of a finite angle in degrees. At whole multiples of 90 they are 0, 1 and -1, at
 * odd multiples of 45 equal in size. What is left of the angle beside the nearest multiple of 90 is
 * exact, at most 45 degrees, and goes through the Taylor series. */
static inline void kiln_sincos_degrees(double degrees, double *sine, double *cosine)
{
    const double turn = fmod(degrees, 360.0);
    const int quarter = (int)(turn / 90.0 + (turn < 0 ? -0.5 : 0.5));
    /* pi / 180 */
    const double left = turn - 90.0 * quarter, a = left * 0.017453292519943295, a2 = a * a;
    double s = 1.0, c = 1.0;
    for (int i = 20; i > 0; i -= 2) s = 1.0 - a2 * s / (i * (i + 1));
    for (int i = 20; i > 0; i -= 2) c = 1.0 - a2 * c / (i * (i - 1));
    s *= a;
    if (left == 45.0 || left == -45.0) {
        c = 0.70710678118654752;
        s = left < 0 ? -c : c;
    }
    switch (quarter & 3) {
    case 0:
        *sine = s + 0.0, *cosine = c; /* + 0.0: no -0 */
        break;
    case 1:
        *sine = c, *cosine = 0.0 - s;
        break;
    case 2:
        *sine = 0.0 - s, *cosine = -c;
        break;
    default:
        *sine = -c, *cosine = s + 0.0;
        break;
    }
}

#endif
