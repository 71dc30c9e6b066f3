/* prune -- applies the rules of kiln-prune to the rows of one block: which rows stay, with which
 * log scales.
 *
 * Planes planar f32, in: means [3][n], log_scales [3][n], opacity_logits [n]; spacing2 [n] or NULL.
 *   keep           [n] u8     out  1: the row stays
 *   log_scales_out [3][n] f32 out  clamped where a clamping rule says so; may not overlap the input
 *   counts         [KILN_PRUNE_RULES][2] u64  in out, added to: [rule][0] rows dropped, [rule][1]
 *                                             rows clamped.
 *                                  A row counts for each rule that touched it until one drops it.
 * Rules run in the order of KILN_PRUNE_RULE_MAP; max-spacing comes before the other ceilings,
 * because an axis that they have lowered no longer shows that it was wrong. Thresholds that are NAN
 * switch a rule off. Clamping a scale keeps the row: axes below the floor are raised to it, and
 * axes above a ceiling are lowered to it. The longest axis of a needle is lowered to ratio * middle
 * axis. work as in knn.h.
 */
#ifndef KILN_KERNELS_PRUNE_H
#define KILN_KERNELS_PRUNE_H

#include "base/extern_c.h"
#include "base/status.h"
#include "kernels/exec.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

/* The rules in the order in which they look at a row, RULE(id, number). Each has a step,
 * kiln_prune_step_ID in prune_math.h, and does not compile without it. The number is the rule's
 * place in counts, in reports and in stored tallies, and never changes. A new rule takes the next
 * one. */
#define KILN_PRUNE_RULE_MAP(RULE) \
    RULE(merge, 10)               \
    RULE(drop_row, 0)             \
    RULE(min_opacity, 1)          \
    RULE(crop_box, 2)             \
    RULE(crop_sphere, 3)          \
    RULE(outlier, 4)              \
    RULE(outlier_sor, 14)         \
    RULE(filter_floaters, 15)     \
    RULE(filter_cluster, 16)      \
    RULE(min_scale, 5)            \
    RULE(max_spacing, 6)          \
    RULE(max_scale, 7)            \
    RULE(max_extent, 8)           \
    RULE(max_needle, 9)           \
    RULE(min_contribution, 11)    \
    RULE(min_visibility, 12)      \
    RULE(keep, 13)

#define KILN_PRUNE_ID(id, number) KILN_PRUNE_##id = number,
#define KILN_PRUNE_ONE(id, number) +1
#define KILN_PRUNE_BIT(id, number) +(1ull << (number))
typedef enum { KILN_PRUNE_RULE_MAP(KILN_PRUNE_ID) } kiln_prune_rule;
enum { KILN_PRUNE_RULES = 0 KILN_PRUNE_RULE_MAP(KILN_PRUNE_ONE) };
static_assert((0 KILN_PRUNE_RULE_MAP(KILN_PRUNE_BIT)) == (1ull << KILN_PRUNE_RULES) - 1,
              "numbers of rules are 0, 1, 2, ..., each once");
static_assert(KILN_PRUNE_RULES <= 32, "sets of rules are 32 bits");
#undef KILN_PRUNE_ID
#undef KILN_PRUNE_ONE
#undef KILN_PRUNE_BIT

/* What a pass over the scene says of a row; FAINT, HIDDEN and UNCHOSEN are of passes over the rows
 * that all other rules leave. */
typedef enum {
    KILN_PRUNE_STAY = 0,
    KILN_PRUNE_NAMED = 1,
    KILN_PRUNE_MERGED = 2,
    KILN_PRUNE_FAINT = 3,    /* it contributes too little to any picture */
    KILN_PRUNE_HIDDEN = 4,   /* too little of it is visible */
    KILN_PRUNE_UNCHOSEN = 5, /* others have higher scores */
    KILN_PRUNE_STRAY = 6,    /* it is far from its neighbours, by the statistics of the scene */
    KILN_PRUNE_FLOATER = 7,  /* it touches no solid voxel */
    KILN_PRUNE_APART = 8,    /* it does not touch the cluster of voxels */
} kiln_prune_mark;
typedef enum { KILN_PRUNE_CLAMP = 0, KILN_PRUNE_DROP = 1 } kiln_prune_policy;

/* Thresholds as the kernel compares them, and what the rules on scales do.
 *   min_opacity  logit; drop below                    outlier      drop a larger spacing2
 *   crop_box     x0 y0 z0 x1 y1 z1; drop outside      crop_sphere  x y z radius; drop outside
 *   min_scale, max_scale, max_extent                  logarithms of a length: any axis below,
 *                                                     above, above
 *   max_needle   longest axis / middle axis above this
 *   max_spacing  factor, floor2: an axis above factor * sqrt(max(spacing2, floor2)); both 0: the
 *                rule does not look at the row
 * Policies of rules that have one: whether they clamp the axes or drop the row.
 */
typedef struct {
    float min_opacity;
    float min_scale, max_scale, max_extent;
    float max_spacing[2];
    float max_needle;
    float outlier;
    float crop_box[6], crop_sphere[4];
    kiln_prune_policy min_scale_policy, max_scale_policy, max_extent_policy, max_spacing_policy,
        max_needle_policy;
} kiln_prune_rules;

typedef struct {
    uint64_t n;
    const float *means, *log_scales, *opacity_logits, *spacing2;
    /* [n] or NULL; kiln_prune_mark: what passes over the scene say of the row */
    const uint8_t *drop;
    const kiln_prune_rules *rules;
    uint8_t *keep;
    float *log_scales_out;
    uint64_t (*counts)[2];
} kiln_prune_args;

typedef kiln_status kiln_prune_fn(const kiln_exec *x, const kiln_prune_args *a, void *work,
                                  size_t *work_bytes, kiln_error *err);

/* Histogram: bins of equal width over [lo, hi), values below and above in the first and last bin.
 * NaN is not counted. */
void kiln_histogram_add(uint64_t *bins, uint32_t n_bins, float lo, float hi, const float *values,
                        uint64_t n);

/* The arrays that it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_prune(A)         \
    A(IN, means, 3 * a->n)           \
    A(IN, log_scales, 3 * a->n)      \
    A(IN, opacity_logits, a->n)      \
    A(IN, spacing2, a->n)            \
    A(IN, drop, a->n)                \
    A(OUT, keep, a->n)               \
    A(OUT, log_scales_out, 3 * a->n) \
    A(INOUT, counts, KILN_PRUNE_RULES)

KILN_C_END

#endif
