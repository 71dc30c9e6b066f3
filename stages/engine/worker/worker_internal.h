/* worker_internal -- the worker process as it sees itself. */
#ifndef KILN_STAGES_ENGINE_WORKER_WORKER_INTERNAL_H
#define KILN_STAGES_ENGINE_WORKER_WORKER_INTERNAL_H

#include "stages/engine/devices/devices.h"
#include "stages/engine/engine_options.h"
#include "stages/engine/worker/outputs.h"
#include "stages/engine/worker/worker.h"
#include "stages/engine/worker/worker_deferred.h"

struct kiln_worker {
    const kiln_stage_program *program;
    kiln_worker_become_fn *become;
    kiln_parsed parsed;
    const kiln_engine_options *options; /* borrowed, as common */
    const kiln_common *common;          /* options that base gives to every program */
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
    char *counters; /* of the unit in work; NULL: "{}" */
    /* arguments of kiln_worker_defer; NULL: the unit defers nothing */
    kiln_deferred_fn *deferred_run;
    kiln_deferred_drop_fn *deferred_drop;
    void *deferred_context;
    unsigned deferred_most, deferred_threads;
    uint64_t begun_ns;    /* when the unit in work began */
    uint64_t answered_ns; /* when the last unit was answered */
    kiln_deferred_queue deferred;
};

#endif
