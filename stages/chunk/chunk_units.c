/* The worker's half of kiln-chunk. Between units it keeps the layers' rows, the order and what a gather needs: decoded planes
 * where the layer fits into memory, else how blocks were grouped on the disk. */
#include "stages/chunk/chunk_units.h"

#include "base/memory.h"
#include "stages/chunk/chunk_gather.h"
#include "stages/chunk/plan.h"

#include <stdlib.h>
#include <string.h>

bool kiln_planned_chunk_is_sound(const kiln_planned_chunk *c, uint64_t begin, uint32_t max)
{
    const kiln_cell_group *g = &c->cells;
    if (g->begin != begin || g->end <= begin || g->end - begin > max) return false;
    return *g->name && memchr(g->name, 0, sizeof g->name) && memchr(g->parent, 0, sizeof g->parent);
}

static void kept_free(void *state)
{
    kiln_chunk_kept *k = state;
    if (!k) return;
    free(k->chunks);
    kiln_block_groups_release(&k->groups);
    kiln_plane_cache_free(k->cache);
    kiln_spatial_close(&k->order);
    kiln_row_parts_release(&k->parts);
    free(k->starts);
    kiln_layer_free(k->spacing);
    kiln_layer_free(k->layer);
    free(k);
}

static kiln_status open_layers(kiln_worker *w, const kiln_chunk_unit *u, kiln_chunk_kept *k, kiln_error *err)
{
    kiln_manifest *m;
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_TRY(kiln_layer_get_digest(m, u->kind, u->layer, &k->layer, err));
    if (!kiln_hash_is_zero(u->spacing)) {
        KILN_TRY(kiln_layer_get_digest(m, "spacing", u->spacing, &k->spacing, err));
        if (k->spacing->n_chunks != k->layer->n_chunks)
            return kiln_fail(err, KILN_E_IO, "the layers 'spacing' and '%s' have different blocks", u->kind);
        for (uint32_t i = 0; i < k->layer->n_chunks; i++)
            if (k->spacing->chunks[i].count != k->layer->chunks[i].count)
                return kiln_fail(err, KILN_E_IO, "block '%s' of the layer 'spacing' has another number of rows; run kiln-knn again",
                                 k->layer->chunks[i].name);
    }
    KILN_TRY(kiln_block_starts(k->layer, &k->starts, err));
    KILN_TRY(kiln_row_parts_make(k->layer, k->spacing, &k->parts, err));
    return kiln_worker_scratch(w, "chunk", u->plan, k->folder, err);
}

static kiln_status keep(kiln_worker *w, const kiln_chunk_unit *u, kiln_chunk_kept **out, kiln_error *err)
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
    if (!kiln_hash_equal(k->layer->digest, u->layer) || !k->spacing != kiln_hash_is_zero(u->spacing))
        return kiln_fail(err, KILN_E_BUG, "one run of chunk has units of two layers");
    *out = k;
    return KILN_OK;
}

static kiln_status open_order(kiln_chunk_kept *k, kiln_error *err)
{
    if (*k->order.rows.path) return KILN_OK;
    return kiln_spatial_open(k->folder, k->layer->count, false, &k->order, err);
}

/* The parent has looked at the plan before; this is another look at the same rows of the manifest, by another process. */
static kiln_status check_chunks(const kiln_chunk_kept *k, uint64_t bytes, uint32_t max, kiln_error *err)
{
    uint64_t row = 0;
    bool sound = bytes % sizeof *k->chunks == 0;
    for (uint64_t i = 0; i < k->n_chunks && sound; i++) {
        sound = kiln_planned_chunk_is_sound(&k->chunks[i], row, max);
        row = k->chunks[i].cells.end;
    }
    return sound && row == k->layer->count ? KILN_OK : kiln_fail(err, KILN_E_IO, "the plan of the chunks is damaged");
}

