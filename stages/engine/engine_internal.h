/* engine_internal -- what the files of the engine share: the run, the options that the engine adds, and worker processes. */
#ifndef KILN_STAGES_ENGINE_INTERNAL_H
#define KILN_STAGES_ENGINE_INTERNAL_H

#include "base/file.h"
#include "stages/engine/devices/containment.h"
#include "stages/engine/devices/devices.h"
#include "stages/engine/engine.h"
#include "stages/engine/engine_options.h"
#include "stages/engine/worker/outputs.h"
#include "stages/engine/worker/protocol.h"
#include "stages/engine/interrupt.h"
#include "stages/engine/memory/memfd.h"
#include "stages/engine/memory/ram.h"
#include "stages/engine/memory/ram_use.h"
#include "stages/engine/memory/scratch.h"
#include "stages/engine/parent/run_memory.h"
#include "stages/engine/parent/host_hooks.h"
#include "stages/engine/stage_graph.h"

#include <sys/types.h>

/* ---- options that the engine adds to every program -------------------------------------------------------------- */
/* Sets all options of the engine to zero, which an earlier stage of this process may have set. */
void kiln_engine_options_forget(void);
/* Gives the program's option table with the engine's rows in front of the common ones. The rows are static: the next call
 * replaces them. */
kiln_status kiln_engine_options_merge(const kiln_stage_program *p, kiln_cli *out, kiln_error *err) KILN_MUST_CHECK;
/* Says of --shard, --units and the options of rounds why a stage has them not, which "unknown option" would leave open. Before
 * parsing. KILN_E_USAGE. */
kiln_status kiln_engine_options_refuse(const kiln_stage_program *p, int argc, char **argv, kiln_error *err) KILN_MUST_CHECK;

/* ---- worker processes, the parent's side -------------------------------------------------------------------------- */
/* A worker has one unit in work, one that waits, and those whose deferred work runs. */
enum { KILN_IN_FLIGHT_MAX = KILN_IN_FLIGHT + KILN_DEFERRED_MAX };

/* A slot (containment.h) and the process that is in it now. Times are of kiln_now_ns. */
typedef struct {
    pid_t pid;         /* 0: the slot is empty */
    int fd;            /* the parent's end of its socket; -1: closed, the process is ending */
    bool greeted;      /* it has said HELLO */
    bool ready;        /* it may be handed units: greeted and not ending */
    bool died;         /* it ended by itself, or was killed because it hung */
    bool hung;         /* it exceeded --deadline with its unit, or took too long to say HELLO */
    bool handed_over;  /* it rested before: if it cannot begin, the process may be at fault and not the device */
    bool doubted;      /* it died with several units in work, which went back; the reason is still to be printed */
    unsigned n_flight; /* units that it has */
    unsigned n_beside; /* of them, those that have begun although the oldest is not answered (BEGUN) */
    uint64_t flight[KILN_IN_FLIGHT_MAX]; /* items of the schedule that it has, oldest first */
    uint64_t start_ns;                   /* when it was started */
    uint64_t unit_ns;                    /* when the unit in work began */
    uint64_t end_ns;                     /* when it was asked to end; 0: it was not */
    const kiln_device *device;
    char device_text[160]; /* "cuda, NVIDIA H200, GPU-...", "cpu-avx2, 2 threads" */
    kiln_worker_use use;
    /* of all processes that were in this slot */
    kiln_worker_use past; /* of earlier processes, together */
    bool retired;         /* the slot is used no more in this run */
    unsigned n_early;     /* processes in a row that ended by themselves before they had done anything */
    kiln_strikes strikes;
    uint64_t n_units, busy_ns; /* units done here; time that units took, including failed ones */
    uint64_t open_ns;          /* from the first start to the first HELLO */
} kiln_worker_process;
/* Starts a worker in an empty slot and does not wait for it: it is ready once its HELLO has come, so several workers open their
 * devices at the same time. unit_ram: bytes that its units may take. KILN_E_IO, KILN_E_NOMEM. */
kiln_status kiln_worker_start(const kiln_run *r, const kiln_device *device, uint64_t unit_ram, kiln_worker_process *w,
                              kiln_error *err) KILN_MUST_CHECK;
/* Starts a worker that rests (kiln_rest_start), likewise. */
kiln_status kiln_worker_start_resting(const char *program, const kiln_device *device, kiln_worker_process *w,
                                      kiln_error *err) KILN_MUST_CHECK;
