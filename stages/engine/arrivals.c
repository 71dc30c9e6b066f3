/* Results: taken from their memfds, checked, stored in batches.
 *
 * They wait for a common transaction until they are as many bytes as the plan of memory allows, or the oldest is BATCH_MS old and
 * a few times as old as the last transaction took: one fsync for many small units, most of the parent's time left for its
 * workers on a slow disk, and a kill costs no more than that. */
#include "stages/engine/job.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BATCH_MS = 200, BATCH_MS_MOST = 2000, BATCH_PATIENCE = 4 };
#define NS_OF_MS UINT64_C(1000000)

bool kiln_job_in_memory(const kiln_job *j, const kiln_unit *u)
{
    return u->volatile_result || !j->run->manifest || kiln_run_is_once(j->run);
}

/* ---- storing ---------------------------------------------------------------------------------------------------------- */
static void arrival_release(kiln_run *r, kiln_arrival *a)
{
    free(a->blobs);
    if (a->map) {
        (void)munmap(a->map, a->map_bytes);
        r->ram.held -= a->held_bytes;
    }
    *a = (kiln_arrival){0};
}

void kiln_job_drop_arrivals(kiln_job *j)
{
    for (unsigned i = 0; i < j->n_batch; i++) arrival_release(j->run, &j->batch[i]);
    j->n_batch = 0;
    j->batch_bytes = 0;
}

static uint64_t packed_bytes(const kiln_arrival *a)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < a->unit->result.n; i++) bytes += a->blobs[i].packed_bytes;
    return bytes;
}

kiln_status kiln_job_store(kiln_job *j, kiln_error *err)
{
    kiln_run *r = j->run;
    kiln_status st = KILN_OK;
    const uint64_t start = kiln_now_ns();
    if (j->n_batch == 0) return KILN_OK;
    KILN_GO(kiln_manifest_begin(r->manifest, err));
    for (unsigned i = 0; i < j->n_batch; i++) {
        const kiln_arrival *a = &j->batch[i];
        KILN_GO(kiln_unit_store(r->manifest, a->unit->key, r->program->name, a->unit->name, &a->unit->result, a->blobs,
                                (int64_t)a->wall_ns, err));
    }
    kiln_ram_look(r, true); /* SQLite holds most now */
    KILN_GO(kiln_manifest_commit(r->manifest, err));
    r->units_stored += j->n_batch;
    for (unsigned i = 0; i < j->n_batch; i++) r->stored_bytes += packed_bytes(&j->batch[i]);
done:
    if (st != KILN_OK) kiln_manifest_rollback(r->manifest);
    j->store_ns = kiln_now_ns() - start;
    r->store_ns += j->store_ns;
    kiln_job_drop_arrivals(j);
    return st;
}

bool kiln_job_batch_is_ripe(const kiln_job *j)
{
    uint64_t patience = BATCH_PATIENCE * j->store_ns;
    if (j->n_batch == 0) return false;
    if (patience < BATCH_MS * NS_OF_MS) patience = BATCH_MS * NS_OF_MS;
    if (patience > BATCH_MS_MOST * NS_OF_MS) patience = BATCH_MS_MOST * NS_OF_MS;
    return j->n_batch == KILN_BATCH_UNITS || j->batch_bytes >= j->plan.batch || kiln_now_ns() - j->batch_since_ns >= patience;
}

/* Stores first what would be too much together with this one. */
static kiln_status wait_for_transaction(kiln_job *j, kiln_arrival *a, kiln_error *err)
{
    if (j->n_batch == KILN_BATCH_UNITS || (j->n_batch && j->batch_bytes + a->held_bytes > j->plan.batch))
        KILN_TRY(kiln_job_store(j, err));
    if (j->n_batch == 0) j->batch_since_ns = kiln_now_ns();
    j->batch_bytes += a->held_bytes;
    j->batch[j->n_batch++] = *a;
    *a = (kiln_arrival){0};
    return j->plan.batch == 0 ? kiln_job_store(j, err) : KILN_OK;
}

/* ---- taking ----------------------------------------------------------------------------------------------------------- */
/* --force: what is stored must be what came out again. */
static kiln_status compare(const kiln_unit *u, const kiln_unit_result *again, kiln_error *err)
{
    char was[33], is[33];
    uint32_t n = u->result.n < again->n ? u->result.n : again->n;
    for (uint32_t i = 0; i < n; i++) {
        const kiln_unit_output *a = &u->result.outputs[i], *b = &again->outputs[i];
        if (!strcmp(a->name, b->name) && a->segment == b->segment && kiln_hash_equal(a->hash, b->hash)) continue;
        return kiln_fail(err, KILN_E_BUG,
                         "'%s' computed again differs from what is stored: output '%s' was %s, '%s' is %s now; "
                         "report this, unless the machine's memory is failing",
                         u->name, a->name, kiln_hash_hex(a->hash, was), b->name, kiln_hash_hex(b->hash, is));
    }
    if (u->result.n != again->n)
        return kiln_fail(err, KILN_E_BUG, "'%s' computed again has %u outputs where %u are stored", u->name, again->n, u->result.n);
    return KILN_OK;
}

static kiln_status keep_in_memory(kiln_unit *u, const kiln_blob *blobs, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&u->volatile_data, u->result.n, "a result", err));
    for (uint32_t i = 0; i < u->result.n; i++) {
        KILN_TRY(kiln_alloc(&u->volatile_data[i], blobs[i].packed_bytes, 1, "a result", err));
        if (blobs[i].packed_bytes) memcpy(u->volatile_data[i], blobs[i].packed, blobs[i].packed_bytes);
    }
    return KILN_OK;
}

kiln_status kiln_job_take(kiln_job *j, kiln_unit *u, const kiln_message *m, int memfd, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_arrival a = {.unit = u, .map_bytes = m->bytes, .wall_ns = m->wall_ns};
    kiln_unit_result result = {0};
    kiln_ram_look(j->run, false); /* finds the memfd by its descriptor; from then on it counts as held */
    st = kiln_memfd_map(memfd, m->bytes, &a.map, err);
    a.held_bytes = kiln_memfd_holds(memfd);
    (void)close(memfd);
    if (st != KILN_OK) return st;
    j->run->ram.held += a.held_bytes;
    KILN_GO(KILN_ALLOC(&a.blobs, m->n_outputs, "a unit's outputs", err));
    KILN_GO(kiln_outputs_read(m, a.map, &result, a.blobs, err));
    j->run->units_done++;
    if (u->was_cached) { /* --force */
        KILN_GO(compare(u, &result, err));
    } else {
        u->result = result;
        result = (kiln_unit_result){0};
        KILN_GO(kiln_job_in_memory(j, u) ? keep_in_memory(u, a.blobs, err) : wait_for_transaction(j, &a, err));
    }
    kiln_chat("%s: %.3f s", u->name, (double)m->wall_ns * 1e-9);
done:
    arrival_release(j->run, &a);
    kiln_unit_result_release(&result);
    return st;
}
