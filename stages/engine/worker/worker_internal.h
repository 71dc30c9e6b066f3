/* worker_internal -- what worker.c, worker_early.c and worker_deferred.c share: the worker process as it sees itself. */
#ifndef KILN_STAGES_ENGINE_WORKER_WORKER_INTERNAL_H
#define KILN_STAGES_ENGINE_WORKER_WORKER_INTERNAL_H

#include "stages/engine/engine_internal.h"

#include <pthread.h>

typedef struct kiln_deferred_thread kiln_deferred_thread;

/* Deferred work that runs or waits to be answered (`pending`, a ring, oldest first), and threads that are idle. Threads are made
 * when they are needed and kept. */
typedef struct {
    kiln_deferred_thread *pending[KILN_DEFERRED_MAX], *idle[KILN_DEFERRED_MAX];
    unsigned first, n, n_idle;
} kiln_deferred_queue;

struct kiln_worker {
    const kiln_stage_program *program;
    kiln_parsed parsed;
    kiln_device_kind device;
    int fd;
    unsigned threads; /* of the unit in work */
    uint64_t ram;     /* host memory in bytes that it may take */
    uint64_t ram_cuda;
    uint64_t ram_bare;   /* what this process had before it opened its GPU; 0: it is not open */
    kiln_runner *runner; /* NULL in the kiln_worker of deferred work, as are manifest and state */
    kiln_manifest *manifest;
    void *state;
    void (*free_state)(void *);
    kiln_outputs outputs;
    char *counters;                 /* of the unit in work; NULL: "{}" */
    kiln_deferred_fn *deferred_run; /* arguments of kiln_worker_defer; NULL: the unit defers nothing */
    kiln_deferred_drop_fn *deferred_drop;
    void *deferred_context;
    unsigned deferred_most, deferred_threads;
    uint64_t begun_ns;    /* when the unit in work began */
    uint64_t answered_ns; /* when the last unit was answered */
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

/* Starts the program's `early`, if it has one, on a thread of its own. Until kiln_early_end the caller uses of the worker only what
 * opens the device. */
void kiln_early_begin(kiln_early *e, kiln_worker *w);
/* Stops it and waits for its end. Returns an upper bound of the host memory that it has taken, in bytes. */
uint64_t kiln_early_end(kiln_early *e);

/* ---- deferred work, on threads of its own (worker_deferred.c) ---------------------------------------------------- */
/* Does the deferred work of the unit in work at once, on the calling thread. Does nothing if the unit defers nothing. */
kiln_status kiln_deferred_run(kiln_worker *w, kiln_error *err) KILN_MUST_CHECK;
/* Drops it without doing it. */
void kiln_deferred_drop(kiln_worker *w);
/* Moves the deferred work to a thread, together with the unit's outputs and counters; `reply` is completed there. The caller has
 * made sure that fewer than deferred_most are pending. */
kiln_status kiln_deferred_begin(kiln_worker *w, const kiln_message *reply, const char *name, kiln_error *err) KILN_MUST_CHECK;
unsigned kiln_deferred_pending(const kiln_worker *w); /* number of units whose deferred work is not answered */
/* Returns a descriptor that becomes readable when the oldest pending work is done. At least one is pending. */
int kiln_deferred_descriptor(const kiln_worker *w);
/* Waits for the oldest and gives its answer: reply, memfd (the caller's) and the status. *begun_ns: when its unit began. */
kiln_status kiln_deferred_end(kiln_worker *w, kiln_message *reply, int *memfd, uint64_t *begun_ns, kiln_error *err) KILN_MUST_CHECK;
void kiln_deferred_free(kiln_worker *w); /* waits for all and drops their answers */

#endif