/* Returns the nanoseconds from its start within which a worker on this device must say HELLO (mishaps.c). */
uint64_t kiln_start_deadline_ns(const kiln_device *device);
/* Takes the first message of a worker. Fails with the worker's own status if it cannot compute on its device. KILN_E_BUG: neither
 * HELLO nor FAILED. */
kiln_status kiln_worker_greet(kiln_worker_process *w, const kiln_message *m, kiln_error *err) KILN_MUST_CHECK;
/* Asks a worker to end, by closing its socket, and does not wait. kiln_worker_ended says when it has ended. */
void kiln_worker_dismiss(kiln_worker_process *w);
/* Says whether a worker that was asked to end has ended; then the slot is empty and *status is that of waitpid. Kills a worker that
 * takes too long. If not even SIGKILL ends it, because the kernel waits for its device, it counts as ended after a while and
 * *status is KILN_WORKER_UNDEAD. */
enum { KILN_WORKER_UNDEAD = -1 };
bool kiln_worker_ended(kiln_worker_process *w, int *status);
enum { KILN_EXEC_FAILED = 127 }; /* exit code of a process that could not become a worker */
/* Returns the status for a process that ended by itself, never KILN_OK, with a sentence that names no unit and no slot. status: of
 * kiln_worker_ended. */
kiln_status kiln_worker_death(const kiln_worker_process *w, int status, kiln_error *err) KILN_MUST_CHECK;
/* Asks idle workers to end, or to rest if they are kept, and does not wait for them. Call it when the parent needs no worker any
 * more. */
void kiln_workers_dismiss(kiln_worker_process *workers, unsigned n);
/* Asks idle workers to end, kills busy ones and waits for all. Slots may be empty. If a signal ends the run, returns within 2 s. */
void kiln_workers_stop(kiln_worker_process *workers, unsigned n);

/* Workers that rest between two stages of this process (worker_rest.c). Empty unless kiln_program_keep_workers was called. */
void kiln_rest_keep(bool on);
bool kiln_rest_keeps(void);
/* Tells an idle worker to rest and empties its slot. Returns false if it may not rest: workers are not kept, or it is busy or gone.
 */
bool kiln_rest_begin(kiln_worker_process *w);
/* Waits until every worker that was told to rest has freed what it had of the stage, above all its connection to the manifest.
 * Kills workers that do not answer in time, or that have not answered when a signal comes. */
void kiln_rest_wait(void);
/* Gives a resting worker on this device the command line of a stage; *pid and *fd are its process and socket. False: none rests. */
bool kiln_rest_take(const kiln_device *device, const char *program, char *const *arguments, pid_t *pid, int *fd);
/* Call it before a list of units that wants n_slots workers. Asks those resting workers to end that the list cannot take and that
 * are not worth keeping under this cap. Returns the host memory in bytes of those that stay although the list does not take them.
 */
uint64_t kiln_rest_fit(const kiln_run *r, unsigned n_slots, uint64_t cap);
/* Starts a worker that rests from its start: it opens its device while the parent does something else, and has no stage yet.
 * program: the name of the executable in argv[0]. */
void kiln_rest_start(const char *program, const kiln_device *device);
/* Says whether --ram has room for n workers that open a GPU before a plan counts them; each takes about kiln_rest_start_bytes. */
bool kiln_rest_has_room(kiln_run *r, unsigned n);
uint64_t kiln_rest_start_bytes(void);
/* Says whether a worker on a GPU rests, or has been started to. */
bool kiln_rest_has_gpu(void);
/* kiln_rest_expect notes the devices of a later stage (kiln_program_expect). kiln_rest_begin_expected asks which GPUs these are,
 * and does not wait; call it when the first worker on the CPU has been started, because then there is work. */
void kiln_rest_expect(const char *devices);
void kiln_rest_begin_expected(kiln_run *r);
/* Returns a descriptor that becomes readable when the answer is there; then call kiln_rest_start_expected, which starts a worker on
 * each of these GPUs. -1: there is nothing to wait for. */
int kiln_rest_descriptor(void);
void kiln_rest_start_expected(const kiln_run *r);
void kiln_rest_dismiss(void); /* asks all to end and does not wait */
void kiln_rest_stop(void);    /* and waits for all */
/* Gives the processes that rest or are about to end, borrowed until the next call that changes them. Returns how many. */
unsigned kiln_rest_processes(const kiln_worker_process *out[KILN_SLOTS_MAX]);

