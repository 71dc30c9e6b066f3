/* prune -- applies the rules of kiln-prune to the rows of one block: which rows stay, with which log scales.
 *
 * Planes planar f32, in: means [3][n], log_scales [3][n], opacity_logits [n]; spacing2 [n] or NULL.
 *   keep           [n] u8     out  1: the row stays
 *   log_scales_out [3][n] f32 out  clamped where a clamping rule says so; may not overlap the input
 *   counts         [KILN_PRUNE_RULES][2] u64  in out, added to: [rule][0] rows dropped, [rule][1] rows clamped.
 *                                  A row counts for each rule that touched it until one drops it.
 * Rules (rules.def) run in the order of kiln_prune_row; max-spacing comes before the other ceilings,
 * because an axis that they have lowered no longer shows that it was wrong. Thresholds that are NAN switch a rule off.
 * Clamping a scale keeps the row: axes below the floor are raised to it, axes above a ceiling lowered to it, the longest
 * axis of a needle lowered to ratio * middle axis.
 * work as in knn.h.
 */
#ifndef KILN_KERNELS_PRUNE_H
#define KILN_KERNELS_PRUNE_H

#include "base/extern_c.h"
#include "base/status.h"
#include "kernels/exec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

/* A name for each row of rules.def: KILN_PRUNE_min_opacity, KILN_PRUNE_min_scale, KILN_PRUNE_max_scale, KILN_PRUNE_max_extent,
 * KILN_PRUNE_max_spacing, KILN_PRUNE_max_needle, KILN_PRUNE_outlier, KILN_PRUNE_crop_box, KILN_PRUNE_crop_sphere,
 * KILN_PRUNE_drop_row, KILN_PRUNE_merge. */
typedef enum {
#define RULE(number, key, id, ...) KILN_PRUNE_##id = number,
#include "kernels/prune/rules.def"
} kiln_prune_rule;

enum {
#define RULE(...) +1
    KILN_PRUNE_RULES = 0
#include "kernels/prune/rules.def"
};

typedef enum { KILN_PRUNE_STAY = 0, KILN_PRUNE_NAMED = 1, KILN_PRUNE_MERGED = 2 } kiln_prune_mark;
typedef enum { KILN_PRUNE_CLAMP = 0, KILN_PRUNE_DROP = 1 } kiln_prune_policy;

/* What a row of rules.def declares: thresholds and a policy. */
#define KILN_PRUNE_FLOATS_0(id)
#define KILN_PRUNE_FLOATS_1(id) float id;
#define KILN_PRUNE_FLOATS_2(id) float id[2];
#define KILN_PRUNE_FLOATS_4(id) float id[4];
#define KILN_PRUNE_FLOATS_6(id) float id[6];
#define KILN_PRUNE_POLICY_none(declaration)
#define KILN_PRUNE_POLICY_clamp(declaration) declaration
#define KILN_PRUNE_POLICY_drop(declaration) declaration

/* Thresholds as the kernel compares them, and what the rules on scales do.
 *   min_opacity  logit; drop below                    outlier      drop a larger spacing2
 *   crop_box     x0 y0 z0 x1 y1 z1; drop outside      crop_sphere  x y z radius; drop outside
 *   min_scale, max_scale, max_extent                  logarithms of a length: any axis below, above, above
 *   max_needle   longest axis / middle axis above this
 *   max_spacing  factor, floor2: an axis above factor * sqrt(max(spacing2, floor2)); both 0: the rule does not look at the row
 * Policies, for rules that have one: min_scale_policy, max_scale_policy, max_extent_policy, max_spacing_policy, max_needle_policy.
 */
typedef struct {
#define RULE(number, key, id, option, kind, arg, def, range, policy, n, looks_at, help) KILN_PRUNE_FLOATS_##n(id)
#include "kernels/prune/rules.def"
#define RULE(number, key, id, option, kind, arg, def, range, policy, n, looks_at, help) \
    KILN_PRUNE_POLICY_##policy(kiln_prune_policy id##_policy;)
#include "kernels/prune/rules.def"
} kiln_prune_rules;

typedef struct {
    uint64_t n;
    const float *means, *log_scales, *opacity_logits, *spacing2;
    const uint8_t *drop; /* [n] or NULL; kiln_prune_mark: named by the user (rule drop-row), merged away (rule merge) */
    const kiln_prune_rules *rules;
    uint8_t *keep;
    float *log_scales_out;
    uint64_t (*counts)[2];
} kiln_prune_args;

typedef kiln_status kiln_prune_fn(const kiln_exec *x, const kiln_prune_args *a, void *work, size_t *work_bytes, kiln_error *err);

/* Histogram: bins of equal width over [lo, hi), values below and above in the first and last bin. NaN is not counted. */
void kiln_histogram_add(uint64_t *bins, uint32_t n_bins, float lo, float hi, const float *values, uint64_t n);

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
