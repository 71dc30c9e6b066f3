/* What happens to units that fail, and to the workers and devices under them. The rules are those
 * of containment.h.
 *
 * A worker that failed is replaced, because its process or its context may be damaged. Units that
 * it had not begun go back as if they had not been handed out. The failure counts for the oldest
 * unit of the worker: a result is sent before the next unit is begun, and is received before the
 * death. If units had begun beside deferred work of earlier ones (BEGUN), any of them may be the
 * cause; then none is blamed and each is computed alone. */
#include "stages/engine/parent/worker_failures.h"

#include "stages/engine/parent/arrivals.h"
#include "stages/engine/parent/run_workers.h"
#include "stages/engine/parent/worker_end.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* processes in a row that end before they have done anything; then the slot is retired */
    EARLY_MAX = 3,
    START_MS = 300000, /* most time until HELLO; a driver that takes longer hangs */
    /* least limit on a GPU, whatever --deadline says: GPUs that nothing keeps awake need seconds */
    START_GPU_MS = 20000,
    GAP_MS = 1000, /* a longer time between two looks means that the parent was stopped */
};
static const uint64_t MS = 1000000;

/* ---- giving up ------------------------------------------------------------------------------- */
static kiln_status remember(kiln_job *j, uint64_t item, const char *device, const char *reason,
                            kiln_error *err)
{
    kiln_failure *f = NULL;
    for (uint64_t i = 0; i < j->n_failures && !f; i++)
        if (j->failures[i].item == item) f = &j->failures[i];
    if (!f && j->n_failures == j->failures_capacity) {
        kiln_failure *more;
        const uint64_t capacity = j->failures_capacity ? 2 * j->failures_capacity : 8;
        KILN_TRY(KILN_ALLOC(&more, capacity, "what failed", err));
        if (j->n_failures) memcpy(more, j->failures, j->n_failures * sizeof *more);
        free(j->failures);
        j->failures = more;
        j->failures_capacity = capacity;
    }
    if (!f) f = &j->failures[j->n_failures++];
    f->item = item;
    (void)snprintf(f->device, sizeof f->device, "%.159s", device);
    (void)snprintf(f->reason, sizeof f->reason, "%.1023s", reason);
    return KILN_OK;
}

static kiln_status give_up(kiln_job *j, uint64_t item, kiln_error *err)
{
    kiln_unit *u = kiln_job_unit(j, item);
    const kiln_trial *t = kiln_schedule_trial(j->schedule, item);
    const kiln_failure *f = j->failures;
    while (f->item != item) f++;          /* a unit is given up after it failed */
    KILN_TRY(kiln_job_store_end(j, err)); /* the quarantine is in the manifest, too */
    KILN_TRY(kiln_run_quarantine(j->run, u, t, f->device, f->reason, err));
    if ((!u->optional && !j->run->hosts.part) || u->was_cached)
        return kiln_fail(
            err, KILN_E_PARTIAL,
            "'%s' failed %u times, the last on %s: %.600s; the stage cannot continue without it%s",
            u->name, t->attempts, f->device, f->reason,
            kiln_run_is_passing(j->run) || kiln_run_is_once(j->run)
                ? ""
                : "; finished units are kept; run the same command to try it again");
    u->quarantined = true;
    j->n_open--;
    kiln_progress_add(&j->progress, 1);
    return KILN_OK;
}

static kiln_status give_up_stranded(kiln_job *j, kiln_error *err)
{
    uint64_t item;
    while (kiln_schedule_stranded(j->schedule, &item)) KILN_TRY(give_up(j, item, err));
    return KILN_OK;
}

/* ---- workers that are not used any more ------------------------------------------------------ */
void kiln_job_dismiss(kiln_job *j, unsigned slot)
{
    kiln_worker_process *w = kiln_job_worker(j, slot);
    for (unsigned i = 0; i < w->n_flight; i++) kiln_schedule_return(j->schedule, w->flight[i]);
    w->n_flight = w->n_beside = 0;
    kiln_worker_dismiss(w);
}

