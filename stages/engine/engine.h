/* engine -- what every stage program is made of: a parent process that plans and commits, and
 * workers that compute units.
 *
 * Problem. A bake takes long and can be interrupted at any moment: by a kill, a full disk, a GPU
 * that fails. What is finished must stay finished, and a rerun must compute only what is missing or
 * has changed.
 *
 * Constraint. A GPU driver can crash or hang the process that uses it. So the process that writes
 * the manifest never computes and never touches CUDA.
 *
 * Layout. A stage is a kiln_stage_program: options, the function `run` and the function `unit`.
 *   run    runs in the parent. It makes units, each with a key and a payload, calls kiln_run_units,
 *          reads the results and makes the output current in one transaction (kiln_run_commit).
 *   unit   runs in a worker. It reads its payload, computes on the worker's device and puts outputs
 *          (kiln_worker_put).
 * A unit whose key is in the manifest is not computed again. That one rule gives resume, rerun and
 * the rebake of single chunks (stages/engine/DESIGN.md).
 *
 * The parent starts a worker for each GPU, or some for the CPU. A worker is the same executable
 * with the same options. It has a read-only connection to the manifest, and a runner through which
 * one unit function serves CPU and GPU. Results come back in shared memory; the parent stores them
 * in short transactions. If a unit fails together with its worker or device, it is tried again
 * there, then elsewhere, then given up (containment.h). Units that are finished stay stored.
 *
 * Functions on kiln_run are for the parent's main thread. Functions on kiln_worker are for the
 * thread that runs the unit, or for the thread of its deferred work with the kiln_worker that it
 * was given. Every kiln_status function fills *err on failure and can return KILN_E_NOMEM; other
 * failures are named below.
 */
#ifndef KILN_STAGES_ENGINE_H
#define KILN_STAGES_ENGINE_H

#include "base/option.h"
#include "base/status.h"
#include "kernels/runner.h"
#include "schema/manifest.h"

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct kiln_run kiln_run;       /* the parent's side */
typedef struct kiln_worker kiln_worker; /* the worker's side */

/* An output of a stage that is not a layer. `digest` hashes everything that later stages read of
 * it. It is called before and after the output is made; if both hashes are equal, later stages stay
 * fresh. If the output does not exist yet, `digest` leaves *out zero or returns KILN_E_STALE. */
typedef struct {
    const char *name; /* a word of `makes` in pipelines/stages.def */
    kiln_status (*digest)(kiln_manifest *m, kiln_hash *out, kiln_error *err);
} kiln_stage_output;

/* What a program is like, or what its units are. */
typedef enum {
    /* `run` opens the manifest, not the engine: import, compare */
    KILN_PROGRAM_OPENS_ITSELF = 1 << 0,
    /* units run no operation: workers are on the CPU and make no CUDA context, whatever --devices
     * says */
    KILN_PROGRAM_CPU_ONLY = 1 << 1,
    /* the CPU has as many workers as threads, not a quarter: most units keep one thread busy. Where
     * a list has fewer units, such as one palette or one loss of kiln-export, each has several
     * threads */
    KILN_PROGRAM_SERIAL = 1 << 2,
    /* for a tool without units: SIGINT, SIGTERM and SIGHUP set a flag (kiln_run_interrupted)
     * instead of ending it */
    KILN_PROGRAM_WATCHES = 1 << 3,
    /* units compress more than they compute: they are on the CPU, whatever --devices names, but for
     * lists that compute (kiln_run_computes) */
    KILN_PROGRAM_PACKS = 1 << 4,
    /* its lists can be shared out among hosts: it has --plan, --part and --gather
     * (hosts/round.h) */
    KILN_PROGRAM_ROUNDS = 1 << 5,
    /* no unit is optional, so --shard and --units could leave out none: the stage does not offer
     * them, but --shard for --part if it has rounds */
    KILN_PROGRAM_UNDIVIDED = 1 << 6,
    /* its manifest is removed behind it: finished units are no reason to run it again */
    KILN_PROGRAM_PASSING = 1 << 7,
} kiln_program_flag;

