/* Results: taken from their memfds, checked, and stored in batches.
 *
 * Problem. A transaction costs an fsync, so small units must share one; but results that are not
 * stored are lost by a kill, and workers must not wait while the disk works.
 *
 * Layout. A thread stores one batch at a time. Meanwhile the parent receives results and hands out
 * units, and nothing else uses the manifest (kiln_job_store_end). Another thread gives the memory
 * of the batch before back: the kernel takes a quarter of the time for that in which a batch is
 * stored. The plan of memory has room for all three. A batch is stored when it has as many bytes as
 * a transaction should, or as many units as fit; if the disk is slower than the workers, it grows
 * meanwhile. It is also stored when its oldest result is BATCH_MS old and BATCH_WAIT_FACTOR times
 * as old as the last transaction took, so that a slow disk leaves the parent time for its workers.
 * When no more units are left than workers have in flight, batches do not wait: storing after the
 * last result would keep no worker busy. */
#include "stages/engine/parent/arrivals.h"

#include "stages/engine/memory/memfd.h"
#include "stages/engine/parent/job.h"
#include "stages/engine/parent/run_memory.h"
#include "stages/engine/worker/outputs.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    BATCH_MS = 200,
    BATCH_MS_MOST = 2000,
    BATCH_WAIT_FACTOR = 4,
    BATCH_BYTES = 128 << 20, /* enough for the syncs of a transaction to take a small part of it */
    /* A result of up to so many bytes is copied. The end of a map interrupts every CPU that a
     * thread of this process has run on, and was two fifths of what the parent did for counts of
     * pairs, 1 KiB each. */
    COPIED_MOST = 16 << 10,
};
#define NS_OF_MS UINT64_C(1000000)

bool kiln_job_in_memory(const kiln_job *j, const kiln_unit *u)
{
    return u->volatile_result || !j->run->manifest || kiln_run_is_once(j->run);
}

/* ---- giving memory back ---------------------------------------------------------------------- */
static void free_arrival(kiln_arrival *a)
{
    free(a->blobs);
    if (a->is_map)
        (void)munmap(a->bytes, a->n_bytes);
    else
        free(a->bytes);
}

static uint64_t mapped_bytes(const kiln_arrival *a) { return a->is_map ? a->held_bytes : 0; }

static void arrival_release(kiln_run *r, kiln_arrival *a)
{
    r->ram.held -= mapped_bytes(a);
    free_arrival(a);
    *a = (kiln_arrival){0};
}

static void *give_back_in_thread(void *giving_back)
{
    kiln_giving_back *g = giving_back;
    for (unsigned i = 0; i < g->n; i++) free_arrival(&g->items[i]);
    atomic_store(&g->done, true);
    return NULL;
}

/* Threads block all signals, so that they reach the thread that waits for workers. */
static bool start_thread(pthread_t *thread, void *(*run)(void *), void *context)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return false;
    const bool started = pthread_create(thread, NULL, run, context) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* Waits until the memory is given back. */
static void give_back_end(kiln_job *j)
{
    kiln_giving_back *g = &j->giving_back;
    /* cannot fail: it was created, and is joined once */
    if (g->n && g->threaded) (void)pthread_join(g->thread, NULL);
    for (unsigned i = 0; i < g->n; i++) j->run->ram.held -= mapped_bytes(&g->items[i]);
    g->n = 0;
    g->bytes = 0;
}

/* Gives the memory of the batch that was stored back, on a thread if the plan has room for what
 * arrives meanwhile. */
static void give_back_begin(kiln_job *j)
{
    const kiln_storing *s = &j->storing;
    kiln_giving_back *g = &j->giving_back;
    give_back_end(j);
    memcpy(g->items, s->items, s->n * sizeof *g->items);
    g->n = s->n;
    g->bytes = s->bytes;
    atomic_store(&g->done, false);
    g->threaded = j->plan.batch > 0 && g->n > 0 && start_thread(&g->thread, give_back_in_thread, g);
    if (g->threaded) return;
    (void)give_back_in_thread(g);
    give_back_end(j);
}

