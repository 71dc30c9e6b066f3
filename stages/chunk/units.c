/* The worker's half of kiln-chunk. Between units it keeps the layers' rows, the order and what a gather needs: decoded planes
 * where the layer fits into memory, else how blocks were grouped on the disk. */
#include "stages/chunk/units.h"

#include "base/memory.h"
#include "stages/chunk/groups.h"
#include "stages/chunk/plan.h"
#include "stages/engine/layers.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    kiln_layer *layer, *spacing; /* spacing: NULL when the layer has the plane itself */
    uint64_t *starts;            /* rows of the layer by blocks */
    kiln_row_parts parts;
    char folder[4096];       /* scratch */
    kiln_spatial_file order; /* open once it is asked for */
    kiln_plane_cache *cache; /* NULL until something is gathered with it */
    kiln_hash plan;          /* of which these are; zero: of none yet */
    uint64_t group_rows;
    kiln_block_groups groups;
    kiln_planned_chunk *chunks;
    uint64_t n_chunks;
} kept;

static void kept_free(void *state)
{
    kept *k = state;
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

static kiln_status open_layers(kiln_worker *w, const kiln_chunk_unit *u, kept *k, kiln_error *err)
{
    kiln_manifest *m;
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_TRY(kiln_layer_get_digest(m, u->kind, u->layer, &k->layer, err));
    if (!kiln_hash_is_zero(u->spacing)) {
        KILN_TRY(kiln_layer_get_digest(m, "spacing", u->spacing, &k->spacing, err));
        if (k->spacing->n_chunks != k->layer->n_chunks)
            return kiln_fail(err, KILN_E_IO, "the layers 'spacing' and '%s' have different blocks", u->kind);
    }
    KILN_TRY(kiln_block_starts(k->layer, &k->starts, err));
    KILN_TRY(kiln_row_parts_make(k->layer, k->spacing, &k->parts, err));
    return kiln_worker_scratch(w, "chunk", u->plan, k->folder, err);
}

static kiln_status keep(kiln_worker *w, const kiln_chunk_unit *u, kept **out, kiln_error *err)
{
    kept *k = kiln_worker_state(w);
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

static kiln_status open_order(kept *k, kiln_error *err)
{
    if (*k->order.rows.path) return KILN_OK;
    return kiln_spatial_open(k->folder, k->layer->count, false, &k->order, err);
}

/* The plan's chunks, which a scatter goes through, and the groups that it made. */
static kiln_status open_groups(kiln_worker *w, const kiln_chunk_unit *u, kept *k, kiln_error *err)
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
    KILN_TRY(kiln_block_groups_cut(k->layer, u->group_rows, &k->groups, err));
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_GO(kiln_unit_find(m, u->plan, &found, &r, err));
    if (!found) KILN_GO(kiln_fail(err, KILN_E_BUG, "the plan of the chunks is not stored"));
    KILN_GO(kiln_unit_result_read(m, &r, "chunks", (void **)&k->chunks, &bytes, err));
    k->n_chunks = bytes / sizeof *k->chunks;
    k->plan = u->plan;
    k->group_rows = u->group_rows;
done:
    kiln_unit_result_release(&r);
    return st;
}

/* ---- order, plan, scatter ------------------------------------------------------------------------------------------------- */
static kiln_status make_order(kiln_worker *w, const kept *k, const kiln_chunk_unit *u, kiln_error *err)
{
    kiln_spatial_args a = {
        .runner = kiln_worker_runner(w), .layer = k->layer, .half = u->root_half, .folder = k->folder, .ram = u->ram};
    memcpy(a.centre, u->root_centre, sizeof a.centre);
    KILN_TRY(kiln_worker_manifest(w, &a.manifest, err));
    return kiln_spatial_partition(&a, err);
}

static kiln_status make_plan(kiln_worker *w, kept *k, const kiln_chunk_unit *u, kiln_error *err)
{
    KILN_TRY(open_order(k, err));
    return kiln_chunk_plan(w, k->layer, k->starts, &k->order, u, err);
}

static kiln_status scatter(kiln_worker *w, kept *k, const kiln_chunk_unit *u, kiln_error *err)
{
    KILN_TRY(open_order(k, err));
    KILN_TRY(open_groups(w, u, k, err));
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

/* ---- gather --------------------------------------------------------------------------------------------------------------- */
typedef struct {
    kiln_worker *w;
    kept *k;
    kiln_row_list rows;
    unsigned char *slices; /* of the groups; NULL: planes come from the cache */
} gathering;

uint64_t kiln_chunk_gather_ram(uint64_t rows, uint64_t row_bytes)
{
    const uint64_t lists = rows * 3 * sizeof(uint32_t), bounds = rows * 7 * sizeof(float);
    return 2 * rows * row_bytes + lists + bounds + kiln_outputs_ram(rows * row_bytes); /* slices, a plane, outputs */
}

static kiln_status fill_from_cache(const gathering *g, const kiln_row_part *p, void *out, kiln_error *err)
{
    kiln_manifest *m;
    KILN_TRY(kiln_worker_manifest(g->w, &m, err));
    for (uint32_t b = 0; b < p->layer->n_chunks; b++) {
        const uint64_t first = g->rows.starts[b], n = g->rows.starts[b + 1] - first;
        const kiln_chunk *block = &p->layer->chunks[b];
        const void *data;
        if (n == 0) continue;
        KILN_TRY(kiln_row_part_check(p, block, err));
        KILN_TRY(kiln_plane_cache_get(g->k->cache, m, block, p->plane->name, &data, err));
        const kiln_row_copy copy = {.from = data,
                                    .to = out,
                                    .from_rows = block->count,
                                    .to_rows = g->rows.n,
                                    .components = p->plane->components,
                                    .size = p->size};
        kiln_rows_copy(&copy, g->rows.from + first, g->rows.to + first, n, kiln_worker_threads(g->w));
    }
    return KILN_OK;
}

static void fill_from_slices(const gathering *g, const kiln_row_part *p, void *out)
{
    for (uint32_t i = 0; i < g->k->groups.n; i++) {
        const uint64_t first = g->rows.starts[i], n = g->rows.starts[i + 1] - first;
        const kiln_row_copy copy = {.from = g->slices + first * g->k->parts.row_bytes + n * p->at,
                                    .to = out,
                                    .from_rows = n,
                                    .to_rows = g->rows.n,
                                    .components = p->plane->components,
                                    .size = p->size};
        kiln_rows_copy(&copy, NULL, g->rows.to + first, n, kiln_worker_threads(g->w));
    }
}

static kiln_status gather_part(const gathering *g, const kiln_row_part *p, void **out, kiln_error *err)
{
    const uint64_t bytes = g->rows.n * p->plane->components * p->size;
    KILN_TRY(kiln_alloc_unset(out, bytes, 1, p->plane->name, err));
    if (g->slices)
        fill_from_slices(g, p, *out);
    else
        KILN_TRY(fill_from_cache(g, p, *out, err));
    return kiln_worker_put(g->w, p->plane->name, *out, bytes, p->size, err);
}

/* The planes that bounds are made of stay until the end, others only while they are put. */
enum { MEANS, LOG_SCALES, OPACITY_LOGITS, BOUNDED };
static const char *const bounded[BOUNDED] = {"means", "log_scales", "opacity_logits"};

static kiln_status gather_parts(const gathering *g, void *planes[BOUNDED], kiln_error *err)
{
    for (uint32_t i = 0; i < g->k->parts.n; i++) {
        void *data = NULL, **keep = &data;
        for (int b = 0; b < BOUNDED; b++)
            if (!strcmp(g->k->parts.items[i].plane->name, bounded[b])) keep = &planes[b];
        const kiln_status st = gather_part(g, &g->k->parts.items[i], keep, err);
        free(data);
        KILN_TRY(st);
    }
    if (!planes[MEANS] || !planes[LOG_SCALES] || !planes[OPACITY_LOGITS])
        return kiln_fail(err, KILN_E_INPUT, "the layer has no Gaussians: planes are missing");
    kiln_bounds bounds;
    kiln_chunk_bounds(g->rows.n, planes[MEANS], planes[LOG_SCALES], planes[OPACITY_LOGITS], &bounds);
    return kiln_worker_put(g->w, "bounds", &bounds, sizeof bounds, sizeof(float), err);
}

static kiln_status list_rows(gathering *g, const kiln_chunk_unit *u, kiln_error *err)
{
    const kept *k = g->k;
    uint32_t *rows;
    if (u->begin >= u->end || u->end - u->begin > KILN_CHUNK_ROWS_MAX)
        return kiln_fail(err, KILN_E_BUG, "places %llu to %llu are no chunk", (unsigned long long)u->begin,
                         (unsigned long long)u->end);
    const uint64_t n = u->end - u->begin;
    KILN_TRY(KILN_ALLOC_UNSET(&rows, n, "the rows of a chunk", err));
    kiln_status st = kiln_spatial_rows(&k->order, u->begin, n, rows, err);
    if (st == KILN_OK && u->group_rows)
        st = kiln_row_list_make(rows, n, k->groups.starts, k->groups.n, &g->rows, err);
    else if (st == KILN_OK)
        st = kiln_row_list_make(rows, n, k->starts, k->layer->n_chunks, &g->rows, err);
    free(rows);
    return st;
}

static kiln_status gather(kiln_worker *w, kept *k, const kiln_chunk_unit *u, kiln_error *err)
{
    gathering g = {.w = w, .k = k};
    void *planes[BOUNDED] = {0};
    kiln_status st = KILN_OK;
    KILN_GO(open_order(k, err));
    if (u->group_rows) KILN_GO(open_groups(w, u, k, err));
    if (!u->group_rows && !k->cache) KILN_GO(kiln_plane_cache_new(u->ram, &k->cache, err));
    KILN_GO(list_rows(&g, u, err));
    if (u->group_rows)
        KILN_GO(kiln_group_slices(k->folder, &k->groups, k->n_chunks, u->index, k->parts.row_bytes, &g.rows, &g.slices, err));
    KILN_GO(gather_parts(&g, planes, err));
done:
    for (int b = 0; b < BOUNDED; b++) free(planes[b]);
    free(g.slices);
    kiln_row_list_release(&g.rows);
    return st;
}

kiln_status kiln_chunk_compute(kiln_worker *w, const char *name, const void *payload, size_t payload_bytes, kiln_error *err)
{
    kiln_chunk_unit u;
    kept *k = NULL;
    if (payload_bytes != sizeof u) return kiln_fail(err, KILN_E_BUG, "unit '%s' came with %zu bytes", name, payload_bytes);
    memcpy(&u, payload, sizeof u);
    KILN_TRY(keep(w, &u, &k, err));
    switch (u.unit) {
    case KILN_CHUNK_ORDER:
        return make_order(w, k, &u, err);
    case KILN_CHUNK_PLAN:
        return make_plan(w, k, &u, err);
    case KILN_CHUNK_SCATTER:
        return scatter(w, k, &u, err);
    case KILN_CHUNK_GATHER:
        return gather(w, k, &u, err);
    }
    return kiln_fail(err, KILN_E_BUG, "unit '%s' is of kind %d", name, (int)u.unit);
}
