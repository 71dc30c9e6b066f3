/* keep_curve -- what a dry run says of fewer rows: how far the training cameras' pictures of the
 * kept rows, and of the half, the quarter and the eighth with the highest scores, are from the
 * pictures of all rows that the other rules leave. */
#ifndef KILN_STAGES_PRUNE_KEEP_CURVE_H
#define KILN_STAGES_PRUNE_KEEP_CURVE_H

#include "stages/prune/pruning.h"

/* When marks are known, in a dry run: draws at most 32 cameras, evenly chosen, and makes p->curve.
 * Nothing where no rule asks cameras. Fails as kiln_run_units. */
kiln_status kiln_pruning_draw_curve(kiln_run *r, kiln_pruning *p, kiln_error *err) KILN_MUST_CHECK;

#endif
