/* slurm_watch -- what a person asks of a bake over hosts that was begun: --status, --cancel,
 * --wait. */
#ifndef KILN_STAGES_FRONT_SLURM_WATCH_H
#define KILN_STAGES_FRONT_SLURM_WATCH_H

#include "stages/front/slurm_bake.h"

/* Prints each stage's state, then the jobs or how it ended. */
kiln_status kiln_slurm_status(const kiln_slurm_bake *b, kiln_error *err) KILN_MUST_CHECK;
/* Cancels every job of the bake, and those that one of them submits meanwhile. KILN_E_BUSY: some do
 * not end. */
kiln_status kiln_slurm_cancel(const kiln_slurm_bake *b, kiln_error *err) KILN_MUST_CHECK;
/* Returns when no job is left, releasing those that Slurm holds. *code: the exit code of the bake;
 * the sentence is told. */
kiln_status kiln_slurm_wait(const kiln_slurm_bake *b, int *code, kiln_error *err) KILN_MUST_CHECK;

#endif
