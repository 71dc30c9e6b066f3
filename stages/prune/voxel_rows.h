/* voxel_rows -- --filter-floaters and --filter-cluster in the parent: one unit each over the whole
 * input, before any other rule (voxel_unit.c). The unit has as many sums of voxels in memory as
 * --ram allows. The rows are the same. For the parent's main thread. */
#ifndef KILN_STAGES_PRUNE_VOXEL_ROWS_H
#define KILN_STAGES_PRUNE_VOXEL_ROWS_H

#include "stages/prune/pruning.h"

/* Bytes that a unit takes at least; 0 where the rules are off. */
kiln_status kiln_pruning_least_voxels(const kiln_pruning *p, uint64_t *least,
                                      kiln_error *err) KILN_MUST_CHECK;
/* Adds their rows to p->strays, and makes p->cluster. Fails as kiln_run_units. */
kiln_status kiln_pruning_search_voxels(kiln_run *r, kiln_pruning *p,
                                       kiln_error *err) KILN_MUST_CHECK;

#endif
