/* engine_internal -- what the engine's own files share: the run, its options, worker processes. */
#ifndef KILN_STAGES_ENGINE_INTERNAL_H
#define KILN_STAGES_ENGINE_INTERNAL_H

#include "base/file.h"
#include "stages/engine/containment.h"
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
    uint32_t workers;        /* 0: as many as suit threads and memory */
    uint32_t deadline_s;     /* a unit that computes longer, or a worker's start, is taken for hung; 0: no unit is */
    const char *shard;       /* "2/8": of optional units only every eighth; NULL: all */
    const char *units;       /* names or positions of optional units; NULL: all */
} kiln_engine_options;
extern kiln_engine_options kiln_engine_values;
/* The program's own table, with the engine's rows in front of the common ones. The rows are static: once a process. */
kiln_status kiln_engine_options_merge(const kiln_stage_program *p, kiln_cli *out, kiln_error *err) KILN_MUST_CHECK;

/* ---- SIGINT, SIGTERM --------------------------------------------------------------------------------------------- */
void kiln_interrupt_watch(void);
kiln_status kiln_interrupt_check(kiln_error *err) KILN_MUST_CHECK; /* KILN_E_INTERRUPTED, KILN_E_TERMINATED */
/* The same, then waits a fifth of a second at most for one of the descriptors; revents, zero before, says which. The only way
 * in which a parent waits for its children: no signal is left lying. */
struct pollfd;
kiln_status kiln_interrupt_poll(struct pollfd *fds, unsigned n, kiln_error *err) KILN_MUST_CHECK;
/* The same, and waits so long at most. */
kiln_status kiln_interrupt_wait(struct pollfd *fds, unsigned n, int most_ms, kiln_error *err) KILN_MUST_CHECK;

/* ---- worker processes, the parent's side -------------------------------------------------------------------------- */
/* One computed, one prefetched; and those whose tails run. */
enum { KILN_IN_FLIGHT = 2, KILN_IN_FLIGHT_MAX = KILN_IN_FLIGHT + KILN_DEFERRED_MAX };

/* A slot (containment.h) and the process that is in it now. */
typedef struct {
    pid_t pid;                           /* 0: none runs */
    int fd;                              /* of its socket; -1: closed, it is to end */
    bool greeted;                        /* it has said hello */
    bool ready;                          /* it may be handed units: greeted, and not to end */
    bool died;                           /* by itself, or it was killed because it hung */
    bool hung;                           /* it took longer than --deadline for its unit, or too long to say hello */
    bool doubted;                        /* it died with several units in work, which went back: nobody was told why yet */
    unsigned n_flight, n_beside;         /* in work beside the tail of the oldest: so many that follow it */
    uint64_t flight[KILN_IN_FLIGHT_MAX]; /* items of the schedule that it has, oldest first */
    uint64_t start_ns;                   /* when it was started */
    uint64_t unit_ns;                    /* when the oldest in flight began */
    uint64_t end_ns;                     /* since when it is to end; 0: it is not */
    const kiln_device *device;
    char device_text[160]; /* "cuda, NVIDIA H200, GPU-...", "cpu-avx2, 2 threads" */
    kiln_worker_use use;
    /* of all processes that were in this slot */
    kiln_worker_use past; /* of those before */
    bool retired;
    unsigned n_early; /* processes in a row that ended by themselves before they had done anything */
    kiln_strikes strikes;
    uint64_t n_units, busy_ns; /* done here; time of units, failed ones too */
    uint64_t open_ns;          /* from the first start to the first hello */
} kiln_worker_process;
/* Starts one in an empty slot. unit_ram: what its units may take. It is ready when its hello has come, so that several can open
 * their devices at once. */
kiln_status kiln_worker_start(const kiln_run *r, const kiln_device *device, uint64_t unit_ram, kiln_worker_process *w,
                              kiln_error *err) KILN_MUST_CHECK;
