/* slurm_bake -- one bake over the hosts of a Slurm cluster, as each process of it has it: the call
 * of `kiln slurm`, and its jobs. A job has all of it on its own command line (slurm_submit.h),
 * which Slurm keeps in its own spool; nothing is read from the folder of the bake but the manifest,
 * its claim, the names of parts, and notes (slurm_folder.h). */
#ifndef KILN_STAGES_FRONT_SLURM_BAKE_H
#define KILN_STAGES_FRONT_SLURM_BAKE_H

#include "stages/front/bake_commands.h"
#include "stages/front/slurm_folder.h"
#include "stages/front/slurm_settings.h"

#define KILN_SLURM "kiln slurm"
enum {
    /* how often the tasks of a round are submitted; then the round's own job computes what is
     * missing */
    KILN_SLURM_TRIES = 2,
    /* how often a job that found the manifest busy is put back into the queue, 120 s each */
    KILN_SLURM_RESTARTS = 20,
    KILN_SLURM_RELEASES = 20, /* how often --wait lets jobs try again that Slurm could not start */
};

typedef struct {
    kiln_bake_commands commands;
    kiln_slurm_folder folder;
    char kiln[KILN_PATH_MAX]; /* this program */
    /* where kiln slurm was called: paths of the command line are relative to it */
    char cwd[KILN_PATH_MAX];
    const kiln_words *typed; /* the command line of kiln slurm, for its jobs */
    const kiln_slurm_settings *settings;
    const char *tmpdir; /* TMPDIR where kiln slurm was called; "": none */
    /* of the call that began this: digits, letters and hyphens; unlike any other */
    char chain[64];
} kiln_slurm_bake;

/* The row of a stage in b->commands; NULL: it does not run in this bake. */
const kiln_stage_command *kiln_slurm_command_of(const kiln_slurm_bake *b, const char *stage);
/* Says whether the stage can be shared out among hosts: its program has --plan. */
kiln_status kiln_slurm_has_rounds(const char *stage, bool *has, kiln_error *err) KILN_MUST_CHECK;
/* Writes the command that gives up the claim of this stage into out, quoted for a shell. */
kiln_status kiln_slurm_break_command(const kiln_slurm_bake *b, const char *stage, kiln_buffer *out,
                                     kiln_error *err) KILN_MUST_CHECK;

#endif
