/* real -- exp, log, sigmoid and logit of float32 with the same bits on every machine.
 *
 * No libm; every fused operation is a kiln_fmaf (fma_math.h), so the result does not depend on the
 * compiler as long as it does not contract (-ffp-contract=off, --fmad=false). Straight-line code
 * with selects only: gcc turns loops of these into vector code with -mavx2 -mfma.
 *
 * Largest error, found by trying every float (tests/unit/real_test.c repeats a part of it), in ulp
 * of the result:
 *   kiln_expf      0.90 ulp
 *   kiln_logf      0.85 ulp
 *   kiln_sigmoidf  1.97 ulp
 *   kiln_logitf    4.0 ulp
 * NaN gives NaN; infinities, zeros and denormals give what the exact function gives.
 *
 * Polynomials: weighted minimax fits of our own (Remez exchange), rounded to float32; the leading
 * coefficients are fixed to the series' own. Range reduction: Cody and Waite, Software Manual for
 * the Elementary Functions (1980).
 */
#ifndef KILN_KERNELS_MATH_REAL_H
#define KILN_KERNELS_MATH_REAL_H

#include "kernels/math/fma_math.h"
#include "kernels/math/tame_math.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline KILN_HD uint32_t kiln_bits_of(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

static inline KILN_HD float kiln_float_of(uint32_t u)
{
    float v;
    memcpy(&v, &u, sizeof v);
    return v;
}

/* The two constants of exp that stand beside another one in an operation, for
 * kiln_exp_reduce_with. */
#define KILN_EXP_MAGIC 12582912.0f /* 1.5 * 2^23: adding it rounds to an integer */
#define KILN_EXP_FOURTH 0x1.122f88p-7f

/* exp(x) = 2^n p, n = the integer nearest to x log2(e), p = exp(r) in [0.707, 1.415]. Returns p;
 * |x| <= 2^21. magic and fourth: KILN_EXP_MAGIC and KILN_EXP_FOURTH. An instruction of a GPU holds
 * one constant; a loop that has the other in a register saves two of them. */
static inline KILN_HD float kiln_exp_reduce_with(float magic, float fourth, float x, uint32_t *n)
{
    const float shifted = kiln_fmaf(x, 1.44269504f, magic); /* log2(e) */
    const float whole = shifted - KILN_EXP_MAGIC;
    /* -ln 2, its upper 16 bits: the product is exact */
    float r = kiln_fmaf(whole, -0.693145752f, x);
    r = kiln_fmaf(whole, -1.42860677e-6f, r); /* and the rest of it */
    *n = kiln_bits_of(shifted) - kiln_bits_of(KILN_EXP_MAGIC);
    float q = kiln_fmaf(0x1.6b6e42p-10f, r, fourth);
    q = kiln_fmaf(q, r, 0x1.555688p-5f);
    q = kiln_fmaf(q, r, 0x1.5554a4p-3f);
    q = kiln_fmaf(q, r, 0.5f);
    return kiln_fmaf(kiln_fmaf(q, r, 1.0f), r, 1.0f);
}

static inline KILN_HD float kiln_exp_reduce(float x, uint32_t *n)
{
    return kiln_exp_reduce_with(KILN_EXP_MAGIC, KILN_EXP_FOURTH, x, n);
}

/* The bits of kiln_expf for -87 <= x <= 88, where the result is a normal number; anything else
 * gives nonsense. */
static inline KILN_HD float kiln_expf_normal_with(float magic, float fourth, float x)
{
    uint32_t n;
    const float p = kiln_exp_reduce_with(magic, fourth, x, &n);
    /* What n lacks of `shifted` is a multiple of 2^9: added again it shifts to nothing, and gcc
     * takes neither. */
    return kiln_float_of(kiln_bits_of(p) + ((n + kiln_bits_of(KILN_EXP_MAGIC)) << 23));
}

static inline KILN_HD float kiln_expf_normal(float x)
{
    return kiln_expf_normal_with(KILN_EXP_MAGIC, KILN_EXP_FOURTH, x);
}

static inline KILN_HD float kiln_expf(float x)
{
    float c = x > 89.0f ? 89.0f : x; /* exp(89) overflows, */
    c = c < -104.0f ? -104.0f : c;   /* exp(-104) is under half the least denormal; NaN stays */
    uint32_t n;
    const float p = kiln_exp_reduce(c, &n);
    const uint32_t bias = n + 254u;  /* 2^n in two factors, each of them a normal number, */
    const uint32_t half = bias >> 1; /* so that only the last product rounds */
    const float lo = kiln_float_of(half << 23);
    const float hi = kiln_float_of((bias - half) << 23);
    const float y = p * lo * hi;
    return x == x ? y : x;
}

