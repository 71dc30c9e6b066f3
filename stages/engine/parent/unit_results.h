/* unit_results -- results that a stage refused (kiln_unit_refuse, kiln_unit_doubt); engine.h has
 * what a stage reads. For the parent's main thread. */
#ifndef KILN_STAGES_ENGINE_PARENT_UNIT_RESULTS_H
#define KILN_STAGES_ENGINE_PARENT_UNIT_RESULTS_H

#include "base/file.h"
#include "stages/engine/engine.h"

typedef struct {
    kiln_buffer keys; /* of the refused results, which are dropped when the run ends */
    kiln_error first; /* the sentence about the first of them, or the first that reports a bug */
} kiln_refusals;
/* Drops the refused results. If that fails, it only warns: the next run refuses them again. */
void kiln_run_drop_bad_units(kiln_run *r);

#endif
