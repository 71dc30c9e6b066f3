/* engine -- what every stage program is made of: a parent that plans and commits, and a worker that computes units.
 *
 * A stage is a kiln_stage_program: options, `run` (in the parent) and `unit` (in the worker). `run` reads like the
 * stage's description: it makes unit keys and payloads, calls kiln_run_units, reads results, and at the end makes the
 * output current in one transaction. Units whose key is in the manifest are not computed again: that one rule gives
 * resume, rerun and chunk-wise rebake (stages/engine/DESIGN.md).
 *
 * The parent never computes and never touches CUDA; it alone writes the manifest. A worker is the same executable,
 * started with the same options (resolved, as text) and a socket, one for each device; it opens the manifest read-only
 * when first asked and runs operations through a runner of its device, so that a unit is written once for CPU and GPU.
 * Results come back as memfds over the socket and are inserted in short transactions. A unit that fails with its worker or
 * device is tried again, there and elsewhere, then given up (containment.h); finished units stay whatever happens.
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

/* An output that is no layer, and a hash of all that later stages read of it: where the hash is as before, they stay fresh. Called
 * before and after the commit; an output that is not there yet is zero or KILN_E_STALE. */
typedef struct {
    const char *name; /* a word of `makes` in pipelines/stages.def */
    kiln_status (*digest)(kiln_manifest *m, kiln_hash *out, kiln_error *err);
} kiln_stage_output;

typedef struct {
    const char *name; /* "knn": row of pipelines/stages.def, or a tool's name */
    const kiln_cli *cli;
    kiln_open_mode open; /* how the manifest is opened before run(); import opens it itself */
    bool opens_itself;   /* the engine opens nothing: import, compare */
    bool cpu_only;       /* its units run no operation: its worker makes no CUDA context, whatever --devices says */
    bool watches;        /* a tool that asks kiln_run_interrupted now and then: SIGINT and SIGTERM do not end it by themselves */
    bool packs;          /* its units pack more than they compute: with --devices auto they have the CPU, unless threads are few */
    unsigned manifest_arg; /* which positional is the manifest: 0; import: 1 */
    /* A switch of its own that is KILN_ALONE, and what prints its answer on stdout before a manifest is opened; NULL: none. */
    const bool *lists;
    void (*list)(void);
    kiln_status (*run)(kiln_run *r, kiln_error *err);
    kiln_status (*unit)(kiln_worker *w, const char *name, const void *payload, size_t payload_bytes,
                        kiln_error *err); /* NULL: no units */
    /* NULL: nothing. Reads for the first unit, while a worker opens its GPU, what it will ask for, into the worker's state; ends
     * soon after *stop. What fails is left: the unit tells. Returns how much host memory the worker has taken for it, at most. */
    uint64_t (*early)(kiln_worker *w, const atomic_bool *stop);
    const kiln_stage_output *outputs; /* what it makes besides layers, as far as later stages read it; ended by a NULL name */
} kiln_stage_program;
enum { KILN_DEFERRED_MAX = 32 }; /* of units (kiln_worker_defer) whose answers are due at a time */

/* main() of every program: parses, dispatches to worker or parent, prints the error, returns the exit code. */
int kiln_program_main(const kiln_stage_program *p, int argc, char **argv);

/* ---- parent ------------------------------------------------------------------------------------------------------ */
kiln_manifest *kiln_run_manifest(kiln_run *r);             /* NULL until opened */
void kiln_run_set_manifest(kiln_run *r, kiln_manifest *m); /* import: after its own open; the engine closes it */
const kiln_parsed *kiln_run_args(const kiln_run *r);
/* Stored parameters under given options: loads what is stored for this stage into options that were not given
 * (unless --reset), later stores the KEYED ones (kiln_run_commit does). Called by the engine when it opens the manifest;
 * import calls it after opening. */
