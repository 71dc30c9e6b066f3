/* tame_math -- divisions and roots without questions for special cases, where the caller knows that
 * there are none.
 *
 * A GPU takes eight instructions for an IEEE 754 division of ordinary numbers, and about four more
 * to ask for tiny, huge, zero or NaN operands. Where all operands of a formula are known to be in
 * the middle of the range ("tame"), the caller asks once for all. The bits are the same: the steps
 * below are those that the compiler's own division and root take then, which round correctly (P.
 * Markstein, IA-64 and Elementary Functions, 2000, chapters 8 and 9; tests/gpu/tame_test.c compares
 * every significand). Divisions by the same number share its reciprocal.
 *
 * tame: a constant where a function is called, so that the compiler leaves the other half out. C
 * ignores it: there an operator is a single instruction. What must hold where it is set: operands
 * and results are within 2^-126 and 2^126, but a dividend may be +0; 2^-48 times a dividend, what a
 * remainder is made of, is 2^-149 at least. Else the result is nonsense.
 */
#ifndef KILN_KERNELS_MATH_TAME_MATH_H
#define KILN_KERNELS_MATH_TAME_MATH_H

#include "base/hd.h"

#include <math.h>

#ifdef __CUDA_ARCH__

static __device__ __forceinline__ float kiln_tame_inverse(float b)
{
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b));
    return __fmaf_rn(r, __fmaf_rn(-b, r, 1.0f), r);
}

static __device__ __forceinline__ float kiln_tame_quotient(float a, float b)
{
    const float r = kiln_tame_inverse(b);
    float q = a * r;
    q = __fmaf_rn(r, __fmaf_rn(-b, q, a), q);
    return __fmaf_rn(r, __fmaf_rn(-b, q, a), q);
}

static __device__ __forceinline__ float kiln_tame_root(float x)
{
    float r;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    const float g = x * r;
    return __fmaf_rn(__fmaf_rn(-g, g, x), 0.5f * r, g);
}

/* Of a kiln_lens. */
#define KILN_TAME(lens) ((lens)->tame)
#define KILN_IF_TAME(tame, yes, no) ((tame) ? (yes) : (no))
#else
#define KILN_TAME(lens) 0
#define KILN_IF_TAME(tame, yes, no) ((void)(tame), (no))
#endif

static inline KILN_HD float kiln_inverse(float b, int tame)
{
    return KILN_IF_TAME(tame, kiln_tame_inverse(b), 1.0f / b);
}
static inline KILN_HD float kiln_quotient(float a, float b, int tame)
{
    return KILN_IF_TAME(tame, kiln_tame_quotient(a, b), a / b);
}
static inline KILN_HD float kiln_root(float x, int tame)
{
    return KILN_IF_TAME(tame, kiln_tame_root(x), sqrtf(x));
}

#endif