kiln_status kiln_job_retire(kiln_job *j, unsigned slot, const kiln_error *why, kiln_error *err)
{
    kiln_run *r = j->run;
    kiln_worker_process *w = kiln_job_worker(j, slot);
    char name[192];
    if (w->retired) return KILN_OK;
    kiln_job_dismiss(j, slot);
    w->retired = j->slots.closed[slot] = true;
    if (kiln_slots_open(&j->slots) > 0) {
        kiln_warn("%s is not used any more: %s",
                  kiln_worker_name(&r->devices, w, name, sizeof name), why->msg);
        return give_up_stranded(j, err);
    }
    if (!j->home->greeted) return kiln_fail(err, why->status, "%s", why->msg);
    (void)kiln_fail(err, KILN_E_DEVICE, "no device is left to compute on; %s was the last: %.700s",
                    kiln_worker_name(&r->devices, w, name, sizeof name), why->msg);
    if (w->device->kind == KILN_DEVICE_CUDA) kiln_devices_advise(err);
    return KILN_E_DEVICE;
}

/* ---- a unit failed --------------------------------------------------------------------------- */
static kiln_status retry_or_quarantine(kiln_job *j, unsigned slot, uint64_t item, kiln_error *why,
                                       kiln_error *err)
{
    kiln_worker_process *w = kiln_job_worker(j, slot);
    const kiln_unit *u = kiln_job_unit(j, item);
    char name[192];
    bool struck_out = false;
    if (w->device->kind == KILN_DEVICE_CUDA) kiln_devices_advise(why);
    kiln_worker_name(&j->run->devices, w, name, sizeof name);
    KILN_TRY(remember(j, item, name, why->msg, err));
    const bool again = kiln_schedule_fail(j->schedule, item, slot);
    if (!again && kiln_schedule_trial(j->schedule, item)->elsewhere) {
        for (unsigned i = 0; i < j->slots.n; i++)
            kiln_strikes_withdraw(&kiln_job_worker(j, i)->strikes, u->key);
    } else {
        /* Of several devices, one that fails again and again is left out. The CPU never is, because
         * there is no other. */
        struck_out = kiln_strikes_add(&w->strikes, u->key) && !j->slots.one_device;
    }
    if (again) {
        j->run->lists.n_retried++;
        kiln_warn("'%s' failed on %s and is tried again: %s", u->name, name, why->msg);
    } else {
        KILN_TRY(give_up(j, item, err));
    }
    if (!struck_out) return KILN_OK;
    kiln_note(why, "%d different units failed on it, the last '%s'", KILN_STRIKES_MAX, u->name);
    return kiln_job_retire(j, slot, why, err);
}

kiln_status kiln_job_fail(kiln_job *j, unsigned slot, uint64_t item, const kiln_message *m,
                          kiln_error *err)
{
    kiln_error why = {0};
    (void)kiln_fail(&why, (kiln_status)m->status, "%s", m->text);
    if (!kiln_failure_is_contained(why.status)) {
        (void)kiln_fail(err, why.status, "%s", why.msg);
        if (!strstr(m->text, kiln_job_unit(j, item)->name))
            kiln_note(err, "%s", kiln_job_unit(j, item)->name);
        return why.status;
    }
    /* it ends by itself; the failed unit is not in flight any more */
    kiln_job_dismiss(j, slot);
    if (m->flags & KILN_MSG_LOST) { /* the unit is not the cause */
        kiln_schedule_return(j->schedule, item);
        return kiln_job_retire(j, slot, &why, err);
    }
    return retry_or_quarantine(j, slot, item, &why, err);
}

/* ---- a worker died --------------------------------------------------------------------------- */
/* Several units were in work: none is blamed. Each is computed again alone, so this happens to it
 * only once. */
static void suspect_all(kiln_job *j, kiln_worker_process *w)
{
    char name[192];
    kiln_warn("%s ended between '%s' and '%s'; each unit is computed again by itself",
              kiln_worker_name(&j->run->devices, w, name, sizeof name),
              kiln_job_unit(j, w->flight[0])->name, kiln_job_unit(j, w->flight[w->n_beside])->name);
    for (unsigned i = 0; i < w->n_flight; i++)
        (i <= w->n_beside ? kiln_schedule_suspect : kiln_schedule_return)(j->schedule,
                                                                          w->flight[i]);
    w->busy_ns += kiln_now_ns() - w->unit_ns;
    w->n_flight = w->n_beside = w->n_early = 0;
    w->had_several = true;
}

