/* job -- one call of kiln_run_units: its units, what is due, the order in which they go out, results that wait to be stored.
 *
 *   run_units.c      finds what is due, makes the plan, starts the conversation
 *   pool.c       starts workers, hands units to them and hears them
 *   mishaps.c    buries workers, judges what failed
 *   arrivals.c   takes results, stores them in batches
 */
#ifndef KILN_STAGES_ENGINE_JOB_H
#define KILN_STAGES_ENGINE_JOB_H

#include "stages/engine/engine_internal.h"
#include "stages/engine/schedule.h"

#include "base/log.h"

#include <pthread.h>
#include <stdatomic.h>

enum { KILN_BATCH_UNITS = 256 };

/* A result that waits for its transaction. */
typedef struct {
    kiln_unit *unit;
    void *map; /* the memfd that the blobs point into */
    uint64_t map_bytes;
    uint64_t held_bytes; /* of them in memory: the others are holes */
    kiln_blob *blobs;
    uint64_t wall_ns;
} kiln_arrival;

/* The batch that is being stored. n == 0: none. */
typedef struct {
    kiln_arrival items[KILN_BATCH_UNITS];
    unsigned n;
    uint64_t bytes;
    bool threaded; /* by `thread`, which sets all below */
    pthread_t thread;
    atomic_bool done;
    kiln_status status;
    kiln_error error;
    uint64_t ns; /* what the last one took */
} kiln_storing;

/* Why a unit failed last. */
typedef struct {
    uint64_t item;
    char device[160];
    char reason[1024];
} kiln_failure;

typedef struct {
    kiln_run *run;
    kiln_unit *units;
    uint64_t *due; /* by item of the schedule: the unit's place in the list */
    uint64_t n_due;
    uint64_t n_open; /* due, and neither back nor given up */
    kiln_slots slots;
    kiln_schedule *schedule;
    kiln_ram_plan plan;
    unsigned n_threads; /* to share out */
    kiln_failure *failures;
    uint64_t n_failures, failures_room;
    kiln_arrival batch[KILN_BATCH_UNITS];
    unsigned n_batch;
    uint64_t batch_bytes, batch_since_ns;
    kiln_storing storing;
    uint64_t look_ns; /* when workers were last looked after */
    kiln_progress progress;
} kiln_job;

static inline kiln_unit *kiln_job_unit(const kiln_job *j, uint64_t item) { return &j->units[j->due[item]]; }
/* Not stored: the result is kept in memory only. */
bool kiln_job_in_memory(const kiln_job *j, const kiln_unit *u);

/* Takes the result of a unit and closes its memfd. May store those before it. */
kiln_status kiln_job_take(kiln_job *j, kiln_unit *u, const kiln_message *m, int memfd, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_job_store_ripe(kiln_job *j, kiln_error *err) KILN_MUST_CHECK; /* begins with what has waited long enough */
kiln_status kiln_job_store(kiln_job *j, kiln_error *err) KILN_MUST_CHECK;      /* what waits, done when it returns */
/* Waits for the transaction that runs: before anything else is done with the manifest. Its failure, if it failed. */
kiln_status kiln_job_store_end(kiln_job *j, kiln_error *err) KILN_MUST_CHECK;
void kiln_job_drop_arrivals(kiln_job *j);

static inline kiln_worker_process *kiln_job_worker(const kiln_job *j, unsigned slot) { return &j->run->workers[slot]; }
/* The worker is to end; what it has is free for others. */
void kiln_job_dismiss(kiln_job *j, unsigned slot);
/* The slot takes nothing any more. Fails when it was the last: with the reason alone where nothing ever computed. */
kiln_status kiln_job_retire(kiln_job *j, unsigned slot, const kiln_error *why, kiln_error *err) KILN_MUST_CHECK;
/* A worker says that an item, which it has no more, failed. */
kiln_status kiln_job_fail(kiln_job *j, unsigned slot, uint64_t item, const kiln_message *m, kiln_error *err) KILN_MUST_CHECK;
/* Its socket is closed, or it hangs and is killed. The unit that it computed is judged when the process has ended and tells why. */
void kiln_job_mourn(kiln_job *j, unsigned slot);
/* Kills what hangs, buries what has ended. */
kiln_status kiln_job_look_after(kiln_job *j, kiln_error *err) KILN_MUST_CHECK;

/* Until every unit is back or given up. */
kiln_status kiln_job_converse(kiln_job *j, kiln_error *err) KILN_MUST_CHECK;

#endif
