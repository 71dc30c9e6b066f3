/* raster_reach -- which quarters of a tile, 8 x 8 pixels each, a Gaussian can reach at all: in float and without a square
 * root or a division that is rounded correctly, for a GPU that asks it of every pair. What it leaves out no pixel draws.
 *
 * With Q(u, v) = (A u^2 + 2B u v + C v^2) / 2, u and v from the mean to a pixel centre, and det = AC - B^2: a pixel whose
 * pinned power reaches t has Q <= |t| (1 + 2^-8) where det >= 2^-12 AC (reach_math.h). Here det comes from one fmaf and is
 * off by at most 2^-24 AC + 2^-24 det. Two tests:
 *
 * The box. det >= 2^-11 AC as computed is at least 2^-12 AC, and right to 2^-11, its root to 2^-12. So the half sides
 * sqrt(2 |t| A / det), sqrt(2 |t| C / det) enlarged by 2^-7, which is 2^-8 and room for that, for some units in the last
 * place of the quotient and the root, and for the offsets' own rounding (2^-23 of themselves; 1e-3 where they are small).
 *
 * The least Q over the quarter's rectangle of pixel centres, enlarged by 1e-3 each way. The least of a convex form lies at
 * the mean or on an edge that faces it; on such an edge at the clamped -B e / C or -B e / A. An edge may be looked at that
 * does not face the mean: its Q is that of a point of the rectangle, so the smaller of two is still the least. That point
 * may be off by 2^-20 of itself, which adds 2^-40 B^2 e^2 / C <= 2^-40 A e^2 to Q. Each term of Q is at most Q AC / det,
 * so with det >= 2^-8 AC offsets right to 2^-22 and 8 roundings change Q by less than 2^-11 of it, and the limit
 * |t| (1 + 2^-7) keeps every pixel that reaches t.
 */
#ifndef KILN_KERNELS_RASTER_REACH_H
#define KILN_KERNELS_RASTER_REACH_H

#include "base/hd.h"
#include "kernels/view.h"

#include <math.h>
#include <stdint.h>

enum { KILN_QUARTER = KILN_TILE / 2, KILN_QUARTERS = 4 }; /* bit 0 upper left, 1 upper right, 2 lower left, 3 lower right */

/* Right to some units in the last place. */
static inline KILN_HD float kiln_rough_divide(float a, float b)
{
#ifdef __CUDA_ARCH__
    return __fdividef(a, b); /* 0 for b above 2^126: not here */
#else
    return a / b;
#endif
}

static inline KILN_HD float kiln_rough_sqrt(float v)
{
#ifdef __CUDA_ARCH__
    float root;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(root) : "f"(v));
    return root;
#else
    return sqrtf(v);
#endif
}

typedef struct {
    float a, b, c; /* conic */
    float det;
    float t; /* |power_min| */
} kiln_reach;

/* Is anything proven? Not for needles, for what is not positive definite, and for what is not finite. */
static inline KILN_HD int kiln_reach_is_known(const kiln_reach *r)
{
    return (r->a >= 1e-15f) & (r->c >= 1e-15f) & (r->a <= 1e15f) & (r->c <= 1e15f) & (r->t <= 1e15f) &
           (r->det >= 0x1p-11f * (r->a * r->c));
}

static inline KILN_HD float kiln_clampf(float v, float lo, float hi) { return fminf(fmaxf(v, lo), hi); }

/* The least A u^2 + 2B u v + C v^2 over a rectangle around (left + 3.5, top + 3.5), 7.002 each way. */
static inline KILN_HD float kiln_least_form(const kiln_reach *r, float b_over_a, float b_over_c, float left, float top)
{
    const float u0 = left - 1e-3f, u1 = left + (KILN_QUARTER - 1 + 1e-3f), v0 = top - 1e-3f, v1 = top + (KILN_QUARTER - 1 + 1e-3f);
    const float eu = kiln_clampf(0.0f, u0, u1), ev = kiln_clampf(0.0f, v0, v1);
    const float v = kiln_clampf(-b_over_c * eu, v0, v1), u = kiln_clampf(-b_over_a * ev, u0, u1);
    const float across = fmaf(fmaf(r->a, eu, 2.0f * r->b * v), eu, r->c * v * v);
    const float along = fmaf(fmaf(r->a, u, 2.0f * r->b * ev), u, r->c * ev * ev);
    return fminf(across, along);
}

/* One bit for each half of 16 pixels that meets [lo, hi], in pixels from the first one's centre. */
static inline KILN_HD uint32_t kiln_halves_met(float lo, float hi)
{
    return (uint32_t)((lo <= KILN_QUARTER - 1) & (hi >= 0.0f)) | (uint32_t)((lo <= KILN_TILE - 1) & (hi >= KILN_QUARTER)) << 1;
}

/* The quarters of the tile whose first pixel is (px0, py0) that a Gaussian at (x, y) may reach. A mean that is not finite
 * reaches none or some: no pixel of it is drawn. */
static inline KILN_HD uint32_t kiln_quarters_reached(float x, float y, const float conic[3], float power_min, uint32_t px0,
                                                     uint32_t py0)
{
    const kiln_reach r = {conic[0], conic[1], conic[2], fmaf(conic[0], conic[2], -(conic[1] * conic[1])), fabsf(power_min)};
    if (!kiln_reach_is_known(&r)) return (1u << KILN_QUARTERS) - 1;
    const float mx = x - ((float)(int32_t)px0 + 0.5f), my = y - ((float)(int32_t)py0 + 0.5f);
    const float scale = kiln_rough_divide(2.0f * r.t, r.det);
    const float half_width = kiln_rough_sqrt(scale * r.c) * 1.0078125f + 1e-3f; /* 1 + 2^-7 */
    const float half_height = kiln_rough_sqrt(scale * r.a) * 1.0078125f + 1e-3f;
    const uint32_t columns = kiln_halves_met(mx - half_width, mx + half_width);
    const uint32_t rows = kiln_halves_met(my - half_height, my + half_height);
    uint32_t quarters = (rows & 1 ? columns : 0) | (rows & 2 ? columns << 2 : 0);
    if (r.det < 0x1p-8f * (r.a * r.c)) return quarters;
    const float limit = 2.0f * r.t * 1.0078125f, b_over_a = kiln_rough_divide(r.b, r.a), b_over_c = kiln_rough_divide(r.b, r.c);
    for (uint32_t q = 0; q < KILN_QUARTERS; q++) {
        const float left = (float)(q % 2 * KILN_QUARTER) - mx, top = (float)(q / 2 * KILN_QUARTER) - my;
        if (kiln_least_form(&r, b_over_a, b_over_c, left, top) > limit) quarters &= ~(1u << q);
    }
    return quarters;
}

#endif
