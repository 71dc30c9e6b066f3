/* prune_math -- what the rules do to one row: pinned, the same bits on every machine. Comparisons are written so that a
 * threshold that is NAN never fires. */
#ifndef KILN_KERNELS_PRUNE_MATH_H
#define KILN_KERNELS_PRUNE_MATH_H

#include "base/hd.h"
#include "kernels/math/real.h"
#include "kernels/prune/prune.h"

#include <math.h>

typedef struct {
    float mean[3], log_scale[3], opacity_logit;
    float spacing2;   /* NAN when there is none */
    uint8_t mark;     /* kiln_prune_mark */
    uint32_t clamped; /* out: bit r: rule r clamped it */
} kiln_prune_one;

/* Axes above `limit` are lowered to it; true when there were any. */
static inline KILN_HD int kiln_prune_lower(float log_scale[3], float limit)
{
    int any = 0;
    for (int a = 0; a < 3; a++) {
        if (!(log_scale[a] > limit)) continue;
        log_scale[a] = limit;
        any = 1;
    }
    return any;
}

static inline KILN_HD int kiln_prune_raise(float log_scale[3], float limit)
{
    int any = 0;
    for (int a = 0; a < 3; a++) {
        if (!(log_scale[a] < limit)) continue;
        log_scale[a] = limit;
        any = 1;
    }
    return any;
}

/* Logarithm of the longest axis that the spacing rule allows; NAN where it does not look. */
static inline KILN_HD float kiln_prune_spacing_limit(const kiln_prune_rules *r, float spacing2)
{
    const float known2 = spacing2 > r->max_spacing[1] ? spacing2 : r->max_spacing[1];
    if (!(spacing2 >= 0.0f) || !(known2 > 0.0f)) return NAN;
    return kiln_logf(r->max_spacing[0]) + 0.5f * kiln_logf(known2);
}

/* Longest axis above ratio * middle axis: lowered to that. */
static inline KILN_HD int kiln_prune_needle(float log_scale[3], float ratio)
{
    int longest = 0;
    for (int a = 1; a < 3; a++)
        if (log_scale[a] > log_scale[longest]) longest = a;
    const float p = log_scale[(longest + 1) % 3], q = log_scale[(longest + 2) % 3];
    const float limit = (p > q ? p : q) + kiln_logf(ratio);
    if (!(log_scale[longest] > limit)) return 0;
    log_scale[longest] = limit;
    return 1;
}

static inline KILN_HD int kiln_prune_outside_box(const kiln_prune_rules *r, const float mean[3])
{
    int outside = 0;
    for (int a = 0; a < 3; a++) outside |= mean[a] < r->crop_box[a] || mean[a] > r->crop_box[3 + a];
    return outside;
}

static inline KILN_HD int kiln_prune_outside_sphere(const kiln_prune_rules *r, const float mean[3])
{
    double d2 = 0;
    for (int a = 0; a < 3; a++) {
        const double d = (double)mean[a] - (double)r->crop_sphere[a];
        d2 += d * d;
    }
    return d2 > (double)r->crop_sphere[3] * (double)r->crop_sphere[3];
}

/* The rule that drops the row, or -1: it stays, with one->log_scale. */
static inline KILN_HD int kiln_prune_row(const kiln_prune_rules *r, kiln_prune_one *one)
{
    float *s = one->log_scale;
    one->clamped = 0;
    if (one->mark == KILN_PRUNE_MERGED) return KILN_PRUNE_merge;
    if (one->mark == KILN_PRUNE_NAMED) return KILN_PRUNE_drop_row;
    if (one->opacity_logit < r->min_opacity) return KILN_PRUNE_min_opacity;
    if (kiln_prune_outside_box(r, one->mean)) return KILN_PRUNE_crop_box;
    if (kiln_prune_outside_sphere(r, one->mean)) return KILN_PRUNE_crop_sphere;
    if (one->spacing2 > r->outlier) return KILN_PRUNE_outlier;

#define KILN_PRUNE_SCALE(rule, hit)                                        \
    if (hit) {                                                             \
        if (r->rule##_policy == KILN_PRUNE_DROP) return KILN_PRUNE_##rule; \
        one->clamped |= 1u << KILN_PRUNE_##rule;                           \
    }
    KILN_PRUNE_SCALE(min_scale, kiln_prune_raise(s, r->min_scale))
    KILN_PRUNE_SCALE(max_spacing, kiln_prune_lower(s, kiln_prune_spacing_limit(r, one->spacing2)))
    KILN_PRUNE_SCALE(max_scale, kiln_prune_lower(s, r->max_scale))
    KILN_PRUNE_SCALE(max_extent, kiln_prune_lower(s, r->max_extent))
    KILN_PRUNE_SCALE(max_needle, kiln_prune_needle(s, r->max_needle))
#undef KILN_PRUNE_SCALE
    return -1;
}

#endif
