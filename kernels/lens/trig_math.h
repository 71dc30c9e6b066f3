/* trig_math -- sine, cosine, tangent and arctangent of doubles, with the same bits on every
 * machine.
 *
 * No libm and no fused operation: sums, products, quotients and square roots are rounded once
 * wherever they are computed.
 *
 * Largest error, in ulp of the result, as unit/lens measures it:
 *   kiln_atan             2 ulp
 *   kiln_sin, kiln_cos    1.2 ulp for |x| <= pi/4; within 3e-16 for |x| <= 100
 *   kiln_tan              3 ulp for |x| <= 1.5
 * NaN gives NaN. An infinite angle gives NaN.
 */
#ifndef KILN_KERNELS_LENS_TRIG_MATH_H
#define KILN_KERNELS_LENS_TRIG_MATH_H

#include "base/hd.h"

#include <math.h>

#define KILN_PI 3.14159265358979323846

/* atan t for |t| <= 1/15 by its series; what is left out is below 2^-58 of the result. */
static inline KILN_HD double kiln_atan_near(double t)
{
    const double q = t * t;
    double p = -1.0 / 15.0;
    p = p * q + 1.0 / 13.0;
    p = p * q - 1.0 / 11.0;
    p = p * q + 1.0 / 9.0;
    p = p * q - 1.0 / 7.0;
    p = p * q + 1.0 / 5.0;
    p = p * q - 1.0 / 3.0;
    return t + t * (q * p);
}

/* atan a = atan c + atan((a - c) / (1 + a c)) with c the nearest eighth; above 1 by atan a = pi/2 -
 * atan(1/a). */
static inline KILN_HD double kiln_atan(double x)
{
    const double of_eighth[9] = {0.0,
                                 0.12435499454676144,
                                 0.24497866312686414,
                                 0.35877067027057225,
                                 0.46364760900080609,
                                 0.55859931534356244,
                                 0.64350110879328437,
                                 0.71882999962162453,
                                 0.78539816339744828};
    const double size = x < 0.0 ? -x : x;
    if (!(size < 1e300)) return x != x ? x : x < 0.0 ? -KILN_PI / 2 : KILN_PI / 2;
    const int above = size > 1.0;
    const double a = above ? 1.0 / size : size;
    const int eighth = (int)(a * 8.0 + 0.5);
    const double c = (double)eighth / 8.0;
    double y = of_eighth[eighth] + kiln_atan_near((a - c) / (1.0 + a * c));
    /* pi/2 is so much more than its double */
    if (above) y = KILN_PI / 2 - (y - 6.123233995736766e-17);
    return x < 0.0 ? -y : y;
}

/* Sine and cosine of |r| <= pi/4, by their series. */
static inline KILN_HD double kiln_sin_near(double r)
{
    const double q = r * r;
    double p = 1.0 / 355687428096000.0; /* 1/17! */
    p = p * q - 1.0 / 1307674368000.0;
    p = p * q + 1.0 / 6227020800.0;
    p = p * q - 1.0 / 39916800.0;
    p = p * q + 1.0 / 362880.0;
    p = p * q - 1.0 / 5040.0;
    p = p * q + 1.0 / 120.0;
    p = p * q - 1.0 / 6.0;
    return r + r * (q * p);
}

static inline KILN_HD double kiln_cos_near(double r)
{
    const double q = r * r;
    double p = 1.0 / 20922789888000.0; /* 1/16! */
    p = p * q - 1.0 / 87178291200.0;
    p = p * q + 1.0 / 479001600.0;
    p = p * q - 1.0 / 3628800.0;
    p = p * q + 1.0 / 40320.0;
    p = p * q - 1.0 / 720.0;
    p = p * q + 1.0 / 24.0;
    p = p * q - 0.5;
    return 1.0 + q * p;
}

/* Returns r = x - n pi/2 with |r| <= pi/4, and in *quarter n modulo 4. |x| <= 10^6. */
static inline KILN_HD double kiln_quarter_turns(double x, int *quarter)
{
    const double n = floor(x * (2.0 / KILN_PI) + 0.5);
    *quarter = (int)(n - 4.0 * floor(n / 4.0));
    /* 33 bits of pi/2, so exact; and the rest */
    return (x - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11;
}

static inline KILN_HD double kiln_sin(double x)
{
    int quarter;
    if (!(x >= -1e6 && x <= 1e6)) return (double)NAN;
    const double r = kiln_quarter_turns(x, &quarter);
    const double y = quarter & 1 ? kiln_cos_near(r) : kiln_sin_near(r);
    return quarter & 2 ? -y : y;
}

static inline KILN_HD double kiln_cos(double x)
{
    int quarter;
    if (!(x >= -1e6 && x <= 1e6)) return (double)NAN;
    const double r = kiln_quarter_turns(x, &quarter);
    const double y = quarter & 1 ? kiln_sin_near(r) : kiln_cos_near(r);
    return ((quarter + 1) & 2) ? -y : y;
}

static inline KILN_HD double kiln_tan(double x) { return kiln_sin(x) / kiln_cos(x); }

#endif
