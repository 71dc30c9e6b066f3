/* The conversation with the workers of one list of units.
 *
 * A slot is empty, starting (its process has not said HELLO), ready, or ending (its socket is
 * closed and the process still exists). Nothing here waits for a single slot: messages and deaths
 * are handled as they come, so a GPU that is slow to open or to end does not delay the others. A
 * ready worker has one unit in work, and the units whose deferred work runs. It also has one unit
 * waiting while more units wait than there are workers; near the end of the list it has none,
 * because an idle worker could compute it. */
#include "stages/engine/parent/pool.h"

#include "base/minmax.h"
#include "stages/engine/interrupt.h"
#include "stages/engine/memory/memfd.h"
#include "stages/engine/parent/arrivals.h"
#include "stages/engine/parent/worker_failures.h"
#include "stages/engine/parent/run_memory.h"
#include "stages/engine/parent/worker_rest.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

enum {
    ENDING_POLL_MS = 5, /* while a process is to end */
    IDLE_POLL_MS = 200,
    /* processes on the CPU that start at a time, and that a list starts whatever its units take */
    STARTING_MOST = 16,
};

static bool is_there(const kiln_worker_process *w) { return w->pid > 0; }

static unsigned count_there(const kiln_job *j)
{
    unsigned n = 0;
    for (unsigned i = 0; i < j->slots.n; i++) n += is_there(kiln_job_worker(j, i));
    return n;
}

/* Returns how many workers may work at a time: memory must have room for them, and each must have a
 * unit. */
static unsigned count_wanted(const kiln_job *j)
{
    const unsigned open = kiln_slots_open(&j->slots);
    const unsigned most = j->plan.n_workers < open ? j->plan.n_workers : open;
    return j->n_open < most ? (unsigned)j->n_open : most;
}

/* Returns the number of workers among which units and threads are shared: those that are there, or
 * those that are about to be. */
static unsigned count_sharing(const kiln_job *j)
{
    const unsigned there = count_there(j), wanted = count_wanted(j);
    return there > wanted ? there : wanted;
}

/* ---- workers start --------------------------------------------------------------------------- */
static kiln_status start(kiln_job *j, unsigned slot, kiln_error *err)
{
    kiln_run *r = j->run;
    if (slot >= j->home->n_workers) j->home->n_workers = slot + 1;
    return kiln_worker_start(r, kiln_home_device(j->home, slot), j->plan.unit,
                             kiln_job_worker(j, slot), err);
}

/* Asks one idle worker to end. Returns false if there is none. */
static bool end_idle_worker(kiln_job *j)
{
    for (unsigned i = 0; i < j->slots.n; i++) {
        const kiln_worker_process *w = kiln_job_worker(j, i);
        if (!w->ready || w->n_flight) continue;
        kiln_job_dismiss(j, i);
        return true;
    }
    return false;
}

/* Says whether another worker on the CPU has to wait, or is of no use. Many that start at once keep
 * the first ones from their units. Where those that are there will have done the list before
 * another has started, by what units and the quickest start took so far, it would only cost time: a
 * worker takes some 10 ms of the processor, and a machine may have threads for hundreds. */
static bool is_enough(const kiln_job *j)
{
    unsigned n_there = 0, n_starting = 0;
    uint64_t start_ns = UINT64_MAX;
    for (unsigned i = 0; i < j->slots.n; i++) {
        const kiln_worker_process *w = kiln_job_worker(j, i);
        n_there += is_there(w);
        n_starting += is_there(w) && !w->greeted;
        if (w->open_ns) start_ns = kiln_min_u64(start_ns, w->open_ns);
    }
    if (!j->slots.one_device || n_there < STARTING_MOST) return false;
    if (n_starting >= STARTING_MOST) return true;
    return j->n_answered &&
           kiln_schedule_waiting(j->schedule) * (j->answered_ns / j->n_answered) / n_there <
               start_ns;
}

/* Starts workers in empty slots: first those that a unit that came back needs, then others while
 * there is work and memory for them.
 */
static kiln_status start_missing(kiln_job *j, kiln_error *err)
{
    bool there[KILN_SLOTS_MAX] = {false};
    unsigned n = count_there(j);
    for (unsigned i = 0; i < j->slots.n; i++) there[i] = is_there(kiln_job_worker(j, i));
    for (unsigned i = 0; i < j->slots.n; i++) {
        if (there[i] || !kiln_schedule_needs(j->schedule, i, there)) continue;
        if (n >= j->plan.n_workers) {
            (void)end_idle_worker(j); /* else when one has ended */
            return KILN_OK;
        }
        KILN_TRY(start(j, i, err));
        there[i] = true;
        n++;
    }
    for (unsigned i = 0; i < j->slots.n && n < count_wanted(j) && !is_enough(j); i++) {
        if (there[i] || j->slots.closed[i]) continue;
        KILN_TRY(start(j, i, err));
        n++;
    }
    return KILN_OK;
}

