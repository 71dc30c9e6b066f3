/* worker_deferred -- deferred work of units, on threads of its own (kiln_worker_defer). For the
 * worker's main thread. */
#ifndef KILN_STAGES_ENGINE_WORKER_WORKER_DEFERRED_H
#define KILN_STAGES_ENGINE_WORKER_WORKER_DEFERRED_H

#include "stages/engine/engine.h"
#include "stages/engine/worker/protocol.h"

typedef struct kiln_deferred_thread kiln_deferred_thread;

/* Deferred work that runs or waits to be answered (`pending`, a ring, oldest first), and threads
 * that are idle. Threads are made when they are needed and kept. */
typedef struct {
    kiln_deferred_thread *pending[KILN_DEFERRED_MAX], *idle[KILN_DEFERRED_MAX];
    unsigned first, n, n_idle;
} kiln_deferred_queue;

/* Does the deferred work of the unit in work at once, on the calling thread. Does nothing if the
 * unit defers nothing. */
kiln_status kiln_deferred_run(kiln_worker *w, kiln_error *err) KILN_MUST_CHECK;
/* Drops it without doing it. */
void kiln_deferred_drop(kiln_worker *w);
/* Moves the deferred work to a thread, together with the unit's outputs and counters; `reply` is
 * completed there. The caller has made sure that fewer than deferred_most are pending. */
kiln_status kiln_deferred_begin(kiln_worker *w, const kiln_message *reply, const char *name,
                                kiln_error *err) KILN_MUST_CHECK;
/* number of units whose deferred work is not answered */
unsigned kiln_deferred_pending(const kiln_worker *w);
/* Returns a descriptor that becomes readable when the oldest pending work is done. At least one is
 * pending. */
int kiln_deferred_descriptor(const kiln_worker *w);
/* Waits for the oldest and gives its answer: reply, memfd (the caller's) and the status. *begun_ns:
 * when its unit began. */
kiln_status kiln_deferred_end(kiln_worker *w, kiln_message *reply, int *memfd, uint64_t *begun_ns,
                              kiln_error *err) KILN_MUST_CHECK;
void kiln_deferred_free(kiln_worker *w); /* waits for all and drops their answers */

#endif
