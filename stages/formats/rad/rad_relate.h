/* rad_relate -- which row of a coarser level each row of a finer one was merged into.
 *
 * A layer of levels says of each row from which source rows it comes only by bounds: the lowest,
 * the highest and how many; and its weight W, which is the sum of its members'. The lowest and the
 * highest source row name their members at once, which is all of a merge of two. A member in
 * between is the one whose count and weight are missing, of several the nearest; if none fits, the
 * nearest row that lacks any. So every row has a row above, and every row above has its members
 * with very few exceptions, in which it has a neighbour instead.
 *
 * Pure functions of arrays; + - * only. Nothing but the workspace is allocated; any thread. */
#ifndef KILN_STAGES_FORMATS_RAD_RAD_RELATE_H
#define KILN_STAGES_FORMATS_RAD_RAD_RELATE_H

#include "base/status.h"

#include <stdint.h>

/* Rows of a level. source rows are of one space. */
typedef struct {
    uint64_t n;
    float *means; /* [n][3] */
    float *weights;
    uint32_t *first, *last, *count;
} kiln_rad_level;

/* parent[fine->n]: index in coarse, which has at least one row. KILN_E_NOMEM. */
kiln_status kiln_rad_relate(const kiln_rad_level *fine, const kiln_rad_level *coarse,
                            uint32_t *parent, kiln_error *err) KILN_MUST_CHECK;
/* Memory that it takes besides. */
uint64_t kiln_rad_relate_ram(uint64_t n_fine, uint64_t n_coarse);

#endif
