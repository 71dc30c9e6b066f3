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
    const float known2 = spacing2 > r->spacing_floor2 ? spacing2 : r->spacing_floor2;
    if (!(spacing2 >= 0.0f) || !(known2 > 0.0f)) return NAN;
    return kiln_logf(r->spacing_factor) + 0.5f * kiln_logf(known2);
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
    for (int a = 0; a < 3; a++) outside |= mean[a] < r->box_min[a] || mean[a] > r->box_max[a];
    return outside;
}

static inline KILN_HD int kiln_prune_outside_sphere(const kiln_prune_rules *r, const float mean[3])
{
    double d2 = 0;
    for (int a = 0; a < 3; a++) {
        const double d = (double)mean[a] - (double)r->sphere_centre[a];
        d2 += d * d;
    }
    return d2 > (double)r->sphere_radius * (double)r->sphere_radius;
}

/* The rule that drops the row, or -1: it stays, with one->log_scale. */
static inline KILN_HD int kiln_prune_row(const kiln_prune_rules *r, kiln_prune_one *one)
{
    float *s = one->log_scale;
    one->clamped = 0;
    if (one->mark == KILN_PRUNE_MERGED) return KILN_PRUNE_merge;
    if (one->mark == KILN_PRUNE_NAMED) return KILN_PRUNE_row;
    if (one->opacity_logit < r->min_opacity_logit) return KILN_PRUNE_opacity;
    if (kiln_prune_outside_box(r, one->mean)) return KILN_PRUNE_crop_box;
    if (kiln_prune_outside_sphere(r, one->mean)) return KILN_PRUNE_crop_sphere;
    if (one->spacing2 > r->max_spacing2) return KILN_PRUNE_outlier;

#define KILN_PRUNE_SCALE(rule, policy, hit)                         \
    if (hit) {                                                      \
        if (r->policy == KILN_PRUNE_DROP) return KILN_PRUNE_##rule; \
        one->clamped |= 1u << KILN_PRUNE_##rule;                    \
    }
    KILN_PRUNE_SCALE(floor, floor_policy, kiln_prune_raise(s, r->log_floor))
    KILN_PRUNE_SCALE(spacing, spacing_policy, kiln_prune_lower(s, kiln_prune_spacing_limit(r, one->spacing2)))
    KILN_PRUNE_SCALE(ceiling, ceiling_policy, kiln_prune_lower(s, r->log_ceiling))
    KILN_PRUNE_SCALE(extent, extent_policy, kiln_prune_lower(s, r->log_extent))
    KILN_PRUNE_SCALE(needle, needle_policy, kiln_prune_needle(s, r->needle_ratio))
#undef KILN_PRUNE_SCALE
    return -1;
}

#endif
