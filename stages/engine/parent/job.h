/* job -- one call of kiln_run_units: its units, those that are due, the order in which they are handed out, and the results that
 * wait to be stored.
 *
 *   run_units.c  finds the units that are due, plans the memory, starts the conversation
 *   pool.c       starts workers, hands units to them and receives their answers
 *   mishaps.c    decides what happens to units that fail and to workers that die or hang
 *   arrivals.c   takes results and stores them in batches
 *
 * Everything runs in the parent's main thread, except one thread that stores a batch. While it runs, nothing else uses the manifest
 * (kiln_job_store_end).
 */
#ifndef KILN_STAGES_ENGINE_PARENT_JOB_H
#define KILN_STAGES_ENGINE_PARENT_JOB_H

#include "stages/engine/engine_internal.h"
#include "stages/engine/parent/schedule.h"

#include "base/log.h"

#include <pthread.h>
#include <stdatomic.h>

enum { KILN_BATCH_UNITS = 256 };

/* A result that waits for its transaction. Owns the bytes and the blobs. */
typedef struct {
    kiln_unit *unit;
    void *bytes; /* of the memfd; the blobs point into them */
    uint64_t n_bytes;
    bool is_map;         /* else a copy */
    uint64_t held_bytes; /* of the memfd in memory; the rest are holes */
    kiln_blob *blobs;
    uint64_t wall_ns;
} kiln_arrival;

/* The batch that is being stored; n == 0: none is. */
typedef struct {
    kiln_arrival items[KILN_BATCH_UNITS];
    unsigned n;
    uint64_t bytes;
    bool threaded; /* `thread` stores it and sets the fields below */
    pthread_t thread;
    atomic_bool done;
    kiln_status status;
    kiln_error error;
    uint64_t ns; /* time of the last transaction */
} kiln_storing;

/* Where and why a unit failed last. */
typedef struct {
    uint64_t item;
    char device[160];
    char reason[1024];
} kiln_failure;

/* Sums over the run, or their growth over a list. */
typedef struct {
    uint64_t now_ns, busy_ns, store_ns, stored_bytes;
} kiln_work_sums;

struct kiln_job {
    kiln_run *run;
    kiln_home *home; /* whose workers compute it */
    bool is_beside;  /* kiln_run_units_beside */
    const char *what;
    kiln_work_sums before;
    kiln_unit *units;
    uint64_t *due; /* [n_due] for each item of the schedule, the index of its unit */
    uint64_t n_due;
    uint64_t n_open; /* units that are due and neither done nor given up */
    kiln_slots slots;
    kiln_schedule *schedule;
    kiln_ram_plan plan;
    unsigned n_threads; /* shared among the workers that have work */
    kiln_failure *failures;
    uint64_t n_failures, failures_room;
    kiln_arrival batch[KILN_BATCH_UNITS];
    unsigned n_batch;
    uint64_t batch_bytes, batch_since_ns;
    kiln_storing storing;
    uint64_t n_ready, n_taken; /* of a run that takes results in order (kiln_run_takes): so many of the first are done, are taken */
    bool take_waits;           /* for its descriptor */
    uint64_t n_answered, answered_ns; /* units that came back, and how long they took together */
    uint64_t look_ns;                 /* when kiln_job_look_after was last called */
    kiln_progress progress;
};

static inline kiln_unit *kiln_job_unit(const kiln_job *j, uint64_t item) { return &j->units[j->due[item]]; }
/* Says whether the result of the unit is kept in memory only, not stored. */
bool kiln_job_in_memory(const kiln_job *j, const kiln_unit *u);

/* Takes the result of a unit and closes its memfd. Earlier results may be stored first. */
kiln_status kiln_job_take(kiln_job *j, kiln_unit *u, const kiln_message *m, int memfd, kiln_error *err) KILN_MUST_CHECK;
/* Begins to store the batch if it is large or old enough. Returns at once; fails if the transaction before has failed. */
kiln_status kiln_job_store_ripe(kiln_job *j, kiln_error *err) KILN_MUST_CHECK;
/* Stores the batch and waits until that is done. */
kiln_status kiln_job_store(kiln_job *j, kiln_error *err) KILN_MUST_CHECK;
/* Waits for the transaction that runs and returns its failure. Call it before anything else is done with the manifest. */
kiln_status kiln_job_store_end(kiln_job *j, kiln_error *err) KILN_MUST_CHECK;
void kiln_job_drop_arrivals(kiln_job *j); /* waits for the transaction that runs; releases results that are not stored */

static inline kiln_worker_process *kiln_job_worker(const kiln_job *j, unsigned slot) { return &j->home->workers[slot]; }
/* Asks the worker to end. Units that it has go back to the schedule as if they had not been handed out. */
void kiln_job_dismiss(kiln_job *j, unsigned slot);
/* Closes the slot for the rest of the run. Fails if it was the last one: with *why alone if no worker ever opened its device, else
 * with KILN_E_DEVICE. */
kiln_status kiln_job_retire(kiln_job *j, unsigned slot, const kiln_error *why, kiln_error *err) KILN_MUST_CHECK;
/* Handles FAILED for an item, which the worker no longer has. Fails if the status is not contained (containment.h). */
kiln_status kiln_job_fail(kiln_job *j, unsigned slot, uint64_t item, const kiln_message *m, kiln_error *err) KILN_MUST_CHECK;
/* Handles a worker that closed its socket or was killed because it hung. The unit in work is judged when the process has ended,
 * because its exit status says why. */
void kiln_job_mourn(kiln_job *j, unsigned slot);
/* Kills workers that hang, and handles those that have ended. */
kiln_status kiln_job_look_after(kiln_job *j, kiln_error *err) KILN_MUST_CHECK;

/* Hands out units and takes results until every unit is done or given up. */
kiln_status kiln_job_converse(kiln_job *j, kiln_error *err) KILN_MUST_CHECK;

#endif