/* Writes the name of a slot for people into buf and returns buf: its GPU, or "worker N of the CPU". */
const char *kiln_worker_name(const kiln_run *r, const kiln_worker_process *w, char *buf, size_t size);
/* Raises each field of `to` to the larger of the two; n_host is added. */
void kiln_worker_use_add(kiln_worker_use *to, const kiln_worker_use *more);
/* Slot i of all that a run has used, of both homes. NULL behind the last. */
const kiln_worker_process *kiln_run_slot(const kiln_run *r, unsigned i);
/* Asks the idle workers of both homes to end, or to rest (kiln_workers_dismiss). */
void kiln_run_dismiss_workers(kiln_run *r);
/* Of all slots of a run, on both kinds of devices. The first adds up what their processes took, in the same way; the second returns
 * the longest time until one had opened its device. */
kiln_worker_use kiln_workers_use(const kiln_run *r);
uint64_t kiln_workers_open_ns(const kiln_run *r);
/* Writes their devices, each once and with its UUID, "; " between them; "" if none was started. */
enum { KILN_DEVICES_TEXT = (KILN_DEVICES_MAX + 1) * sizeof(((kiln_worker_process *)0)->device_text) };
void kiln_workers_devices(const kiln_run *r, char *out, size_t size);
/* Returns a new array of {device, units, busy_s, start_s, retired}; NULL if there is no memory. */
json_t *kiln_workers_json(const kiln_run *r);

