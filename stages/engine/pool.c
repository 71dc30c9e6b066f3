/* The conversation with the workers of one list of units.
 *
 * A slot is empty, starting (a process that has not said hello), ready, or ending (its socket is closed, the process is still
 * there). Nothing here waits for one slot alone: hellos, results and deaths are heard as they come, so a GPU that takes its time
 * to open or to end holds up nobody. Each ready worker has one unit in work and, while more wait than there are workers, one
 * prefetched; at the end of the list nobody hoards what another could begin.
 *
 * What fails is judged by containment.h. A worker that failed is replaced, because its process or its context may be damaged; a
 * unit that it had not begun goes back unharmed. The unit that counts is the oldest that it had: results are sent before the next
 * is begun, and are heard before the death. */
#include "stages/engine/job.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    EARLY_MAX = 3,      /* processes in a row that end before they have done anything: the slot is of no use */
    START_MS = 300000,  /* to open a device; a driver that takes longer hangs */
    ENDING_POLL_MS = 5, /* while a process is to end */
    IDLE_POLL_MS = 200,
};
static const uint64_t MS = 1000000;

static kiln_worker_process *worker(const kiln_job *j, unsigned slot) { return &j->run->workers[slot]; }
static bool is_there(const kiln_worker_process *w) { return w->pid > 0; }

static unsigned count_there(const kiln_job *j)
{
    unsigned n = 0;
    for (unsigned i = 0; i < j->slots.n; i++) n += is_there(worker(j, i));
    return n;
}

/* How many may work at a time: no more than memory has room for, nor than there are units. */
static unsigned count_wanted(const kiln_job *j)
{
    const unsigned open = kiln_slots_open(&j->slots);
    const unsigned most = j->plan.n_workers < open ? j->plan.n_workers : open;
    return j->n_open < most ? (unsigned)j->n_open : most;
}

