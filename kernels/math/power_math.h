/* power_math -- the exponent of a Gaussian at a pixel, and the least exponent that can show: pinned
 * arithmetic, the same bits wherever it is evaluated. tile_pairs decides with it what is listed and
 * the raster draws with it, so that a picture drawn from a list loses nothing
 * (kernels/tile_pairs/tile_pairs.h).
 *
 *   power = -1/2 (A dx^2 + C dy^2) - B dx dy      conic (A, B, C); dx = x - (px + 0.5), dy = y -
 *                                                 (py + 0.5)
 *
 * written as a polynomial in dx, whose coefficients depend on the row alone:
 *
 *   power = (half_a dx + slope) dx + base         half_a = -A/2 (exact), slope = -(B dy), base =
 *                                                 (-C/2 dy) dy
 *
 * so that a pixel costs one subtraction and two fmaf. kiln_power is the definition; it is composed
 * of the pieces, and a loop over a row may take half_a, slope and base out of the loop without
 * changing a bit:
 *
 *   const float half_a = kiln_power_half(a), dy = kiln_power_offset(y, py);
 *   const float slope = kiln_power_slope(b, dy), base = kiln_power_base(kiln_power_half(c), dy);
 *   for (px ...) power = kiln_power_at(half_a, slope, base, kiln_power_offset(x, px));
 *
 * Rounding may leave a power slightly above 0 near the centre; what then happens is the profile's
 * own rule.
 */
#ifndef KILN_KERNELS_MATH_POWER_MATH_H
#define KILN_KERNELS_MATH_POWER_MATH_H

#include "kernels/math/real.h"

/* From the centre of pixel column or row `p` (below 2^20, so p + 0.5 is exact) to the 2D mean. */
static inline KILN_HD float kiln_power_offset(float mean, uint32_t p)
{
    return mean - ((float)(int32_t)p + 0.5f);
}

/* -A/2 or -C/2: exact, but for denormals. */
static inline KILN_HD float kiln_power_half(float a) { return -0.5f * a; }

static inline KILN_HD float kiln_power_slope(float b, float dy) { return -(b * dy); }

static inline KILN_HD float kiln_power_base(float half_c, float dy) { return half_c * dy * dy; }

static inline KILN_HD float kiln_power_at(float half_a, float slope, float base, float dx)
{
    return kiln_fmaf(kiln_fmaf(half_a, dx, slope), dx, base);
}

static inline KILN_HD float kiln_power(float a, float b, float c, float dx, float dy)
{
    return kiln_power_at(kiln_power_half(a), kiln_power_slope(b, dy),
                         kiln_power_base(kiln_power_half(c), dy), dx);
}

/* The least power that is listed: ln((1 - 2^-14) / (255 opacity)). The margin of 2^-14 covers the
 * raster's own exp (which may be a GPU's) at its test alpha >= 1/255. Opacity 0, negative or NaN:
 * nothing is listed. */
static inline KILN_HD float kiln_power_min(float opacity)
{
    return opacity > 0.0f ? kiln_logf(0.99993896484375f / (255.0f * opacity)) : INFINITY;
}

/* The same for an opacity that is listed, in fewer instructions: a number that is normal, as is its
 * reciprocal. */
static inline KILN_HD float kiln_power_min_normal(float opacity, int tame)
{
    return kiln_logf_normal(kiln_quotient(0.99993896484375f, 255.0f * opacity, tame));
}

#endif