/* The plan's chunks, which a scatter goes through, and the groups that it made. */
static kiln_status open_groups(kiln_worker *w, const kiln_chunk_unit *u, kiln_chunk_kept *k, kiln_error *err)
{
    kiln_manifest *m;
    kiln_unit_result r = {0};
    bool found;
    uint64_t bytes = 0;
    kiln_status st = KILN_OK;
    if (k->chunks && k->group_rows == u->group_rows && kiln_hash_equal(k->plan, u->plan)) return KILN_OK;
    free(k->chunks);
    k->chunks = NULL;
    kiln_block_groups_release(&k->groups);
    KILN_TRY(kiln_block_groups_cut(k->layer, &k->parts, u->group_rows, &k->groups, err));
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_GO(kiln_unit_find(m, u->plan, &found, &r, err));
    if (!found) KILN_GO(kiln_fail(err, KILN_E_BUG, "the plan of the chunks is not stored"));
    KILN_GO(kiln_unit_result_read(m, &r, "chunks", (void **)&k->chunks, &bytes, err));
    k->n_chunks = bytes / sizeof *k->chunks;
    KILN_GO(check_chunks(k, bytes, u->max, err));
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

/* ---- order, plan, scatter ------------------------------------------------------------------------------------------------- */
static kiln_status make_order(kiln_worker *w, const kiln_chunk_kept *k, const kiln_chunk_unit *u, kiln_error *err)
{
    kiln_spatial_args a = {
        .runner = kiln_worker_runner(w), .layer = k->layer, .half = u->root_half, .folder = k->folder, .ram = u->ram};
    memcpy(a.centre, u->root_centre, sizeof a.centre);
    KILN_TRY(kiln_worker_manifest(w, &a.manifest, err));
    return kiln_spatial_partition(&a, err);
}

static kiln_status make_plan(kiln_worker *w, const kiln_chunk_kept *k, const kiln_chunk_unit *u, kiln_error *err)
{
    return kiln_chunk_plan(w, k->layer, k->starts, &k->order, u, err);
}

static kiln_status scatter(kiln_worker *w, const kiln_chunk_kept *k, const kiln_chunk_unit *u, kiln_error *err)
{
    if (u->index >= k->groups.n)
        return kiln_fail(err, KILN_E_BUG, "there is no group %llu of blocks", (unsigned long long)u->index);
    kiln_scatter s = {.folder = k->folder,
                      .parts = &k->parts,
                      .chunks = k->chunks,
                      .n_chunks = k->n_chunks,
                      .order = &k->order,
                      .threads = kiln_worker_threads(w)};
    KILN_TRY(kiln_worker_manifest(w, &s.manifest, err));
    return kiln_group_scatter(&s, &k->groups.items[u->index], err);
}

kiln_status kiln_chunk_compute(kiln_worker *w, const char *name, const void *payload, size_t payload_bytes, kiln_error *err)
{
    kiln_chunk_unit u;
    kiln_chunk_kept *k = NULL;
    if (payload_bytes != sizeof u) return kiln_fail(err, KILN_E_BUG, "unit '%s' came with %zu bytes", name, payload_bytes);
    memcpy(&u, payload, sizeof u);
    KILN_TRY(keep(w, &u, &k, err));
    if (u.unit != KILN_CHUNK_ORDER) KILN_TRY(open_order(k, err));
    if (u.group_rows) KILN_TRY(open_groups(w, &u, k, err));
    switch (u.unit) {
    case KILN_CHUNK_ORDER:
        return make_order(w, k, &u, err);
    case KILN_CHUNK_PLAN:
        return make_plan(w, k, &u, err);
    case KILN_CHUNK_SCATTER:
        return scatter(w, k, &u, err);
    case KILN_CHUNK_GATHER:
        return kiln_chunk_gather(w, k, &u, err);
    }
    return kiln_fail(err, KILN_E_BUG, "unit '%s' is of kind %d", name, (int)u.unit);
}
