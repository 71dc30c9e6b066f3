/* reach_math -- how far from its centre a Gaussian can reach a power at all: a proven bound on the
 * pinned power, with which whole rows or columns are left out before any pixel is looked at.
 * Leaving out changes no result.
 *
 * With Q = (A dx^2 + 2B dx dy + C dy^2) / 2 the exact power is -Q. Its terms may be larger than Q,
 * by no more than AC / det, det = AC - B^2: A dx^2 / 2 and C dy^2 / 2 are at most Q AC/det, and |B
 * dx dy| is at most their sum. The pinned power rounds each term a few times and ends at most 6 *
 * 2^-24 Q AC/det from -Q; with det >= 2^-12 AC less than Q / 512. So a pixel that reaches t has Q
 * (1 - 2^-9) <= |t|. On the row at distance dy, Q is at least dy^2 det / (2A), hence
 * |dy| <= sqrt(2 |t| A / det) (1 + 2^-8), which also covers the rounding of dy; for columns exchange A and C.
 */
#ifndef KILN_KERNELS_MATH_REACH_MATH_H
#define KILN_KERNELS_MATH_REACH_MATH_H

#include "base/hd.h"

#include <math.h>
#include <stdint.h>

/* Half the height in pixels of what can reach t, given the conic (a, b, c); for half the width
 * exchange a and c. INFINITY where nothing is proven: needles, what is not positive definite, and
 * what is not finite. */
static inline KILN_HD double kiln_half_reach(float a, float b, float c, float t)
{
    const double da = (double)a, dc = (double)c, db = (double)b, all = da * dc, det = all - db * db;
    /* 2^-12 */
    if (!(a >= 1e-15f && c >= 1e-15f && a <= 1e15f && c <= 1e15f && fabsf(t) <= 1e30f &&
          det >= 0.000244140625 * all))
        return (double)INFINITY;
    return sqrt(2.0 * fabs((double)t) * da / det) * 1.00390625 + 1e-3; /* 1 + 2^-8 */
}

/* Is the bound proven in float, too? det: AC - B^2 as computed; all: AC. True only where det is
 * within 2^-13 of the exact one: for less flat Gaussians than kiln_half_reach takes. Without a
 * branch. */
static inline KILN_HD int kiln_reach_is_proven(float a, float c, float t, float det, float all)
{
    return (a >= 1e-15f) & (c >= 1e-15f) & (a <= 1e15f) & (c <= 1e15f) & (fabsf(t) <= 1e30f) &
           (det >= 0.0009765625f * all); /* 2^-10 */
}

/* Both in float, in a third of the time, for less flat ones alone: det, as computed, is within
 * 2^-13 of itself here, for which the factor has room. Without a branch, so that loops become
 * vectors. Returns whether they are finite. */
static inline KILN_HD int kiln_half_reaches(float a, float b, float c, float t, float *half_x,
                                            float *half_y)
{
    const float all = a * c, det = all - b * b, k = 2.0f * fabsf(t) / det;
    const int proven = kiln_reach_is_proven(a, c, t, det, all);
    *half_x = proven ? sqrtf(k * c) * 1.00390625f + 1e-3f : INFINITY; /* 1 + 2^-8 */
    *half_y = proven ? sqrtf(k * a) * 1.00390625f + 1e-3f : INFINITY;
    return proven;
}

/* The whole numbers p in [first, last] with |mean - (p + 0.5)| <= half; none: *from > *to. mean is
 * finite, or half is infinite. */
static inline KILN_HD void kiln_reach_range(float mean, double half, int32_t first, int32_t last,
                                            int32_t *from, int32_t *to)
{
    const double lo = (double)mean - 0.5 - half, hi = (double)mean - 0.5 + half;
    *from = lo > (double)first ? (lo <= (double)last ? (int32_t)ceil(lo) : last + 1) : first;
    *to = hi < (double)last ? (hi >= (double)first ? (int32_t)floor(hi) : first - 1) : last;
}

#endif
