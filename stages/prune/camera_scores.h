/* camera_scores -- which rows the rules drop that ask what training cameras see: min-contribution,
 * min-visibility, keep.
 *
 * They come last and look at what all other rules leave. First each block says which rows these
 * are. Then units of some cameras each look at them (scores_unit.c), and the sums are added up in a
 * scratch file, block by block, as they may be more than memory has room for. The marks that
 * follow, two bits a row, are all that later units need; they are in the keys of blocks, so a block
 * none of whose rows is marked otherwise stays as it is. All is of integers, or decided in one
 * place from them. */
#ifndef KILN_STAGES_PRUNE_CAMERA_SCORES_H
#define KILN_STAGES_PRUNE_CAMERA_SCORES_H

#include "stages/prune/pruning.h"

/* When rules and merges are known: makes p->marks and p->n_left. Nothing where no rule asks. Fails
 * as kiln_run_units. */
kiln_status kiln_pruning_score(kiln_run *r, kiln_pruning *p, kiln_error *err) KILN_MUST_CHECK;

#endif
