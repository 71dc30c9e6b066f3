/* slurm_calls -- Slurm's own programs, called by their words. While the controller does not answer
 * (it may be starting again just now), a call tries for two minutes; what the controller refuses is
 * said and fails at once.
 *
 * They get the environment without what would change their answers or jobs: SLURM_* of a job that
 * calls them, the GPUs that it has, SQUEUE_* and SCANCEL_*, which hide jobs, and those of SBATCH_*
 * that break a chain of jobs. What sites set stays: account, partition, QOS, time. */
#ifndef KILN_STAGES_FRONT_SLURM_CALLS_H
#define KILN_STAGES_FRONT_SLURM_CALLS_H

#include "stages/front/command.h"
#include "stages/front/slurm_queue.h"

#include <stdint.h>

/* Fails where one of Slurm's programs is not in the PATH. KILN_E_IO. */
kiln_status kiln_slurm_programs_check(kiln_error *err) KILN_MUST_CHECK;
/* Calls one. tmpdir: TMPDIR of what it starts; "": none. KILN_E_IO: it failed, and has said why. */
kiln_status kiln_slurm_call(const kiln_words *words, const char *tmpdir, kiln_command_answer *out,
                            kiln_error *err) KILN_MUST_CHECK;
/* The jobs of the bake in this folder that have not ended. KILN_E_IO. */
kiln_status kiln_slurm_jobs_now(const char *folder, kiln_slurm_jobs *out,
                                kiln_error *err) KILN_MUST_CHECK;
/* The time and the memory that this job may take, as Slurm writes them: "1:00:00", "4G".
 * KILN_E_IO. */
kiln_status kiln_slurm_job_limits(const char *id, char time_limit[32], char memory[32],
                                  kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_slurm_cancel_jobs(const kiln_words *ids, kiln_error *err) KILN_MUST_CHECK;
/* Lets those jobs try again that Slurm could not start and holds, and says so. *n: how many. */
kiln_status kiln_slurm_release_held(const kiln_slurm_jobs *jobs, size_t *n,
                                    kiln_error *err) KILN_MUST_CHECK;
/* How many tasks an array can have here, one less than MaxArraySize. KILN_E_IO: none. */
kiln_status kiln_slurm_array_most(uint32_t *out, kiln_error *err) KILN_MUST_CHECK;
/* The manifest is held by another process: puts this job back into the queue, where Slurm ends this
 * process. Returns only where it has been put back too often or Slurm does not do it:
 * KILN_E_BUSY. */
kiln_status kiln_slurm_requeue(kiln_error *err);

#endif