/* ---- storing --------------------------------------------------------------------------------- */
static uint64_t packed_bytes(const kiln_arrival *a)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < a->unit->result.n; i++) bytes += a->blobs[i].packed_bytes;
    return bytes;
}

/* Waits for the transaction that runs and begins to release its batch. */
static void join(kiln_job *j)
{
    kiln_run *r = j->run;
    kiln_storing *s = &j->storing;
    if (s->n == 0) return;
    /* cannot fail: it was created, and is joined once */
    if (s->threaded) (void)pthread_join(s->thread, NULL);
    r->lists.store_ns += s->ns;
    if (s->status == KILN_OK) r->lists.n_stored += s->n;
    for (unsigned i = 0; i < s->n && s->status == KILN_OK; i++)
        r->lists.stored_bytes += packed_bytes(&s->items[i]);
    give_back_begin(j);
    s->n = 0;
    s->bytes = 0;
}

void kiln_job_drop_arrivals(kiln_job *j)
{
    join(j);
    give_back_end(j);
    for (unsigned i = 0; i < j->n_batch; i++) arrival_release(j->run, &j->batch[i]);
    j->n_batch = 0;
    j->batch_bytes = 0;
}

static kiln_status insert(kiln_manifest *to, void *job, kiln_error *err)
{
    const kiln_job *j = job;
    const kiln_storing *s = &j->storing;
    for (unsigned i = 0; i < s->n; i++) {
        const kiln_arrival *a = &s->items[i];
        /* kiln_unit_store leaves what is there */
        if (a->unit->replaced) KILN_TRY(kiln_unit_forget(to, a->unit->key, err));
        const kiln_unit_done unit = {.key = a->unit->key,
                                     .stage = j->run->program->name,
                                     .name = a->unit->name,
                                     .wall_ns = (int64_t)a->wall_ns};
        KILN_TRY(kiln_unit_store(to, &unit, &a->unit->result, a->blobs, err));
    }
    return KILN_OK;
}

static void *store_in_thread(void *job)
{
    kiln_job *j = job;
    kiln_storing *s = &j->storing;
    const uint64_t start = kiln_now_ns();
    s->status = kiln_bulk_store(kiln_run_store(j->run), j->plan.direct ? s->bytes : 0, insert, j,
                                &s->error);
    s->ns = kiln_now_ns() - start;
    atomic_store(&s->done, true);
    return NULL;
}

kiln_status kiln_job_store_end(kiln_job *j, kiln_error *err)
{
    kiln_storing *s = &j->storing;
    if (s->n == 0) return KILN_OK;
    join(j);
    if (s->status != KILN_OK && err) *err = s->error;
    return s->status;
}

/* Stores the batch on a thread; or on this one if there is no room for a second batch or no thread
 * can be made. */
static kiln_status store_begin(kiln_job *j, kiln_error *err)
{
    kiln_storing *s = &j->storing;
    KILN_TRY(kiln_job_store_end(j, err));
    if (j->n_batch == 0) return KILN_OK;
    memcpy(s->items, j->batch, j->n_batch * sizeof *s->items);
    s->n = j->n_batch;
    s->bytes = j->batch_bytes;
    s->error = (kiln_error){0};
    atomic_store(&s->done, false);
    j->n_batch = 0;
    j->batch_bytes = 0;
    s->threaded = j->plan.batch > 0 && start_thread(&s->thread, store_in_thread, j);
    if (s->threaded) return KILN_OK;
    (void)store_in_thread(j);
    kiln_run_look_at_ram(j->run);
    return kiln_job_store_end(j, err);
}

kiln_status kiln_job_store(kiln_job *j, kiln_error *err)
{
    KILN_TRY(store_begin(j, err));
    return kiln_job_store_end(j, err);
}

