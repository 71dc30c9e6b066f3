/* raster_plan -- where each tile's list ends, and in which order tiles are drawn: what raster on
 * CUDA needs beside the lists. Without a plan raster makes its own, in a launch before it draws
 * anything. tile_lists can make one while it sorts, which takes no time of its own.
 *
 * A plan lies in device memory and is no result: the order of tiles of like lists may differ from
 * run to run and never shows in a picture. CUDA only: the CPU siblings leave plans alone, and the
 * runner does not copy them.
 */
#ifndef KILN_KERNELS_RASTER_PLAN_H
#define KILN_KERNELS_RASTER_PLAN_H

#include "base/extern_c.h"

#include <stdint.h>

KILN_C_BEGIN

enum { KILN_PLAN_PARTS = 4 }; /* at most */

typedef struct {
    uint64_t *ends;  /* [tiles] sums of tile_counts so far; NULL: there is no plan */
    uint32_t *order; /* [tiles] tiles, part after part, within a part the longest lists first */
    /* the picture is drawn in so many parts (kiln_plan_row), 1 to KILN_PLAN_PARTS */
    uint32_t parts;
} kiln_raster_plan;

/* Returns the tile row that part k of `parts` begins with, of tile rows [row0, row1). */
static inline uint32_t kiln_plan_row(uint32_t row0, uint32_t row1, uint32_t parts, uint32_t k)
{
    return row0 + (uint32_t)((uint64_t)(row1 - row0) * k / parts);
}

KILN_C_END

#endif
