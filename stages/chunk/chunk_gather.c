/* Gathering: the rows of the chunk by the pieces (blocks or groups) that they lie in, then plane after plane. */
#include "stages/chunk/chunk_gather.h"

#include "base/memory.h"
#include "stages/engine/run_layers.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    kiln_worker *w;
    kiln_chunk_kept *k;
    kiln_row_list rows;
    unsigned char *slices; /* of the groups; NULL: planes come from the cache */
} gathering;

/* While planes are put an output is a copy or it is packed; both at once where so many wait that some are packed early. */
uint64_t kiln_chunk_gather_ram(const kiln_row_parts *parts, uint64_t rows, uint64_t read)
{
    const uint64_t all = rows * parts->row_bytes, outputs = kiln_outputs_ram(all);
    const uint64_t lists = rows * 3 * sizeof(uint32_t), bounds = rows * 7 * sizeof(float);
    const uint64_t putting = read + rows * kiln_row_parts_largest(parts) + (outputs >= 2 * all ? outputs - all : outputs);
    return lists + bounds + (putting > outputs ? putting : outputs);
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
    kiln_chunk_bounds(kiln_worker_threads(g->w), g->rows.n, planes[MEANS], planes[LOG_SCALES], planes[OPACITY_LOGITS], &bounds);
    return kiln_worker_put(g->w, "bounds", &bounds, sizeof bounds, sizeof(float), err);
}

static kiln_status list_rows(gathering *g, const kiln_chunk_unit *u, kiln_error *err)
{
    const kiln_chunk_kept *k = g->k;
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

kiln_status kiln_chunk_gather(kiln_worker *w, kiln_chunk_kept *k, const kiln_chunk_unit *u, kiln_error *err)
{
    gathering g = {.w = w, .k = k};
    void *planes[BOUNDED] = {0};
    kiln_status st = KILN_OK;
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
