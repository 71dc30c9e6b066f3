/* front -- the commands of `kiln` that are not programs of their own. Each takes the words behind
 * its name and returns the exit code of the process; sentences of failure are printed by main
 * alone. */
#ifndef KILN_STAGES_FRONT_FRONT_H
#define KILN_STAGES_FRONT_FRONT_H

#include "base/option.h"
#include "base/status.h"
#include "stages/front/table.h"

#include <stdio.h>

/* A command: writes the exit code that the process is to end with where no sentence is left to say
 * (KILN_OK). argv[0] is the command's name. */
typedef kiln_status kiln_front_command(int argc, char **argv, int *code, kiln_error *err);

/* Bakes a scene: runs the stages one after the other and stops at the first that fails, with its
 * exit code. */
kiln_front_command kiln_front_pipeline;
#define KILN_CONVERT "kiln convert"
/* Turns a file of one format into one of another. Its options: convert_options.h. */
kiln_front_command kiln_front_convert;
/* main of its workers, which are called kiln-convert. */
int kiln_front_convert_worker(int argc, char **argv);
/* Bakes over the hosts of a Slurm cluster; it is what its jobs execute, too (slurm_submit.h). */
kiln_front_command kiln_front_slurm;
/* Its own options; it takes those of `kiln pipeline` besides, of which _passes says whether it
 * takes this one. */
extern const kiln_cli kiln_front_slurm_cli;
bool kiln_front_slurm_passes(const char *name);
/* Prints the open round of a bake over hosts, checked, for scripts. */
kiln_front_command kiln_front_claim;
extern const kiln_cli kiln_front_claim_cli;
/* Prints what there is, or the help of a command. */
kiln_front_command kiln_front_help;
/* Prints a completion script: bash or zsh. */
kiln_front_command kiln_front_completion;

typedef struct {
    const char *name, *what, *positionals;
    kiln_front_command *run;
} kiln_front_row;
/* All of these; ended by a row without name. */
extern const kiln_front_row kiln_front_rows[];

/* The table of `kiln pipeline`, for completion. *cli borrows *table, which the caller releases,
 * after a failure too. */
kiln_status kiln_front_pipeline_cli(kiln_cli *cli, kiln_pipeline_table *table,
                                    kiln_error *err) KILN_MUST_CHECK;
/* `kiln --help` and, with man, its manual page. */
kiln_status kiln_front_overview(bool man, FILE *out, kiln_error *err) KILN_MUST_CHECK;
/* KILN_E_USAGE: there is no such command; names the nearest. */
kiln_status kiln_front_unknown(const char *name, kiln_error *err);

#endif
