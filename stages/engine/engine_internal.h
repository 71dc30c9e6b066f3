/* engine_internal -- what the engine's own files share: the run, its options, devices, worker processes. */
#ifndef KILN_STAGES_ENGINE_INTERNAL_H
#define KILN_STAGES_ENGINE_INTERNAL_H

#include "stages/engine/engine.h"
#include "stages/engine/protocol.h"
#include "stages/engine/stage_graph.h"

#include <sys/types.h>

/* ---- options that the engine adds to every program -------------------------------------------------------------- */
typedef struct {
    bool force, reset, allow_partial, allow_network;
} kiln_engine_options;
extern kiln_engine_options kiln_engine_values;

/* ---- devices ----------------------------------------------------------------------------------------------------- */
enum { KILN_DEVICES_MAX = 64 };
typedef enum { KILN_DEVICE_CPU, KILN_DEVICE_CUDA } kiln_device_kind;
typedef struct {
    kiln_device_kind kind;
    char visible[64]; /* CUDA_VISIBLE_DEVICES of its worker; "" for the CPU */
} kiln_device;
/* Is the text of --devices well-formed? Looks at no device. */
kiln_status kiln_devices_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
kiln_device_kind kiln_devices_kind(const char *text, bool *named);
/* The devices to run on; KILN_E_DEVICE when one is asked for that is not there. */
kiln_status kiln_devices_resolve(const char *text, kiln_device *out, unsigned *n, kiln_error *err) KILN_MUST_CHECK;
unsigned kiln_devices_threads(uint32_t asked); /* 0: the cores that this process may use */

/* ---- SIGINT, SIGTERM --------------------------------------------------------------------------------------------- */
void kiln_interrupt_watch(void);
kiln_status kiln_interrupt_check(kiln_error *err) KILN_MUST_CHECK; /* KILN_E_INTERRUPTED, KILN_E_TERMINATED */

/* ---- worker processes, the parent's side -------------------------------------------------------------------------- */
enum { KILN_IN_FLIGHT = 2 }; /* one computed, one prefetched */
typedef struct {
    pid_t pid; /* 0: none runs */
    int fd;
    unsigned n_flight;
    uint64_t flight[KILN_IN_FLIGHT]; /* units handed out, oldest first */
    const kiln_device *device;
    char device_text[128];
    uint64_t peak_rss;
} kiln_worker_process;
kiln_status kiln_worker_start(const kiln_run *r, const kiln_device *device, kiln_worker_process *w,
                              kiln_error *err) KILN_MUST_CHECK;
void kiln_worker_stop(kiln_worker_process *w); /* an idle one is asked to end, a busy one killed; accepts one that does not run */
/* Its socket is closed: reaps it and says why it died while it computed `unit`. Never KILN_OK. */
kiln_status kiln_worker_death(kiln_worker_process *w, const char *unit, kiln_error *err) KILN_MUST_CHECK;
#define KILN_WORKER_FLAG "--worker=" /* argv[1] of a worker: the descriptor of its socket */

/* ---- worker, the worker's side -------------------------------------------------------------------------------------- */
int kiln_worker_main(const kiln_stage_program *p, const kiln_cli *cli, const char *fd_text, int argc, char **argv);

/* Outputs of the unit in hand (outputs.c). */
typedef struct kiln_output kiln_output;
typedef struct {
    kiln_output *items;
    uint32_t n, room, n_packed; /* the first n_packed are compressed */
    uint64_t waiting_bytes;     /* raw bytes of those behind them */
    unsigned threads;
    bool keep_raw; /* volatile: nothing is cut nor compressed */
} kiln_outputs;
kiln_status kiln_outputs_put(kiln_outputs *o, const char *name, const void *raw, size_t bytes, uint32_t elem,
                             kiln_error *err) KILN_MUST_CHECK;
/* Packs what waits and writes the result (protocol.h) into a sealed memfd. */
kiln_status kiln_outputs_finish(kiln_outputs *o, const char *counters, kiln_message *m, int *memfd,
                                kiln_error *err) KILN_MUST_CHECK;
void kiln_outputs_clear(kiln_outputs *o);
void kiln_outputs_release(kiln_outputs *o);

/* ---- the run -------------------------------------------------------------------------------------------------------- */
struct kiln_run {
    const kiln_stage_program *program;
    const kiln_stage_info *stage; /* NULL: a tool, not in stages.def */
    kiln_cli cli;                 /* the program's, with the engine's rows among the common ones */
    kiln_parsed parsed;
    kiln_manifest *manifest;
    kiln_device devices[KILN_DEVICES_MAX];
    unsigned n_devices;                            /* 0: not looked for yet */
    kiln_worker_process workers[KILN_DEVICES_MAX]; /* [n_devices] */
    json_t *report;
    json_t *stored_report; /* of the run that made what is there, when there was nothing to do */
    uint64_t units_done, units_cached, units_stored;
    uint64_t worker_peak_rss;
    char device_text[128];
    int64_t start_wall_ns;
    uint64_t start_ns;
    bool committed;
};
/* Stores the KEYED options that were given; clears the others first with --reset. Inside a transaction. */
kiln_status kiln_run_store_parameters(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
/* Report, counters of units, times: what --json prints and the run record keeps. NULL when memory is gone. */
json_t *kiln_run_summary(const kiln_run *r, const char *status);
kiln_status kiln_run_record(kiln_run *r, kiln_status end, const char *sentence,
                            kiln_error *err) KILN_MUST_CHECK; /* inside a transaction */

#endif
