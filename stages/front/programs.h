/* programs -- the programs that lie beside `kiln`: finding, asking and running them.
 *
 * Nothing here knows a program by name. Stages are the rows of pipelines/stages.def, everything
 * else is what the folder of the running `kiln` holds under the name kiln-NAME. What a program
 * takes is asked of it (--help-json).
 *
 * kiln has the stages in itself, and kiln-STAGE beside it is the same file under another name. Such
 * a stage is a function of this process: it is asked and run without a start. A kiln-STAGE that is
 * another program is started like any other. */
#ifndef KILN_STAGES_FRONT_PROGRAMS_H
#define KILN_STAGES_FRONT_PROGRAMS_H

#include "base/status.h"
#include "stages/engine/engine.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum { KILN_PROGRAM_NAME_MAX = 64, KILN_PROGRAMS_MAX = 128 };

typedef struct {
    char name[KILN_PROGRAM_NAME_MAX]; /* "prune" of kiln-prune */
    bool is_stage;
} kiln_program_entry;

typedef struct {
    /* stages in their order, then the others in that of the alphabet */
    kiln_program_entry entry[KILN_PROGRAMS_MAX];
    unsigned n;
} kiln_program_list;

/* Lists the programs beside this one. A stage is in the list even when its program is missing.
 * KILN_E_IO when the folder cannot be read. */
kiln_status kiln_programs_list(kiln_program_list *out, kiln_error *err) KILN_MUST_CHECK;
/* Writes the path of kiln-NAME beside this program into out[KILN_PATH_MAX], whether it is there or
 * not. */
kiln_status kiln_program_path(const char *name, char *out, kiln_error *err) KILN_MUST_CHECK;
/* The stage of this name that this program has in itself, whatever lies beside it; NULL: there is
 * none. */
const kiln_stage_program *kiln_stage_program_find(const char *name);
/* The same, unless kiln-NAME beside this program is another program. */
const kiln_stage_program *kiln_program_own(const char *name);
/* Does what kiln-NAME --help-json does and parses the answer; json_decref. KILN_E_IO: it is missing
 * or does not answer. */
kiln_status kiln_program_ask(const char *name, json_t **out, kiln_error *err) KILN_MUST_CHECK;

/* Runs kiln-NAME with these arguments (argv[0] is set here, NULL at the end) and waits for it.
 * quiet: its stdout goes to /dev/null. Where it is a program of its own, SIGINT, SIGTERM and SIGHUP
 * that are sent to this process alone are passed on, and it dies with this process (SIGTERM). One
 * that runs in this process sets the log's name and level. *code is its exit code, 128 + N after
 * signal N; then *signal is N, else 0. KILN_E_IO when it could not be started. */
kiln_status kiln_program_run(const char *name, const char **argv, bool quiet, int *code,
                             int *signal, kiln_error *err) KILN_MUST_CHECK;
/* The same with any program: words[0], sought in the PATH where it has no slash; NULL ends the
 * words. A program that is not there ends with 127 and has said so. */
kiln_status kiln_program_run_words(char **words, int *code, kiln_error *err) KILN_MUST_CHECK;
/* Becomes kiln-NAME with these arguments; returns only when that failed. */
kiln_status kiln_program_become(const char *name, char **argv, kiln_error *err) KILN_MUST_CHECK;

#endif
