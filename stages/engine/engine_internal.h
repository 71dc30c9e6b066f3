/* engine_internal -- what the engine's own files share: the run, its options, worker processes. */
#ifndef KILN_STAGES_ENGINE_INTERNAL_H
#define KILN_STAGES_ENGINE_INTERNAL_H

#include "base/file.h"
#include "stages/engine/devices.h"
#include "stages/engine/engine.h"
#include "stages/engine/protocol.h"
#include "stages/engine/ram.h"
#include "stages/engine/stage_graph.h"

#include <sys/types.h>

/* ---- options that the engine adds to every program -------------------------------------------------------------- */
typedef struct {
    bool force, reset, allow_partial, allow_network;
    bool list_gpus;
    const char *scratch_dir; /* NULL: beside the manifest */
} kiln_engine_options;
extern kiln_engine_options kiln_engine_values;

/* ---- SIGINT, SIGTERM --------------------------------------------------------------------------------------------- */
void kiln_interrupt_watch(void);
kiln_status kiln_interrupt_check(kiln_error *err) KILN_MUST_CHECK; /* KILN_E_INTERRUPTED, KILN_E_TERMINATED */
/* The same, then waits a fifth of a second at most for one of the descriptors; revents, zero before, says which. The only way
 * in which a parent waits for its children: no signal is left lying. */
struct pollfd;
kiln_status kiln_interrupt_poll(struct pollfd *fds, unsigned n, kiln_error *err) KILN_MUST_CHECK;

/* ---- worker processes, the parent's side -------------------------------------------------------------------------- */
enum { KILN_IN_FLIGHT = 2 }; /* one computed, one prefetched */
typedef struct {
    pid_t pid; /* 0: none runs */
    int fd;
    bool ready; /* it has said hello */
    unsigned n_flight;
    uint64_t flight[KILN_IN_FLIGHT]; /* units handed out, oldest first */
    const kiln_device *device;
    char device_text[160]; /* "cuda, NVIDIA H200, GPU-...", "cpu-avx2, 2 threads" */
    kiln_worker_use use;
} kiln_worker_process;
/* Starts it; it is ready when kiln_worker_await has returned, so that several can open their devices at once. */
kiln_status kiln_worker_start(const kiln_run *r, const kiln_device *device, kiln_worker_process *w,
                              kiln_error *err) KILN_MUST_CHECK;
/* KILN_E_DEVICE and others with its own sentence when it cannot compute on its device. */
kiln_status kiln_worker_await(kiln_worker_process *w, kiln_error *err) KILN_MUST_CHECK;
/* Idle ones are asked to end, busy ones killed; some may not run. */
void kiln_workers_stop(kiln_worker_process *workers, unsigned n);
/* Largest of what they took; operations that ran on the CPU for want of memory, in sum. */
kiln_worker_use kiln_workers_use(const kiln_worker_process *workers, unsigned n);
/* Their devices, each with its UUID, "; " between; "" when none was started. */
enum { KILN_DEVICES_TEXT = KILN_DEVICES_MAX * sizeof(((kiln_worker_process *)0)->device_text) };
void kiln_workers_devices(const kiln_worker_process *workers, unsigned n, char *out, size_t size);
/* Its socket is closed: reaps it and says why it died while it computed `unit`; NULL: before it was ready. Never KILN_OK. */
kiln_status kiln_worker_death(kiln_worker_process *w, const char *unit, kiln_error *err) KILN_MUST_CHECK;
#define KILN_WORKER_FLAG "--worker=" /* argv[1] of a worker: "cpu:" or "cuda:" and the descriptor of its socket */

/* ---- worker, the worker's side -------------------------------------------------------------------------------------- */
int kiln_worker_main(const kiln_stage_program *p, const kiln_cli *cli, const char *flag, int argc, char **argv);

/* Outputs of the unit in hand (outputs.c). */
typedef struct kiln_output kiln_output;
typedef struct {
    kiln_output *items;
    uint32_t n, room, n_packed; /* the first n_packed are in the memfd */
    uint64_t waiting_bytes;     /* copies of those behind them */
    uint64_t wait_most;         /* so many bytes of copies may wait; set before the first is put, KILN_OUTPUTS_WAIT at most */
    uint64_t end;               /* of the regions in the memfd */
    int memfd;                  /* -1: none yet */
    unsigned threads;
    bool keep_raw; /* volatile: nothing is cut nor compressed */
} kiln_outputs;
enum { KILN_OUTPUTS_WAIT = 64 << 20 };
void kiln_outputs_init(kiln_outputs *o, unsigned threads);
kiln_status kiln_outputs_put(kiln_outputs *o, const char *name, const void *raw, size_t bytes, uint32_t elem,
                             kiln_error *err) KILN_MUST_CHECK;
/* Packs what waits and ends the result (protocol.h): a sealed memfd, the caller's. */
kiln_status kiln_outputs_finish(kiln_outputs *o, const char *counters, kiln_message *m, int *memfd,
                                kiln_error *err) KILN_MUST_CHECK;
/* The parent's side: what a RESULT's memfd, mapped whole, holds. blobs[m->n_outputs] point into it; out may be filled in part
 * when this fails, release it. */
kiln_status kiln_outputs_read(const kiln_message *m, const void *map, kiln_unit_result *out, kiln_blob *blobs,
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
    kiln_device_list devices;                      /* n == 0: not looked for yet */
    kiln_worker_process workers[KILN_DEVICES_MAX]; /* workers[i] is on devices.items[i] */
    unsigned n_workers;                            /* started so far; no more than there were units due */
    json_t *report;
    json_t *stored_report; /* of the run that made what is there, when there was nothing to do */
    uint64_t units_done, units_cached, units_stored;
    int64_t start_wall_ns;
    uint64_t start_ns;
    bool committed;
    char scratch[KILN_PATH_MAX]; /* folder of this run; "": none */
    kiln_ram_use ram;            /* ram.h */
};
/* Looks for the devices unless that is done. */
kiln_status kiln_run_find_devices(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
/* Removes what kiln_run_scratch made. */
void kiln_run_drop_scratch(kiln_run *r);
/* Stores the KEYED options that were given; clears the others first with --reset. Inside a transaction. */
kiln_status kiln_run_store_parameters(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
/* Report, counters of units, times: what --json prints and the run record keeps. NULL when memory is gone. */
json_t *kiln_run_summary(const kiln_run *r, const char *status);
kiln_status kiln_run_record(kiln_run *r, kiln_status end, const char *sentence,
                            kiln_error *err) KILN_MUST_CHECK; /* inside a transaction */

#endif
