/* raster_reach -- can a Gaussian reach a quarter of a tile, 8 x 8 pixels, at all? In float and
 * without a square root or a division that is rounded correctly, for a GPU that asks it of every
 * pair. What it leaves out no pixel draws.
 *
 * With Q(u, v) = (A u^2 + 2B u v + C v^2) / 2, u and v from the mean to a pixel centre, and det =
 * AC - B^2: where det >= 2^-12 AC, a pixel whose pinned power reaches t has Q <= |t| (1 + 2^-8),
 * and no pinned power is above 0, as it is less than Q / 512 from -Q (reach_math.h; A and C from
 * 1e-15 on and offsets of at least 2^-25, or 0, keep the terms far from denormals). Here det comes
 * from one fmaf and is off by at most 2^-24 AC + 2^-24 det, so det >= 2^-11 AC as computed is
 * enough, and AC / det is at most 2^11 (1 + 2^-12).
 *
 * The test is the least Q over the rectangle of the quarter's pixel centres, enlarged by 1e-3 each
 * way. The least of a convex form lies at the mean or on an edge that faces it; on such an edge at
 * the clamped -B e / C or -B e / A. An edge may be looked at that does not face the mean: its Q is
 * that of a point of the rectangle, so the smaller of two is still the least. That point may be off
 * by 2^-20 of itself, which adds 2^-40 B^2 e^2 / C <= 2^-40 A e^2 to Q. A u^2 / 2 and C v^2 / 2 are
 * at most Q AC / det and |B u v| at most their sum, 2^13 Q in all: five roundings change Q by less
 * than 2^-8.6 of it, offsets right to 2^-22 by 2^-8. With the 2^-8 of above that is less than 2^-6,
 * by which the limit is enlarged.
 */
#ifndef KILN_KERNELS_RASTER_REACH_H
#define KILN_KERNELS_RASTER_REACH_H

#include "base/hd.h"
#include "base/minmax.h"
#include "kernels/view.h"

#include <math.h>
#include <stdint.h>

enum { KILN_QUARTER = KILN_TILE / 2 };

typedef enum {
    KILN_REACH_NONE, /* no pixel of the quarter reaches the threshold */
    KILN_REACH_SOME, /* one may, and no power of it anywhere is above 0 */
    /* nothing is proven: needles, what is not positive definite, what is not finite */
    KILN_REACH_UNKNOWN
} kiln_raster_reach;

/* Right to some units in the last place; not for denormals. */
static inline KILN_HD float kiln_rough_inverse(float v)
{
#ifdef __CUDA_ARCH__
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(v));
    return inverse;
#else
    return 1.0f / v;
#endif
}

/* The least A u^2 + 2B u v + C v^2 over u in [left - 1e-3, left + 7.001] and v in [top - 1e-3, top
 * + 7.001]. */
static inline KILN_HD float kiln_least_form(float a, float b, float c, float left, float top)
{
    const float u0 = left - 1e-3f, u1 = left + (KILN_QUARTER - 1 + 1e-3f), v0 = top - 1e-3f,
                v1 = top + (KILN_QUARTER - 1 + 1e-3f);
    const float eu = kiln_clamp_f32(0.0f, u0, u1), ev = kiln_clamp_f32(0.0f, v0, v1);
    const float v = kiln_clamp_f32(-b * kiln_rough_inverse(c) * eu, v0, v1),
                u = kiln_clamp_f32(-b * kiln_rough_inverse(a) * ev, u0, u1);
    const float across = fmaf(fmaf(2.0f * b, v, a * eu), eu, c * v * v);
    const float along = fmaf(fmaf(2.0f * b, ev, a * u), u, c * ev * ev);
    return fminf(across, along);
}

/* Of a Gaussian at (x, y), on the quarter whose first pixel has its centre at (corner_x, corner_y).
 * What is not a number makes comparisons false: then something may be reached, or nothing is
 * known. */
static inline KILN_HD kiln_raster_reach kiln_quarter_reach(float x, float y, const float conic[3],
                                                           float power_min, float corner_x,
                                                           float corner_y)
{
    const float a = conic[0], b = conic[1], c = conic[2], ac = a * c, det = fmaf(a, c, -(b * b));
    if (!((a >= 1e-15f) & (c >= 1e-15f) & (a + c <= 1e15f) & (det >= 0x1p-11f * ac)))
        return KILN_REACH_UNKNOWN;
    const float limit = 2.0f * 1.015625f * fabsf(power_min); /* 1 + 2^-6 */
    return kiln_least_form(a, b, c, corner_x - x, corner_y - y) > limit ? KILN_REACH_NONE
                                                                        : KILN_REACH_SOME;
}

#endif
