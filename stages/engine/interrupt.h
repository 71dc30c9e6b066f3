/* interrupt -- SIGINT, SIGTERM and SIGHUP in a parent, and waiting under them. For the main
 * thread. */
#ifndef KILN_STAGES_ENGINE_INTERRUPT_H
#define KILN_STAGES_ENGINE_INTERRUPT_H

#include "base/status.h"

struct pollfd;

/* From now on, the first SIGINT, SIGTERM or SIGHUP sets a flag; a second SIGINT or SIGTERM ends the
 * process. A SIGHUP that is ignored, as under nohup, stays so. what_to_do: what the user reads
 * behind the signal's name, a constant text. */
void kiln_interrupt_watch(const char *what_to_do);
/* Fails with KILN_E_INTERRUPTED, KILN_E_TERMINATED or KILN_E_HANGUP if the flag is set. */
kiln_status kiln_interrupt_check(kiln_error *err) KILN_MUST_CHECK;
/* Checks the flag, then waits for one of the descriptors, at most a fifth of a second; revents,
 * which must be zero before, says which one is ready. A parent waits for its children by this call
 * and the next one alone, so that it notices every signal. KILN_E_IO. */
kiln_status kiln_interrupt_poll(struct pollfd *fds, unsigned n, kiln_error *err) KILN_MUST_CHECK;
/* The same, for at most most_ms. */
kiln_status kiln_interrupt_wait(struct pollfd *fds, unsigned n, int most_ms,
                                kiln_error *err) KILN_MUST_CHECK;

#endif
