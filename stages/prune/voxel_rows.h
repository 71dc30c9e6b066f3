/* voxel_rows -- --filter-floaters and --filter-cluster in the parent: one unit each over the whole
 * input, before any other rule (voxel_unit.c). The unit has as many sums of voxels in memory as
 * --ram allows. The rows are the same. For the parent's main thread. */
#ifndef KILN_STAGES_PRUNE_VOXEL_ROWS_H
#define KILN_STAGES_PRUNE_VOXEL_ROWS_H

#include "stages/prune/pruning.h"

/* Announces what the units take, before the first unit runs. Nothing where the rules are off.
 * KILN_E_CAP: --ram has no room for them. */
kiln_status kiln_pruning_foresee_voxels(kiln_run *r, const kiln_pruning *p,
                                        kiln_error *err) KILN_MUST_CHECK;
/* Adds their rows to p->strays, and makes p->cluster. Fails as kiln_run_units. */
kiln_status kiln_pruning_search_voxels(kiln_run *r, kiln_pruning *p,
                                       kiln_error *err) KILN_MUST_CHECK;

#endif