void kiln_job_on_worker_exit(kiln_job *j, unsigned slot)
{
    kiln_worker_process *w = kiln_job_worker(j, slot);
    if (w->n_beside) suspect_all(j, w);
    while (w->n_flight > 1) kiln_schedule_return(j->schedule, w->flight[--w->n_flight]);
    if (w->n_flight) w->busy_ns += kiln_now_ns() - w->unit_ns;
    w->died = true;
    kiln_worker_dismiss(w);
}

/* Handles the end of a process, if it has ended. */
static kiln_status reap_worker(kiln_job *j, unsigned slot, kiln_error *err)
{
    kiln_worker_process *w = kiln_job_worker(j, slot);
    const bool had_unit = w->n_flight > 0;
    const uint64_t item = w->flight[0];
    kiln_error why = {0};
    int status;
    if (!kiln_worker_ended(w, &status) || (!w->died && status != KILN_WORKER_UNKILLABLE))
        return KILN_OK;
    const kiln_status st = kiln_worker_death(w, status, &why);
    if (st == KILN_E_IO) return kiln_fail(err, st, "%s", why.msg);
    if (w->had_several) kiln_warn("%s while it computed several units", why.msg);
    w->had_several = false;
    if (had_unit) {
        kiln_error of_unit = why;
        (void)kiln_fail(&of_unit, st, "%.700s while it computed '%s'", why.msg,
                        kiln_job_unit(j, item)->name);
        KILN_TRY(retry_or_quarantine(j, slot, item, &of_unit, err));
    }
    if (status == KILN_WORKER_UNKILLABLE) return kiln_job_retire(j, slot, &why, err);
    if (had_unit) return KILN_OK;
    if (++w->n_early < EARLY_MAX) {
        if (w->hung) kiln_warn("%s; another takes its place", why.msg);
        return KILN_OK;
    }
    kiln_error of_slot = why;
    (void)kiln_fail(&of_slot, st, "%.700s before it %s, %d times", why.msg,
                    w->greeted ? "had done anything" : "was ready", EARLY_MAX);
    return kiln_job_retire(j, slot, &of_slot, err);
}

/* --deadline counts from fork on, because a process can stop or hang before its first message. */
uint64_t kiln_start_deadline_ns(const kiln_worker_process *w)
{
    const uint64_t deadline = 1000 * MS * w->deadline_s;
    const uint64_t least = w->device->kind == KILN_DEVICE_CUDA ? START_GPU_MS * MS : 0;
    if (deadline == 0 || deadline > START_MS * MS) return START_MS * MS;
    return deadline > least ? deadline : least;
}

static bool is_late(const kiln_worker_process *w)
{
    const uint64_t now = kiln_now_ns(), deadline = 1000 * MS * w->deadline_s;
    if (!w->greeted) return now - w->start_ns > kiln_start_deadline_ns(w);
    return w->n_flight && deadline && now - w->unit_ns > deadline;
}

static void shift(uint64_t *ns, uint64_t gap, uint64_t now)
{
    if (*ns) *ns = now - *ns < gap ? now : *ns + gap;
}

/* The parent looks every fifth of a second. If it did not for longer, it was stopped together with
 * its workers (Ctrl-Z, a laptop that slept), or it stored results. That time does not count for any
 * deadline. */
static void skip_gap(kiln_job *j)
{
    const uint64_t now = kiln_now_ns(), gap = now - j->look_ns;
    j->look_ns = now;
    if (gap < GAP_MS * MS) return;
    for (unsigned i = 0; i < j->slots.n; i++) {
        kiln_worker_process *w = kiln_job_worker(j, i);
        shift(&w->start_ns, gap, now);
        shift(&w->unit_ns, gap, now);
        shift(&w->end_ns, gap, now);
    }
}

kiln_status kiln_job_look_after(kiln_job *j, kiln_error *err)
{
    skip_gap(j);
    for (unsigned i = 0; i < j->slots.n; i++) {
        kiln_worker_process *w = kiln_job_worker(j, i);
        if (w->pid > 0 && !w->end_ns && is_late(w)) {
            w->hung = true;
            (void)kill(w->pid, SIGKILL);
            kiln_job_on_worker_exit(j, i);
        }
        if (w->pid > 0 && w->end_ns) KILN_TRY(reap_worker(j, i, err));
    }
    return KILN_OK;
}