/* kiln_expf; tame: |x| <= 80. */
static inline KILN_HD float kiln_exp(float x, int tame)
{
    return KILN_IF_TAME(tame, kiln_expf_normal(x), kiln_expf(x));
}

/* log(1 + f) + e ln 2 for -1/3 <= f <= 1/3 and whole |e| <= 150. */
static inline KILN_HD float kiln_log_core(float f, float e)
{
    float q = kiln_fmaf(0.123587400f, f, -0.128477904f);
    q = kiln_fmaf(q, f, 0.106611778f);
    q = kiln_fmaf(q, f, -0.121951483f);
    q = kiln_fmaf(q, f, 0.143128544f);
    q = kiln_fmaf(q, f, -0.166796242f);
    q = kiln_fmaf(q, f, 0.199993055f);
    q = kiln_fmaf(q, f, -0.249998192f);
    q = kiln_fmaf(q, f, 0.333333387f);
    q = kiln_fmaf(q, f, -0.5f);
    const float whole = e * 0.693145752f; /* exact: 16 bits times 8 */
    const float hi = whole + f;
    const float lost = (whole - hi) + f; /* exact: |whole| > |f|, or whole is 0 */
    const float lo = kiln_fmaf(f * f, q, kiln_fmaf(e, 1.42860677e-6f, lost));
    return hi + lo;
}

/* The bits of kiln_logf for a normal number above 0; anything else gives nonsense. */
static inline KILN_HD float kiln_logf_normal(float x)
{
    const uint32_t u = kiln_bits_of(x);
    const int32_t e = (int32_t)(u - 0x3f2aaaabu) >> 23; /* m = x / 2^e in [2/3, 4/3) */
    return kiln_log_core(kiln_float_of(u - ((uint32_t)e << 23)) - 1.0f, (float)e);
}

static inline KILN_HD float kiln_logf(float x)
{
    const int tiny = x < 1.17549435e-38f; /* denormal, zero or negative */
    const uint32_t u = kiln_bits_of(tiny ? x * 8388608.0f : x);
    const uint32_t above = u - 0x3f2aaaabu; /* m = x / 2^e in [2/3, 4/3) */
    const int32_t e = (int32_t)above >> 23;
    const float m = kiln_float_of(u - ((uint32_t)e << 23));
    float y = kiln_log_core(m - 1.0f, (float)(tiny ? e - 23 : e));
    y = x > 3.40282347e38f ? x : y; /* +infinity */
    y = x > 0.0f ? y : NAN;         /* negative, NaN, */
    return x == 0.0f ? -INFINITY : y;
}

/* 1 / (1 + exp(-x)) of z = exp(-|x|), which is at most 1: nothing overflows. */
static inline KILN_HD float kiln_sigmoid_with(float x, float z, int tame)
{
    const float below = 1.0f + z;
    const float lost = z - (below - 1.0f); /* exact */
    const float y = kiln_quotient(x > 0.0f ? 1.0f : z, below, tame);
    return kiln_fmaf(-y, kiln_quotient(lost, below, tame), y);
}

/* 1 / (1 + exp(-x)) */
static inline KILN_HD float kiln_sigmoidf(float x)
{
    return kiln_sigmoid_with(x, kiln_expf(x > 0.0f ? -x : x), 0);
}

/* kiln_sigmoidf; tame: |x| <= 80. */
static inline KILN_HD float kiln_sigmoid(float x, int tame)
{
    return KILN_IF_TAME(tame, kiln_sigmoid_with(x, kiln_expf_normal(x > 0.0f ? -x : x), 1),
                        kiln_sigmoidf(x));
}

/* log(p / (1 - p)); outside [0, 1]: NaN. Around 1/2 through log(1 + f), where the quotient alone
 * loses all digits. */
static inline KILN_HD float kiln_logitf(float p)
{
    const float rest = 1.0f - p;
    const float f = (2.0f * p - 1.0f) / rest;
    const int near_half = f > -0.3f && f < 0.3f;
    const float y = kiln_logf(p / rest);
    return near_half ? kiln_log_core(f, 0.0f) : y;
}

#endif
