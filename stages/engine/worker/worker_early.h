/* worker_early -- reading for the first unit while the worker opens its GPU
 * (kiln_stage_program.early). */
#ifndef KILN_STAGES_ENGINE_WORKER_WORKER_EARLY_H
#define KILN_STAGES_ENGINE_WORKER_WORKER_EARLY_H

#include "stages/engine/engine.h"

#include <pthread.h>

typedef struct {
    kiln_worker *worker;
    pthread_t thread;
    bool runs;
    atomic_bool stop;
    uint64_t bytes;
} kiln_early;

/* Starts the program's `early`, if it has one, on a thread of its own. Until kiln_early_end the
 * caller uses of the worker only what opens the device. */
void kiln_early_begin(kiln_early *e, kiln_worker *w);
/* Stops it and waits for its end. Returns an upper bound of the host memory that it has taken, in
 * bytes. */
uint64_t kiln_early_end(kiln_early *e);

#endif
