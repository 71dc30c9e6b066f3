/* run_units -- the lists of a run (kiln_run_units). For the parent's main thread. */
#ifndef KILN_STAGES_ENGINE_PARENT_RUN_UNITS_H
#define KILN_STAGES_ENGINE_PARENT_RUN_UNITS_H

#include "stages/engine/parent/run_devices.h"

/* Says whether a list is open beside others (kiln_run_units_beside) and has its workers on this home. */
bool kiln_run_is_beside(const kiln_run *r, const kiln_home *h);

#endif
