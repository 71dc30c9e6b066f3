/* raster_backward_math -- what one pixel adds to a Gaussian's sums, and the units in which they are
 * added; shared by both siblings.
 *
 * Front to back, as the picture was drawn: what lies behind a Gaussian is what the picture has and
 * what was not drawn yet. One number is enough for it, `rest`: the residual times the colour that
 * is still to come, background included.
 */
#ifndef KILN_KERNELS_RASTER_BACKWARD_MATH_H
#define KILN_KERNELS_RASTER_BACKWARD_MATH_H

#include "base/minmax.h"
#include "kernels/math/reach_math.h"
#include "kernels/raster/raster_math.h"
#include "kernels/raster_backward/raster_backward.h"

/* A contribution is at most 2^40 units; 2^22 pixels make 2^62. */
#define KILN_BACKWARD_LIMIT 0x1p40f

/* The largest magnitudes in a picture, as bits, whose order is that of the magnitudes; NaN is the
 * largest. */
typedef struct {
    uint32_t residual, colour;
} kiln_backward_most;

static inline KILN_HD uint32_t kiln_magnitude(float v) { return kiln_bits_of(v) & 0x7fffffffu; }

static inline KILN_HD uint32_t kiln_most(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* a.b of three colours */
static inline KILN_HD float kiln_backward_dot(const float a[3], float red, float green, float blue)
{
    return kiln_fmaf(a[2], blue, kiln_fmaf(a[0], red, a[1] * green));
}

/* A pixel before anything was drawn into it. */
typedef struct {
    float residual[3];
    float rest;
} kiln_backward_pixel;

static inline KILN_HD kiln_backward_pixel kiln_backward_start(const float *rgba,
                                                              const float *target,
                                                              const float *background)
{
    kiln_backward_pixel p;
    float c[3];
    for (int k = 0; k < 3; k++) {
        c[k] = kiln_fmaf(1.0f - rgba[3], background[k], rgba[k]);
        p.residual[k] = c[k] - kiln_fmaf(1.0f - target[3], background[k], target[k]);
    }
    p.rest = kiln_backward_dot(p.residual, c[0], c[1], c[2]);
    return p;
}

/* The least e with |v| < 2^e, within [-60, 60]. Not for denormals, which are below 2^-60 anyway. */
static inline KILN_HD int kiln_exponent_above(uint32_t magnitude)
{
    const int e = (int)(magnitude >> 23) - 126;
    return e < -60 ? -60 : e > 60 ? 60 : e;
}

/* 2^e of |e| <= 126. */
static inline KILN_HD float kiln_two_to(int e) { return kiln_float_of((uint32_t)(e + 127) << 23); }

/* log2 of the units' inverse for a power, a colour, and for distances across and down. */
typedef struct {
    int power, colour, x, y;
} kiln_backward_units;

/* Units for a Gaussian with this conic and power_min. |g| is less than 8 times the largest residual
 * times the largest colour (DESIGN.md), and a distance at most the reach. */
static inline KILN_HD kiln_backward_units kiln_backward_units_of(const float conic[3],
                                                                 float power_min,
                                                                 kiln_backward_most most)
{
    kiln_backward_units u;
    float half_x, half_y;
    kiln_half_reaches(conic[0], conic[1], conic[2], power_min, &half_x, &half_y);
    const int residual = kiln_exponent_above(most.residual),
              colour = kiln_exponent_above(most.colour);
    const int x = kiln_exponent_above(kiln_magnitude(half_x)),
              y = kiln_exponent_above(kiln_magnitude(half_y));
    u.power = 40 - (residual + colour + 3);
    u.colour = 40 - residual;
    u.power = u.power < -40 ? -40 : u.power > 80 ? 80 : u.power;
    u.x = x > 20 ? 20 : x < -3 ? -3 : x;
    u.y = y > 20 ? 20 : y < -3 ? -3 : y;
    return u;
}

/* Factors of the nine sums, in the order of kiln_backward_plane. */
static inline KILN_HD void kiln_backward_factors(kiln_backward_units u,
                                                 float f[KILN_BACKWARD_PLANES])
{
    f[KILN_BACKWARD_POWER] = kiln_two_to(u.power);
    f[KILN_BACKWARD_X] = kiln_two_to(u.power - u.x);
    f[KILN_BACKWARD_Y] = kiln_two_to(u.power - u.y);
    f[KILN_BACKWARD_XX] = kiln_two_to(u.power - 2 * u.x);
    f[KILN_BACKWARD_XY] = kiln_two_to(u.power - u.x - u.y);
    f[KILN_BACKWARD_YY] = kiln_two_to(u.power - 2 * u.y);
    for (int k = KILN_BACKWARD_RED; k <= KILN_BACKWARD_BLUE; k++) f[k] = kiln_two_to(u.colour);
}

/* Units, not yet rounded to a whole number; NaN is the least. */
static inline KILN_HD float kiln_backward_limited(float v, float factor)
{
    return kiln_clamp_f32(v * factor, -KILN_BACKWARD_LIMIT, KILN_BACKWARD_LIMIT);
}

/* dE/dpower of a Gaussian with weight w = alpha T. gd: residual times its colour; rest: what is
 * behind it. */
static inline KILN_HD float kiln_backward_power(float w, float gd, float rest, float alpha)
{
    return kiln_fmaf(w, gd, -(rest * (alpha / (1.0f - alpha))));
}

/* The nine terms, in the order of kiln_backward_plane. */
static inline KILN_HD void kiln_backward_terms(float g, float dx, float dy, float w,
                                               const float residual[3],
                                               float t[KILN_BACKWARD_PLANES])
{
    const float gx = g * dx, gy = g * dy;
    t[KILN_BACKWARD_POWER] = g;
    t[KILN_BACKWARD_X] = gx;
    t[KILN_BACKWARD_Y] = gy;
    t[KILN_BACKWARD_XX] = gx * dx;
    t[KILN_BACKWARD_XY] = gx * dy;
    t[KILN_BACKWARD_YY] = gy * dy;
    t[KILN_BACKWARD_RED] = w * residual[0];
    t[KILN_BACKWARD_GREEN] = w * residual[1];
    t[KILN_BACKWARD_BLUE] = w * residual[2];
}

/* A sum as a number. The sum is rounded once to 53 digits, then to 24; the power of two is exact
 * but for denormals. */
static inline KILN_HD float kiln_backward_value(int64_t sum, float factor)
{
    return (float)((double)sum / (double)factor);
}

#endif
