/* worker_failures -- what happens to units that fail, and to workers that die or hang. For the
 * parent's main thread. */
#ifndef KILN_STAGES_ENGINE_PARENT_WORKER_FAILURES_H
#define KILN_STAGES_ENGINE_PARENT_WORKER_FAILURES_H

#include "stages/engine/parent/job.h"

/* Returns the nanoseconds from its start within which a worker on its device must say HELLO. */
uint64_t kiln_start_deadline_ns(const kiln_worker_process *w);
/* Asks the worker to end. Units that it has go back to the schedule as if they had not been handed
 * out. */
void kiln_job_dismiss(kiln_job *j, unsigned slot);
/* Closes the slot for the rest of the run. Fails if it was the last one: with *why alone if no
 * worker ever opened its device, else with KILN_E_DEVICE. */
kiln_status kiln_job_retire(kiln_job *j, unsigned slot, const kiln_error *why,
                            kiln_error *err) KILN_MUST_CHECK;
/* Handles FAILED for an item, which the worker no longer has. Fails if the status is not contained
 * (containment.h). */
kiln_status kiln_job_fail(kiln_job *j, unsigned slot, uint64_t item, const kiln_message *m,
                          kiln_error *err) KILN_MUST_CHECK;
/* Handles a worker that closed its socket or was killed because it hung. The unit in work is judged
 * when the process has ended, because its exit status says why. */
void kiln_job_on_worker_exit(kiln_job *j, unsigned slot);
/* Kills workers that hang, and handles those that have ended. */
kiln_status kiln_job_look_after(kiln_job *j, kiln_error *err) KILN_MUST_CHECK;

#endif