kiln_status kiln_run_load_parameters(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
bool kiln_run_is_once(const kiln_run *r); /* a KILN_ONCE option was given: change no state */
bool kiln_run_force(const kiln_run *r);
bool kiln_run_json(const kiln_run *r);
/* Does text for people go to stdout? Not with --json; not with --quiet either, unless the run only looks (--list, --dry-run,
 * --predict): then the text is all that it does. */
bool kiln_run_prints(const kiln_run *r, bool only_looks);
/* Is it to be the whole of it (--verbose, or a run that only looks), not a summary of some lines? */
bool kiln_run_prints_all(const kiln_run *r, bool only_looks);
bool kiln_run_allow_network(const kiln_run *r); /* --allow-network-fs, for programs that open their manifest themselves */
/* The kind of device that --devices names, for image keys: "cpu" or "cuda"; NULL for auto. Looks at no device. */
const char *kiln_run_named_kind(const kiln_run *r);
/* The kind that units run on. With auto this looks for a GPU, once: ask only when a unit is due. */
kiln_status kiln_run_device_kind(kiln_run *r, const char **kind, kiln_error *err) KILN_MUST_CHECK;
/* How many workers a long list of units is shared among: one for each device. Looks for them, once: as above. */
kiln_status kiln_run_worker_count(kiln_run *r, unsigned *n, kiln_error *err) KILN_MUST_CHECK;

/* KILN_E_INTERRUPTED or KILN_E_TERMINATED after such a signal. */
kiln_status kiln_run_interrupted(const kiln_run *r, kiln_error *err) KILN_MUST_CHECK;

/* A hash builder seeded with stage, algorithm version and every KEYED option's text. */
kiln_hasher *kiln_run_key(kiln_run *r);
/* Same without the options, for units that depend on few of them: add what matters. */
kiln_hasher *kiln_run_key_bare(kiln_run *r, const char *what);

/* Stands beside a key that lists the fields of a struct by hand. A field that the key lacks would let stored units of other values
 * pass for done, so the code does not compile when the struct has another size: add the field to the key if results depend on it,
 * then write the new size. */
#define KILN_KEY_LISTS(type, bytes)                                \
    _Static_assert(sizeof(void *) != 8 || sizeof(type) == (bytes), \
                   #type " has another size: add to this key what results depend on, then write the new size")

/* Upstream: KILN_E_STALE with "run kiln-chunk first" when `stage` is missing, stale or partial. */
kiln_status kiln_run_need(kiln_run *r, const char *stage, kiln_error *err) KILN_MUST_CHECK;
/* Is this stage fresh with exactly this input key? Then there is nothing to do (unless --force). */
kiln_status kiln_run_is_fresh(kiln_run *r, kiln_hash input_key, bool *fresh, kiln_error *err) KILN_MUST_CHECK;

typedef struct {
    char name[160]; /* for people: "block 12", "camera test/r_0" */
    kiln_hash key;
    void *payload; /* what unit() gets; owned by the caller */
    size_t payload_bytes;
    const void *shared_payload; /* and what it gets behind that, in one piece with it: of units that share it there is one copy */
    size_t shared_payload_bytes;
    uint64_t cost;       /* in any measure: bigger ones are handed out first */
    uint64_t group;      /* units with the same number (not 0) share what a worker keeps, such as a camera's frame: one worker
                            takes them, in array order; cost counts for the group as a whole */
    uint64_t ram;        /* host memory that unit() takes at most, what the worker keeps between units and the outputs included;
                            0: KILN_UNIT_RAM */
    uint64_t ram_thread; /* and for each thread of its worker but the first, beside what the engine counts for any thread */
    uint64_t ram_cache;  /* and what the worker keeps at most where there is room: planes that it has decoded, say. Predicted, never
                            asked for */
    uint64_t ram_after;  /* host memory that one of the units which are planned by its result takes at most: a --ram that has no
                            room for this one is told what has room for those, too */
    bool optional;       /* the output can do without it: quarantined, it makes the run end partially instead of ending it */
    bool planning;       /* optional, but the list of later units hangs on it: no part of --shard and --units, all make it */
    bool volatile_result; /* not stored: always computed, result kept in memory only (one-off renders, scan) */
    bool replaced;        /* its bits may be others elsewhere: with --force it is stored anew, not compared */
    /* out */
    bool was_cached;
    bool quarantined;        /* optional, and it failed on every device: no result */
    kiln_unit_result result; /* release with kiln_units_release */
    char *counters_again;    /* with --force: what this run counted, where result is the stored one that it was compared with; owned */
    void **volatile_data;    /* [result.n] raw bytes of volatile results; owned */
} kiln_unit;

/* Makes sure that all of them are done; fills result of each. Progress is shown as "what". Bigger units go out first.
 * A unit that fails with its worker or device is tried again, then on another device, then quarantined: an optional one is
 * left without result, and the run, which goes on and commits, ends with KILN_E_PARTIAL; any other ends it here with that status.
 * KILN_E_PARTIAL too where --shard or --units leave optional units to others: to be passed on like any failure, the run then
 * ends well.
 * KILN_E_CAP when --ram has no room for one of them: says the least that has.
 * With no manifest open only volatile units are allowed. --force recomputes and compares, but for units that are
 * replaced: KILN_E_IO where what is stored cannot be right, KILN_E_BUG where it is as large and has other bits. All units are
 * compared; those that differ are dropped. */
kiln_status kiln_run_units(kiln_run *r, const char *what, kiln_unit *units, uint64_t n, kiln_error *err) KILN_MUST_CHECK;
void kiln_units_release(kiln_unit *units, uint64_t n); /* results and volatile data; not the array, not the payloads */
/* Raw bytes of an output of a unit, stored or volatile; free(*data). */
kiln_status kiln_unit_data(kiln_run *r, const kiln_unit *u, const char *name, void **data, uint64_t *bytes,
                           kiln_error *err) KILN_MUST_CHECK;
/* The same, of a known size; into the caller's memory. */
kiln_status kiln_unit_struct(kiln_run *r, const kiln_unit *u, const char *name, void *out, uint64_t bytes,
                             kiln_error *err) KILN_MUST_CHECK;
/* The counters object of a unit, parsed; json_decref. */
kiln_status kiln_unit_counters(kiln_run *r, const kiln_unit *u, json_t **out, kiln_error *err) KILN_MUST_CHECK;
/* For a report of this run: the same, but what --force counted where it computed the unit again. Rows of the manifest are made of the
 * former, like the outputs. */
kiln_status kiln_unit_counters_now(kiln_run *r, const kiln_unit *u, json_t **out, kiln_error *err) KILN_MUST_CHECK;
/* Has this run computed it? */
static inline bool kiln_unit_is_new(const kiln_unit *u) { return !u->was_cached || u->counters_again; }
/* A number of the counters that counts something. KILN_E_IO where it is none, or below 0. */
kiln_status kiln_unit_count(kiln_run *r, const kiln_unit *u, const json_t *counters, const char *name, uint64_t *out,
                            kiln_error *err) KILN_MUST_CHECK;
/* To be called with what came of reading and checking a unit's result. A manifest is a stranger's file: a stored result may
 * hold anything, with the right hash. Where st says that it cannot be used, the sentence names the unit, the status is
 * KILN_E_IO, and the result is dropped when the run ends, so that the same command computes it again. A run with a KILN_ONCE option
 * drops nothing: its sentence says which command does. Returns the status. */
kiln_status kiln_unit_refuse(kiln_run *r, const kiln_unit *u, kiln_status st, kiln_error *err) KILN_MUST_CHECK;
/* To be called with the sentence that a stored result differs from the one that --force computed, where either may be right.
 * KILN_E_BUG; the stored one is dropped when the run ends, as above, so that the same command once more computes and stores it. */
kiln_status kiln_unit_doubt(kiln_run *r, const kiln_unit *u, kiln_error *err) KILN_MUST_CHECK;
/* For a loop over a list's results, so that one run finds and drops all that cannot be used: KILN_OK where st comes of the refused
 * unit u. Behind the loop kiln_run_refused: the first sentence and its status when any was refused. */
kiln_status kiln_unit_pass(const kiln_run *r, const kiln_unit *u, kiln_status st) KILN_MUST_CHECK;
kiln_status kiln_run_refused(const kiln_run *r, kiln_error *err) KILN_MUST_CHECK;

/* The stage's own numbers for the run record and --json: borrowed, add to it. */
json_t *kiln_run_report(kiln_run *r);

/* The output is made from this unit, which no list of this run has: kiln-gc keeps it. */
kiln_status kiln_run_uses(kiln_run *r, kiln_hash key, kiln_error *err) KILN_MUST_CHECK;

/* The last step: begin; make(context) puts layers, tables, images, scene rows; the stage becomes fresh with input_key,
 * parameters are stored, stages after it whose inputs changed become stale, the run is recorded; commit. */
typedef kiln_status kiln_commit_fn(kiln_run *r, kiln_manifest *m, void *context, kiln_error *err);
kiln_status kiln_run_commit(kiln_run *r, kiln_hash input_key, kiln_commit_fn *make, void *context, kiln_error *err) KILN_MUST_CHECK;
/* Says "nothing to do" (stderr) and, with --json, the stored report on stdout. */
kiln_status kiln_run_nothing_to_do(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;

/* ---- memory (--ram) and scratch ----------------------------------------------------------------------------------- */
enum { KILN_UNIT_RAM = 64 << 20 }; /* what a unit takes that does not say */
/* The most that one unit may take when its worker works alone: what a plan chooses its way by. */
uint64_t kiln_run_unit_ram(kiln_run *r);
/* For a unit's ram: what its outputs take until they are stored, beside the arrays that they are put, or lent, from; what reading
 * a plane takes beside the array that it is read into. */
uint64_t kiln_outputs_ram(uint64_t raw_bytes);
uint64_t kiln_outputs_lent_ram(uint64_t raw_bytes);
uint64_t kiln_read_ram(uint64_t raw_bytes);
/* And what a tail takes on its way: of the unit in work, and of the one that waits behind it. */
uint64_t kiln_shared_payload_ram(uint64_t bytes);
/* In a unit that learns only now what it takes, and what one of the units that are planned by its result takes: KILN_E_CAP with the
 * least --ram that would do when that is more than its share. */
kiln_status kiln_worker_need_ram(const kiln_worker *w, uint64_t bytes, uint64_t after, const char *what,
                                 kiln_error *err) KILN_MUST_CHECK;
/* For a stage with several lists of units: a later one has so many, one of which takes so much where it is made as small as it
 * goes. Nothing is refused for that, but the least --ram that a refusal names covers it from now on. */
void kiln_run_foresee_ram(kiln_run *r, uint64_t unit_ram, uint64_t n_units);
/* What a list of n units takes of the parent. */
uint64_t kiln_list_ram(uint64_t n);
/* The same, but KILN_E_CAP now, not after half of the work, when it has no room; what: its name. */
kiln_status kiln_run_need_ram(kiln_run *r, uint64_t unit_ram, const char *what, kiln_error *err) KILN_MUST_CHECK;
/* Host memory that this worker's units may take now, what it keeps between them and their outputs included. */
uint64_t kiln_worker_ram(const kiln_worker *w);
/* A folder for what memory has no room for, beside the manifest or in --scratch-dir: STAGE-KEY, so that a run that was killed
 * finds it again. Makes it and drops other folders of this stage. path has KILN_PATH_MAX bytes. It is removed when the stage's
 * output becomes current. */
kiln_status kiln_run_scratch(kiln_run *r, kiln_hash key, char *path, kiln_error *err) KILN_MUST_CHECK;
/* Then, before it is filled: KILN_E_IO with the numbers where what is free does not do for need_bytes, of which the folder may hold
 * some already. */
kiln_status kiln_run_scratch_room(kiln_run *r, uint64_t need_bytes, kiln_error *err) KILN_MUST_CHECK;
/* A scratch file without a name, for what one run alone needs: it is gone when the caller closes *fd, and with the process, however
 * that ends. In --scratch-dir, else in the folder of `manifest`, which need not be there yet, or the nearest one above it. path, of
 * 64 bytes: by which this run and its workers open it. KILN_E_IO. */
kiln_status kiln_scratch_unnamed(const char *manifest, int *fd, char path[64], kiln_error *err) KILN_MUST_CHECK;
/* The folder of kiln_run_scratch for a unit of the stage, which the parent has made: a key in a payload is shorter than a path. */
kiln_status kiln_worker_scratch(kiln_worker *w, const char *stage, kiln_hash key, char *path, kiln_error *err) KILN_MUST_CHECK;

/* ---- worker ------------------------------------------------------------------------------------------------------ */
/* Runs operations on the worker's device, its memory under --vram; the worker's own. */
kiln_runner *kiln_worker_runner(kiln_worker *w);
unsigned kiln_worker_threads(const kiln_worker *w); /* for a unit's own loops */
/* Read-only connection, opened at first use. */
kiln_status kiln_worker_manifest(kiln_worker *w, kiln_manifest **out, kiln_error *err) KILN_MUST_CHECK;
/* One more, for a thread of the unit's: the caller's to close. Takes KILN_CONNECTION_RAM while it is open. */
kiln_status kiln_worker_reader(const kiln_worker *w, kiln_manifest **out, kiln_error *err) KILN_MUST_CHECK;
#define KILN_CONNECTION_RAM ((uint64_t)6 << 20) /* SQLite's pages (schema/open.c) and what belongs to them */
/* A stage's own state kept between units (a projected camera, decoded planes); freed with free_fn at the end or when replaced. */
void *kiln_worker_state(kiln_worker *w);
void kiln_worker_set_state(kiln_worker *w, void *state, void (*free_fn)(void *));
/* Adds an output of the unit in hand: shuffled, compressed and hashed here, on the worker's threads; longer than
 * KILN_BLOB_MAX: cut into segments. raw is copied out before the call returns. bytes may be 0. */
kiln_status kiln_worker_put(kiln_worker *w, const char *name, const void *raw, size_t bytes, uint32_t elem,
                            kiln_error *err) KILN_MUST_CHECK;
/* The same without a copy, for what stays as it is until the unit has returned: the stage's state, say. */
kiln_status kiln_worker_lend(kiln_worker *w, const char *name, const void *raw, size_t bytes, uint32_t elem,
                             kiln_error *err) KILN_MUST_CHECK;
/* The unit's counters: JSON object, borrowed. Default "{}". */
kiln_status kiln_worker_counters(kiln_worker *w, json_t *counters, kiln_error *err) KILN_MUST_CHECK;
/* What is left of the unit in hand when it has returned, and needs neither the runner nor the manifest nor the state: computed on a
 * thread of its own beside the next units. Answers go out in the order of the units: with `most` tails (1 to KILN_DEFERRED_MAX)
 * that have not answered, the worker waits for the oldest. `w` is the tail's own: it has the unit's memory and so many threads, and
 * what it puts are the unit's outputs. `drop` gives back context and what it holds, once, when `run` has returned or will not be
 * called; any thread, and before this worker's state goes. Memory that `run` reads is the stage's to keep until then. Called last
 * in a unit, once. */
typedef kiln_status kiln_deferred_fn(kiln_worker *w, void *context, kiln_error *err);
typedef void kiln_deferred_drop_fn(void *context);
void kiln_worker_defer(kiln_worker *w, unsigned most, unsigned threads, kiln_deferred_fn *run, kiln_deferred_drop_fn *drop,
                       void *context);
/* Host memory of the threads of one of so many tails that share all threads. */
uint64_t kiln_deferred_ram(unsigned most);
/* Runs an operation on host arrays; done when it returns. args: const kiln_OP_args *. */
#define KILN_WORK(w, op, args, err) kiln_runner_run(kiln_worker_runner(w), KILN_OP_##op, (args), (err))

/* ---- decoded planes with a budget, least recently used first out; for units that read many chunks ------------------- */
typedef struct kiln_plane_cache kiln_plane_cache;
kiln_status kiln_plane_cache_new(uint64_t budget_bytes, kiln_plane_cache **out, kiln_error *err) KILN_MUST_CHECK;
void kiln_plane_cache_free(kiln_plane_cache *c);
/* Another budget from now on; what exceeds it goes at once. */
void kiln_plane_cache_set_budget(kiln_plane_cache *c, uint64_t budget_bytes);
/* *data stays valid until the next call on this cache that may evict (hold at most one chunk's planes at a time; a plane
 * larger than the budget is held alone). Layout as stored. */
kiln_status kiln_plane_cache_get(kiln_plane_cache *c, kiln_manifest *m, const kiln_chunk *chunk, const char *plane,
                                 const void **data, kiln_error *err) KILN_MUST_CHECK;
/* Are all of these planes decoded, as far as the chunk has them? */
bool kiln_plane_cache_has(const kiln_plane_cache *c, const kiln_chunk *chunk, const char *const *planes, uint32_t n_planes);
/* Decodes planes by n threads, one a manifest: of these chunks, one after the other, what is missing and fits into a third of the
 * budget (decoding takes three times what it gives). Only makes the next calls quick: what is not decoded now is when it is asked
 * for. */
kiln_status kiln_plane_cache_ahead(kiln_plane_cache *c, kiln_manifest *const *m, unsigned n, const kiln_chunk *const *chunks,
                                   uint32_t n_chunks, const char *const *planes, uint32_t n_planes,
                                   kiln_error *err) KILN_MUST_CHECK;

#endif
