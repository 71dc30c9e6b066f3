/* slurm_job_words -- the words with which a job of a bake is called (slurm_submit.h), read and
 * checked. */
#ifndef KILN_STAGES_FRONT_SLURM_JOB_WORDS_H
#define KILN_STAGES_FRONT_SLURM_JOB_WORDS_H

#include "stages/front/slurm_settings.h"

typedef struct {
    bool is_task;
    /* these and those below are borrowed from argv */
    const char *folder, *cwd, *chain, *stages, *tmpdir;
    const char *first, *plan; /* plan: of a task */
    uint32_t try, of, offset;
    kiln_slurm_settings settings;
    char **typed; /* the words behind -- */
    int n_typed;
} kiln_slurm_job_words;

/* argv[0] is the word behind --job. Release *out after a failure, too. KILN_E_USAGE: an unknown
 * word, one that is missing, or a value that is none. */
kiln_status kiln_slurm_job_words_read(int argc, char **argv, kiln_slurm_job_words *out,
                                      kiln_error *err) KILN_MUST_CHECK;
void kiln_slurm_job_words_release(kiln_slurm_job_words *w);

#endif
