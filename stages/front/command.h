/* command -- runs another program by its words, without a shell, and reads what it says. */
#ifndef KILN_STAGES_FRONT_COMMAND_H
#define KILN_STAGES_FRONT_COMMAND_H

#include "stages/front/words.h"

#include <stdbool.h>

typedef struct {
    /* stdout and stderr, each with a NUL behind its size; empty: data is NULL */
    kiln_buffer out, complaint;
    int code; /* exit code; 128 + N after signal N */
} kiln_command_answer;

/* Says whether a program of this name is in the PATH. */
bool kiln_command_exists(const char *name);
/* Runs the program and waits for its end. A name without a slash is sought in the PATH.
 * environment: NAME=VALUE, ended by NULL; NULL: that of this process. Its stdin is empty. Release
 * *out after a failure, too. KILN_E_IO: it could not be started, or says more than 512 MiB. */
kiln_status kiln_command_ask(const kiln_words *words, char *const *environment,
                             kiln_command_answer *out, kiln_error *err) KILN_MUST_CHECK;
const char *kiln_command_text(const kiln_buffer *b); /* "" where it is empty */
void kiln_command_release(kiln_command_answer *a);

#endif
