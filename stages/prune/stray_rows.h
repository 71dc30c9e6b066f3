/* stray_rows -- --outlier-sor in the parent: one unit over the whole input, before any other rule,
 * finds the rows that are far from their neighbours (stray_unit.c). The unit has the layer in
 * memory if --ram allows that, else ranges of it. The rows are the same. For the parent's main
 * thread. */
#ifndef KILN_STAGES_PRUNE_STRAY_ROWS_H
#define KILN_STAGES_PRUNE_STRAY_ROWS_H

#include "stages/prune/pruning.h"

/* Bytes that the unit takes at least; 0 where the rule is off. */
kiln_status kiln_pruning_least_strays(const kiln_pruning *p, uint64_t *least,
                                      kiln_error *err) KILN_MUST_CHECK;
/* Makes p->strays. Does nothing if the rule is off. Fails as kiln_run_units. */
kiln_status kiln_pruning_find_strays(kiln_run *r, kiln_pruning *p, kiln_error *err) KILN_MUST_CHECK;

#endif
