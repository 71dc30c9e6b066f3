/* prune_math -- what the rules do to one row: pinned, the same bits on every machine. Comparisons
 * are written so that a threshold that is NAN never fires. */
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

/* ---- steps: what a rule does to a row -------------------------------------------------------- */
/* A step gives KILN_PRUNE_DROP; or KILN_PRUNE_CLAMP, when it has changed log_scale; or
 * KILN_PRUNE_NOTHING. */
enum { KILN_PRUNE_NOTHING = -1 };

static inline KILN_HD int kiln_prune_if(int hit, kiln_prune_policy policy)
{
    return hit ? (int)policy : (int)KILN_PRUNE_NOTHING;
}

static inline KILN_HD int kiln_prune_step_merge(const kiln_prune_rules *r,
                                                const kiln_prune_one *one)
{
    (void)r;
    return kiln_prune_if(one->mark == KILN_PRUNE_MERGED, KILN_PRUNE_DROP);
}

static inline KILN_HD int kiln_prune_step_drop_row(const kiln_prune_rules *r,
                                                   const kiln_prune_one *one)
{
    (void)r;
    return kiln_prune_if(one->mark == KILN_PRUNE_NAMED, KILN_PRUNE_DROP);
}

static inline KILN_HD int kiln_prune_step_min_opacity(const kiln_prune_rules *r,
                                                      const kiln_prune_one *one)
{
    return kiln_prune_if(one->opacity_logit < r->min_opacity, KILN_PRUNE_DROP);
}

static inline KILN_HD int kiln_prune_step_crop_box(const kiln_prune_rules *r,
                                                   const kiln_prune_one *one)
{
    int outside = 0;
    for (int a = 0; a < 3; a++)
        outside |= one->mean[a] < r->crop_box[a] || one->mean[a] > r->crop_box[3 + a];
    return kiln_prune_if(outside, KILN_PRUNE_DROP);
}

static inline KILN_HD int kiln_prune_step_crop_sphere(const kiln_prune_rules *r,
                                                      const kiln_prune_one *one)
{
    double d2 = 0;
    for (int a = 0; a < 3; a++) {
        const double d = (double)one->mean[a] - (double)r->crop_sphere[a];
        d2 += d * d;
    }
    return kiln_prune_if(d2 > (double)r->crop_sphere[3] * (double)r->crop_sphere[3],
                         KILN_PRUNE_DROP);
}

static inline KILN_HD int kiln_prune_step_outlier(const kiln_prune_rules *r,
                                                  const kiln_prune_one *one)
{
    return kiln_prune_if(one->spacing2 > r->outlier, KILN_PRUNE_DROP);
}

static inline KILN_HD int kiln_prune_step_outlier_sor(const kiln_prune_rules *r,
                                                      const kiln_prune_one *one)
{
    (void)r;
    return kiln_prune_if(one->mark == KILN_PRUNE_STRAY, KILN_PRUNE_DROP);
}

static inline KILN_HD int kiln_prune_step_filter_floaters(const kiln_prune_rules *r,
                                                          const kiln_prune_one *one)
{
    (void)r;
    return kiln_prune_if(one->mark == KILN_PRUNE_FLOATER, KILN_PRUNE_DROP);
}

static inline KILN_HD int kiln_prune_step_filter_cluster(const kiln_prune_rules *r,
                                                         const kiln_prune_one *one)
{
    (void)r;
    return kiln_prune_if(one->mark == KILN_PRUNE_APART, KILN_PRUNE_DROP);
}

static inline KILN_HD int kiln_prune_step_min_scale(const kiln_prune_rules *r, kiln_prune_one *one)
{
    return kiln_prune_if(kiln_prune_raise(one->log_scale, r->min_scale), r->min_scale_policy);
}

static inline KILN_HD int kiln_prune_step_max_spacing(const kiln_prune_rules *r,
                                                      kiln_prune_one *one)
{
    const float limit = kiln_prune_spacing_limit(r, one->spacing2);
    return kiln_prune_if(kiln_prune_lower(one->log_scale, limit), r->max_spacing_policy);
}

static inline KILN_HD int kiln_prune_step_max_scale(const kiln_prune_rules *r, kiln_prune_one *one)
{
    return kiln_prune_if(kiln_prune_lower(one->log_scale, r->max_scale), r->max_scale_policy);
}

static inline KILN_HD int kiln_prune_step_max_extent(const kiln_prune_rules *r, kiln_prune_one *one)
{
    return kiln_prune_if(kiln_prune_lower(one->log_scale, r->max_extent), r->max_extent_policy);
}

static inline KILN_HD int kiln_prune_step_max_needle(const kiln_prune_rules *r, kiln_prune_one *one)
{
    return kiln_prune_if(kiln_prune_needle(one->log_scale, r->max_needle), r->max_needle_policy);
}

static inline KILN_HD int kiln_prune_step_min_contribution(const kiln_prune_rules *r,
                                                           const kiln_prune_one *one)
{
    (void)r;
    return kiln_prune_if(one->mark == KILN_PRUNE_FAINT, KILN_PRUNE_DROP);
}

static inline KILN_HD int kiln_prune_step_min_visibility(const kiln_prune_rules *r,
                                                         const kiln_prune_one *one)
{
    (void)r;
    return kiln_prune_if(one->mark == KILN_PRUNE_HIDDEN, KILN_PRUNE_DROP);
}

static inline KILN_HD int kiln_prune_step_keep(const kiln_prune_rules *r, const kiln_prune_one *one)
{
    (void)r;
    return kiln_prune_if(one->mark == KILN_PRUNE_UNCHOSEN, KILN_PRUNE_DROP);
}

/* The rule that drops the row, or -1: it stays, with one->log_scale. */
static inline KILN_HD int kiln_prune_row(const kiln_prune_rules *r, kiln_prune_one *one)
{
    int does;
    one->clamped = 0;
#define KILN_PRUNE_STEP(id, number)                      \
    does = kiln_prune_step_##id(r, one);                 \
    if (does == KILN_PRUNE_DROP) return KILN_PRUNE_##id; \
    if (does == KILN_PRUNE_CLAMP) one->clamped |= 1u << KILN_PRUNE_##id;
    KILN_PRUNE_RULE_MAP(KILN_PRUNE_STEP)
#undef KILN_PRUNE_STEP
    return -1;
}

#endif
