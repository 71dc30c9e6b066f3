/* SIGINT, SIGTERM and SIGHUP in a parent. The first one sets a flag, so that workers are ended,
 * finished units are stored and the manifest is closed. The flag must be global, because a signal
 * handler has no argument for it. A second signal ends the process at once (SA_RESETHAND); the
 * manifest survives a kill at any moment. A second SIGHUP does nothing, because a terminal that is
 * closed sends two: the shell's and the kernel's. */
#include "stages/engine/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

enum { POLL_MS = 200 }; /* a signal that comes just before the poll is noticed after it */

static volatile sig_atomic_t caught;
static const char *advice = ""; /* of kiln_interrupt_watch */

static void note_signal(int signal)
{
    if (!caught) caught = signal; /* a parent that dies of a SIGHUP sends a SIGTERM, too */
}

void kiln_interrupt_watch(const char *what_to_do)
{
    struct sigaction act, was;
    advice = what_to_do;
    memset(&act, 0, sizeof act);
    act.sa_handler = note_signal;
    act.sa_flags = SA_RESETHAND;
    sigemptyset(&act.sa_mask);
    /* cannot fail for these; were it to, the default action ends the process, which is safe
     * too */
    (void)sigaction(SIGINT, &act, NULL);
    (void)sigaction(SIGTERM, &act, NULL);
    act.sa_flags = 0; /* without SA_RESTART: a read ends */
    if (sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler != SIG_IGN) /* else nohup */
        (void)sigaction(SIGHUP, &act, NULL);
}

kiln_status kiln_interrupt_check(kiln_error *err)
{
    if (!caught) return KILN_OK;
    kiln_status st = caught == SIGINT   ? KILN_E_INTERRUPTED
                     : caught == SIGHUP ? KILN_E_HANGUP
                                        : KILN_E_TERMINATED;
    return kiln_fail(err, st, "%s; %s", kiln_status_text(st), advice);
}

kiln_status kiln_interrupt_poll(struct pollfd *fds, unsigned n, kiln_error *err)
{
    return kiln_interrupt_wait(fds, n, POLL_MS, err);
}

kiln_status kiln_interrupt_wait(struct pollfd *fds, unsigned n, int most_ms, kiln_error *err)
{
    KILN_TRY(kiln_interrupt_check(err));
    if (poll(fds, n, most_ms < POLL_MS ? most_ms : POLL_MS) < 0 && errno != EINTR)
        return kiln_fail(err, KILN_E_IO, "cannot wait for a child process: %s", strerror(errno));
    return KILN_OK;
}
