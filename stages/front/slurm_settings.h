/* slurm_settings -- what a user sets for the jobs of a bake: each job has it on its own command
 * line (slurm_job_words.h), and the next call remembers it (slurm_recall.h). Both write a line or a
 * word NAME and a value for each word of a list. */
#ifndef KILN_STAGES_FRONT_SLURM_SETTINGS_H
#define KILN_STAGES_FRONT_SLURM_SETTINGS_H

#include "stages/front/words.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    KILN_SLURM_SBATCH,       /* options of sbatch for all jobs */
    KILN_SLURM_SBATCH_TASK,  /* for those of tasks, behind these */
    KILN_SLURM_SBATCH_ROUND, /* for those between two rounds */
    KILN_SLURM_WRAPPER,      /* words in front of a stage's command */
    KILN_SLURM_SETUP,        /* a file that job.sh sources: one word, an absolute path */
    KILN_SLURM_MAIL,         /* one word, an address */
    KILN_SLURM_LISTS
} kiln_slurm_list;

typedef struct {
    uint32_t tasks, concurrent; /* tasks a round; 0: all of them at a time */
    kiln_words list[KILN_SLURM_LISTS];
} kiln_slurm_settings;

/* The name of the option that sets the list, without its hyphens. */
const char *kiln_slurm_list_name(kiln_slurm_list list);
/* Finds the list of the text "NAME", separator, value, and *value in the text; false: it is another
 * text. */
bool kiln_slurm_list_find(const char *text, char separator, kiln_slurm_list *list,
                          const char **value);
/* Appends "NAME=WORD" for each word of each list. */
kiln_status kiln_slurm_settings_words(const kiln_slurm_settings *s, kiln_words *out,
                                      kiln_error *err) KILN_MUST_CHECK;
/* The only word of a list; "": it has none. */
const char *kiln_slurm_list_text(const kiln_slurm_settings *s, kiln_slurm_list list);
void kiln_slurm_settings_release(kiln_slurm_settings *s);

#endif
