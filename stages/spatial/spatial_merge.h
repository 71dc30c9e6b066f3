/* spatial_merge -- sorted runs of places become one. A run is a sorted stretch of the files codes,
 * rows and means; runs are in the order of their rows, so that places of one code stay in the order
 * of their rows. */
#ifndef KILN_STAGES_SPATIAL_MERGE_H
#define KILN_STAGES_SPATIAL_MERGE_H

#include "stages/spatial/scratch_file.h"

enum {
    KILN_PLACE_BYTES = 12, /* a code and a row */
    KILN_MEAN_BYTES = 12,
    KILN_MERGE_ROWS_MIN = 1024 /* of a run, read at once */
};

typedef struct {
    kiln_scratch_file codes, rows, means;
    bool with_means;
} kiln_place_files;

/* Returns how many places a buffer of a merge has, if n_runs runs share `ram` on one thread; below
 * KILN_MERGE_ROWS_MIN: too few. */
uint64_t kiln_merge_buffer_places(uint64_t ram, uint64_t n_runs, bool with_means);

/* starts[n_runs + 1]: places at which the runs begin, and the end. At least n_runs + 1 times
 * KILN_MERGE_ROWS_MIN places must fit into ram; of `threads` as many are used as have buffers of
 * that size. The bytes depend on neither. */
kiln_status kiln_merge_runs(const kiln_place_files *runs, const uint64_t *starts, uint64_t n_runs,
                            uint64_t ram, unsigned threads, const kiln_place_files *out,
                            kiln_error *err) KILN_MUST_CHECK;

#endif
