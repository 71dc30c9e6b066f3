/* program -- the main() of every program, and of one that has several stages. For the main
 * thread. */
#ifndef KILN_STAGES_ENGINE_PROGRAM_H
#define KILN_STAGES_ENGINE_PROGRAM_H

#include "stages/engine/engine.h"

#include <stdbool.h>
#include <stdio.h>

/* The main() of every program: parses the options, runs as worker or parent, prints the error and
 * returns the exit code. A process may call it several times, one after the other, on its main
 * thread. Nothing of a call reaches the next, except that after SIGINT, SIGTERM or SIGHUP the
 * next call ends too. It keeps no pointer into argv. */
int kiln_program_main(const kiln_stage_program *p, int argc, char **argv);
/* How much kiln_program_check looks at. */
typedef enum {
    /* what each option says by itself: another host, with other files, will run the command */
    KILN_CHECK_TEXTS,
    KILN_CHECK_HERE, /* also what options say together, and what they name on this machine */
    /* also names of the bake, such as cameras, which no stage in front of this one will change any
     * more */
    KILN_CHECK_NAMES
} kiln_check_scope;
/* Finds what is wrong with a command line of this program before anything is done. Where the
 * manifest is there, it is read for the stored parameters. Afterwards the process's options are
 * those of this command line. It says nothing but *err, which names options as the program has
 * them. Statuses are those with which the program would end. */
kiln_status kiln_program_check(const kiln_stage_program *p, int argc, char **argv,
                               kiln_check_scope scope, kiln_error *err) KILN_MUST_CHECK;
/* Writes to `out` what --help-json prints. The caller checks the stream for errors. KILN_E_BUG. */
kiln_status kiln_program_help_json(const kiln_stage_program *p, FILE *out,
                                   kiln_error *err) KILN_MUST_CHECK;

/* For a program with several stages, which calls kiln_program_main for one after the other. `find`
 * returns a stage by its name, or NULL. Call it first in main, because workers need it too. */
void kiln_program_family(const kiln_stage_program *(*find)(const char *name));
/* on: from now on, the workers of a stage that ends well rest and are kept for the next stage of
 * this process, with their devices open. Not on: they are no longer kept; call it before the last
 * stage, which takes those that rest. Does nothing in a program without a family. */
void kiln_program_keep_workers(bool on);
/* Says, while workers are kept, that a later stage will compute on these --devices. If that is a
 * GPU and the stages before it compute on the CPU, the GPU is opened meanwhile. NULL: there is no
 * such stage. devices is borrowed until the next call. */
void kiln_program_expect(const char *devices);
/* Ends the workers that are kept and waits for them, at most some seconds. */
void kiln_program_stop_workers(void);
/* Fails with KILN_E_INTERRUPTED, KILN_E_TERMINATED or KILN_E_HANGUP if a signal came during a call
 * of kiln_program_main, even if that call succeeded. */
kiln_status kiln_program_stopped(kiln_error *err) KILN_MUST_CHECK;

#endif
