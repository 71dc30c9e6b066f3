/* bake_commands -- the command of each stage of a bake, as `kiln pipeline --print-commands` prints
 * them: for a command that takes the options of `kiln pipeline` beside its own, and runs stages
 * otherwise (kiln slurm). For one thread; in pipeline.c. */
#ifndef KILN_STAGES_FRONT_BAKE_COMMANDS_H
#define KILN_STAGES_FRONT_BAKE_COMMANDS_H

#include "base/file.h"
#include "base/option.h"
#include "stages/front/table.h"
#include "stages/front/words.h"

#include <stdio.h>

typedef struct {
    const char *stage; /* of the stage graph */
    kiln_words words;  /* the path of kiln-STAGE, then its arguments */
    bool allows_partial;
} kiln_stage_command;

typedef struct {
    /* --help or the like: there is nothing else */
    bool printed;
    char out[KILN_PATH_MAX], manifest[KILN_PATH_MAX]; /* as the options say: perhaps relative */
    char scene[KILN_PATH_MAX];                        /* "": none was given, and none is needed */
    kiln_stage_command stage[KILN_STAGES_MAX];        /* those that run, in their order */
    size_t n;                                         /* at least 1 */
    /* the command of the report behind them; empty: none is asked for */
    kiln_words report;
} kiln_bake_commands;

/* Who asks. */
typedef struct {
    const char *program;  /* "kiln slurm" */
    const kiln_opt *rows; /* its own options, ended by a row without name */
    void (*help)(const kiln_cli *cli, bool all, FILE *out);
    /* Called when the command line has been read and before anything is looked for: refuses what it
     * does not take. */
    kiln_status (*check)(const kiln_cli *cli, kiln_error *err);
    bool (*makes_demo)(void); /* says whether --demo is to make a scene that is not there */
    const char *stages;       /* these stages run; NULL: as the options say */
} kiln_bake_guest;

/* Reads a command line of `kiln pipeline`, argv[0] aside, in which the guest's own options may
 * stand, too. All values are checked. Release *out after a failure, too. Errors as `kiln
 * pipeline`. */
kiln_status kiln_bake_commands_make(const kiln_bake_guest *g, int argc, char **argv,
                                    kiln_bake_commands *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_bake_commands_release(kiln_bake_commands *c);

#endif
