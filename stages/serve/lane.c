/* lane -- see the header. */
#include "stages/serve/lane.h"

#include "base/memory.h"
#include "base/quote.h"

#include <stdio.h>
#include <string.h>

/* ---- answers that are kept ------------------------------------------------------------------- */
static kiln_answer *find_kept_answer(kiln_lane *l, const char *key)
{
    for (int i = 0; i < KILN_LANE_KEEPS; i++) {
        kiln_kept_answer *k = &l->kept[i];
        if (strcmp(k->key, key) != 0 || (k->version && k->version != l->state.version)) continue;
        k->used = ++l->clock;
        return kiln_answer_use(k->answer);
    }
    return NULL;
}

static void drop_kept(kiln_kept_answer *k)
{
    kiln_answer_drop(k->answer);
    *k = (kiln_kept_answer){.answer = NULL};
}

/* The one that was used longest ago: of those that are filled, or of all, where a free one comes
 * first. */
static kiln_kept_answer *oldest(kiln_lane *l, bool filled)
{
    kiln_kept_answer *old = NULL;
    for (int i = 0; i < KILN_LANE_KEEPS; i++) {
        kiln_kept_answer *k = &l->kept[i];
        if ((k->answer || !filled) && (!old || k->used < old->used)) old = k;
    }
    return old;
}

static uint64_t kept_bytes(const kiln_lane *l)
{
    uint64_t sum = 0;
    for (int i = 0; i < KILN_LANE_KEEPS; i++)
        sum += l->kept[i].answer ? l->kept[i].answer->reply.body.capacity : 0;
    return sum;
}

static void keep(kiln_lane *l, const char *key, kiln_answer *a)
{
    if (a->reply.body.capacity > KILN_LANE_KEEPS_BYTES / 2) return;
    for (int i = 0; i < KILN_LANE_KEEPS; i++)
        if (strcmp(l->kept[i].key, key) == 0 ||
            (l->kept[i].version && l->kept[i].version != l->state.version))
            drop_kept(&l->kept[i]);
    while (kept_bytes(l) + a->reply.body.capacity > KILN_LANE_KEEPS_BYTES)
        drop_kept(oldest(l, true));
    kiln_kept_answer *k = oldest(l, false);
    drop_kept(k);
    (void)snprintf(k->key, sizeof k->key, "%s", key);
    k->version = a->reply.immutable ? 0 : l->state.version;
    k->used = ++l->clock;
    k->answer = kiln_answer_use(a);
}

/* ---- one answer ------------------------------------------------------------------------------ */
static unsigned http_status(kiln_status st)
{
    switch (st) {
    case KILN_E_STALE:
        return 404;
    case KILN_E_BUSY:
    case KILN_E_NOMEM:
        return 503;
    default:
        return 500;
    }
}

static kiln_answer *answer_failure(kiln_lane *l, kiln_status st, const kiln_error *why)
{
    char text[sizeof why->msg];
    kiln_answer *a = NULL;
    kiln_quote(text, sizeof text, why->msg);
    return kiln_answer_text(l->pool, http_status(st), text, &a, NULL) == KILN_OK ? a : NULL;
}

/* Inside the transaction. */
static kiln_status make_job_answer(kiln_lane *l, const kiln_serve_job *job, const char *key,
                                   kiln_answer **out, kiln_error *err)
{
    kiln_request q = {.sh_degree = job->sh_degree, .threads = l->threads};
    kiln_reply reply = {.status = 200};
    (void)kiln_path_matches(job->route->pattern, job->path, &q.path); /* it was found by it */
    const kiln_status st = job->route->make(&l->state, &q, &reply, err);
    if (st != KILN_OK) {
        kiln_buffer_release(&reply.body);
        return st;
    }
    KILN_TRY(kiln_answer_make(l->pool, &reply, out, err));
    keep(l, key, *out);
    /* a report or a list of cameras leaves tens of megabytes free, and the next one may come in an
     * hour */
    kiln_memory_trim();
    return KILN_OK;
}

