/* kiln_gpus_list: a child asks NVML (nvml.h says why), writes the answer into a pipe and ends. It
 * needs no exec: it shares nothing that its end could damage, and glibc makes malloc usable in a
 * child, whatever threads the parent has.
 *
 * A process with several stages asks once. It may ask ahead, while it has something else to do. */
#include "stages/engine/devices/gpus.h"

#include "base/log.h"
#include "stages/engine/devices/nvml.h"
#include "stages/engine/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { END_MS = 1000 }; /* most time for a child to end after it has answered or was killed */

/* ---- the child ------------------------------------------------------------------------------- */
/* Closes all descriptors except the pipe and stderr, above all the manifest's lock, which the child
 * must not keep. */
static void close_others(int fd)
{
    if (fd > STDERR_FILENO + 1) (void)close_range(STDERR_FILENO + 1, (unsigned)fd - 1, 0);
    /* where the kernel lacks it: they close with the child, which is soon */
    (void)close_range((unsigned)fd + 1, ~0U, 0);
}

/* Asks and ends. It calls _exit, because the parent's exit handlers would write the parent's
 * buffers a second time. */
static void answer(int fd, pid_t parent)
{
    static kiln_gpu_list gpus;
    (void)signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the whole group; the parent decides */
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
    if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0) _exit(1); /* stdout is the parent's data */
    close_others(fd);
    kiln_nvml_ask(&gpus);
    _exit(write(fd, &gpus, sizeof gpus) == (ssize_t)sizeof gpus ? 0 : 1);
}

/* ---- the parent ------------------------------------------------------------------------------ */
/* Reads the answer. *got is below sizeof *out if the child ended without an answer or hangs. */
static kiln_status listen_to(int fd, unsigned timeout_ms, kiln_gpu_list *out, size_t *got,
                             kiln_error *err)
{
    const uint64_t end = kiln_now_ns() + timeout_ms * UINT64_C(1000000);
    while (*got < sizeof *out && kiln_now_ns() < end) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        KILN_TRY(kiln_interrupt_poll(&p, 1, err));
        if (!p.revents) continue;
        const ssize_t n = read(fd, (char *)out + *got, sizeof *out - *got);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return KILN_OK;
        *got += (size_t)n;
    }
    return KILN_OK;
}

static bool has_ended(pid_t pid, int *status)
{
    *status = 0;
    for (int ms = 0; ms < END_MS; ms++) {
        const pid_t got = waitpid(pid, status, WNOHANG);
        /* an error: SIGCHLD is ignored, the kernel reaps */
        if (got == pid || (got < 0 && errno != EINTR)) return true;
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

/* Ends the child. One that hangs inside the driver can survive even SIGKILL for a while; then it is
 * not waited for. */
static void end_child(pid_t pid)
{
    int status;
    (void)kill(pid, SIGKILL);
    (void)has_ended(pid, &status);
}

/* Writes why there is no answer. status: of the child's end; NULL: it had to be killed. */
static void say_why(const int *status, unsigned timeout_ms, kiln_gpu_list *out)
{
    memset(out, 0, sizeof *out);
    out->broken = true;
    if (status)
        (void)snprintf(out->why_none, sizeof out->why_none,
                       "NVIDIA's management library failed when asked for GPUs (%s %d)",
                       WIFSIGNALED(*status) ? "signal" : "exit code",
                       WIFSIGNALED(*status) ? WTERMSIG(*status) : WEXITSTATUS(*status));
    else
        (void)snprintf(out->why_none, sizeof out->why_none,
                       "NVIDIA's management library did not answer within %g s",
                       timeout_ms / 1000.0);
}

static kiln_status ask_child(pid_t pid, int fd, unsigned timeout_ms, kiln_gpu_list *out,
                             kiln_error *err)
{
    int status;
    size_t got = 0;
    const kiln_status st = listen_to(fd, timeout_ms, out, &got, err);
    const bool ended = st == KILN_OK && has_ended(pid, &status);
    if (!ended) end_child(pid);
    if (st == KILN_OK && got < sizeof *out) say_why(ended ? &status : NULL, timeout_ms, out);
    return st;
}

/* The child that was asked and has not been listened to yet (pid 0: none), and the answer that is
 * kept. */
static struct {
    pid_t pid;
    int fd;
    bool known, keeps;
    kiln_gpu_list gpus;
} asked;

void kiln_gpus_keep(bool on) { asked.keeps = on; }

static kiln_status ask(pid_t *pid, int *fd, kiln_error *err)
{
    int ends[2];
    const pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return kiln_fail(err, KILN_E_NOMEM, "cannot make a pipe to ask for GPUs: %s",
                         strerror(errno));
    *pid = fork();
    if (*pid == 0) answer(ends[1], parent);
    const int failed = errno;
    (void)close(ends[1]);
    *fd = ends[0];
    if (*pid > 0) return KILN_OK;
    (void)close(ends[0]);
    *pid = 0;
    return kiln_fail(err, KILN_E_NOMEM, "cannot start a process to ask for GPUs: %s",
                     strerror(failed));
}

bool kiln_gpus_ask_ahead(void)
{
    return asked.known || asked.pid > 0 || ask(&asked.pid, &asked.fd, NULL) == KILN_OK;
}

int kiln_gpus_ahead_descriptor(void) { return asked.pid > 0 ? asked.fd : -1; }

void kiln_gpus_forget(void)
{
    if (asked.pid > 0) {
        end_child(asked.pid);
        (void)close(asked.fd);
    }
    asked.pid = 0;
    asked.known = false;
}

kiln_status kiln_gpus_list(unsigned timeout_ms, kiln_gpu_list *out, kiln_error *err)
{
    memset(out, 0, sizeof *out);
    if (asked.known) {
        *out = asked.gpus;
        return KILN_OK;
    }
    pid_t pid = asked.pid;
    int fd = asked.fd;
    asked.pid = 0;
    if (pid == 0) KILN_TRY(ask(&pid, &fd, err));
    const kiln_status st = ask_child(pid, fd, timeout_ms, out, err);
    (void)close(fd);
    if (st == KILN_OK && asked.keeps) {
        asked.gpus = *out;
        asked.known = true;
    }
    return st;
}
