/* spacing -- the parent's half of measuring: chooses between one unit over the whole source layer
 * and ranges of it, runs the units, and says which of them has the values of a block. The values
 * are the same either way. */
#ifndef KILN_STAGES_KNN_SPACING_H
#define KILN_STAGES_KNN_SPACING_H

#include "stages/knn/knn_units.h"

typedef struct {
    uint32_t neighbors;
    float fallback2, most2;
    /* 0: chosen by what there is of rows, memory and devices; else always in ranges of about so
     * many */
    uint64_t range_rows;
} kiln_spacing_options;

/* Says whether --plan shares a list of units out, which takes row_ns of one thread for each of n
 * rows. If that is less than a round of tasks takes beside its work, the plan computes the list.
 * range_rows: of kiln_spacing_options; with it all lists are shared. */
#define KILN_KNN_SHARED_NS UINT64_C(1500000000)
bool kiln_knn_is_shared(uint64_t n, uint64_t range_rows, uint64_t row_ns);

typedef struct {
    const kiln_layer *source;
    /* units that have values of blocks: one for the whole layer, or one for each group of blocks */
    uint64_t n;
    kiln_unit *units;
    void **payloads;         /* [n] */
    uint32_t *unit_of_block; /* [source->n_chunks] */
    double min2, median2, max2;
    uint64_t fallbacks;
    /* where it was measured in ranges */
    uint64_t n_ranges, range_rows;
    /* what looking beyond the ranges' own points took (range.h) */
    uint64_t batches, candidates, queries;
    double whole_s, partition_s, ranges_s, back_s; /* of this run, by the clock */
} kiln_spacing;

/* All zero before; kiln_spacing_release in any case. */
kiln_status kiln_spacing_measure(kiln_run *r, const kiln_scene *scene, const kiln_layer *source,
                                 const kiln_spacing_options *o, kiln_spacing *out,
                                 kiln_error *err) KILN_MUST_CHECK;
void kiln_spacing_release(kiln_spacing *s);
/* The unit whose output, called as the block, is its spacing2. */
const kiln_unit *kiln_spacing_of(const kiln_spacing *s, uint32_t block);
/* Object "phases" in the report: seconds, and of ranges what they took. */
kiln_status kiln_spacing_report(const kiln_spacing *s, json_t *report,
                                kiln_error *err) KILN_MUST_CHECK;

#endif
