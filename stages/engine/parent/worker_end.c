/* Ending worker processes, and the reasons why they ended by themselves.
 *
 * A process whose socket is closed ends by itself, unless its driver hangs. Then it is killed. If
 * not even that ends it, because the kernel waits for the device, it is left to the kernel. During
 * a run nothing waits for that, as other workers have work to do.
 */
#include "stages/engine/parent/worker_end.h"

#include "base/count.h"
#include "base/log.h"
#include "stages/engine/interrupt.h"
#include "stages/engine/parent/worker_failures.h"
#include "stages/engine/parent/worker_rest.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    STOP_MS = 3000,       /* time to release a GPU; then the process is killed */
    HURRY_MS = 1000,      /* the same if a signal ends the run, which must end within 2 s */
    UNKILLABLE_MS = 2000, /* time to end after SIGKILL */
    UNDEAD_HURRY_MS = 500,
};
static const uint64_t MS = 1000000;

/* ---- one ------------------------------------------------------------------------------------- */
void kiln_worker_dismiss(kiln_worker_process *w)
{
    if (w->pid <= 0 || w->end_ns) return;
    (void)close(w->fd);
    w->fd = -1;
    w->ready = false;
    w->end_ns = kiln_now_ns();
}

static void empty_slot(kiln_worker_process *w)
{
    w->pid = 0;
    w->n_flight = 0;
    w->ready = false;
}

static bool ended_within(kiln_worker_process *w, uint64_t stop_ms, uint64_t unkillable_ms,
                         int *status)
{
    const uint64_t waited = kiln_now_ns() - w->end_ns;
    const pid_t got = waitpid(w->pid, status, WNOHANG);
    if (got == w->pid || (got < 0 && errno == ECHILD)) {
        if (got < 0) *status = 0;
        empty_slot(w);
        return true;
    }
    if (waited >= stop_ms * MS) (void)kill(w->pid, SIGKILL); /* may be sent several times */
    if (waited < (stop_ms + unkillable_ms) * MS) return false;
    *status = KILN_WORKER_UNKILLABLE;
    empty_slot(w);
    return true;
}

bool kiln_worker_ended(kiln_worker_process *w, int *status)
{
    return ended_within(w, STOP_MS, UNKILLABLE_MS, status);
}

kiln_status kiln_worker_death(const kiln_worker_process *w, int status, kiln_error *err)
{
    const kiln_status of_device = w->device->kind == KILN_DEVICE_CUDA ? KILN_E_DEVICE : KILN_E_BUG;
    if (status == KILN_WORKER_UNKILLABLE)
        return kiln_fail(err, KILN_E_DEVICE, "the worker cannot be killed, so its driver hangs");
    if (w->hung && !w->greeted)
        return kiln_fail(err, of_device,
                         "the worker was killed because it was not ready %g s after its start",
                         (double)kiln_start_deadline_ns(w) * 1e-9);
    if (w->hung)
        return kiln_fail(err, of_device,
                         "the worker was killed because it took longer than --deadline %u s",
                         w->deadline_s);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return kiln_fail(
            err, KILN_E_NOMEM,
            "the worker was killed (signal 9), perhaps because the machine ran out of memory,");
    if (WIFSIGNALED(status))
        return kiln_fail(err, of_device, "the worker died of signal %d (%s)", WTERMSIG(status),
                         strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) == KILN_EXEC_FAILED)
        return kiln_fail(
            err, KILN_E_IO,
            "the worker could not be started; is /proc mounted, and does the program still exist?");
    return kiln_fail(err, of_device, "the worker ended with exit code %d", WEXITSTATUS(status));
}

/* ---- all ------------------------------------------------------------------------------------- */
static void say_use(const kiln_worker_process *w)
{
    char peak[32], cap[32];
    if (w->use.vram_cap == 0) return;
    kiln_chat(
        "worker: took %s of device memory at most, %s allowed; %s needed more and ran on the CPU",
        kiln_size_text(w->use.vram_peak, peak), kiln_size_text(w->use.vram_cap, cap),
        KILN_COUNT(w->use.n_host, "operation"));
}

void kiln_workers_dismiss(kiln_worker_process *workers, unsigned n)
{
    if (!kiln_rest_keeps()) kiln_rest_dismiss();
    for (unsigned i = 0; i < n; i++)
        if (workers[i].greeted && workers[i].n_flight == 0) {
            if (kiln_rest_begin(&workers[i]))
                say_use(&workers[i]);
            else
                kiln_worker_dismiss(&workers[i]);
        }
}

/* Asks all before it waits for the first, because releasing a GPU takes time. */
void kiln_workers_stop(kiln_worker_process *workers, unsigned n)
{
    const bool hurry = kiln_interrupt_check(NULL) != KILN_OK;
    unsigned n_left = 0;
    int status;
    for (unsigned i = 0; i < n; i++) {
        kiln_worker_process *w = &workers[i];
        if (w->pid <= 0) continue;
        if (w->n_flight || !w->greeted) (void)kill(w->pid, SIGKILL);
        kiln_worker_dismiss(w);
        n_left++;
    }
    while (n_left > 0) {
        n_left = 0;
        for (unsigned i = 0; i < n; i++) {
            kiln_worker_process *w = &workers[i];
            if (w->pid <= 0) continue;
            if (!ended_within(w, hurry ? HURRY_MS : STOP_MS,
                              hurry ? UNDEAD_HURRY_MS : UNKILLABLE_MS, &status))
                n_left++;
            else
                say_use(w);
        }
        if (n_left) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

void kiln_worker_use_add(kiln_worker_use *to, const kiln_worker_use *more)
{
    if (more->peak_rss > to->peak_rss) to->peak_rss = more->peak_rss;
    if (more->ram_cuda > to->ram_cuda) to->ram_cuda = more->ram_cuda;
    if (more->vram_peak > to->vram_peak) to->vram_peak = more->vram_peak;
    if (more->vram_cap > to->vram_cap) to->vram_cap = more->vram_cap;
    to->n_host += more->n_host;
}