static kiln_answer *answer_job(kiln_lane *l, const kiln_serve_job *job)
{
    char key[KILN_TARGET_MAX + 16];
    kiln_error err = {0};
    kiln_answer *a = NULL;
    (void)snprintf(key, sizeof key, "%s?%u", job->path, job->sh_degree);
    kiln_status st = kiln_bake_state_enter(&l->state, &err);
    if (st == KILN_OK) {
        a = find_kept_answer(l, key);
        if (!a) st = make_job_answer(l, job, key, &a, &err);
        kiln_bake_state_leave(&l->state);
    }
    if (st == KILN_OK) return a;
    kiln_bake_state_explain(&l->state, &err);
    return answer_failure(l, st, &err);
}

/* ---- the thread ------------------------------------------------------------------------------ */
/* Waits for the next job. NULL: the lane stops and nothing waits any more. */
static kiln_serve_job *next_job(kiln_lane *l, bool *stops)
{
    (void)pthread_mutex_lock(&l->lock);
    while (!l->first && !l->stops) (void)pthread_cond_wait(&l->wake, &l->lock);
    kiln_serve_job *job = l->first;
    if (job) {
        l->first = job->next;
        if (!l->first) l->last = NULL;
        l->waiting--;
    }
    *stops = l->stops;
    (void)pthread_mutex_unlock(&l->lock);
    return job;
}

static void *run_lane(void *lane)
{
    static const kiln_error ends = {.msg = "the server ends"};
    kiln_lane *l = lane;
    kiln_serve_job *job;
    bool stops;
    while ((job = next_job(l, &stops)) != NULL) {
        job->answer = stops ? answer_failure(l, KILN_E_BUSY, &ends) : answer_job(l, job);
        job->done(job);
    }
    return NULL;
}

kiln_status kiln_lane_start(kiln_lane *l, const kiln_lane_options *o, kiln_error *err)
{
    *l = (kiln_lane){.threads = o->threads, .queue_max = o->queue_max};
    KILN_TRY(kiln_bake_state_init(&l->state, o->manifest, o->allow_network, err));
    (void)pthread_mutex_init(&l->lock, NULL); /* with default attributes neither fails on Linux */
    (void)pthread_cond_init(&l->wake, NULL);
    l->pool = o->pool;
    const int error = pthread_create(&l->thread, NULL, run_lane, l);
    l->runs = error == 0;
    return error ? kiln_fail(err, KILN_E_NOMEM, "cannot start a thread: %s", strerror(error))
                 : KILN_OK;
}

bool kiln_lane_add(kiln_lane *l, kiln_serve_job *job)
{
    job->next = NULL;
    (void)pthread_mutex_lock(&l->lock);
    const bool takes = !l->stops && l->waiting < l->queue_max;
    if (takes) {
        if (l->last)
            l->last->next = job;
        else
            l->first = job;
        l->last = job;
        l->waiting++;
        (void)pthread_cond_signal(&l->wake);
    }
    (void)pthread_mutex_unlock(&l->lock);
    return takes;
}

void kiln_lane_stop(kiln_lane *l)
{
    if (!l->runs) return;
    (void)pthread_mutex_lock(&l->lock);
    l->stops = true;
    (void)pthread_cond_signal(&l->wake);
    (void)pthread_mutex_unlock(&l->lock);
    (void)pthread_join(l->thread, NULL);
    for (int i = 0; i < KILN_LANE_KEEPS; i++) drop_kept(&l->kept[i]);
    kiln_bake_state_release(&l->state);
    l->runs = false;
}

void kiln_lane_release(kiln_lane *l)
{
    if (!l->pool) return;
    (void)pthread_cond_destroy(&l->wake);
    (void)pthread_mutex_destroy(&l->lock);
}
