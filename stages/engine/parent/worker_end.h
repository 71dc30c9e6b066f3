/* worker_end -- ends worker processes and says why one ended by itself. For the parent's main
 * thread. */
#ifndef KILN_STAGES_ENGINE_PARENT_WORKER_END_H
#define KILN_STAGES_ENGINE_PARENT_WORKER_END_H

#include "stages/engine/parent/worker_process.h"

/* Asks a worker to end, by closing its socket, and does not wait. kiln_worker_ended says when it
 * has ended. */
void kiln_worker_dismiss(kiln_worker_process *w);
/* Says whether a worker that was asked to end has ended; then the slot is empty and *status is that
 * of waitpid. Kills a worker that takes too long. If not even SIGKILL ends it, because the kernel
 * waits for its device, it counts as ended after a while and *status is KILN_WORKER_UNKILLABLE. */
enum { KILN_WORKER_UNKILLABLE = -1 };
bool kiln_worker_ended(kiln_worker_process *w, int *status);
/* Returns the status for a process that ended by itself, never KILN_OK, with a sentence that names
 * no unit and no slot. status: of kiln_worker_ended. */
kiln_status kiln_worker_death(const kiln_worker_process *w, int status,
                              kiln_error *err) KILN_MUST_CHECK;
/* Asks idle workers to end, or to rest if they are kept, and does not wait for them. Call it when
 * the parent needs no worker any more. */
void kiln_workers_dismiss(kiln_worker_process *workers, unsigned n);
/* Asks idle workers to end, kills busy ones and waits for all. Slots may be empty. If a signal ends
 * the run, returns within 2 s. */
void kiln_workers_stop(kiln_worker_process *workers, unsigned n);
/* Raises each field of `to` to the larger of the two; n_host is added. */
void kiln_worker_use_add(kiln_worker_use *to, const kiln_worker_use *more);

#endif
