/* worker_internal -- the worker's own side: what worker.c and worker_deferred.c share. */
#ifndef KILN_STAGES_WORKER_INTERNAL_H
#define KILN_STAGES_WORKER_INTERNAL_H

#include "stages/engine/engine_internal.h"

#include <pthread.h>

typedef struct kiln_deferred_thread kiln_deferred_thread;

/* Tails that run, oldest first, in a ring; and threads that wait for one. There are never more threads than were pending at once.
 */
typedef struct {
    kiln_deferred_thread *pending[KILN_DEFERRED_MAX], *idle[KILN_DEFERRED_MAX];
    unsigned first, n, n_idle;
} kiln_deferred_queue;

struct kiln_worker {
    const kiln_stage_program *program;
    kiln_parsed parsed;
    kiln_device_kind device;
    int fd;
    unsigned threads; /* of the unit in hand */
    uint64_t ram;     /* its host memory */
    uint64_t ram_cuda;
    kiln_runner *runner; /* NULL for a tail, as are manifest and state */
    kiln_manifest *manifest;
    void *state;
    void (*free_state)(void *);
    kiln_outputs outputs;
    char *counters;                 /* of the unit in hand; NULL: "{}" */
    kiln_deferred_fn *deferred_run; /* what kiln_worker_defer said; NULL: nothing is left of it */
    kiln_deferred_drop_fn *deferred_drop;
    void *deferred_context;
    unsigned deferred_most, deferred_threads;
    uint64_t begun_ns;    /* the unit in hand */
    uint64_t answered_ns; /* when the last word of a unit was said */
    kiln_deferred_queue deferred;
};

/* ---- before the first unit (worker_early.c) -------------------------------------------------------------------------------- */
typedef struct {
    kiln_worker *worker;
    pthread_t thread;
    bool runs;
    atomic_bool stop;
    uint64_t bytes;
} kiln_early;

/* The program's `early` on a thread of its own, if it has one. The worker is its, but for what opens the device. */
void kiln_early_begin(kiln_early *e, kiln_worker *w);
/* Stops it and waits. Host memory that it has taken, at most. */
uint64_t kiln_early_end(kiln_early *e);

/* ---- the tail of a unit, on a thread of its own (worker_deferred.c) ---------------------------------------------------------- */
/* What the unit in hand has left is done now, by the caller; nothing to do where nothing is left. */
kiln_status kiln_deferred_run(kiln_worker *w, kiln_error *err) KILN_MUST_CHECK;
/* Drops it undone. */
void kiln_deferred_drop(kiln_worker *w);
/* Takes it, with outputs and counters, from the unit in hand to a thread: the answer becomes the tail's. Fewer than deferred_most
 * are pending. */
kiln_status kiln_deferred_begin(kiln_worker *w, const kiln_message *reply, const char *name, kiln_error *err) KILN_MUST_CHECK;
unsigned kiln_deferred_pending(const kiln_worker *w);
/* Becomes readable when the oldest that is pending is done. */
int kiln_deferred_descriptor(const kiln_worker *w);
/* Waits for the oldest and hands over its answer, as the unit's own would be. *begun_ns: of its unit. */
kiln_status kiln_deferred_end(kiln_worker *w, kiln_message *reply, int *memfd, uint64_t *begun_ns, kiln_error *err) KILN_MUST_CHECK;
void kiln_deferred_free(kiln_worker *w); /* waits for them; their answers are nobody's */

#endif
