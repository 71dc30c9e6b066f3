/* The worker's half of kiln-chunk. Between units it keeps the layers' rows, the order and how
 * blocks were grouped. */
#include "stages/chunk/chunk_units.h"

#include "base/log.h"
#include "base/memory.h"
#include "stages/chunk/chunk_gather.h"
#include "stages/chunk/plan.h"
#include "stages/spatial/row_places.h"

#include <stdlib.h>
#include <string.h>

bool kiln_planned_chunk_is_sound(const kiln_planned_chunk *c, uint64_t begin, uint32_t max)
{
    const kiln_cell_group *g = &c->cells;
    if (g->begin != begin || g->end <= begin || g->end - begin > max) return false;
    return *g->name && memchr(g->name, 0, sizeof g->name) && memchr(g->parent, 0, sizeof g->parent);
}

/* Keeps so many connections, one of which is the worker's own. */
static void close_readers(kiln_chunk_kept *k, unsigned n)
{
    for (; k->n_readers > n && k->n_readers > 1; k->n_readers--)
        kiln_manifest_close(k->readers[k->n_readers - 1]);
}

static void close_memory(kiln_chunk_kept *k)
{
    while (k->store.n_memory > 0) kiln_scratch_drop(&k->memory[--k->store.n_memory]);
    k->store.memory = NULL;
    k->shared = (kiln_shared_memory){0};
}

static void kept_free(void *state)
{
    kiln_chunk_kept *k = state;
    if (!k) return;
    close_readers(k, 1);
    free(k->slices);
    free(k->planes);
    kiln_scatter_arrays_release(&k->arrays);
    close_memory(k);
    kiln_scratch_drop(&k->places);
    free(k->chunks);
    kiln_block_groups_release(&k->groups);
    kiln_spatial_close(&k->order);
    kiln_row_parts_release(&k->parts);
    free(k->starts);
    kiln_layer_free(k->spacing);
    kiln_layer_free(k->layer);
    free(k);
}

static kiln_status open_layers(kiln_worker *w, const kiln_chunk_unit *u, kiln_chunk_kept *k,
                               kiln_error *err)
{
    kiln_manifest *m;
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_TRY(kiln_layer_get_digest(m, u->kind, u->layer, &k->layer, err));
    if (!kiln_hash_is_zero(u->spacing)) {
        KILN_TRY(kiln_layer_get_digest(m, "spacing", u->spacing, &k->spacing, err));
        if (k->spacing->n_chunks != k->layer->n_chunks)
            return kiln_fail(err, KILN_E_IO, "the layers 'spacing' and '%s' have different blocks",
                             u->kind);
        for (uint32_t i = 0; i < k->layer->n_chunks; i++)
            if (k->spacing->chunks[i].count != k->layer->chunks[i].count)
                return kiln_fail(err, KILN_E_IO,
                                 "block '%s' of the layer 'spacing' has another number of rows; "
                                 "run kiln-knn again",
                                 k->layer->chunks[i].name);
    }
    KILN_TRY(kiln_block_starts(k->layer, &k->starts, err));
    KILN_TRY(kiln_row_parts_make(k->layer, k->spacing, &k->parts, err));
    return kiln_worker_scratch(w, "chunk", u->plan, k->folder, err);
}

static kiln_status keep(kiln_worker *w, const kiln_chunk_unit *u, kiln_chunk_kept **out,
                        kiln_error *err)
{
    kiln_chunk_kept *k = kiln_worker_state(w);
    if (!k) { /* a run has one layer and one plan */
        KILN_TRY(KILN_ALLOC(&k, 1, "the state of chunk", err));
        kiln_status st = open_layers(w, u, k, err);
        if (st != KILN_OK) {
            kept_free(k);
            return st;
        }
        kiln_worker_set_state(w, k, kept_free);
    }
    if (!kiln_hash_equal(k->layer->digest, u->layer) ||
        !k->spacing != kiln_hash_is_zero(u->spacing))
        return kiln_fail(err, KILN_E_BUG, "a run of chunk has units of two layers");
    *out = k;
    return KILN_OK;
}

static kiln_status open_order(kiln_chunk_kept *k, kiln_error *err)
{
    if (*k->order.rows.path) return KILN_OK;
    return kiln_spatial_open(k->folder, k->layer->count, false, &k->order, err);
}

/* The parent has looked at the plan before; this is another look at the same rows of the manifest,
 * by another process. */
static kiln_status check_chunks(const kiln_chunk_kept *k, uint64_t bytes, uint32_t max,
                                kiln_error *err)
{
    uint64_t row = 0;
    bool sound = bytes % sizeof *k->chunks == 0;
    for (uint64_t i = 0; i < k->n_chunks && sound; i++) {
        sound = kiln_planned_chunk_is_sound(&k->chunks[i], row, max);
        row = k->chunks[i].cells.end;
    }
    return sound && row == k->layer->count
               ? KILN_OK
               : kiln_fail(err, KILN_E_IO, "the plan of the chunks is damaged");
}