static bool batch_is_ripe(const kiln_job *j)
{
    uint64_t wait_ns = BATCH_WAIT_FACTOR * j->storing.ns;
    if (j->n_batch == 0) return false;
    if (wait_ns < BATCH_MS * NS_OF_MS) wait_ns = BATCH_MS * NS_OF_MS;
    if (wait_ns > BATCH_MS_MOST * NS_OF_MS) wait_ns = BATCH_MS_MOST * NS_OF_MS;
    /* all have been handed out: the list is about to end */
    if (kiln_schedule_waiting(j->schedule) == 0) return true;
    return j->n_batch == KILN_BATCH_UNITS || j->batch_bytes >= BATCH_BYTES ||
           2 * j->batch_bytes >= j->plan.batch || kiln_now_ns() - j->batch_since_ns >= wait_ns;
}

kiln_status kiln_job_store_ripe(kiln_job *j, kiln_error *err)
{
    if (j->storing.n && !atomic_load(&j->storing.done)) return KILN_OK;
    KILN_TRY(kiln_job_store_end(j, err));
    return batch_is_ripe(j) ? store_begin(j, err) : KILN_OK;
}

static bool batch_fits(const kiln_job *j, uint64_t bytes)
{
    return j->batch_bytes + j->storing.bytes + j->giving_back.bytes + bytes <= j->plan.batch;
}

/* Makes room in the batch for a result, waiting as short as can be: first for what gives memory
 * back. An empty batch takes a result of any size. */
static kiln_status free_batch(kiln_job *j, uint64_t bytes, kiln_error *err)
{
    if (j->giving_back.n && (atomic_load(&j->giving_back.done) || !batch_fits(j, bytes)))
        give_back_end(j);
    if (j->n_batch == KILN_BATCH_UNITS ||
        (j->batch_bytes + j->storing.bytes && !batch_fits(j, bytes)))
        KILN_TRY(store_begin(j, err));
    if (j->storing.n && !batch_fits(j, bytes)) KILN_TRY(kiln_job_store_end(j, err));
    if (!batch_fits(j, bytes)) give_back_end(j);
    return KILN_OK;
}

/* Adds a result to the batch. If all that waits would be too large with it, the batch is stored
 * first. */
static kiln_status wait_for_transaction(kiln_job *j, kiln_arrival *a, kiln_error *err)
{
    KILN_TRY(free_batch(j, a->held_bytes, err));
    if (j->n_batch == 0) j->batch_since_ns = kiln_now_ns();
    j->batch_bytes += a->held_bytes;
    j->batch[j->n_batch++] = *a;
    *a = (kiln_arrival){0};
    return j->plan.batch == 0 || j->batch_bytes > j->plan.batch ? kiln_job_store(j, err) : KILN_OK;
}

/* ---- taking ---------------------------------------------------------------------------------- */
static bool same_shape(const kiln_unit_output *a, const kiln_unit_output *b)
{
    return !strcmp(a->name, b->name) && a->segment == b->segment && a->raw_bytes == b->raw_bytes &&
           a->elem == b->elem;
}

/* For --force: compares the stored result with the one that was computed again.
 *
 * A key stands for one result. A stored result with other outputs or sizes is damaged, and is
 * refused as it would be when a stage reads it. If the sizes are the same and the bits differ, a
 * kernel, a compiler or a memory chip is wrong, and nothing here can say which result is right. So
 * neither is kept. Storing the new one at once could replace a right result by one with a flipped
 * bit. Keeping the stored one would make --force fail for ever, while a run without it has nothing
 * to do. The stored one is dropped: the same command computes it a third time, and the --force
 * after that finds an error that persists. */
