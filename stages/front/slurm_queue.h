/* slurm_queue -- what squeue says about the jobs of one bake. A job is known by its comment, so no
 * list of ids can be lost between a submission and the writing of it:
 *
 *   kiln KIND STAGE KEY CHAIN FOLDER     KIND: round or task; KEY: of the plan, or -; CHAIN: of the
 *                                        call that began it
 *
 * FOLDER is OUT/slurm and may hold blanks. Jobs of 0.1's scripts have no CHAIN. */
#ifndef KILN_STAGES_FRONT_SLURM_QUEUE_H
#define KILN_STAGES_FRONT_SLURM_QUEUE_H

#include "base/memory.h"
#include "stages/front/words.h"

#include <stdbool.h>

/* How squeue is to write a job, for kiln_slurm_jobs_parse. */
#define KILN_SQUEUE_FORMAT "%i|%T|%r|%k"

typedef struct {
    char id[32];     /* 17 or 17_3 */
    char state[32];  /* PENDING, RUNNING, COMPLETING ... */
    char reason[96]; /* why it does not run; "None" */
    bool is_task;
    char stage[32], key[40], chain[64];
} kiln_slurm_job;

typedef struct {
    kiln_slurm_job *job; /* owned */
    size_t n;
    /* the round's job that has ended last, as far as Slurm still knows it; id "": none */
    kiln_slurm_job ended;
} kiln_slurm_jobs;

/* Reads squeue's answer, in which ended jobs may stand, and jobs of others: only those of this
 * folder that have not ended are kept, and the last round's job that has. A job that is put back
 * into the queue is first COMPLETING, then PENDING, so both count. KILN_E_IO: a job of this bake
 * has an id that is none. */
kiln_status kiln_slurm_jobs_parse(const char *text, const char *folder, kiln_slurm_jobs *out,
                                  kiln_error *err) KILN_MUST_CHECK;
void kiln_slurm_jobs_release(kiln_slurm_jobs *jobs);

/* Has Slurm put it aside for ever, because no node could start it? Two jobs may have one id after a
 * controller has lost what it knew, for example. */
bool kiln_slurm_job_held(const kiln_slurm_job *job);
bool kiln_slurm_job_completing(const kiln_slurm_job *job);
/* Appends their ids: those that `wanted` chooses (NULL: all), of an array the array's own, each
 * once. */
typedef bool kiln_slurm_job_test(const kiln_slurm_job *job, const void *context);
kiln_status kiln_slurm_jobs_ids(const kiln_slurm_jobs *jobs, kiln_slurm_job_test *wanted,
                                const void *context, kiln_words *out,
                                kiln_error *err) KILN_MUST_CHECK;

#endif