static bool is_same_memory(const kiln_chunk_kept *k, const kiln_chunk_unit *u)
{
    const kiln_shared_memory *a = &k->shared, *b = &u->memory;
    return a->pid == b->pid && a->bytes == b->bytes && a->n == b->n &&
           memcmp(a->fds, b->fds, sizeof a->fds) == 0;
}

static kiln_status open_memory(kiln_chunk_kept *k, const kiln_shared_memory *m, kiln_error *err)
{
    char path[64];
    if (m->n > KILN_SHARED_FILES)
        return kiln_fail(err, KILN_E_BUG, "shared memory of %u files", m->n);
    for (uint32_t i = 0; i < m->n; i++) {
        kiln_shared_memory_path(m, i, path);
        KILN_TRY(kiln_scratch_open_shared(path, m->bytes, &k->memory[i], err));
        k->store.n_memory++;
    }
    if (m->n > 0) k->store.memory = k->memory;
    k->shared = *m;
    return KILN_OK;
}

/* Where the groups lie. */
static kiln_status open_store(kiln_chunk_kept *k, const kiln_chunk_unit *u, kiln_error *err)
{
    close_memory(k);
    k->store = (kiln_group_store){.groups = &k->groups,
                                  .n_chunks = k->n_chunks,
                                  .row_bytes = k->parts.row_bytes,
                                  .folder = k->folder,
                                  .plan = u->plan,
                                  .only_reads = u->use == KILN_SCRATCH_READ};
    return open_memory(k, &u->memory, err);
}

/* The plan's chunks, which a scatter goes through, and the groups that it made. */
static kiln_status open_groups(kiln_worker *w, const kiln_chunk_unit *u, kiln_chunk_kept *k,
                               kiln_error *err)
{
    kiln_manifest *m;
    kiln_unit_result r = {0};
    char boot[KILN_SCRATCH_BOOT_MAX] = "";
    bool found;
    uint64_t bytes = 0;
    kiln_status st = KILN_OK;
    if (k->chunks && k->group_rows == u->group_rows && kiln_hash_equal(k->plan, u->plan) &&
        is_same_memory(k, u))
        return KILN_OK;
    free(k->chunks);
    k->chunks = NULL;
    kiln_block_groups_release(&k->groups);
    if (u->use == KILN_SCRATCH_OWN) kiln_scratch_boot(boot);
    KILN_TRY(kiln_block_groups_cut(k->layer, &k->parts, u->group_rows, boot, &k->groups, err));
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_GO(kiln_unit_find(m, u->plan, &found, &r, err));
    if (!found) KILN_GO(kiln_fail(err, KILN_E_BUG, "the plan of the chunks is not stored"));
    KILN_GO(kiln_unit_result_read(m, &r, "chunks", (void **)&k->chunks, &bytes, err));
    k->n_chunks = bytes / sizeof *k->chunks;
    KILN_GO(check_chunks(k, bytes, u->max, err));
    KILN_GO(open_store(k, u, err));
    k->plan = u->plan;
    k->group_rows = u->group_rows;
done:
    if (st != KILN_OK) {
        free(k->chunks); /* else the next unit would take them as they are */
        k->chunks = NULL;
    }
    kiln_unit_result_release(&r);
    return st;
}

/* ---- order, plan, scatter -------------------------------------------------------------------- */
/* Opens a connection for each thread and no more, for the memory of this unit counts no others. The
 * first is the worker's own. If one cannot be opened, most likely because no more files may be
 * open, the work goes on with half of those that could: the files that are written meanwhile need
 * descriptors, too. */
static kiln_status open_readers(kiln_worker *w, kiln_chunk_kept *k, unsigned *n, kiln_error *err)
{
    const unsigned threads = kiln_worker_threads(w);
    kiln_status st = KILN_OK;
    kiln_error why;
    *n = threads < KILN_CHUNK_READERS ? threads : KILN_CHUNK_READERS;
    if (k->n_readers == 0) {
        KILN_TRY(kiln_worker_manifest(w, &k->readers[0], err));
        k->n_readers = 1;
    }
    close_readers(k, *n);
    while (k->n_readers < *n &&
           (st = kiln_worker_reader(w, &k->readers[k->n_readers], &why)) == KILN_OK)
        k->n_readers++;
    if (st == KILN_OK) return KILN_OK;
    if (st != KILN_E_IO) return kiln_fail(err, st, "%s", why.msg);
    const unsigned wanted = *n;
    *n = (k->n_readers + 1) / 2;
    kiln_chat("%u connections instead of %u: %s", *n, wanted, why.msg);
    close_readers(k, *n);
    return KILN_OK;
}