/* ---- giving up -------------------------------------------------------------------------------------------------------- */
static kiln_status remember(kiln_job *j, uint64_t item, const char *device, const char *reason, kiln_error *err)
{
    kiln_failure *f = NULL;
    for (uint64_t i = 0; i < j->n_failures && !f; i++)
        if (j->failures[i].item == item) f = &j->failures[i];
    if (!f && j->n_failures == j->failures_room) {
        kiln_failure *more;
        const uint64_t room = j->failures_room ? 2 * j->failures_room : 8;
        KILN_TRY(KILN_ALLOC(&more, room, "what failed", err));
        if (j->n_failures) memcpy(more, j->failures, j->n_failures * sizeof *more);
        free(j->failures);
        j->failures = more;
        j->failures_room = room;
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
    while (f->item != item) f++; /* a unit is given up after it failed */
    KILN_TRY(kiln_run_quarantine(j->run, u, t, f->device, f->reason, err));
    if (!u->optional || u->was_cached)
        return kiln_fail(err, KILN_E_PARTIAL,
                         "'%s' failed %u times, the last on %s: %.600s; nothing goes on without it; finished units are kept, run "
                         "the same command to try it again",
                         u->name, t->attempts, f->device, f->reason);
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

/* ---- workers that are no use any more ----------------------------------------------------------------------------------- */
/* It is to end; what it has is free for others. */
static void dismiss(kiln_job *j, unsigned slot)
{
    kiln_worker_process *w = worker(j, slot);
    for (unsigned i = 0; i < w->n_flight; i++) kiln_schedule_return(j->schedule, w->flight[i]);
    w->n_flight = 0;
    kiln_worker_dismiss(w);
}

/* The slot takes nothing any more. Fails when it was the last: with the reason alone where nothing ever computed. */
static kiln_status retire(kiln_job *j, unsigned slot, const kiln_error *why, kiln_error *err)
{
    kiln_run *r = j->run;
    kiln_worker_process *w = worker(j, slot);
    char name[192];
    if (w->retired) return KILN_OK;
    dismiss(j, slot);
    w->retired = j->slots.closed[slot] = true;
    if (kiln_slots_open(&j->slots) > 0) {
        kiln_warn("%s is used no more: %s", kiln_worker_name(r, w, name, sizeof name), why->msg);
        return give_up_stranded(j, err);
    }
    if (!r->worker_greeted) return kiln_fail(err, why->status, "%s", why->msg);
    (void)kiln_fail(err, KILN_E_DEVICE, "no device is left to compute on, %s was the last: %.700s",
                    kiln_worker_name(r, w, name, sizeof name), why->msg);
    if (w->device->kind == KILN_DEVICE_CUDA) kiln_devices_advise(err);
    return KILN_E_DEVICE;
}

/* Of several devices one that fails again and again is left out. Where there is only the CPU there is nothing better. */
static bool may_strike_out(const kiln_job *j) { return !j->slots.one_device; }

static void withdraw_strikes(kiln_job *j, kiln_hash unit)
{
    for (unsigned i = 0; i < j->slots.n; i++) kiln_strikes_withdraw(&worker(j, i)->strikes, unit);
}

/* ---- a unit failed ------------------------------------------------------------------------------------------------------ */
static kiln_status judge(kiln_job *j, unsigned slot, uint64_t item, kiln_error *why, kiln_error *err)
{
    kiln_worker_process *w = worker(j, slot);
    const kiln_unit *u = kiln_job_unit(j, item);
    char name[192];
    bool struck_out = false;
    if (w->device->kind == KILN_DEVICE_CUDA) kiln_devices_advise(why);
    kiln_worker_name(j->run, w, name, sizeof name);
    KILN_TRY(remember(j, item, name, why->msg, err));
    const bool again = kiln_schedule_fail(j->schedule, item, slot);
    if (!again && kiln_schedule_trial(j->schedule, item)->elsewhere)
        withdraw_strikes(j, u->key);
    else
        struck_out = kiln_strikes_add(&w->strikes, u->key) && may_strike_out(j);
    if (again) {
        j->run->units_retried++;
        kiln_warn("'%s' failed on %s and is tried again: %s", u->name, name, why->msg);
    } else {
        KILN_TRY(give_up(j, item, err));
    }
    if (!struck_out) return KILN_OK;
    kiln_note(why, "%d different units failed on it, the last '%s'", KILN_STRIKES_MAX, u->name);
    return retire(j, slot, why, err);
}

static kiln_status hear_failure(kiln_job *j, unsigned slot, uint64_t item, const kiln_message *m, kiln_error *err)
{
    kiln_error why = {0};
    (void)kiln_fail(&why, (kiln_status)m->status, "%s", m->text);
    if (!kiln_failure_is_contained(why.status)) {
        (void)kiln_fail(err, why.status, "%s", why.msg);
        kiln_note(err, "%s", kiln_job_unit(j, item)->name);
        return why.status;
    }
    dismiss(j, slot);               /* it ends by itself; the failed unit is not in flight any more */
    if (m->flags & KILN_MSG_LOST) { /* no fault of the unit's */
        kiln_schedule_return(j->schedule, item);
        return retire(j, slot, &why, err);
    }
    return judge(j, slot, item, &why, err);
}

/* ---- a worker died ------------------------------------------------------------------------------------------------------ */
/* Its socket is closed, or it hangs and is killed. The unit that it computed is judged when the process has ended and tells why. */
static void mourn(kiln_job *j, unsigned slot)
{
    kiln_worker_process *w = worker(j, slot);
    while (w->n_flight > 1) kiln_schedule_return(j->schedule, w->flight[--w->n_flight]);
    if (w->n_flight) w->busy_ns += kiln_now_ns() - w->unit_ns;
    w->died = true;
    kiln_worker_dismiss(w);
}

/* Buries a process that was to end, if it has. */
static kiln_status bury(kiln_job *j, unsigned slot, kiln_error *err)
{
    kiln_worker_process *w = worker(j, slot);
    const bool had_unit = w->n_flight > 0;
    const uint64_t item = w->flight[0];
    kiln_error why = {0};
    int status;
    if (!kiln_worker_ended(w, &status) || (!w->died && status != KILN_WORKER_UNDEAD)) return KILN_OK;
    const kiln_status st = kiln_worker_death(w, status, &why);
    if (st == KILN_E_IO) return kiln_fail(err, st, "%s", why.msg);
    if (had_unit) {
        kiln_error of_unit = why;
        (void)kiln_fail(&of_unit, st, "%.700s while it computed '%s'", why.msg, kiln_job_unit(j, item)->name);
        KILN_TRY(judge(j, slot, item, &of_unit, err));
    }
    if (status == KILN_WORKER_UNDEAD) return retire(j, slot, &why, err);
    if (had_unit || ++w->n_early < EARLY_MAX) return KILN_OK;
    kiln_error of_slot = why;
    (void)kiln_fail(&of_slot, st, "%.700s before it %s, %d times", why.msg, w->greeted ? "had done anything" : "was ready",
                    EARLY_MAX);
    return retire(j, slot, &of_slot, err);
}

static void kill_hung(kiln_job *j, unsigned slot)
{
    kiln_worker_process *w = worker(j, slot);
    const uint64_t now = kiln_now_ns(), deadline = 1000 * MS * kiln_engine_values.deadline_s;
    const bool late = w->greeted ? w->n_flight && deadline && now - w->unit_ns > deadline : now - w->start_ns > START_MS * MS;
    if (!late) return;
    w->hung = true;
    (void)kill(w->pid, SIGKILL);
    mourn(j, slot);
}

static kiln_status look_after(kiln_job *j, kiln_error *err)
{
    for (unsigned i = 0; i < j->slots.n; i++) {
        kiln_worker_process *w = worker(j, i);
        if (is_there(w) && !w->end_ns) kill_hung(j, i);
        if (is_there(w) && w->end_ns) KILN_TRY(bury(j, i, err));
    }
    return KILN_OK;
}

/* ---- workers start ------------------------------------------------------------------------------------------------------ */
static kiln_status start(kiln_job *j, unsigned slot, kiln_error *err)
{
    kiln_run *r = j->run;
    if (slot >= r->n_workers) r->n_workers = slot + 1;
    return kiln_worker_start(r, kiln_run_slot_device(r, slot), worker(j, slot), err);
}

/* Ends one that idles; false: none does. */
static bool make_room(kiln_job *j)
{
    for (unsigned i = 0; i < j->slots.n; i++) {
        const kiln_worker_process *w = worker(j, i);
        if (!w->ready || w->n_flight) continue;
        dismiss(j, i);
        return true;
    }
    return false;
}

/* A unit that came back may need a slot that is empty; more start only while there is work and memory for them. */
static kiln_status start_missing(kiln_job *j, kiln_error *err)
{
    bool there[KILN_SLOTS_MAX] = {false};
    unsigned n = count_there(j);
    for (unsigned i = 0; i < j->slots.n; i++) there[i] = is_there(worker(j, i));
    for (unsigned i = 0; i < j->slots.n; i++) {
        if (there[i] || !kiln_schedule_needs(j->schedule, i, there)) continue;
        if (n >= j->plan.n_workers) {
            (void)make_room(j); /* else when one has ended */
            return KILN_OK;
        }
        KILN_TRY(start(j, i, err));
        there[i] = true;
        n++;
    }
    for (unsigned i = 0; i < j->slots.n && n < count_wanted(j); i++) {
        if (there[i] || j->slots.closed[i]) continue;
        KILN_TRY(start(j, i, err));
        n++;
    }
    return KILN_OK;
}

/* ---- units go out ------------------------------------------------------------------------------------------------------- */
/* All threads are shared among those that have work; a unit that is alone has them all. */
static uint32_t threads_of(const kiln_job *j, unsigned slot)
{
    unsigned n = count_there(j);
    if (n > j->n_open) n = (unsigned)j->n_open;
    if (n == 0) n = 1;
    const unsigned share = j->n_threads / n + (slot < j->n_threads % n);
    return share ? share : 1;
}

static kiln_status send_unit(kiln_job *j, unsigned slot, uint64_t item, kiln_error *err)
{
    kiln_worker_process *w = worker(j, slot);
    const kiln_unit *u = kiln_job_unit(j, item);
    kiln_message m = {.version = KILN_PROTOCOL_VERSION,
                      .kind = KILN_MSG_UNIT,
                      .unit = j->due[item],
                      .bytes = u->payload_bytes,
                      .ram = j->plan.unit,
                      .threads = threads_of(j, slot),
                      .attempt = kiln_schedule_trial(j->schedule, item)->attempts + 1u,
                      .slot = slot};
    /* a unit that is compared must come back in the form in which it was stored */
    if (kiln_job_in_memory(j, u) && !u->was_cached) m.flags = KILN_MSG_VOLATILE;
    memcpy(m.text, u->name, sizeof u->name);
    int memfd = -1;
    kiln_status st = KILN_OK;
    if (u->payload_bytes) {
        KILN_TRY(kiln_memfd_new(&memfd, err));
        st = kiln_memfd_append(memfd, u->payload, u->payload_bytes, err);
    }
    if (st == KILN_OK) st = kiln_message_send(w->fd, &m, memfd, err);
    if (memfd >= 0) (void)close(memfd);
    if (st == KILN_E_TERMINATED) { /* hear() first takes the results that it sent before it died */
        kiln_schedule_return(j->schedule, item);
        return KILN_OK;
    }
    if (st != KILN_OK) return st;
    if (w->n_flight == 0) w->unit_ns = kiln_now_ns();
    w->flight[w->n_flight++] = item;
    return KILN_OK;
}

/* Every worker gets one unit before any gets a second: few units are shared out too. */
static kiln_status hand_out(kiln_job *j, kiln_error *err)
{
    uint64_t item;
    for (unsigned depth = 1; depth <= j->plan.in_flight; depth++)
        for (unsigned i = 0; i < j->slots.n; i++) {
            const kiln_worker_process *w = worker(j, i);
            if (!w->ready || w->n_flight >= depth) continue;
            if (depth > 1 && kiln_schedule_waiting(j->schedule) < count_there(j)) return KILN_OK;
            if (kiln_schedule_next(j->schedule, i, depth == 1, &item)) KILN_TRY(send_unit(j, i, item, err));
        }
    return KILN_OK;
}

/* ---- answers come in ---------------------------------------------------------------------------------------------------- */
static kiln_status hear_greeting(kiln_job *j, unsigned slot, const kiln_message *m, kiln_error *err)
{
    kiln_worker_process *w = worker(j, slot);
    kiln_error why = {0};
    const kiln_status st = kiln_worker_greet(w, m, &why);
    if (st == KILN_OK) {
        j->run->worker_greeted = true;
        return KILN_OK;
    }
    if (kiln_failure_is_contained(st) && m->kind == KILN_MSG_FAILED) return retire(j, slot, &why, err);
    return kiln_fail(err, st, "%s", why.msg);
}

static kiln_status hear_answer(kiln_job *j, unsigned slot, const kiln_message *m, int *memfd, kiln_error *err)
{
    kiln_worker_process *w = worker(j, slot);
    const uint64_t item = w->flight[0], now = kiln_now_ns();
    if (w->n_flight == 0 || m->unit != j->due[item] || (m->kind != KILN_MSG_RESULT && m->kind != KILN_MSG_FAILED))
        return kiln_fail(err, KILN_E_BUG, "the worker answered with message %u for unit %llu, which it did not have", m->kind,
                         (unsigned long long)m->unit);
    w->n_flight--;
    memmove(w->flight, w->flight + 1, w->n_flight * sizeof *w->flight);
    w->use = m->use;
    w->busy_ns += m->kind == KILN_MSG_RESULT ? m->wall_ns : now - w->unit_ns;
    w->unit_ns = now;
    if (m->kind == KILN_MSG_FAILED) return hear_failure(j, slot, item, m, err);
    const int fd = *memfd;
    *memfd = -1;
    w->n_units++;
    w->n_early = 0;
    j->n_open--;
    kiln_progress_add(&j->progress, 1);
    return kiln_job_take(j, kiln_job_unit(j, item), m, fd, err);
}

static kiln_status hear(kiln_job *j, unsigned slot, kiln_error *err)
{
    kiln_worker_process *w = worker(j, slot);
    kiln_message m;
    int memfd;
    bool closed;
    KILN_TRY(kiln_message_receive(w->fd, &m, &memfd, &closed, err));
    if (closed) {
        mourn(j, slot);
        return KILN_OK;
    }
    const kiln_status st = w->greeted ? hear_answer(j, slot, &m, &memfd, err) : hear_greeting(j, slot, &m, err);
    if (memfd >= 0) (void)close(memfd);
    return st;
}

static kiln_status hear_all(kiln_job *j, kiln_error *err)
{
    struct pollfd fds[KILN_SLOTS_MAX];
    int most_ms = IDLE_POLL_MS;
    for (unsigned i = 0; i < j->slots.n; i++) {
        const kiln_worker_process *w = worker(j, i);
        fds[i] = (struct pollfd){.fd = is_there(w) ? w->fd : -1, .events = POLLIN};
        if (is_there(w) && w->end_ns) most_ms = ENDING_POLL_MS;
    }
    KILN_TRY(kiln_interrupt_wait(fds, j->slots.n, most_ms, err));
    for (unsigned i = 0; i < j->slots.n; i++) /* one may have been dismissed for what another said */
        if (fds[i].revents && worker(j, i)->fd == fds[i].fd) KILN_TRY(hear(j, i, err));
    return KILN_OK;
}

kiln_status kiln_job_converse(kiln_job *j, kiln_error *err)
{
    while (j->n_open > 0) {
        KILN_TRY(start_missing(j, err));
        KILN_TRY(hand_out(j, err));
        if (kiln_job_batch_is_ripe(j)) KILN_TRY(kiln_job_store(j, err));
        KILN_TRY(hear_all(j, err));
        KILN_TRY(look_after(j, err));
        kiln_ram_look(j->run, false);
        kiln_progress_add(&j->progress, 0);
    }
    return KILN_OK;
}