typedef struct {
    const char *name;      /* "knn": a row of pipelines/stages.def, or the name of a tool */
    const kiln_cli *cli;   /* its own options; the engine adds the common ones */
    kiln_open_mode open;   /* how the manifest is opened before `run` is called */
    unsigned flags;        /* kiln_program_flag */
    unsigned manifest_arg; /* index of the positional argument that is the manifest: 0; import: 1 */
    /* A switch of the program that is KILN_ALONE, such as --list-formats, and the function that
     * prints its answer to stdout. If the switch is given, no manifest is opened and `run` is not
     * called. NULL: the program has none. */
    const bool *lists;
    void (*list)(void);
    /* Finds what is wrong with the options together, and with what they name on this machine, in a
     * moment: it reads no layer, starts no worker and changes nothing. Called in front of `run`,
     * and by `kiln pipeline` for every stage before the first one runs. The options have the values
     * of this run, stored ones too. kiln_run_manifest is NULL where there is none, or where stages
     * in front of this one may still change it; it may be of a bake of which no stage has run.
     * KILN_E_USAGE, or what the thing that is named is worth. What a single text may say is
     * kiln_cli.checks. NULL: there is nothing to find. */
    kiln_status (*check)(kiln_run *r, kiln_error *err);
    /* Says whether this run makes nothing of the option, whose value an earlier run has stored. It
     * is not told then. The options have the values of this run. NULL: of none. */
    bool (*ignores)(const char *option);
    /* Called once, in the parent. Its status is the program's exit code. */
    kiln_status (*run)(kiln_run *r, kiln_error *err);
    /* Called in a worker, once for each unit. The payload is aligned to a page, is read-only and
     * lasts until the call returns; with 0 bytes it is "". NULL: the program has no units. */
    kiln_status (*unit)(kiln_worker *w, const char *name, const void *payload, size_t payload_bytes,
                        kiln_error *err);
    /* May be NULL. Called on a thread of its own while a worker opens its GPU. It may read what the
     * first unit will need into the worker's state, within the memory of a unit. It returns soon
     * after *stop becomes true. It reports no failure: the unit meets the same one. Returns an
     * upper bound of the host memory that it has taken, in bytes. */
    uint64_t (*early)(kiln_worker *w, const atomic_bool *stop);
    /* what to do where the manifest is none, behind a semicolon; may be NULL */
    const char *instead;
    /* the outputs, besides layers, that later stages read; ends with a NULL name. May be NULL */
    const kiln_stage_output *outputs;
} kiln_stage_program;
/* units of one worker whose deferred work (kiln_worker_defer) may be unanswered at a time */
enum { KILN_DEFERRED_MAX = 32 };

/* The stages: kiln_stage_knn is in stages/knn.c. */
#define STAGE(name, ...) extern const kiln_stage_program kiln_stage_##name;
#include "pipelines/stages.def"
#undef STAGE

/* ---- parent ---------------------------------------------------------------------------------- */
kiln_manifest *kiln_run_manifest(kiln_run *r); /* borrowed; NULL before it is opened */
/* For a program that opens the manifest itself: hands it to the engine, which closes it. */
void kiln_run_set_manifest(kiln_run *r, kiln_manifest *m);
const kiln_parsed *kiln_run_args(const kiln_run *r);
/* For the same program: opens the manifest, if it is there and not empty, in the way that the
 * options about rounds ask for, else in this mode, hands it to the engine and loads the stored
 * parameters. Else kiln_run_manifest stays NULL, and the program makes it. KILN_E_STALE: --part or
 * --gather, and no plan stands. As kiln_manifest_open. */
kiln_status kiln_run_open_existing(kiln_run *r, const char *path, kiln_open_mode mode,
                                   kiln_error *err) KILN_MUST_CHECK;
/* For the same program: makes the manifest and hands it to the engine. As kiln_manifest_open. */
kiln_status kiln_run_create(kiln_run *r, const char *path, kiln_error *err) KILN_MUST_CHECK;
/* Sets the options that the command line does not give to the values that the manifest stores for
 * this stage. Does nothing under --reset. The engine calls it when it opens the manifest; a program
 * that opens the manifest itself calls it afterwards. The other direction, storing the options that
 * are KILN_KEYED, is done by kiln_run_commit. KILN_E_INPUT: a stored value is refused by its
 * option. KILN_E_IO. */