static kiln_status make_order(kiln_worker *w, kiln_chunk_kept *k, const kiln_chunk_unit *u,
                              kiln_error *err)
{
    unsigned n;
    kiln_spatial_args a = {.runner = kiln_worker_runner(w),
                           .layer = k->layer,
                           .half = u->root_half,
                           .folder = k->folder,
                           .ram = u->ram};
    memcpy(a.centre, u->root_centre, sizeof a.centre);
    KILN_TRY(open_readers(w, k, &n, err));
    a.manifest = k->readers[0];
    a.readers = k->readers + 1;
    a.n_readers = n - 1;
    KILN_TRY(kiln_spatial_partition(&a, err));
    return kiln_row_places_make(k->folder, k->layer->count, u->ram, kiln_worker_threads(w), err);
}

static kiln_status check_group(const kiln_chunk_kept *k, const kiln_chunk_unit *u, kiln_error *err)
{
    bool kept;
    if (u->index >= k->groups.n)
        return kiln_fail(err, KILN_E_BUG, "group %llu does not exist",
                         (unsigned long long)u->index);
    return kiln_group_keep_sound(&k->store, (uint32_t)u->index, &kept, err);
}

static kiln_status open_scatter(kiln_worker *w, kiln_chunk_kept *k, kiln_chunk_scatter *s,
                                kiln_error *err)
{
    *s = (kiln_chunk_scatter){.store = &k->store,
                              .readers = k->readers,
                              .threads = kiln_worker_threads(w),
                              .parts = &k->parts,
                              .chunks = k->chunks,
                              .places = &k->places,
                              .arrays = &k->arrays};
    if (!*k->places.path)
        KILN_TRY(kiln_row_places_open(k->folder, k->layer->count, &k->places, err));
    KILN_TRY(open_readers(w, k, &s->n_readers, err));
    kiln_memory_keep(kiln_scatter_kept(k->layer, &k->parts));
    return KILN_OK;
}

static kiln_status scatter(kiln_worker *w, kiln_chunk_kept *k, const kiln_chunk_unit *u,
                           kiln_error *err)
{
    kiln_chunk_scatter s;
    KILN_TRY(open_scatter(w, k, &s, err));
    return kiln_group_scatter(&s, (uint32_t)u->index, err);
}

static kiln_status sum_rows(kiln_worker *w, kiln_chunk_kept *k, const kiln_chunk_unit *u,
                            kiln_error *err)
{
    kiln_chunk_scatter s;
    kiln_row_sum *sums;
    KILN_TRY(KILN_ALLOC_UNSET(&sums, k->n_chunks + 1, "the sums of a block", err));
    kiln_status st = KILN_OK;
    if (u->group_rows) {
        KILN_GO(kiln_group_sums(&k->store, (uint32_t)u->index, sums, err));
    } else {
        KILN_GO(open_scatter(w, k, &s, err));
        KILN_GO(kiln_block_sums(&s, (uint32_t)u->index, sums, err));
    }
    KILN_GO(kiln_worker_put(w, "sums", sums, k->n_chunks * sizeof *sums, sizeof sums->low, err));
done:
    free(sums);
    return st;
}

/* What scatter units leave is not for chunks, which take that memory for themselves. */
static kiln_status run_gather_unit(kiln_worker *w, kiln_chunk_kept *k, const kiln_chunk_unit *u,
                                   kiln_error *err)
{
    if (k->arrays.items[0]) {
        kiln_scatter_arrays_release(&k->arrays);
        kiln_memory_trim();
    }
    return kiln_chunk_gather(w, k, u, err);
}

kiln_status kiln_chunk_compute(kiln_worker *w, const char *name, const void *payload,
                               size_t payload_bytes, kiln_error *err)
{
    kiln_chunk_unit u;
    kiln_chunk_kept *k = NULL;
    if (payload_bytes != sizeof u)
        return kiln_fail(err, KILN_E_BUG, "unit '%s' came with a payload of %zu bytes", name,
                         payload_bytes);
    memcpy(&u, payload, sizeof u);
    KILN_TRY(keep(w, &u, &k, err));
    if (u.unit != KILN_CHUNK_ORDER) KILN_TRY(kiln_chunk_blame_plan(&u, open_order(k, err), err));
    if (u.unit == KILN_CHUNK_PLAN || u.unit == KILN_CHUNK_GATHER) close_readers(k, 1);
    if (u.group_rows || u.unit == KILN_CHUNK_SUMS) KILN_TRY(open_groups(w, &u, k, err));
    switch (u.unit) {
    case KILN_CHUNK_ORDER:
        return make_order(w, k, &u, err);
    case KILN_CHUNK_PLAN:
        return kiln_chunk_plan(w, k->layer, k->starts, &k->order, &u, err);
    case KILN_CHUNK_CHECK:
        return check_group(k, &u, err);
    case KILN_CHUNK_SCATTER:
        return scatter(w, k, &u, err);
    case KILN_CHUNK_SUMS:
        return sum_rows(w, k, &u, err);
    case KILN_CHUNK_GATHER:
        return run_gather_unit(w, k, &u, err);
    }
    return kiln_fail(err, KILN_E_BUG, "unit '%s' is of kind %d", name, (int)u.unit);
}
