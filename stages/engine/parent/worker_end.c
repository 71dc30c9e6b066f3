/* Ending worker processes, the reasons why they ended by themselves, and what they took and did.
 *
 * A process whose socket is closed ends by itself, unless its driver hangs. Then it is killed. If not even that ends it, because
 * the kernel waits for the device, it is left to the kernel. During a run nothing waits for that, as other workers have work to do.
 */
#include "stages/engine/engine_internal.h"

#include "base/count.h"
#include "base/log.h"
#include "stages/engine/json_text.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    STOP_MS = 3000,   /* time to release a GPU; then the process is killed */
    HURRY_MS = 1000,  /* the same if a signal ends the run, which must end within 2 s */
    UNDEAD_MS = 2000, /* time to end after SIGKILL */
    UNDEAD_HURRY_MS = 500,
};
static const uint64_t MS = 1000000;

/* ---- one -------------------------------------------------------------------------------------------------------------- */
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

static bool ended_within(kiln_worker_process *w, uint64_t stop_ms, uint64_t undead_ms, int *status)
{
    const uint64_t waited = kiln_now_ns() - w->end_ns;
    const pid_t got = waitpid(w->pid, status, WNOHANG);
    if (got == w->pid || (got < 0 && errno == ECHILD)) {
        if (got < 0) *status = 0;
        empty_slot(w);
        return true;
    }
    if (waited >= stop_ms * MS) (void)kill(w->pid, SIGKILL); /* may be sent several times */
    if (waited < (stop_ms + undead_ms) * MS) return false;
    *status = KILN_WORKER_UNDEAD;
    empty_slot(w);
    return true;
}

bool kiln_worker_ended(kiln_worker_process *w, int *status) { return ended_within(w, STOP_MS, UNDEAD_MS, status); }

kiln_status kiln_worker_death(const kiln_worker_process *w, int status, kiln_error *err)
{
    const kiln_status of_device = w->device->kind == KILN_DEVICE_CUDA ? KILN_E_DEVICE : KILN_E_BUG;
    if (status == KILN_WORKER_UNDEAD)
        return kiln_fail(err, KILN_E_DEVICE, "the worker does not end even when it is killed, so its driver hangs");
    if (w->hung && !w->greeted)
        return kiln_fail(err, of_device, "the worker was killed because it was not ready %g s after its start",
                         (double)kiln_start_deadline_ns(w->device) * 1e-9);
    if (w->hung)
        return kiln_fail(err, of_device, "the worker was killed because it took longer than --deadline %u s",
                         kiln_engine_values.deadline_s);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return kiln_fail(err, KILN_E_NOMEM, "the worker was killed (signal 9), perhaps because the machine ran out of memory,");
    if (WIFSIGNALED(status))
        return kiln_fail(err, of_device, "the worker died of signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) == KILN_EXEC_FAILED)
        return kiln_fail(err, KILN_E_IO, "the worker could not be started; is /proc mounted and the program still in its place?");
    return kiln_fail(err, of_device, "the worker ended with exit code %d", WEXITSTATUS(status));
}

/* ---- all -------------------------------------------------------------------------------------------------------------- */
static void say_use(const kiln_worker_process *w)
{
    char peak[32], cap[32];
    if (w->use.vram_cap == 0) return;
    kiln_chat("worker: took %s of device memory at most, %s allowed; %s needed more and ran on the CPU",
              kiln_size_text(w->use.vram_peak, peak), kiln_size_text(w->use.vram_cap, cap), KILN_COUNT(w->use.n_host, "operation"));
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
            if (!ended_within(w, hurry ? HURRY_MS : STOP_MS, hurry ? UNDEAD_HURRY_MS : UNDEAD_MS, &status))
                n_left++;
            else
                say_use(w);
        }
        if (n_left) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* ---- what they took and did -------------------------------------------------------------------------------------------- */
void kiln_worker_use_add(kiln_worker_use *to, const kiln_worker_use *more)
{
    if (more->peak_rss > to->peak_rss) to->peak_rss = more->peak_rss;
    if (more->ram_cuda > to->ram_cuda) to->ram_cuda = more->ram_cuda;
    if (more->vram_peak > to->vram_peak) to->vram_peak = more->vram_peak;
    if (more->vram_cap > to->vram_cap) to->vram_cap = more->vram_cap;
    to->n_host += more->n_host;
}

const kiln_worker_process *kiln_run_slot(const kiln_run *r, unsigned i)
{
    for (unsigned k = 0; k < KILN_HOMES; k++) {
        if (i < r->homes[k].n_workers) return &r->homes[k].workers[i];
        i -= r->homes[k].n_workers;
    }
    return NULL;
}

void kiln_run_dismiss_workers(kiln_run *r)
{
    for (unsigned k = 0; k < KILN_HOMES; k++) kiln_workers_dismiss(r->homes[k].workers, r->homes[k].n_workers);
}

kiln_worker_use kiln_workers_use(const kiln_run *r)
{
    kiln_worker_use all = {0};
    const kiln_worker_process *w;
    for (unsigned i = 0; (w = kiln_run_slot(r, i)); i++) {
        kiln_worker_use_add(&all, &w->past);
        kiln_worker_use_add(&all, &w->use);
    }
    return all;
}

uint64_t kiln_workers_open_ns(const kiln_run *r)
{
    uint64_t ns = 0;
    const kiln_worker_process *w;
    for (unsigned i = 0; (w = kiln_run_slot(r, i)); i++)
        if (w->open_ns > ns) ns = w->open_ns;
    return ns;
}

const char *kiln_worker_name(const kiln_run *r, const kiln_worker_process *w, char *buf, size_t size)
{
    unsigned slot = 0;
    while (&r->homes[0].workers[slot] != w && &r->homes[1].workers[slot] != w) slot++;
    if (w->device->kind == KILN_DEVICE_CUDA && !*w->device_text)
        (void)snprintf(buf, size, "GPU '%s'", w->device->visible);
    else if (w->device->kind == KILN_DEVICE_CUDA)
        (void)snprintf(buf, size, "%s", w->device_text);
    else
        (void)snprintf(buf, size, "worker %u of the CPU", slot);
    return buf;
}

/* Says whether an earlier worker has the same device: all on the CPU have. Also true for one that was never ready. */
static bool is_listed(const kiln_run *r, unsigned i)
{
    const char *text = kiln_run_slot(r, i)->device_text;
    for (unsigned k = 0; k < i; k++)
        if (!strcmp(kiln_run_slot(r, k)->device_text, text)) return true;
    return !*text;
}

void kiln_workers_devices(const kiln_run *r, char *out, size_t size)
{
    size_t used = 0;
    const kiln_worker_process *w;
    *out = '\0';
    for (unsigned i = 0; (w = kiln_run_slot(r, i)) && used < size; i++) {
        if (is_listed(r, i)) continue;
        const int more = snprintf(out + used, size - used, "%s%s", used ? "; " : "", w->device_text);
        used += more > 0 ? (size_t)more : 0;
    }
}

json_t *kiln_workers_json(const kiln_run *r)
{
    json_t *list = json_array();
    const kiln_worker_process *w;
    for (unsigned i = 0; list && (w = kiln_run_slot(r, i)); i++) {
        if (!w->device && !w->start_ns) continue; /* never started */
        json_t *one = json_pack("{s:s, s:I, s:o, s:o, s:b}", "device", w->device_text, "units", (json_int_t)w->n_units, "busy_s",
                                kiln_json_real((double)w->busy_ns * 1e-9), "start_s", kiln_json_real((double)w->open_ns * 1e-9),
                                "retired", w->retired);
        if (json_array_append_new(list, one) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}
