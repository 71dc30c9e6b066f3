/* slurm_job -- what the jobs of a bake do. Each is one call in a job of its own; whatever kills it,
 * the same job can run again: what it finds (claim, parts, manifest, jobs that have not ended) says
 * where it was. */
#ifndef KILN_STAGES_FRONT_SLURM_JOB_H
#define KILN_STAGES_FRONT_SLURM_JOB_H

#include "stages/front/slurm_bake.h"

/* The job between two arrays: gathers the parts of the open round, plans what comes next, and
 * submits that: an array of tasks and, behind it, this job again. How many rounds a bake has is not
 * known beforehand. first: the first stage that may have something to do; try: as slurm_submit.h
 * has it. *code is the exit code; where it ends the bake, the note `ended` says it, too. */
kiln_status kiln_slurm_round(const kiln_slurm_bake *b, const char *first, unsigned try, int *code,
                             kiln_error *err) KILN_MUST_CHECK;

typedef struct {
    const char *stage, *plan; /* the plan's key */
    uint32_t of, task;        /* 1 .. of */
} kiln_slurm_share;

/* One task of an array: computes its part of what the plan shares out. Does nothing where the round
 * is over. Killed, it leaves nothing; a part that is there is whole. *code: the stage's exit
 * code. */
kiln_status kiln_slurm_task(const kiln_slurm_bake *b, const kiln_slurm_share *share, int *code,
                            kiln_error *err) KILN_MUST_CHECK;

#endif
