/* minmax -- the smaller and the larger of two values, and clamping. Functions, so that each
 * argument is evaluated once and has one type.
 *
 * Helpers with another treatment of NaN stay where they are used: kiln_between (kernels/project,
 * pinned by the renderers), kiln_metrics_clamp (one GPU instruction).
 */
#ifndef KILN_BASE_MINMAX_H
#define KILN_BASE_MINMAX_H

#include "base/hd.h"

#include <math.h>
#include <stdint.h>

static inline uint64_t kiln_min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t kiln_max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Returns v within [lo, hi]; NaN stays NaN. */
static inline KILN_HD double kiln_clamp_f64(double v, double lo, double hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}
/* Return the smaller and the larger of two numbers; if a is NaN, b. One instruction. On the CPU
 * fminf would be a call into the C library, whose code without AVX costs its callers with AVX a
 * hundred cycles. */
#ifdef __CUDA_ARCH__
static inline KILN_HD float kiln_min_f32(float a, float b) { return fminf(a, b); }
static inline KILN_HD float kiln_max_f32(float a, float b) { return fmaxf(a, b); }
#else
static inline KILN_HD float kiln_min_f32(float a, float b) { return a < b ? a : b; }
static inline KILN_HD float kiln_max_f32(float a, float b) { return a > b ? a : b; }
#endif
/* Returns v within [lo, hi]; NaN becomes lo. Two instructions. */
static inline KILN_HD float kiln_clamp_f32(float v, float lo, float hi)
{
    return kiln_min_f32(kiln_max_f32(v, lo), hi);
}

#endif
