/* fault -- KILN_FAULT, which injects failures for tests (fault.c has its words). */
#ifndef KILN_STAGES_ENGINE_WORKER_FAULT_H
#define KILN_STAGES_ENGINE_WORKER_FAULT_H

#include "kernels/runner.h"
#include "stages/engine/worker/protocol.h"

/* KILN_FAULT injects failures for tests. Checks its syntax, in the parent, before any work.
 * KILN_E_USAGE. */
kiln_status kiln_fault_check(kiln_error *err) KILN_MUST_CHECK;
/* Injects the failure that KILN_FAULT names for this unit, in the worker, before the unit computes.
 * It returns only if that leaves the process alive. *lost: the device is to count as lost. */
kiln_status kiln_fault_fire(const kiln_message *unit, const kiln_runner *runner, bool *lost,
                            kiln_error *err) KILN_MUST_CHECK;

#endif