kiln_status kiln_run_load_parameters(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
/* Says whether an option has its value from an earlier run, by kiln_run_load_parameters. */
bool kiln_run_has_stored(const kiln_run *r, const char *option);
/* true if a KILN_ONCE option is given: the run must change no state */
bool kiln_run_is_once(const kiln_run *r);
/* KILN_PROGRAM_PASSING: the manifest is removed behind the run */
bool kiln_run_is_passing(const kiln_run *r);
bool kiln_run_force(const kiln_run *r); /* --force */
bool kiln_run_reset(const kiln_run *r); /* --reset */
bool kiln_run_json(const kiln_run *r);  /* --json */
/* Says whether a program tells on stdout what came of its work: not with --json, and not with
 * --quiet, which is for scripts that want the exit code. That goes for a run that only looks
 * (--dry-run, --predict), too. A program whose work is its answer (kiln-info, kiln-verify,
 * kiln-compare) and lists that are asked for by name (--list, --digest) print it anyway. */
bool kiln_run_prints(const kiln_run *r);
/* Says whether that text is printed in full (--verbose, or only_looks: --dry-run, --predict) or as
 * a summary of some lines. */
bool kiln_run_prints_all(const kiln_run *r, bool only_looks);
/* --allow-network-fs, for a program that opens its manifest itself */
bool kiln_run_allow_network(const kiln_run *r);
/* Returns the kind of device that --devices names, "cpu" or "cuda", for the keys of images; "cpu"
 * for a program that is KILN_PROGRAM_CPU_ONLY. NULL for auto. Looks for no device. */
const char *kiln_run_named_kind(const kiln_run *r);
/* Gives the kind of device that units run on. With auto, the first call looks for a GPU, which
 * takes time: call it only when a unit is due. KILN_E_DEVICE, KILN_E_USAGE, and what
 * kiln_run_interrupted returns. */
kiln_status kiln_run_device_kind(kiln_run *r, const char **kind, kiln_error *err) KILN_MUST_CHECK;
/* Gives the number of devices that share a long list of units: the GPUs, or 1 for the CPU. Looks
 * for devices like kiln_run_device_kind, with the same failures. */
kiln_status kiln_run_worker_count(kiln_run *r, unsigned *n, kiln_error *err) KILN_MUST_CHECK;

/* Says about how many seconds the units that are due would take on one thread of the CPU (work.h).
 * If all threads together take less for them than opening a GPU takes, `auto` is the CPU. 0: not
 * known. Call it before devices are looked for. */
void kiln_run_expect_work(kiln_run *r, double cpu_s);
/* Says the same of the later stage that has most to do: `kiln pipeline` opens a GPU while this
 * stage computes on the CPU only if a later one will take it. For a stage that knows more than the
 * manifest. Call it before the first list. */
void kiln_run_expect_later(kiln_run *r, double cpu_s);
/* From now on units run on the CPU, whatever --devices says, or again where it says. For a program
 * some of whose lists have nothing for a GPU. Workers on other devices end. Call it between
 * lists. */
void kiln_run_on_cpu(kiln_run *r, bool on);
/* Says whether a GPU is worth it for work that takes so many seconds on one thread of the CPU
 * (work.h). */
bool kiln_run_gpu_pays(double cpu_s);
/* For a program that packs (KILN_PROGRAM_PACKS). on: its next lists compute, so they are where
 * --devices says; not on: they pack again. If that changes the device, workers end. Looks for GPUs
 * if a list has run already. Call it between lists. */
void kiln_run_computes(kiln_run *r, bool on);
/* Between kiln_run_on_cpu and the first list that is there: GPUs that a later list will be on are
 * opened while lists of the CPU run. Returns whether there are some and --threads and --ram have
 * room for lists of both at a time. */
bool kiln_run_open_ahead(kiln_run *r);
/* Opens the GPUs that --devices names while a stage that is sure to have work plans its first list,
 * so that both go on together. Call it as soon as the input is known to be good. Does nothing where
 * the first list will be on the CPU, or `auto` has to choose.
 */
void kiln_run_open_early(kiln_run *r);
/* on: results of the next lists are gigabytes that few runs read again, so they do not stay in the
 * page cache, in the place of what is read again; not on: as usual. Call it between lists. */
void kiln_run_passes_results(kiln_run *r, bool on);
/* on: most units of the next lists keep one thread busy, as those of a program that is
 * KILN_PROGRAM_SERIAL; not on: as the program says. */
void kiln_run_serial(kiln_run *r, bool on);

/* Fails after SIGINT (KILN_E_INTERRUPTED), SIGTERM (KILN_E_TERMINATED) or SIGHUP (KILN_E_HANGUP).
 * For long loops in the parent. */
kiln_status kiln_run_interrupted(const kiln_run *r, kiln_error *err) KILN_MUST_CHECK;

/* Begins a key with the stage's name, its algorithm version and the text of every KILN_KEYED
 * option. The caller adds the inputs (kiln_key_...) and ends it with kiln_key_end, which frees the
 * hasher. */
kiln_hasher *kiln_run_key(kiln_run *r);
/* The same without options, for units that depend on few of them: the caller adds those. `what`
 * names the sort of unit. */
kiln_hasher *kiln_run_key_bare(kiln_run *r, const char *what);

/* Guards a key that lists the fields of a struct by hand. If the key lacks a field, units of
 * another value pass for done. So the code does not compile when the struct changes its size: add
 * the new field to the key if results depend on it, then write the new size here. */
#define KILN_KEY_LISTS(type, bytes)                           \
    _Static_assert(                                           \
        sizeof(void *) != 8 || sizeof(type) == (bytes), #type \
        " has another size: add to this key what results depend on, then write the new size")

/* Checks that an earlier stage is fresh. KILN_E_STALE, with "run kiln-chunk first": it has not run,
 * is stale or is partial. With --allow-partial a partial stage is accepted, and this stage's output
 * becomes partial as well. */
kiln_status kiln_run_need(kiln_run *r, const char *stage, kiln_error *err) KILN_MUST_CHECK;
/* The same of another manifest that the run reads. */
kiln_status kiln_run_need_of(kiln_run *r, kiln_manifest *m, const char *stage,
                             kiln_error *err) KILN_MUST_CHECK;
/* Says whether this stage is fresh and was made with this input key, so that there is nothing to
 * do. A stale stage whose key is unchanged is marked fresh first. *fresh is false under --force and
 * in a run that is_once. */
kiln_status kiln_run_is_fresh(kiln_run *r, kiln_hash input_key, bool *fresh,
                              kiln_error *err) KILN_MUST_CHECK;

/* ---- units ---- */
typedef struct {
    /* in: set by the stage */
    char name[160]; /* for people: "block 12", "camera test/r_0" */
    kiln_hash key;  /* of everything that decides the result */
    /* the argument of unit(); owned by the caller, unchanged until kiln_run_units returns */
    void *payload;
    size_t payload_bytes;
    /* For lists of many units with large payloads, which are then not kept. Set: `payload` is not
     * the argument itself but what this function makes it of when the unit is handed out. The bytes
     * stay valid until its next call. */
    const void *(*payload_of)(const void *payload);
    /* Bytes that several units share, owned by the caller. unit() gets them directly behind
     * `payload`, as part of it. The parent keeps one copy for all units that point to it. */
    const void *shared_payload;
    size_t shared_payload_bytes;
    uint64_t cost; /* an estimate in any measure; units with a higher cost are handed out first */
    /* Units of one group use what a worker keeps between units, such as a camera's frame. One
     * worker takes the group and computes it in array order. If no other group is free, idle
     * workers take units from its end, so no unit may rely on the one before it. The group is
     * ordered by the sum of its costs. 0: the unit is in no group. */
    uint64_t group;
    /* Where its input lies, for a plan (hosts/shards.h): units of near places go to one task, which
     * then decodes less. Units of one group have one place. 0 in all: the order of the list. */
    uint64_t place;
    /* Bytes of host memory that unit() takes at most on one thread: its arrays, what the worker
     * keeps between units, and its outputs. 0: KILN_UNIT_RAM. */
    uint64_t ram;
    uint64_t ram_thread; /* bytes in addition for each further thread of the worker */
    /* Bytes that the worker keeps at most if there is room, such as decoded planes. They count for
     * the prediction; a cap that lacks them is not refused. */
    uint64_t ram_cache;
    /* For a unit whose result plans others: the bytes that one of those takes at most. If --ram has
     * no room for this unit, the refusal names a cap that has room for those, too. */
    uint64_t ram_after;
    /* The most outputs that the result has, where it becomes no row of a layer: what the parent
     * holds of the list is counted by it. 0: it becomes one, with as many outputs as a chunk
     * has. */
    uint32_t n_outputs;
    /* if the unit is quarantined, the run goes on without its result and ends partially */
    bool optional;
    /* --plan and --gather compute it, unless kiln_run_shares_planning says otherwise. For an
     * optional unit on which later lists depend: --shard and --units do not leave it out */
    bool planning;
    /* always computed and never stored, for pictures of a single run; the result is in
     * volatile_data */
    bool volatile_result;
    /* the bits may differ between machines: --force stores the new result and does not compare */
    bool replaced;
    /* out: set by kiln_run_units */
    bool was_cached;         /* the result was in the manifest */
    bool quarantined;        /* an optional unit that failed on every device; it has no result */
    kiln_unit_result result; /* released by kiln_units_release */
    /* Under --force, the counters of this run if `result` is the stored one that the new result was
     * compared with; released likewise. */
    char *counters_again;
    /* [result.n] raw bytes of the outputs of a unit that is not stored; released likewise */
    void **volatile_data;
} kiln_unit;
/* Returns for each unit of the next list whether --shard or --units choose it, in a new array of n
 * that the caller frees. Without these options all are chosen. NULL: no memory, and *err says
 * so. */
bool *kiln_run_chosen(const kiln_run *r, const kiln_unit *units, uint64_t n,
                      kiln_error *err) KILN_MUST_CHECK;

/* Computes the units that are not in the manifest, stores their results and fills the out fields of
 * all n units. `what` names the list in progress and reports. Results that have arrived are stored
 * even if the call fails.
 *
 * If a unit fails with its worker or device, it is tried again, then tried on another device, then
 * quarantined. A quarantined unit that is optional has no result; the call succeeds, and the
 * program ends with KILN_E_PARTIAL after its commit. Under --force, stored units are computed again
 * and compared, except those that are `replaced`. All are compared before the call fails, and
 * stored results that differ are dropped. Without an open manifest, every unit must be volatile.
 *
 * KILN_E_PARTIAL: a unit that is not optional was quarantined; or --shard or --units leave optional
 *                 units to other runs; or the list is shared out among hosts, and this run's share
 *                 is done (round.h). The caller returns it in all cases; the engine turns the
 *                 second and third into success.
 * KILN_E_STALE:   with --part or --gather, the list is not that of the plan that stands.
 * KILN_E_CAP:     --ram has no room for the largest unit; the sentence names the least cap that
 *                 has.
 * KILN_E_DEVICE:  no device is left.
 * KILN_E_IO:      the manifest cannot be written; under --force, a stored result has other outputs
 *                 or sizes than the new one.
 * KILN_E_BUG:     under --force, a stored result has the same sizes and other bits.
 * KILN_E_INTERRUPTED, KILN_E_TERMINATED, KILN_E_HANGUP: a signal. Any status of unit() that is
 * about its input, the disk or the cap. */
kiln_status kiln_run_units(kiln_run *r, const char *what, kiln_unit *units, uint64_t n,
                           kiln_error *err) KILN_MUST_CHECK;
/* Begins a list that goes on while the next lists run on the other home (GPUs beside the CPU), for
 * units with volatile results. It is worked off while kiln_run_units works on another list, and
 * kiln_run_units_join works off what is left. A list that cannot run beside it, on the same home,
 * with results to be stored, or without room in --ram, waits until it has ended. Then its results
 * are there; units stay the run's until then. After a failure of any list it is dropped: its
 * workers end, its results are void; a stage that fails between two lists says so itself. No other
 * list may be open. KILN_E_BUG: results are to be stored, or are taken in order
 * (kiln_run_takes). */
kiln_status kiln_run_units_beside(kiln_run *r, const char *what, kiln_unit *units, uint64_t n,
                                  kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_run_units_join(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
void kiln_run_units_drop(kiln_run *r); /* nothing, if none is open */
/* Takes results in the order of the list while it runs, such as the frames of a video, and holds
 * units back that are too far ahead. For a list whose units are volatile, not optional, in no group
 * and of one cost. */
typedef struct {
    /* Called on the main thread, again and again. The first n_done units of the list are done.
     * Takes of them what it can without waiting, and sets *n_taken, the number of those that it has
     * taken so far; *waits: it has more to write to `fd`. Any failure ends the list. */
    kiln_status (*take)(void *context, uint64_t n_done, uint64_t *n_taken, bool *waits,
                        kiln_error *err);
    void *context;
    /* unit i is handed out when more than i - window have been taken; at least 1 */
    uint64_t window;
    /* where `take` writes: it is called as soon as that can be written to. -1: nowhere */
    int fd;
} kiln_unit_taker;
/* For the next lists: kiln_run_units returns when all of the list is taken, too. t is borrowed;
 * NULL: results are not taken. kiln_run_units fails with KILN_E_BUG if not all units of a list are
 * due. */
void kiln_run_takes(kiln_run *r, const kiln_unit_taker *t);
/* Releases results and volatile data. The array and the payloads stay the caller's. */
void kiln_units_release(kiln_unit *units, uint64_t n);
/* Reads the raw bytes of an output, stored or volatile, into new memory: free(*data). KILN_E_IO:
 * the unit has no such output, or it is damaged. */
kiln_status kiln_unit_data(kiln_run *r, const kiln_unit *u, const char *name, void **data,
                           uint64_t *bytes, kiln_error *err) KILN_MUST_CHECK;
/* Reads an output of exactly `bytes` bytes into the caller's memory. KILN_E_IO: as above, or it has
 * another size. */
kiln_status kiln_unit_struct(kiln_run *r, const kiln_unit *u, const char *name, void *out,
                             uint64_t bytes, kiln_error *err) KILN_MUST_CHECK;
/* Parses the counters of a unit. The caller releases *out with json_decref. KILN_E_IO: they are no
 * JSON object. */
kiln_status kiln_unit_counters(kiln_run *r, const kiln_unit *u, json_t **out,
                               kiln_error *err) KILN_MUST_CHECK;
/* Reads the counters for a report of this run: as kiln_unit_counters, but under --force those of
 * the new computation. Rows of the manifest are made from kiln_unit_counters, like the outputs. */
kiln_status kiln_unit_counters_now(kiln_run *r, const kiln_unit *u, json_t **out,
                                   kiln_error *err) KILN_MUST_CHECK;
/* Says whether this run computed the unit. */
static inline bool kiln_unit_is_new(const kiln_unit *u)
{
    return !u->was_cached || u->counters_again;
}
/* Reads one of the counters. KILN_E_IO: there is none of this name, or it is no integer of 0 or
 * more. */
kiln_status kiln_unit_count(kiln_run *r, const kiln_unit *u, const json_t *counters,
                            const char *name, uint64_t *out, kiln_error *err) KILN_MUST_CHECK;
/* Handles a stored result that cannot be used. A manifest comes from other people: a stored result
 * can hold anything under a right hash, so a stage checks what it reads and calls this with the
 * status of its check. If st blames the result (KILN_E_IO, _INPUT, _STALE, _BUG), returns KILN_E_IO
 * with a sentence that names the unit, and has the result dropped when the run ends. The same
 * command then computes it again. A run that is_once drops nothing, and its sentence names the
 * command that does. Any other st, and any st of a volatile unit, is returned unchanged. */
kiln_status kiln_unit_refuse(kiln_run *r, const kiln_unit *u, kiln_status st,
                             kiln_error *err) KILN_MUST_CHECK;
/* Handles a stored result that differs from the one that --force computed, if either may be right.
 * *err holds the sentence that says so. Returns KILN_E_BUG and has the stored result dropped when
 * the run ends, as above. */
kiln_status kiln_unit_doubt(kiln_run *r, const kiln_unit *u, kiln_error *err) KILN_MUST_CHECK;
/* Lets a loop over results go on after a refused unit, so that one run finds and drops all that
 * cannot be used. Returns KILN_OK if u has been refused, else st; KILN_E_NOMEM is always returned.
 * Call kiln_run_refused after the loop. */
kiln_status kiln_unit_pass(const kiln_run *r, const kiln_unit *u, kiln_status st) KILN_MUST_CHECK;
/* Fails with the first refusal or doubt of this run, or with the first that is KILN_E_BUG. KILN_OK:
 * there was none. */
kiln_status kiln_run_refused(const kiln_run *r, kiln_error *err) KILN_MUST_CHECK;

/* Returns the stage's own numbers for the run record and --json: borrowed, to be added to. */
json_t *kiln_run_report(kiln_run *r);
/* A list of the report that has a row for each of many things. --json prints all of it; a run's
 * record has it while it has no more than KILN_ROWS_RECORDED rows, else "NAME_left_out", their
 * number. The first function begins the list, one in a report; name is borrowed. The second takes
 * the reference to the row; NULL: there was no memory for it. KILN_E_NOMEM. */
enum { KILN_ROWS_RECORDED = 256 };
kiln_status kiln_run_report_rows(kiln_run *r, const char *name, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_run_report_row(kiln_run *r, json_t *row, kiln_error *err) KILN_MUST_CHECK;
/* Returns what n rows of about row_bytes of text take of the parent, for
 * kiln_run_foresee_parent. */
uint64_t kiln_run_report_rows_ram(const kiln_run *r, uint64_t n, size_t row_bytes);

/* Says whether the manifest is open for reading alone: --part, and a plan that stands. The stage
 * then stores and forgets nothing in it, and removes nothing beside it. */
bool kiln_run_is_frozen(const kiln_run *r);

/* Records that the output is made from a unit that is in none of this run's lists, so that kiln-gc
 * keeps it. */
kiln_status kiln_run_uses(kiln_run *r, kiln_hash key, kiln_error *err) KILN_MUST_CHECK;

/* Puts layers, tables, images and scene rows of the output into the manifest, inside the
 * transaction of kiln_run_commit. */
typedef kiln_status kiln_commit_fn(kiln_run *r, kiln_manifest *m, void *context, kiln_error *err);
/* The last step of a stage. One transaction calls make, marks the stage fresh with input_key (or
 * partial), stores the parameters, marks later stages stale if an output that they read has
 * changed, and records the run. On failure all of it is rolled back. With --shard or --units it
 * does nothing and succeeds. KILN_E_BUG in a run that is_once. */
kiln_status kiln_run_commit(kiln_run *r, kiln_hash input_key, kiln_commit_fn *make, void *context,
                            kiln_error *err) KILN_MUST_CHECK;
/* Ends a run whose stage is fresh: says "nothing to do" on stderr and, with --json, prints the
 * stored report to stdout. Stores the options that were given. */
kiln_status kiln_run_nothing_to_do(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;

/* ---- memory (--ram) and scratch
 * ----------------------------------------------------------------------------------- All sizes are
 * bytes of host memory. How --ram is shared out: ram.h. */
enum { KILN_UNIT_RAM = 64 << 20 }; /* the size of a unit whose `ram` is 0 */
/* Returns the most that one unit may take if its worker is the only one. A stage chooses by it how
 * large its units are. */
uint64_t kiln_run_unit_ram(kiln_run *r);
/* Parts of a unit's `ram`. Outputs of raw_bytes in all take this in addition to the arrays that
 * kiln_worker_put reads from, until the parent has stored them. */
uint64_t kiln_outputs_ram(uint64_t raw_bytes);
/* The same for outputs that are lent (kiln_worker_lend). */
uint64_t kiln_outputs_lent_ram(uint64_t raw_bytes);
/* Reading a plane takes this in addition to the array that it is read into. */
uint64_t kiln_read_ram(uint64_t raw_bytes);
/* A shared payload takes this: a copy for the unit in work and one for the unit that waits behind
 * it. */
uint64_t kiln_shared_payload_ram(uint64_t bytes);
/* For a unit that learns its size only while it runs. KILN_E_CAP, with the least --ram that works,
 * if `bytes` (for this unit) or `after` (for one of the units that its result plans) exceeds the
 * unit's share. `what` names the unit. */
kiln_status kiln_worker_need_ram(const kiln_worker *w, uint64_t bytes, uint64_t after,
                                 const char *what, kiln_error *err) KILN_MUST_CHECK;
/* For a stage with several lists of units: announces a later list of n_units, the smallest of which
 * can be made to take unit_ram. Refuses nothing; but the least --ram that a later refusal names has
 * room for that list, too. */
void kiln_run_foresee_ram(kiln_run *r, uint64_t unit_ram, uint64_t n_units);
/* Forgets what was announced: from now on each list says what it takes itself. */
void kiln_run_foresee_no_more(kiln_run *r);
/* Returns what a list of n units takes of the parent. */
uint64_t kiln_list_ram(uint64_t n);
/* The same of a list whose units have n_outputs and payload_bytes, with the array of the units and
 * their payloads. */
uint64_t kiln_small_list_ram(uint64_t n, uint32_t n_outputs, size_t payload_bytes);
/* Announces that the parent will hold so much more than now: lists of cameras and what is made of
 * them. It is counted from now on, whether it is there already or not; what is not announced is
 * counted when it is there, and a cap that was named before may not have room for it. */
void kiln_run_foresee_parent(kiln_run *r, uint64_t bytes);
/* Says whether the parent alone has room for what was announced. */
bool kiln_run_parent_fits(kiln_run *r);
/* Fails with KILN_E_CAP if it has not. The cap that is named has room for what kiln_run_foresee_ram
 * has announced, too. `what` names what the parent would hold. */
kiln_status kiln_run_need_parent(kiln_run *r, const char *what, kiln_error *err) KILN_MUST_CHECK;
/* Announces a later unit like kiln_run_foresee_ram, and fails with KILN_E_CAP at once, instead of
 * after half of the work, if there is no room for it. `what` names the unit. */
kiln_status kiln_run_need_ram(kiln_run *r, uint64_t unit_ram, const char *what,
                              kiln_error *err) KILN_MUST_CHECK;
/* Returns what the unit in work may take, including what the worker keeps between units, and
 * outputs. */
uint64_t kiln_worker_ram(const kiln_worker *w);
/* Whose the scratch folder of a run is. */
typedef enum {
    KILN_SCRATCH_OWN, /* of a run on one host: nobody else reads it */
    /* --plan fills it for the tasks: files must be on the disk, and have the same names on every
     * host */
    KILN_SCRATCH_PLAN,
    /* --gather: a plan has filled it, and this run makes again what is missing; files as above */
    KILN_SCRATCH_MEND,
    /* --part, and others that compute nothing else: a plan has filled it, and nothing in it may be
     * changed */
    KILN_SCRATCH_READ,
} kiln_scratch_use;
kiln_scratch_use kiln_run_scratch_use(const kiln_run *r);
/* Makes a folder for data that memory has no room for, beside the manifest or in --scratch-dir; for
 * the tasks of a plan, beside the manifest or in --shared-dir. Its name is made of the stage and
 * the key, so that a rerun finds the folder of a killed run. Removes other folders of this stage.
 * With KILN_SCRATCH_READ it only gives the path. path: KILN_PATH_MAX bytes. The folder is removed
 * when the stage's output becomes current. KILN_E_INPUT: a link in the path leads elsewhere.
 * KILN_E_IO. */
kiln_status kiln_run_scratch(kiln_run *r, kiln_hash key, char *path,
                             kiln_error *err) KILN_MUST_CHECK;
/* Checks, before that folder is filled, that the disk has room for need_bytes, of which the folder
 * may already hold some. KILN_E_IO with the numbers. */
kiln_status kiln_run_check_scratch(kiln_run *r, uint64_t need_bytes,
                                   kiln_error *err) KILN_MUST_CHECK;
/* Makes a scratch file for this run alone. It has no name, so it disappears when the caller closes
 * *fd and when the process ends in whatever way. It lies in --scratch-dir, else in the folder of
 * `manifest` or, if that folder does not exist, in the nearest existing one above. path[64]
 * receives the path by which this run and its workers open it. KILN_E_IO. */
kiln_status kiln_scratch_unnamed(const char *manifest, int *fd, char path[64],
                                 kiln_error *err) KILN_MUST_CHECK;
/* Memory that the workers of a run share, for what all of them read: files in memory, because the
 * kernel lets one process at a time write to a file (1.5 GB by 16 workers: 0.6 s into one, 0.05 s
 * into one each). A payload carries it. All zero: none. */
enum { KILN_SHARED_FILES = 32 };
typedef struct {
    uint64_t bytes;             /* size of each file; only what is written takes memory */
    int64_t pid;                /* of the parent */
    uint32_t n;                 /* files */
    int fds[KILN_SHARED_FILES]; /* the parent's */
} kiln_shared_memory;
/* Gives the path by which a worker opens a file of it, to read and to write. */
void kiln_shared_memory_path(const kiln_shared_memory *m, uint32_t file, char path[64]);
/* Says whether the limit on file sizes (ulimit -f), which holds for shared memory too, allows so
 * much, and whether the kernel lets workers open what is below this process's /proc. */
bool kiln_shared_memory_fits(uint64_t bytes);
/* Makes n_files files (1 to KILN_SHARED_FILES), into which no more than `bytes` are written in all,
 * each byte into one of them. They read as zeros, and take pages only where they are written. Later
 * plans of --ram count `bytes` as the parent's. It goes when the caller has released it
 * (kiln_run_unshare_memory) and the workers have closed it, or when the run ends, in whatever way.
 * Releasing it after a failure does nothing. KILN_E_IO: no descriptor is left. */
kiln_status kiln_run_share_memory(kiln_run *r, uint64_t bytes, uint32_t n_files,
                                  kiln_shared_memory *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_run_unshare_memory(kiln_run *r, kiln_shared_memory *m);
/* Gives a unit the path of the folder that the parent made with kiln_run_scratch. The payload
 * carries only the key, which is shorter than a path. path: KILN_PATH_MAX bytes. */
kiln_status kiln_worker_scratch(kiln_worker *w, const char *stage, kiln_hash key, char *path,
                                kiln_error *err) KILN_MUST_CHECK;

/* ---- worker ---------------------------------------------------------------------------------- */
/* Returns the worker's runner, which runs operations on its device within --vram: borrowed. */
kiln_runner *kiln_worker_runner(kiln_worker *w);
/* Returns the number of threads that the unit's own loops may use. It can change from unit to
 * unit. */
unsigned kiln_worker_threads(const kiln_worker *w);
/* Says whether this run makes a part (--part), so that no stage reports on its units here: what a
 * person at this host must know, the worker says. */
bool kiln_worker_is_of_part(const kiln_worker *w);
/* Gives the worker's read-only connection, which is opened on the first call: borrowed. */
kiln_status kiln_worker_manifest(kiln_worker *w, kiln_manifest **out,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Opens another read-only connection, for a thread of the unit. The caller closes it. It takes
 * KILN_CONNECTION_RAM while open. */
kiln_status kiln_worker_reader(const kiln_worker *w, kiln_manifest **out,
                               kiln_error *err) KILN_MUST_CHECK;
/* SQLite's page cache (schema/open.c) and what belongs to it */
#define KILN_CONNECTION_RAM ((uint64_t)6 << 20)
/* The stage's own state, kept between units: a projected camera, decoded planes. NULL until it is
 * set. */
void *kiln_worker_state(kiln_worker *w);
/* Sets the state. free_fn frees it when another state is set and when the worker ends. */
void kiln_worker_set_state(kiln_worker *w, void *state, void (*free_fn)(void *));
/* Adds an output to the unit. The worker shuffles, compresses and hashes it on its threads; an
 * output of more than KILN_BLOB_MAX bytes is cut into segments. The caller may reuse raw when the
 * call returns. elem: bytes of an element, 1, 2, 4 or 8, a divisor of `bytes`. bytes may be 0.
 * KILN_E_BUG: another elem, or a name that does not fit. */
kiln_status kiln_worker_put(kiln_worker *w, const char *name, const void *raw, size_t bytes,
                            uint32_t elem, kiln_error *err) KILN_MUST_CHECK;
/* The same without a copy: raw must stay unchanged until the worker's next unit begins, as memory
 * of the stage's state does. Not for a unit that defers work, nor for deferred work. */
kiln_status kiln_worker_lend(kiln_worker *w, const char *name, const void *raw, size_t bytes,
                             uint32_t elem, kiln_error *err) KILN_MUST_CHECK;
/* Adds an output whose bytes the manifest has already, such as a plane that the unit leaves as it
 * is: nothing is read, compressed or stored again. If the blob is missing, has several segments, or
 * the result is not to be stored, *named is false and nothing is added: the caller then reads the
 * bytes and puts them. elem: as in kiln_worker_put. KILN_E_BUG: as kiln_worker_put. */
kiln_status kiln_worker_put_stored(kiln_worker *w, const char *name, const kiln_array *stored,
                                   uint32_t elem, bool *named, kiln_error *err) KILN_MUST_CHECK;
/* Sets the unit's counters to the text of a JSON object, which stays the caller's. Without a call
 * they are "{}". */
kiln_status kiln_worker_counters(kiln_worker *w, json_t *counters, kiln_error *err) KILN_MUST_CHECK;

/* Deferred work. Work that no longer needs the GPU (hashing, compressing, writing a file) would
 * keep it idle until the unit returns. A unit can defer such work to a thread, which does it while
 * the worker computes the next units. */

/* Does the deferred work. w is not the unit's kiln_worker: it has no runner, manifest or state. It
 * has the unit's memory and its own threads, and what is put into it becomes outputs of the
 * unit. */
typedef kiln_status kiln_deferred_fn(kiln_worker *w, void *context, kiln_error *err);
/* Releases what the context holds. */
typedef void kiln_deferred_drop_fn(void *context);
/* Defers work of the unit. The unit calls this once, as its last step. The unit is answered when
 * `run` has returned; answers go out in the order of the units. If `most` units of this worker (1
 * to KILN_DEFERRED_MAX) are unanswered, the worker waits for the oldest. threads: how many `run`
 * may use. `drop` is called exactly once, on any thread: after `run` has returned, or instead of
 * `run` if the unit fails or the worker ends. It is called before the worker's state is freed.
 * Memory that `run` reads must stay valid until then. */
void kiln_worker_defer(kiln_worker *w, unsigned most, unsigned threads, kiln_deferred_fn *run,
                       kiln_deferred_drop_fn *drop, void *context);
/* Returns the host memory that the threads of one piece of deferred work take when `most` of them
 * share all threads. */
uint64_t kiln_deferred_ram(unsigned most);

/* Runs an operation on host arrays and returns when it is done. args: const kiln_OP_args *. */
#define KILN_WORK(w, op, args, err) \
    kiln_runner_run(kiln_worker_runner(w), KILN_OP_##op, (args), (err))

#endif