/* ---- --shard, --units (selection.c) ----------------------------------------------------------------------------------- */
typedef struct {
    bool given;
    uint32_t shard, n_shards; /* from 0; n_shards 0: --units */
    uint64_t position;        /* number of optional units so far */
    uint64_t chosen;          /* of them, those that --shard or --units select */
    uint64_t bundle;          /* number of groups and single units so far */
    uint64_t group;           /* of the last unit */
    uint64_t left;            /* optional units that are neither stored nor chosen */
    bool cut;                 /* they made kiln_run_units end the run */
} kiln_selection;
/* Reads the two options into r->selection. KILN_E_USAGE. */
kiln_status kiln_selection_read(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
/* Check the texts of --shard and --units. KILN_E_USAGE. */
kiln_status kiln_shard_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_units_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
/* Says whether this run computes the unit. Call it once for each unit of the stage, in their order. */
bool kiln_selection_has(kiln_selection *s, const kiln_unit *u, bool first_of_list);

/* ---- quarantine of this run (run_quarantine.c) ------------------------------------------------------------------------------ */
typedef struct {
    kiln_quarantine_row *rows;
    uint64_t n, room;
    uint64_t n_failed; /* optional units that the output lacks */
} kiln_quarantine;
/* Adds a unit that was given up to the run's list and, if the run stores units, to the manifest; warns of it. */
kiln_status kiln_run_quarantine(kiln_run *r, const kiln_unit *u, const kiln_trial *trial, const char *device, const char *reason,
                                kiln_error *err) KILN_MUST_CHECK;
/* Adds an optional unit to the list that an earlier run gave up, so that the output lacks it again; it is not tried. */
kiln_status kiln_run_quarantine_again(kiln_run *r, const kiln_quarantine_row *row, kiln_error *err) KILN_MUST_CHECK;
/* Replaces the stage's rows in the manifest by those of this run, inside the last transaction. */
kiln_status kiln_run_store_quarantine(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
json_t *kiln_run_quarantine_json(const kiln_run *r); /* a new array of the rows; NULL if there is no memory */

/* The list of a report that has many rows (report_rows.c). */
typedef struct {
    const char *name; /* its key; NULL: there is none */
    uint64_t n;       /* rows */
    kiln_buffer text; /* of all of them, once there are more than KILN_ROWS_RECORDED; with --json alone */
} kiln_report_rows;
/* Leaves a list that is too long out of a run's record. Returns 0, or -1 if there is no memory. */
int kiln_report_rows_leave_out(const kiln_report_rows *rows, json_t *record);
/* Prints the text of a report, indented by 2, with the rows that are not in it. */
void kiln_report_rows_print(const kiln_report_rows *rows, const char *report);

/* ---- the run -------------------------------------------------------------------------------------------------------- */
/* Devices of one kind, and the slots of the workers on them. What was retired stays so until the run ends. */
typedef struct {
    kiln_device_list devices;                    /* n == 0: not looked for yet */
    kiln_worker_process workers[KILN_SLOTS_MAX]; /* with GPUs, workers[i] is on devices.items[i]; else all are on the CPU */
    unsigned n_workers;                          /* slots that have been used so far */
    bool greeted;                                /* at least one worker could open its device */
    bool ahead;                                  /* opened by kiln_run_open_ahead, for a list that has not come yet */
} kiln_home;
enum { KILN_HOMES = 2 };
/* Returns the device of a slot: borrowed. */
const kiln_device *kiln_home_device(const kiln_home *h, unsigned slot);

struct kiln_run {
    const kiln_stage_program *program;
    const kiln_stage_info *stage; /* NULL: a tool, not in stages.def */
    kiln_cli cli;                 /* of kiln_engine_options_merge */
    kiln_parsed parsed;
    kiln_manifest *manifest;
    kiln_home homes[KILN_HOMES];  /* the CPU and the GPUs, whichever came first; one has no devices in most runs */
    kiln_home *home;              /* of the next list */
    kiln_job *beside;             /* kiln_run_units_beside; NULL: no list is open */
    bool on_cpu;                  /* kiln_run_on_cpu */
    bool found_named;             /* the GPUs that --devices names are there */
    double work_s, later_s;       /* kiln_run_expect_work, kiln_run_expect_later; 0: not known */
    bool computes, serial;        /* kiln_run_computes, kiln_run_serial */
    const kiln_unit_taker *taker; /* kiln_run_takes */
    json_t *report;
    kiln_report_rows rows; /* of its list of many rows */
    json_t *lists;         /* an entry for each list of units that had work, for the run's record; NULL: none had */
    json_t *stored_report; /* if there was nothing to do: the report of the run that made the output */
    uint64_t units_done, units_cached, units_stored, units_retried;
    uint64_t units_total;            /* of all lists */
    kiln_buffer used;                /* keys of the units of all lists, possibly several times */
    uint64_t store_ns, stored_bytes; /* time and bytes of the transactions that stored units */
    kiln_quarantine quarantine;
    kiln_selection selection;
    kiln_run_hosts hosts;
    int64_t start_wall_ns;
    uint64_t start_ns;
    bool committed;
    char stored[1024];      /* names of the parameters that came from the manifest, with a blank before and after each */
    char partial_input[32]; /* an earlier stage that finished partially and is read by this one; "": none */
    kiln_scratch_folder scratch;
    kiln_ram_use ram;      /* ram.h */
    kiln_buffer bad_units; /* keys of refused results (kiln_unit_refuse), which are dropped when the run ends */
    kiln_error refusal;    /* the sentence about the first of them, or the first that reports a bug */
};
/* Returns where units of this run are stored: the manifest, or a part of it. */
kiln_manifest *kiln_run_store(const kiln_run *r);
/* Drops the refused results. If that fails, it only warns: the next run refuses them again. */
void kiln_run_drop_bad_units(kiln_run *r);
/* Says whether a list is open beside others (kiln_run_units_beside) and has its workers on this home. */
bool kiln_run_is_beside(const kiln_run *r, const kiln_home *h);
/* Looks for the devices if that is not done yet. KILN_E_DEVICE, KILN_E_USAGE, KILN_E_INTERRUPTED, KILN_E_TERMINATED. */
kiln_status kiln_run_find_devices(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
/* Stores the KILN_KEYED options that were given; with --reset, drops all stored ones first. Inside a transaction. */
kiln_status kiln_run_store_parameters(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
/* Returns the status with which a run ends that failed with st. It turns KILN_E_USAGE into KILN_E_INPUT if the sentence names only
 * options whose values came from the manifest: then the user's command line is not wrong. */
kiln_status kiln_run_blame_stored(const kiln_run *r, kiln_status st, kiln_error *err);
/* Returns a new object with report, counts of units and times, for --json and the run record. NULL if there is no memory. */
json_t *kiln_run_summary(const kiln_run *r, const char *status);
/* Adds the run to the manifest, or to its part, inside a transaction. end: its status; sentence: of its failure, or NULL. */
kiln_status kiln_run_record(kiln_run *r, kiln_status end, const char *sentence, kiln_error *err) KILN_MUST_CHECK;

#endif