static kiln_status compare(kiln_run *r, const kiln_unit *u, const kiln_unit_result *again,
                           kiln_error *err)
{
    char was[33], is[33];
    uint32_t i, n = u->result.n < again->n ? u->result.n : again->n;
    for (i = 0; i < n && same_shape(&u->result.outputs[i], &again->outputs[i]); i++) continue;
    if (i < n)
        return kiln_unit_refuse(
            r, u,
            kiln_fail(err, KILN_E_IO,
                      "its output '%s' has %llu bytes in elements of %u, but the second "
                      "computation gave '%s' "
                      "with %llu in elements of %u",
                      u->result.outputs[i].name, (unsigned long long)u->result.outputs[i].raw_bytes,
                      u->result.outputs[i].elem, again->outputs[i].name,
                      (unsigned long long)again->outputs[i].raw_bytes, again->outputs[i].elem),
            err);
    if (u->result.n != again->n)
        return kiln_unit_refuse(r, u,
                                kiln_fail(err, KILN_E_IO,
                                          "it has %u outputs, but the second computation gave %u",
                                          u->result.n, again->n),
                                err);
    for (i = 0; i < n && kiln_hash_equal(u->result.outputs[i].hash, again->outputs[i].hash); i++)
        continue;
    if (i == n) return KILN_OK;
    (void)kiln_fail(err, KILN_E_BUG,
                    "computing '%s' again gave another result than the stored one: output '%s' was "
                    "%s and is %s now",
                    u->name, u->result.outputs[i].name,
                    kiln_hash_hex(u->result.outputs[i].hash, was),
                    kiln_hash_hex(again->outputs[i].hash, is));
    return kiln_unit_doubt(r, u, err);
}

static kiln_status keep_in_memory(kiln_unit *u, const kiln_blob *blobs, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&u->volatile_data, u->result.n, "a result", err));
    for (uint32_t i = 0; i < u->result.n; i++) {
        KILN_TRY(kiln_alloc(&u->volatile_data[i], blobs[i].packed_bytes, 1, "a result", err));
        if (blobs[i].packed_bytes)
            memcpy(u->volatile_data[i], blobs[i].packed, blobs[i].packed_bytes);
    }
    return KILN_OK;
}

static kiln_status take_bytes(int memfd, kiln_arrival *a, kiln_error *err)
{
    a->held_bytes = kiln_memfd_holds(memfd);
    if (a->n_bytes <= COPIED_MOST) return kiln_memfd_copy(memfd, a->n_bytes, &a->bytes, err);
    KILN_TRY(kiln_memfd_map(memfd, a->n_bytes, &a->bytes, err));
    a->is_map = true;
    return KILN_OK;
}

kiln_status kiln_job_take(kiln_job *j, kiln_unit *u, const kiln_message *m, int memfd,
                          kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_arrival a = {.unit = u, .n_bytes = m->bytes, .wall_ns = m->wall_ns};
    kiln_unit_result result = {0};
    /* finds the memfd by its descriptor; from then on it counts as held */
    kiln_run_watch_ram(j->run);
    st = take_bytes(memfd, &a, err);
    (void)close(memfd);
    if (st != KILN_OK) return st;
    if (a.is_map) j->run->ram.held += a.held_bytes;
    KILN_GO(KILN_ALLOC(&a.blobs, m->n_outputs, "a unit's outputs", err));
    KILN_GO(kiln_outputs_read(m, a.bytes, &result, a.blobs, err));
    j->run->lists.n_done++;
    if (u->was_cached && !u->replaced) { /* --force */
        /* the others are compared first, see run_units.c */
        KILN_GO(kiln_unit_pass(j->run, u, compare(j->run, u, &result, err)));
        u->counters_again = result.counters;
        result.counters = NULL;
    } else {
        kiln_unit_result_release(&u->result);
        u->was_cached = false;
        u->result = result;
        result = (kiln_unit_result){0};
        KILN_GO(kiln_job_in_memory(j, u) ? keep_in_memory(u, a.blobs, err)
                                         : wait_for_transaction(j, &a, err));
    }
    kiln_chat("%s: %.3f s", u->name, (double)m->wall_ns * 1e-9);
done:
    arrival_release(j->run, &a);
    kiln_unit_result_release(&result);
    return st;
}
