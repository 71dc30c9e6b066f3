/* prune -- applies the rules of kiln-prune to the rows of one block: which rows stay, with which log scales.
 *
 * Planes planar f32, in: means [3][n], log_scales [3][n], opacity_logits [n]; spacing2 [n] or NULL.
 *   keep           [n] u8     out  1: the row stays
 *   log_scales_out [3][n] f32 out  clamped where a clamping rule says so; may not overlap the input
 *   counts         [KILN_PRUNE_RULES][2] u64  in out, added to: [rule][0] rows dropped, [rule][1] rows clamped.
 *                                  A row counts for each rule that touched it until one drops it.
 * Rules run in the order of kiln_prune_rule, rows merged away first of all; spacing comes before the other ceilings,
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

/* name as the counter is called, what it looks at */
#define KILN_PRUNE_RULE_MAP(X)                                                      \
    X(row, "row", "rows named with --drop-row")                                     \
    X(opacity, "opacity", "opacity below the least that can show")                  \
    X(crop_box, "crop-box", "mean outside the box")                                 \
    X(crop_sphere, "crop-sphere", "mean outside the sphere")                        \
    X(outlier, "outlier", "neighbours too far away")                                \
    X(floor, "scale-floor", "an axis below the least scale")                        \
    X(spacing, "scale-spacing", "an axis above a multiple of the local spacing")    \
    X(ceiling, "scale-ceiling", "an axis above the absolute ceiling")               \
    X(extent, "scale-extent", "an axis above a share of the scene's robust extent") \
    X(needle, "needle", "longest axis above a multiple of the middle one")          \
    X(merge, "merge", "near-duplicates merged into one")

typedef enum {
#define X(id, name, text) KILN_PRUNE_##id,
    KILN_PRUNE_RULE_MAP(X)
#undef X
        KILN_PRUNE_RULES
} kiln_prune_rule;

typedef enum { KILN_PRUNE_STAY = 0, KILN_PRUNE_NAMED = 1, KILN_PRUNE_MERGED = 2 } kiln_prune_mark;
typedef enum { KILN_PRUNE_CLAMP = 0, KILN_PRUNE_DROP = 1 } kiln_prune_policy;

typedef struct {
    float min_opacity_logit;                  /* drop below */
    float box_min[3], box_max[3];             /* drop outside; NAN: off */
    float sphere_centre[3], sphere_radius;    /* drop outside; radius NAN: off */
    float max_spacing2;                       /* drop above; needs spacing2 */
    float log_floor, log_ceiling, log_extent; /* of any axis */
    float spacing_factor;                     /* an axis above factor * sqrt(max(spacing2, spacing_floor2)) */
    float spacing_floor2;                     /* where both are 0, as among duplicates, the rule does not look at the row */
    float needle_ratio;                       /* longest / middle above this */
    kiln_prune_policy floor_policy, ceiling_policy, extent_policy, spacing_policy, needle_policy;
} kiln_prune_rules;

typedef struct {
    uint64_t n;
    const float *means, *log_scales, *opacity_logits, *spacing2;
    const uint8_t *drop; /* [n] or NULL; kiln_prune_mark: named by the user (rule `row`), merged away (rule `merge`) */
    const kiln_prune_rules *rules;
    uint8_t *keep;
    float *log_scales_out;
    uint64_t (*counts)[2];
} kiln_prune_args;

typedef kiln_status kiln_prune_fn(const kiln_exec *x, const kiln_prune_args *a, void *work, size_t *work_bytes, kiln_error *err);

/* Histogram: bins of equal width over [lo, hi), values below and above in the first and last bin. NaN is not counted. */
void kiln_histogram_add(uint64_t *bins, uint32_t n_bins, float lo, float hi, const float *values, uint64_t n);

/* What it reads and writes, for kernels/arrays.h. */
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
