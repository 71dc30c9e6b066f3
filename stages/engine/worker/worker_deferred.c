/* Deferred work of units (kiln_worker_defer).
 *
 * Problem. A unit that draws on a GPU and then compresses and writes a file would keep the GPU idle
 * while it writes. Constraint. Answers go out in the order of the units, because the parent takes
 * the oldest unit for the one that a dead worker was computing. Layout. A thread does the deferred
 * work of one unit while the worker computes the next units:
 *
 *   worker    | unit 1  | unit 2  | unit 3  | unit 4 ...
 *   thread 1            | deferred 1  |     | deferred 3  |
 *   thread 2                      | deferred 2  |
 *   parent              begun 2   begun 3  result 1   begun 4 ...
 *
 * A unit says how many may be pending; if there would be one more, the worker waits for the oldest.
 * A thread has a kiln_worker of its own without runner, manifest and state, so deferred work cannot
 * use them. Threads are kept, because a new thread would have to start its OpenMP threads again.
 */
#include "stages/engine/worker/worker_deferred.h"

#include "base/memory.h"
#include "stages/engine/worker/worker_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct kiln_deferred_thread {
    pthread_t thread;
    int go, done; /* eventfds. The side that has read one owns the fields below */
    bool stop;
    kiln_worker worker;
    char name[256]; /* of the unit, for profilers */
    kiln_message reply;
    int memfd;
    kiln_status status;
    kiln_error error;
};

static void signal_to(int fd)
{
    const uint64_t one = 1;
    while (write(fd, &one, sizeof one) < 0 && errno == EINTR) continue;
}

static void wait_for(int fd)
{
    uint64_t n;
    while (read(fd, &n, sizeof n) < 0 && errno == EINTR) continue;
}

kiln_status kiln_deferred_run(kiln_worker *w, kiln_error *err)
{
    kiln_deferred_fn *const run = w->deferred_run;
    if (!run) return KILN_OK;
    const kiln_status st = run(w, w->deferred_context, err);
    kiln_deferred_drop(w);
    return st;
}

void kiln_deferred_drop(kiln_worker *w)
{
    if (w->deferred_run) w->deferred_drop(w->deferred_context);
    w->deferred_context = NULL;
    w->deferred_run = NULL;
}

/* ---- the thread ------------------------------------------------------------------------------ */
static void do_deferred(kiln_deferred_thread *t)
{
    kiln_worker *w = &t->worker;
    kiln_range_push(t->name);
    t->status = kiln_deferred_run(w, &t->error);
    if (t->status == KILN_OK)
        t->status = kiln_outputs_finish(&w->outputs, w->counters ? w->counters : "{}", &t->reply,
                                        &t->memfd, &t->error);
    kiln_outputs_clear(&w->outputs);
    kiln_range_pop();
}

static void *serve_deferred(void *context)
{
    kiln_deferred_thread *t = context;
    for (;;) {
        wait_for(t->go);
        if (t->stop) return NULL;
        do_deferred(t);
        signal_to(t->done);
    }
}

static void thread_free(kiln_deferred_thread *t)
{
    if (t->go >= 0) (void)close(t->go);
    if (t->done >= 0) (void)close(t->done);
    free(t);
}

static kiln_status thread_new(const kiln_worker *w, kiln_deferred_thread **out, kiln_error *err)
{
    kiln_deferred_thread *t;
    int failed = 0;
    KILN_TRY(KILN_ALLOC(&t, 1, "a worker's second thread", err));
    kiln_outputs_init(&t->worker.outputs, w->threads);
    t->go = eventfd(0, EFD_CLOEXEC);
    t->done = t->go < 0 ? -1 : eventfd(0, EFD_CLOEXEC);
    if (t->done < 0)
        failed = errno;
    else
        failed = pthread_create(&t->thread, NULL, serve_deferred, t);
    if (!failed) {
        *out = t;
        return KILN_OK;
    }
    thread_free(t);
    return kiln_fail(err, KILN_E_NOMEM, "cannot start a worker's second thread: %s",
                     strerror(failed));
}

/* ---- the worker's side ----------------------------------------------------------------------- */
kiln_status kiln_deferred_begin(kiln_worker *w, const kiln_message *reply, const char *name,
                                kiln_error *err)
{
    kiln_deferred_queue *const deferred = &w->deferred;
    if (deferred->n_idle == 0) {
        KILN_TRY(thread_new(w, &deferred->idle[0], err));
        deferred->n_idle = 1;
    }
    kiln_deferred_thread *const t = deferred->idle[--deferred->n_idle];
    const kiln_outputs empty = t->worker.outputs;
    free(t->worker.counters);
    t->worker = *w;
    t->worker.threads = t->worker.outputs.threads = w->deferred_threads;
    t->worker.runner = NULL;
    t->worker.manifest = NULL;
    t->worker.state = NULL;
    t->worker.deferred = (kiln_deferred_queue){0};
    w->outputs = empty;
    w->counters = NULL;
    w->deferred_run = NULL;
    w->deferred_context = NULL;
    (void)snprintf(t->name, sizeof t->name, "%s: deferred by %.200s", w->program->name, name);
    t->reply = *reply;
    t->memfd = -1;
    t->error = (kiln_error){0};
    deferred->pending[(deferred->first + deferred->n++) % KILN_DEFERRED_MAX] = t;
    signal_to(t->go);
    return KILN_OK;
}

unsigned kiln_deferred_pending(const kiln_worker *w) { return w->deferred.n; }

static kiln_deferred_thread *oldest(const kiln_worker *w)
{
    return w->deferred.pending[w->deferred.first];
}

int kiln_deferred_descriptor(const kiln_worker *w) { return oldest(w)->done; }

/* Waits for the oldest. Its answer stays valid until the next deferred work begins. */
static const kiln_deferred_thread *take_oldest(kiln_worker *w)
{
    kiln_deferred_queue *const deferred = &w->deferred;
    kiln_deferred_thread *const t = oldest(w);
    wait_for(t->done);
    deferred->first = (deferred->first + 1) % KILN_DEFERRED_MAX;
    deferred->n--;
    deferred->idle[deferred->n_idle++] = t;
    return t;
}

kiln_status kiln_deferred_end(kiln_worker *w, kiln_message *reply, int *memfd, uint64_t *begun_ns,
                              kiln_error *err)
{
    const kiln_deferred_thread *t = take_oldest(w);
    *reply = t->reply;
    *memfd = t->memfd;
    *begun_ns = t->worker.begun_ns;
    if (t->status != KILN_OK) *err = t->error;
    return t->status;
}

static void thread_end(kiln_deferred_thread *t)
{
    t->stop = true;
    signal_to(t->go);
    (void)pthread_join(t->thread, NULL); /* cannot fail: it is ours and was not joined */
    kiln_outputs_release(&t->worker.outputs);
    free(t->worker.counters);
    thread_free(t);
}

void kiln_deferred_free(kiln_worker *w)
{
    kiln_deferred_drop(w);
    while (kiln_deferred_pending(w)) {
        const int memfd = take_oldest(w)->memfd;
        if (memfd >= 0) (void)close(memfd);
    }
    while (w->deferred.n_idle > 0) thread_end(w->deferred.idle[--w->deferred.n_idle]);
}
