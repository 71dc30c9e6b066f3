/* half_math -- IEEE half precision: 11 significant bits, up to 65504, the same bits on every
 * machine. For what is declared lossy. */
#ifndef KILN_KERNELS_MATH_HALF_MATH_H
#define KILN_KERNELS_MATH_HALF_MATH_H

#include "kernels/math/real.h"

/* The nearest half, of two the even one. What is beyond the largest becomes that, what is no number
 * 0: there is no infinity. */
static inline KILN_HD uint16_t kiln_half_of(float v)
{
#ifdef __CUDA_ARCH__
    const float within = v == v ? fminf(fmaxf(v, -65504.0f), 65504.0f) : 0.0f;
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(within));
    return half;
#else
    const uint32_t bits = kiln_bits_of(v), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    const uint32_t least_normal = 0x38800000, largest = 0x477fe000; /* 2^-14, 65504 */
    if (size > 0x7f800000) return 0;
    if (size > largest) return (uint16_t)(sign | 0x7bff);
    /* below it a half counts multiples of 2^-24, which are the last places of floats from 0.5 on */
    if (size < least_normal)
        return (uint16_t)(sign | (kiln_bits_of(kiln_float_of(size) + 0.5f) - kiln_bits_of(0.5f)));
    return (uint16_t)(sign | ((size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13));
#endif
}

/* Exact. */
static inline KILN_HD float kiln_half_value(uint16_t half)
{
#ifdef __CUDA_ARCH__
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(half));
    return v;
#else
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, size = half & 0x7fff;
    const float small = (float)(int32_t)size * 0x1p-24f;
    return kiln_float_of(sign | (size < 0x400 ? kiln_bits_of(small) : (size << 13) + 0x38000000));
#endif
}

static inline KILN_HD float kiln_half_round(float v) { return kiln_half_value(kiln_half_of(v)); }

/* Two in a word, the first in its low bits. */
static inline KILN_HD uint32_t kiln_halves_of(float first, float second)
{
    return kiln_half_of(first) | (uint32_t)kiln_half_of(second) << 16;
}
static inline KILN_HD float kiln_halves_value(uint32_t word, uint32_t which)
{
    return kiln_half_value((uint16_t)(which ? word >> 16 : word & 0xffff));
}

#endif
