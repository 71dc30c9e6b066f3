/* knn_math -- the pinned distance of knn and the bound of a box that can never exceed it. */
#ifndef KILN_KERNELS_KNN_MATH_H
#define KILN_KERNELS_KNN_MATH_H

#include "base/hd.h"
#include "kernels/math/fma_math.h"

/* As nvcc compiles simple-knn, seen in its code for sm_90: the same rounding is part of the
 * definition. */
static inline KILN_HD float kiln_knn_distance2(float dx, float dy, float dz)
{
    return kiln_fmaf(dz, dz, kiln_fmaf(dx, dx, dy * dy));
}

/* The gap between [lo, hi] and [from, to] on one axis, 0 where they overlap. Rounding is monotonic:
 * for any p in the one and q in the other, fl(|p - q|) is at least this. So kiln_knn_distance2 of
 * three gaps is at most that of any two points. */
static inline KILN_HD float kiln_knn_gap(float lo, float hi, float from, float to)
{
    const float above = lo - to, below = from - hi;
    const float gap = above > below ? above : below;
    return gap > 0.0f ? gap : 0.0f;
}

#endif
