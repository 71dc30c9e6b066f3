/* pruned_blocks -- the units of kiln-prune that prune a block each, what they count, and the layer
 * that their blocks make. */
#ifndef KILN_STAGES_PRUNE_PRUNED_BLOCKS_H
#define KILN_STAGES_PRUNE_PRUNED_BLOCKS_H

#include "stages/prune/pruning.h"

/* Makes the unit of a block that prunes it, marks its rows or says which are left
 * (KILN_PRUNE_BLOCK, _MARKS, _LEFT). merges: room for all. */
kiln_status kiln_pruning_plan_block(kiln_run *r, const kiln_pruning *p, kiln_prune_unit_kind kind,
                                    uint32_t block, kiln_merged_row *merges, kiln_unit *u,
                                    kiln_error *err) KILN_MUST_CHECK;
/* When rules and merges are known: prunes all blocks that have spacing, and adds up their tallies.
 * Fails as kiln_run_units. */
kiln_status kiln_pruning_blocks(kiln_run *r, kiln_pruning *p, kiln_error *err) KILN_MUST_CHECK;
/* A kiln_commit_fn, whose context is the kiln_pruning: stores the layer, without quarantined
 * blocks. */
kiln_status kiln_pruning_put_layer(kiln_run *r, kiln_manifest *m, void *context,
                                   kiln_error *err) KILN_MUST_CHECK;

#endif
