/* job -- one call of kiln_run_units: its units, those that are due, the order in which they are
 * handed out, and the results that wait to be stored.
 *
 *   run_units.c  finds the units that are due, plans the memory, starts the conversation
 *   pool.c       starts workers, hands units to them and receives their answers
 *   worker_failures.c    decides what happens to units that fail and to workers that die or hang
 *   arrivals.c   takes results and stores them in batches
 *
 * Everything runs in the parent's main thread, except one thread that stores a batch and one that
 * gives the memory of the batch before back. While the first runs, nothing else uses the manifest
 * (kiln_job_store_end).
 */
#ifndef KILN_STAGES_ENGINE_PARENT_JOB_H
#define KILN_STAGES_ENGINE_PARENT_JOB_H

#include "base/log.h"
#include "stages/engine/parent/run.h"
#include "stages/engine/parent/schedule.h"

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

/* Stored results whose memory is being given back; n == 0: none are. */
typedef struct {
    kiln_arrival items[KILN_BATCH_UNITS];
    unsigned n;
    uint64_t bytes;
    bool threaded; /* `thread` gives it back */
    pthread_t thread;
    atomic_bool done;
} kiln_giving_back;

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
    uint64_t n_failures, failures_capacity;
    kiln_arrival batch[KILN_BATCH_UNITS];
    unsigned n_batch;
    uint64_t batch_bytes, batch_since_ns;
    kiln_storing storing;
    kiln_giving_back giving_back;
    /* of a run that takes results in order (kiln_run_takes): so many of the first are done, are
     * taken */
    uint64_t n_ready, n_taken;
    bool take_waits;                  /* for its descriptor */
    uint64_t n_answered, answered_ns; /* units that came back, and how long they took together */
    uint64_t look_ns;                 /* when kiln_job_look_after was last called */
    kiln_progress progress;
};

static inline kiln_unit *kiln_job_unit(const kiln_job *j, uint64_t item)
{
    return &j->units[j->due[item]];
}
static inline kiln_worker_process *kiln_job_worker(const kiln_job *j, unsigned slot)
{
    return &j->home->workers[slot];
}

#endif