/* Nanoseconds from its start in which a worker on this device must say hello (mishaps.c). */
uint64_t kiln_start_deadline_ns(const kiln_device *device);
/* Takes what it has to say: hello, or (any failure) why it cannot compute on its device. */
kiln_status kiln_worker_greet(kiln_worker_process *w, const kiln_message *m, kiln_error *err) KILN_MUST_CHECK;
/* It is to end: its socket is closed. kiln_worker_ended says when it has. */
void kiln_worker_dismiss(kiln_worker_process *w);
/* Has one that is to end ended? Kills it when it takes its time; then *status is what wait gives, and the slot is empty. One that
 * not even SIGKILL ends counts as ended after a while: *status is KILN_WORKER_UNDEAD. */
enum { KILN_WORKER_UNDEAD = -1 };
bool kiln_worker_ended(kiln_worker_process *w, int *status);
enum { KILN_EXEC_FAILED = 127 }; /* exit code of a process that could not become a worker */
/* Why it ended by itself: status, and a sentence without context. Never KILN_OK. */
kiln_status kiln_worker_death(const kiln_worker_process *w, int status, kiln_error *err) KILN_MUST_CHECK;
/* Idle ones are asked to end, and not waited for: what the parent does meanwhile needs none. */
void kiln_workers_dismiss(kiln_worker_process *workers, unsigned n);
/* Idle ones are asked to end, busy ones killed; some may not run. Returns within 2 s when a signal ends the run. */
void kiln_workers_stop(kiln_worker_process *workers, unsigned n);
/* What people call the slot: its device, on the CPU with its number. */
const char *kiln_worker_name(const kiln_run *r, const kiln_worker_process *w, char *buf, size_t size);
/* The larger of each, n_host in sum. */
void kiln_worker_use_add(kiln_worker_use *to, const kiln_worker_use *more);
/* Largest of what they took; operations that ran on the CPU for want of memory, in sum. */
kiln_worker_use kiln_workers_use(const kiln_worker_process *workers, unsigned n);
/* Their devices, each with its UUID, "; " between; "" when none was started. */
enum { KILN_DEVICES_TEXT = KILN_DEVICES_MAX * sizeof(((kiln_worker_process *)0)->device_text) };
void kiln_workers_devices(const kiln_worker_process *workers, unsigned n, char *out, size_t size);
/* Array of {device, units, busy_s, start_s}; NULL when memory is gone. */
json_t *kiln_workers_json(const kiln_worker_process *workers, unsigned n);
#define KILN_WORKER_FLAG "--worker=" /* argv[1] of a worker: "cpu" or "cuda", descriptor of its socket, unit_ram, ":" between */

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
typedef enum { KILN_PUT_COPY, KILN_PUT_LEND } kiln_put; /* kiln_worker_put, kiln_worker_lend */
kiln_status kiln_outputs_put(kiln_outputs *o, const char *name, const void *raw, size_t bytes, uint32_t elem, kiln_put put,
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

/* KILN_FAULT (fault.c): failures on purpose. Is it well-formed? For the parent, before anything is done. */
kiln_status kiln_fault_check(kiln_error *err) KILN_MUST_CHECK;
/* In the worker, before the unit computes: does what KILN_FAULT says of it, if that leaves the process alive. *lost: the device is
 * to be taken for lost. */
kiln_status kiln_fault_fire(const kiln_message *unit, const kiln_runner *runner, bool *lost, kiln_error *err) KILN_MUST_CHECK;

/* ---- --shard, --units (selection.c) ----------------------------------------------------------------------------------- */
typedef struct {
    bool given;
    uint32_t shard, n_shards; /* from 0; n_shards 0: --units */
    uint64_t position;        /* optional units seen so far */
    uint64_t chosen;          /* of these, the ones that --shard or --units select */
    uint64_t bundle, group;   /* groups and single units seen so far; the group of the last */
    uint64_t left;            /* of optional units: neither stored nor chosen */
    bool cut;                 /* because of those a list of units ended the run */
} kiln_selection;
/* Reads the options; KILN_E_USAGE. */
kiln_status kiln_selection_read(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
/* Is this unit one to compute? Asked once of each unit of the stage, in their order. */
bool kiln_selection_has(kiln_selection *s, const kiln_unit *u, bool first_of_list);

/* ---- quarantine of this run (run_quarantine.c) ------------------------------------------------------------------------------ */
typedef struct {
    kiln_quarantine_row *rows;
    uint64_t n, room;
    uint64_t n_failed; /* that the output does without */
} kiln_quarantine;
/* Adds the unit to the run's list and, where units are stored, to the manifest; says so. */
kiln_status kiln_run_quarantine(kiln_run *r, const kiln_unit *u, const kiln_trial *trial, const char *device, const char *reason,
                                kiln_error *err) KILN_MUST_CHECK;
/* Inside the last transaction: the stage's rows become those of this run. */
kiln_status kiln_run_store_quarantine(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
json_t *kiln_run_quarantine_json(const kiln_run *r);

/* ---- the run -------------------------------------------------------------------------------------------------------- */
struct kiln_run {
    const kiln_stage_program *program;
    const kiln_stage_info *stage; /* NULL: a tool, not in stages.def */
    kiln_cli cli;                 /* the program's, with the engine's rows among the common ones */
    kiln_parsed parsed;
    kiln_manifest *manifest;
    kiln_device_list devices;                    /* n == 0: not looked for yet */
    kiln_worker_process workers[KILN_SLOTS_MAX]; /* slots: of a GPU each, workers[i] is on devices.items[i]; or of the CPU all */
    unsigned n_workers;                          /* slots in use so far */
    json_t *report;
    json_t *lists;         /* what came of each list of units that had work, for the run's record; NULL: none had */
    json_t *stored_report; /* of the run that made what is there, when there was nothing to do */
    uint64_t units_done, units_cached, units_stored, units_retried;
    uint64_t units_total;            /* of all lists */
    kiln_buffer used;                /* keys of the units of all lists, as often as they were asked for */
    uint64_t store_ns, stored_bytes; /* inside the transactions that stored units */
    bool worker_greeted;             /* some worker could open its device */
    kiln_quarantine quarantine;
    kiln_selection selection;
    int64_t start_wall_ns;
    uint64_t start_ns;
    bool committed;
    char stored[1024];           /* names of the parameters that came from the manifest, each between blanks */
    char partial_input[32];      /* a stage that this one reads and that finished partially; "": none did */
    char scratch[KILN_PATH_MAX]; /* folder of this run; "": none */
    kiln_ram_use ram;            /* ram.h */
    kiln_buffer bad_units;       /* keys of what is stored and cannot be used: it is dropped when the run has ended */
    kiln_error refusal;          /* the sentence about the first of them */
};
/* Drops the results that kiln_unit_refuse has named. No failure: the next run would only refuse it again. */
void kiln_run_drop_bad_units(kiln_run *r);
/* Looks for the devices unless that is done. */
kiln_status kiln_run_find_devices(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
/* Is --scratch-dir a folder? A mistyped one would be made somewhere and filled. */
kiln_status kiln_scratch_check(kiln_error *err) KILN_MUST_CHECK;
/* Removes what kiln_run_scratch made. */
void kiln_run_drop_scratch(kiln_run *r);
/* Removes the folder of a run that failed before anything was put there. */
void kiln_run_tidy_scratch(kiln_run *r);
/* Slots: of which device each is, and how many the run may use at once. */
const kiln_device *kiln_run_slot_device(const kiln_run *r, unsigned slot);
/* Stores the KEYED options that were given; clears the others first with --reset. Inside a transaction. */
kiln_status kiln_run_store_parameters(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
/* The status of a run that ended with this one and this sentence: a wrong command line is bad input where the sentence names
 * options that came from the manifest alone. */
kiln_status kiln_run_blame_stored(const kiln_run *r, kiln_status st, kiln_error *err);
/* Report, counters of units, times: what --json prints and the run record keeps. NULL when memory is gone. */
json_t *kiln_run_summary(const kiln_run *r, const char *status);
kiln_status kiln_run_record(kiln_run *r, kiln_status end, const char *sentence,
                            kiln_error *err) KILN_MUST_CHECK; /* inside a transaction */

#endif
