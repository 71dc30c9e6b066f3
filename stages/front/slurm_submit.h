/* slurm_submit -- hands jobs of a bake to Slurm.
 *
 * sbatch wants a script: pipelines/slurm/job.sh, which sources the file of --setup ('': none) and
 * executes its arguments. They are this program and
 *
 *   slurm --job round folder=OUT/slurm cwd=DIR chain=WORD stages=import,knn,... tasks=N
 *       concurrent=N tmpdir=DIR sbatch=WORD ...
 *         (and other lists of slurm_settings.h) first=STAGE try=N -- WORD...
 *   slurm --job task  folder=... first=STAGE plan=KEY of=N offset=N -- WORD...
 *
 * in which WORD... is the command line of kiln slurm as it was typed. first: the stage that comes
 * next, or the task's own. try: how often the tasks of the open round were submitted; 0: no round
 * is known to be open. */
#ifndef KILN_STAGES_FRONT_SLURM_SUBMIT_H
#define KILN_STAGES_FRONT_SLURM_SUBMIT_H

#include "stages/front/open_round.h"
#include "stages/front/slurm_bake.h"

enum { KILN_SLURM_ID_MAX = 32 };

/* Submits a round's job, behind jobs with these ids (NULL or empty: at once). stage and key: of the
 * round that is open, for the job's comment; key "-": none. KILN_E_IO: Slurm refuses it. */
kiln_status kiln_slurm_submit_round(const kiln_slurm_bake *b, const char *stage, const char *key,
                                    const char *first, unsigned try, const kiln_words *behind,
                                    char id[KILN_SLURM_ID_MAX], kiln_error *err) KILN_MUST_CHECK;
/* Submits these tasks of the open round, as arrays that the cluster accepts, and appends the
 * arrays' ids. Those that were submitted before a failure are among them. */
kiln_status kiln_slurm_submit_tasks(const kiln_slurm_bake *b, const kiln_open_round *round,
                                    const kiln_task_list *tasks, kiln_words *ids,
                                    kiln_error *err) KILN_MUST_CHECK;

/* Where --mail was given: has Slurm send the mail of a bake that is finished. KILN_E_IO. */
kiln_status kiln_slurm_submit_mail(const kiln_slurm_bake *b, kiln_error *err) KILN_MUST_CHECK;

/* Refuses options of sbatch that would break the chain of jobs, or that kiln slurm itself sets.
 * name: of the option that has them. KILN_E_USAGE. */
kiln_status kiln_slurm_options_check(const kiln_words *sbatch, const char *name,
                                     kiln_error *err) KILN_MUST_CHECK;

/* "1,3-5" of tasks[from..], as --array wants them: the tasks up to `most` behind `offset`, less the
 * offset. Returns how many those are. The text is appended with a NUL. */
kiln_status kiln_task_list_text(const kiln_task_list *tasks, uint32_t from, uint32_t offset,
                                uint32_t most, kiln_buffer *text, uint32_t *n,
                                kiln_error *err) KILN_MUST_CHECK;

#endif
