/* fma_math -- a b + c rounded once, for code that must also run fast where the compiler may not
 * assume an FMA unit.
 *
 * With one (-mfma, CUDA) it is the instruction. Without, fmaf is a call into libm, one value at a
 * time and dozens of instructions each on machines that have no such unit either. Here it is
 * straight-line double arithmetic that vectorises: the product of two floats is exact in double;
 * the sum is rounded to odd: of the two neighbours of an inexact sum it is the one with an odd last
 * digit. After that, rounding to float is the only rounding that counts, because 53 digits are at
 * least 24 + 2. Boldo and Melquiond, Emulation of FMA and correctly rounded sums (2008). The error
 * of the sum is Knuth's TwoSum. Infinities and NaN make it NaN, which counts as exact and leaves
 * the sum alone.
 */
#ifndef KILN_KERNELS_MATH_FMA_MATH_H
#define KILN_KERNELS_MATH_FMA_MATH_H

#include "base/hd.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline KILN_HD float kiln_fma_by_double(float a, float b, float c)
{
    const double product = (double)a * (double)b, d = (double)c, sum = product + d;
    const double part = sum - product, lost = (product - (sum - part)) + (d - part);
    uint64_t bits, rest;
    memcpy(&bits, &sum, sizeof bits);
    memcpy(&rest, &lost, sizeof rest);
    const uint64_t twice = rest << 1;
    const uint64_t inexact = (twice | (0 - twice)) >> 63;
    /* lost is NaN */
    const uint64_t infinite = ((rest & 0x7ff0000000000000u) + 0x0010000000000000u) >> 63;
    /* the signs differ */
    const uint64_t inward = (rest ^ bits) >> 63;
    const uint64_t moves = inexact & ~infinite & ~bits & 1;
    bits += (1 - 2 * inward) & (0 - moves);
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    return (float)odd;
}

static inline KILN_HD float kiln_fmaf(float a, float b, float c)
{
#if defined(__FMA__) || defined(__CUDACC__)
    return fmaf(a, b, c);
#else
    return kiln_fma_by_double(a, b, c);
#endif
}

#endif
