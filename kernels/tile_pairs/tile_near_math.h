/* tile_near_math -- division and square root in a few instructions, for what need not have the same
 * bits everywhere: bounds whose proof has room. The relative error is at most 2^-22; denormal
 * numbers may count as 0. Divisors are normal and below 2^126.
 */
#ifndef KILN_KERNELS_TILE_PAIRS_TILE_NEAR_MATH_H
#define KILN_KERNELS_TILE_PAIRS_TILE_NEAR_MATH_H

#include "base/hd.h"

#include <math.h>

#ifdef __CUDA_ARCH__
static inline KILN_HD float kiln_near_div(float a, float b)
{
    float q;
    asm("div.approx.ftz.f32 %0, %1, %2;" : "=f"(q) : "f"(a), "f"(b));
    return q;
}

static inline KILN_HD float kiln_near_sqrt(float a)
{
    float r;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a));
    return r;
}
#else
static inline KILN_HD float kiln_near_div(float a, float b) { return a / b; }
static inline KILN_HD float kiln_near_sqrt(float a) { return sqrtf(a); }
#endif

#endif
