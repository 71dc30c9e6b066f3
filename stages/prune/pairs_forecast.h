/* pairs_forecast -- how many pairs cameras have before and after pruning: the units of kiln-prune
 * that count them, a view each. */
#ifndef KILN_STAGES_PRUNE_PAIRS_FORECAST_H
#define KILN_STAGES_PRUNE_PAIRS_FORECAST_H

#include "stages/prune/pruning.h"

/* Lengths of the longer side, in pixels, for which pairs are counted: those of --sizes, the text;
 * NULL: 0, the camera's own. KILN_E_USAGE. */
kiln_status kiln_pruning_sizes(const char *text, uint32_t sizes[KILN_PRUNE_SIZES_MAX], uint32_t *n,
                               kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_pruning_sizes_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
/* When all blocks are pruned: makes the views and counts their pairs. Fails as kiln_run_units. */
kiln_status kiln_pruning_predict(kiln_run *r, kiln_pruning *p, kiln_error *err) KILN_MUST_CHECK;

#endif
