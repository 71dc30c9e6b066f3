/* lod_leaves -- rows and leaves of streamed SOG: boxes, and which leaf a row of an inner node's
 * level belongs to. */
#ifndef KILN_STAGES_FORMATS_LOD_LOD_LEAVES_H
#define KILN_STAGES_FORMATS_LOD_LOD_LEAVES_H

#include "stages/formats/lod/lod_plan.h"
#include "stages/formats/rows.h"

/* What a unit says of a leaf. */
typedef struct {
    uint32_t n; /* rows of its level that belong to it */
    float mean_lo[3], mean_hi[3];
    float lo[3], hi[3];
} kiln_lod_tally;

enum { KILN_LOD_PLANES = KILN_ROWS_MEANS | KILN_ROWS_LOG_SCALES | KILN_ROWS_QUATS };

/* leaf[n]: number of the leaf that each row belongs to, of [first, end). Of equally near ones the
 * first. */
void kiln_lod_leaf_of_rows(const kiln_lod_leaf *leaves, uint32_t first, uint32_t end, uint64_t n,
                           const float *means, uint32_t *leaf);
/* order[n]: the rows sorted by leaf, otherwise as they are. next: room for end - first numbers. */
void kiln_lod_sort_rows(uint64_t n, const uint32_t *leaf, uint32_t first, uint32_t end,
                        uint32_t *next, uint32_t *order);
/* tallies[end - first]; leaf NULL: all rows are of the first. */
void kiln_lod_tally_rows(const kiln_export_rows *rows, const uint32_t *leaf, uint32_t first,
                         uint32_t end, kiln_lod_tally *tallies);

#endif