/* ---- units go out ---------------------------------------------------------------------------- */
/* Returns the threads of a worker. All threads are shared among the workers that have work; a
 * single one has all of them if memory has room. */
static uint32_t threads_of(const kiln_job *j, unsigned slot)
{
    unsigned n = count_sharing(j);
    if (n > j->n_open) n = (unsigned)j->n_open;
    if (n == 0) n = 1;
    const unsigned share = j->n_threads / n + (slot < j->n_threads % n);
    return share == 0 ? 1 : share < j->plan.threads_each ? share : j->plan.threads_each;
}

static kiln_status send_unit(kiln_job *j, unsigned slot, uint64_t item, kiln_error *err)
{
    kiln_worker_process *w = kiln_job_worker(j, slot);
    const kiln_unit *u = kiln_job_unit(j, item);
    kiln_message m = {.version = KILN_PROTOCOL_VERSION,
                      .kind = KILN_MSG_UNIT,
                      .unit = j->due[item],
                      .bytes = u->payload_bytes + u->shared_payload_bytes,
                      .ram = j->plan.unit,
                      .threads = threads_of(j, slot),
                      .attempt = kiln_schedule_trial(j->schedule, item)->attempts + 1u,
                      .slot = slot};
    /* a unit that is compared must come back in the form in which it was stored */
    if (kiln_job_in_memory(j, u) && !u->was_cached) m.flags = KILN_MSG_VOLATILE;
    if (kiln_schedule_is_suspect(j->schedule, item)) m.flags |= KILN_MSG_ALONE;
    memcpy(m.text, u->name, sizeof u->name);
    int memfd = -1;
    kiln_status st = KILN_OK;
    if (m.bytes) {
        KILN_TRY(kiln_memfd_new(&memfd, err));
        st = kiln_memfd_write(memfd, 0, u->payload_of ? u->payload_of(u->payload) : u->payload,
                              u->payload_bytes, err);
        if (st == KILN_OK)
            st = kiln_memfd_write(memfd, u->payload_bytes, u->shared_payload,
                                  u->shared_payload_bytes, err);
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

/* Every worker gets one unit before any gets a second: few units are shared out too. More go to
 * those alone that have begun one beside deferred work. */
static kiln_status hand_out(kiln_job *j, kiln_error *err)
{
    uint64_t item;
    for (unsigned depth = 1; depth <= j->plan.in_flight + KILN_DEFERRED_MAX; depth++)
        for (unsigned i = 0; i < j->slots.n; i++) {
            const kiln_worker_process *w = kiln_job_worker(j, i);
            if (!w->ready || w->n_flight >= depth || depth > j->plan.in_flight + w->n_beside)
                continue;
            if (depth > 1 && kiln_schedule_waiting(j->schedule) < count_sharing(j)) return KILN_OK;
            if (kiln_schedule_next(j->schedule, i, depth == 1, &item))
                KILN_TRY(send_unit(j, i, item, err));
        }
    return KILN_OK;
}

/* ---- answers come in ------------------------------------------------------------------------- */
static kiln_status hear_greeting(kiln_job *j, unsigned slot, const kiln_message *m, kiln_error *err)
{
    kiln_worker_process *w = kiln_job_worker(j, slot);
    kiln_error why = {0};
    const kiln_status st = kiln_worker_greet(w, m, &why);
    if (st == KILN_OK) {
        j->home->greeted = true;
        return KILN_OK;
    }
    if (kiln_failure_is_contained(st) && w->handed_over) {
        kiln_chat("worker %d cannot continue with its device, so a new process starts: %s",
                  (int)w->pid, why.msg);
        kiln_job_dismiss(j, slot);
        return KILN_OK;
    }
    if (kiln_failure_is_contained(st) && m->kind == KILN_MSG_FAILED)
        return kiln_job_retire(j, slot, &why, err);
    return kiln_fail(err, st, "%s", why.msg);
}

static kiln_status hear_answer(kiln_job *j, unsigned slot, const kiln_message *m, int *memfd,
                               kiln_error *err)
{
    kiln_worker_process *w = kiln_job_worker(j, slot);
    const uint64_t item = w->flight[0], now = kiln_now_ns();
    if (m->kind == KILN_MSG_BEGUN && w->n_beside + 1 < w->n_flight &&
        m->unit == j->due[w->flight[w->n_beside + 1]]) {
        w->n_beside++;
        w->unit_ns = now; /* the deadline now counts for this unit */
        return KILN_OK;
    }
    if (w->n_flight == 0 || m->unit != j->due[item] ||
        (m->kind != KILN_MSG_RESULT && m->kind != KILN_MSG_FAILED))
        return kiln_fail(err, KILN_E_BUG,
                         "the worker answered with message %u for unit %llu, which it did not have",
                         m->kind, (unsigned long long)m->unit);
    if (w->n_beside) w->n_beside--;
    w->n_flight--;
    memmove(w->flight, w->flight + 1, w->n_flight * sizeof *w->flight);
    w->use = m->use;
    w->busy_ns += m->kind == KILN_MSG_RESULT ? m->wall_ns : now - w->unit_ns;
    w->unit_ns = now;
    j->n_answered++;
    j->answered_ns += m->wall_ns;
    if (m->kind == KILN_MSG_FAILED) return kiln_job_fail(j, slot, item, m, err);
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
    kiln_worker_process *w = kiln_job_worker(j, slot);
    kiln_message m;
    int memfd;
    bool closed;
    KILN_TRY(kiln_message_receive(w->fd, &m, &memfd, &closed, err));
    if (closed) {
        kiln_job_on_worker_exit(j, slot);
        return KILN_OK;
    }
    const kiln_status st =
        w->greeted ? hear_answer(j, slot, &m, &memfd, err) : hear_greeting(j, slot, &m, err);
    if (memfd >= 0) (void)close(memfd);
    return st;
}

/* Fills a descriptor for each slot of the list. */
static void listen_to(const kiln_job *j, struct pollfd *fds, int *most_ms)
{
    for (unsigned i = 0; i < j->slots.n; i++) {
        const kiln_worker_process *w = kiln_job_worker(j, i);
        fds[i] = (struct pollfd){.fd = is_there(w) ? w->fd : -1, .events = POLLIN};
        if (is_there(w) && w->end_ns) *most_ms = ENDING_POLL_MS;
    }
}

static kiln_status hear_ready(kiln_job *j, const struct pollfd *fds, kiln_error *err)
{
    /* one may have been dismissed for what another said */
    for (unsigned i = 0; i < j->slots.n; i++)
        if (fds[i].revents && kiln_job_worker(j, i)->fd == fds[i].fd) KILN_TRY(hear(j, i, err));
    return KILN_OK;
}

/* beside: NULL, or the list that is open beside this one. */
static kiln_status hear_all(kiln_job *j, kiln_job *beside, kiln_error *err)
{
    struct pollfd fds[2 * KILN_SLOTS_MAX + 2], *const of_beside = fds + j->slots.n + 2;
    int most_ms = IDLE_POLL_MS;
    listen_to(j, fds, &most_ms);
    if (beside) listen_to(beside, of_beside, &most_ms);
    fds[j->slots.n] = (struct pollfd){.fd = kiln_rest_descriptor(), .events = POLLIN};
    fds[j->slots.n + 1] =
        (struct pollfd){.fd = j->take_waits ? j->run->lists.taker->fd : -1, .events = POLLOUT};
    KILN_TRY(
        kiln_interrupt_wait(fds, j->slots.n + 2 + (beside ? beside->slots.n : 0), most_ms, err));
    if (fds[j->slots.n].revents) kiln_rest_start_expected(j->run);
    if (beside) KILN_TRY(hear_ready(beside, of_beside, err));
    return hear_ready(j, fds, err);
}

/* ---- results that are taken in order --------------------------------------------------------- */
/* A volatile result is there as soon as its unit is done. */
static kiln_status take_ready(kiln_job *j, kiln_error *err)
{
    const kiln_unit_taker *t = j->run->lists.taker;
    if (!t) return KILN_OK;
    while (j->n_ready < j->n_due && kiln_job_unit(j, j->n_ready)->volatile_data) j->n_ready++;
    j->take_waits = false;
    KILN_TRY(t->take(t->context, j->n_ready, &j->n_taken, &j->take_waits, err));
    kiln_schedule_limit(j->schedule, j->n_taken + t->window);
    return KILN_OK;
}

static bool is_open(const kiln_job *j)
{
    return j->n_open > 0 || (j->run->lists.taker && j->n_taken < j->n_due);
}

static kiln_status offer(kiln_job *j, kiln_error *err)
{
    KILN_TRY(start_missing(j, err));
    kiln_rest_begin_expected(j->run);
    KILN_TRY(take_ready(j, err));
    KILN_TRY(hand_out(j, err));
    return kiln_job_store_ripe(j, err);
}

/* Workers that were started ahead of their list (kiln_run_open_ahead) have their time for HELLO
 * from now on: nobody listened. */
static void begin(kiln_job *j)
{
    j->look_ns = kiln_now_ns();
    for (unsigned i = 0; i < j->slots.n; i++) {
        kiln_worker_process *w = kiln_job_worker(j, i);
        if (is_there(w) && !w->greeted) w->start_ns = j->look_ns;
    }
}

kiln_status kiln_job_converse(kiln_job *j, kiln_error *err)
{
    kiln_job *const beside = j->run->lists.beside;
    begin(j);
    if (beside) begin(beside);
    while (is_open(j)) {
        if (beside) KILN_TRY(offer(beside, err));
        KILN_TRY(offer(j, err));
        KILN_TRY(hear_all(j, beside, err));
        if (beside) KILN_TRY(kiln_job_look_after(beside, err));
        KILN_TRY(kiln_job_look_after(j, err));
        kiln_run_watch_ram(j->run);
        kiln_progress_add(&j->progress, 0);
    }
    return KILN_OK;
}
