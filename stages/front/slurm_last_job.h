/* slurm_last_job -- why a bake has no job left and no end. A round's job that is killed writes
 * nothing and has no successor, and Slurm forgets it after MinJobAge (300 s). So each of them
 * leaves a note `begun` when it starts; the note, its log and, while it knows the job, Slurm say
 * what became of it. */
#ifndef KILN_STAGES_FRONT_SLURM_LAST_JOB_H
#define KILN_STAGES_FRONT_SLURM_LAST_JOB_H

#include "stages/front/slurm_folder.h"
#include "stages/front/slurm_log.h"
#include "stages/front/slurm_queue.h"

/* For the round's job that this is: leaves the note. */
kiln_status kiln_slurm_begun_put(const kiln_slurm_folder *f, kiln_error *err) KILN_MUST_CHECK;

/* Writes into why[KILN_SLURM_WHY_MAX] what became of the last round's job, and what to do. jobs:
 * what Slurm says now; NULL: it has not been asked. "": no job is known to have begun. */
kiln_status kiln_slurm_last_job_text(const kiln_slurm_folder *f, const kiln_slurm_jobs *jobs,
                                     char *why, kiln_error *err) KILN_MUST_CHECK;

/* Writes what Slurm did to a job, and what to do, into out[size]: "was killed at its time limit
 * (1:00:00); give it more: ...". limit and memory: what it had; "": not known. "" for
 * KILN_SLURM_CAUSE_NONE. */
void kiln_slurm_cause_text(kiln_slurm_cause cause, const char *limit, const char *memory, char *out,
                           size_t size);
/* Why Slurm ends this job just now, as its own log says, as a sentence like that; "": nothing says
 * so. */
kiln_status kiln_slurm_own_cause_text(const kiln_slurm_folder *f, uint64_t log_from, char *out,
                                      size_t size, kiln_error *err) KILN_MUST_CHECK;

#endif
