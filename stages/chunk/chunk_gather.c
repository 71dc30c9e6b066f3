/* Gathering: the rows of the chunk by the pieces (blocks or groups) that they lie in, then plane
 * after plane. Where nothing is scattered, few chunks are due: each decodes plane after plane of
 * each block into one array, so that the layer is neither held nor are its pages faulted in.
 *
 * The planes are lent to the worker's outputs from an array that it keeps: no plane is copied to
 * wait for its turn, and no page is taken anew for the next chunk. A component is filled from all
 * pieces before the next one, so that the rows that are written, in any order, lie in a piece of
 * memory that a core's cache holds. */
#include "stages/chunk/chunk_gather.h"

#include "base/checked.h"
#include "base/memory.h"
#include "stages/engine/parent/run_layers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    kiln_worker *w;
    kiln_chunk_kept *k;
    kiln_row_list rows;
    unsigned char *slices; /* of the groups; NULL: planes come from the blocks */
} gathering;

/* Planes lie part after part, each at a multiple of a cache line. */
static uint64_t part_bytes(const kiln_row_part *p, uint64_t rows)
{
    enum { LINE = 64 };
    return kiln_div_up(rows * p->plane->components * p->size, LINE) * LINE;
}

static uint64_t planes_bytes(const kiln_row_parts *parts, uint64_t rows)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < parts->n; i++) sum += part_bytes(&parts->items[i], rows);
    return sum;
}

uint64_t kiln_chunk_gather_ram(const kiln_row_parts *parts, uint64_t rows, uint64_t read)
{
    /* pairs of rows come before them */
    const uint64_t all = planes_bytes(parts, rows), lists = rows * 3 * sizeof(uint32_t);
    return lists + read + all + kiln_outputs_lent_ram(all);
}

/* Makes a kept array at least so large; what it held is lost. */
static kiln_status take_kept_array(unsigned char **array, uint64_t *capacity, uint64_t bytes,
                                   kiln_error *err)
{
    if (*array && *capacity >= bytes) return KILN_OK;
    free(*array);
    *capacity = 0;
    KILN_TRY(kiln_alloc_unset((void **)array, bytes, 1, "the planes of a chunk", err));
    *capacity = bytes;
    return KILN_OK;
}

static kiln_status fill_from_blocks(const gathering *g, const kiln_row_part *p, unsigned char *out,
                                    kiln_error *err)
{
    kiln_manifest *m;
    KILN_TRY(kiln_worker_manifest(g->w, &m, err));
    for (uint32_t b = 0; b < p->layer->n_chunks; b++) {
        const uint64_t first = g->rows.starts[b], n = g->rows.starts[b + 1] - first;
        const kiln_chunk *block = &p->layer->chunks[b];
        const uint64_t bytes = block->count * p->plane->components * p->size;
        if (n == 0) continue;
        KILN_TRY(kiln_row_part_check(p, block, err));
        KILN_TRY(take_kept_array(&g->k->slices, &g->k->slices_bytes, bytes, err));
        KILN_TRY(kiln_plane_read(m, block, p->plane->name, g->k->slices, bytes, err));
        const kiln_row_copy copy = {.from = g->k->slices,
                                    .to = out,
                                    .from_rows = block->count,
                                    .to_rows = g->rows.n,
                                    .components = p->plane->components,
                                    .size = p->size};
        kiln_rows_copy(&copy, g->rows.from + first, g->rows.to + first, n,
                       kiln_worker_threads(g->w));
    }
    return KILN_OK;
}

static void fill_component(const gathering *g, const kiln_row_part *p, uint32_t c,
                           unsigned char *out)
{
    const uint64_t row_bytes = g->k->parts.row_bytes;
    for (uint32_t i = 0; i < g->k->groups.n; i++) {
        const uint64_t first = g->rows.starts[i], n = g->rows.starts[i + 1] - first;
        const kiln_row_copy copy = {.from = g->slices + first * row_bytes + n * p->at,
                                    .to = out,
                                    .from_rows = n,
                                    .to_rows = g->rows.n,
                                    .components = p->plane->components,
                                    .size = p->size};
        kiln_row_component_copy(&copy, c, NULL, g->rows.to + first, n);
    }
}

static void fill_from_slices(const gathering *g, const kiln_row_part *p, unsigned char *out)
{
    const int components = (int)p->plane->components, threads = (int)kiln_worker_threads(g->w);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && components > 1)
    for (int c = 0; c < components; c++) fill_component(g, p, (uint32_t)c, out);
}

static kiln_status gather_part(const gathering *g, const kiln_row_part *p, unsigned char *out,
                               kiln_error *err)
{
    if (g->slices)
        fill_from_slices(g, p, out);
    else
        KILN_TRY(fill_from_blocks(g, p, out, err));
    return kiln_worker_lend(g->w, p->plane->name, out, g->rows.n * p->plane->components * p->size,
                            p->size, err);
}

/* The planes that bounds are made of. */
enum { MEANS, LOG_SCALES, OPACITY_LOGITS, BOUNDED };
static const char *const bounded[BOUNDED] = {"means", "log_scales", "opacity_logits"};

static kiln_status gather_parts(const gathering *g, kiln_error *err)
{
    const float *planes[BOUNDED] = {0};
    uint64_t at = 0;
    for (uint32_t i = 0; i < g->k->parts.n; i++) {
        const kiln_row_part *p = &g->k->parts.items[i];
        void *out = g->k->planes + at;
        KILN_TRY(gather_part(g, p, out, err));
        for (int b = 0; b < BOUNDED; b++)
            if (!strcmp(p->plane->name, bounded[b])) planes[b] = out;
        at += part_bytes(p, g->rows.n);
    }
    if (!planes[MEANS] || !planes[LOG_SCALES] || !planes[OPACITY_LOGITS])
        return kiln_fail(err, KILN_E_INPUT, "the layer has no Gaussians: planes are missing");
    kiln_bounds bounds;
    kiln_chunk_bounds(kiln_worker_threads(g->w), g->rows.n, planes[MEANS], planes[LOG_SCALES],
                      planes[OPACITY_LOGITS], &bounds);
    return kiln_worker_put(g->w, "bounds", &bounds, sizeof bounds, sizeof(float), err);
}

/* The chunk is keyed by these rows, and the order's files may have been damaged since the plan read
 * them. */
static kiln_status check_chunk_rows(const kiln_chunk_kept *k, const kiln_chunk_unit *u,
                                    const uint32_t *rows, uint64_t n, kiln_error *err)
{
    uint32_t(*pairs)[2];
    KILN_TRY(KILN_ALLOC_UNSET(&pairs, n, "the rows of a chunk", err));
    bool sound = true;
    for (uint64_t i = 0; i < n && sound; i++) {
        sound = rows[i] < k->layer->count;
        if (sound) kiln_row_pair(k->starts, k->layer->n_chunks, rows[i], pairs[i]);
    }
    sound = sound && kiln_hash_equal(u->rows, kiln_hash_of(pairs, n * sizeof *pairs));
    free(pairs);
    if (sound) return KILN_OK;
    /* what stays is found by the next run, too */
    if (u->use != KILN_SCRATCH_READ) (void)unlink(k->order.rows.path);
    return kiln_fail(
        err, KILN_E_IO,
        "scratch '%s' is damaged: its rows are not those of the plan; run the same command again",
        k->order.rows.path);
}

static kiln_status list_rows(gathering *g, const kiln_chunk_unit *u, kiln_error *err)
{
    const kiln_chunk_kept *k = g->k;
    uint32_t *rows;
    if (u->begin >= u->end || u->end - u->begin > KILN_CHUNK_ROWS_MAX)
        return kiln_fail(err, KILN_E_BUG, "places %llu to %llu are not a chunk",
                         (unsigned long long)u->begin, (unsigned long long)u->end);
    const uint64_t n = u->end - u->begin;
    KILN_TRY(KILN_ALLOC_UNSET(&rows, n, "the rows of a chunk", err));
    kiln_status st = kiln_spatial_rows(&k->order, u->begin, n, rows, err);
    if (st == KILN_OK) st = check_chunk_rows(k, u, rows, n, err);
    if (st == KILN_OK && u->group_rows)
        st = kiln_row_list_make(rows, n, k->groups.starts, k->groups.n, &g->rows, err);
    else if (st == KILN_OK)
        st = kiln_row_list_make(rows, n, k->starts, k->layer->n_chunks, &g->rows, err);
    free(rows);
    return st;
}

static kiln_status read_slices(gathering *g, const kiln_chunk_unit *u, kiln_error *err)
{
    kiln_chunk_kept *k = g->k;
    KILN_TRY(take_kept_array(&k->slices, &k->slices_bytes, g->rows.n * k->parts.row_bytes, err));
    g->slices = k->slices;
    return kiln_group_slices(&k->store, u->index, &g->rows, k->slices, err);
}

kiln_status kiln_chunk_blame_plan(const kiln_chunk_unit *u, kiln_status st, kiln_error *err)
{
    if (st == KILN_E_IO && u->use == KILN_SCRATCH_READ)
        kiln_note(
            err,
            "the data that the plan left for the tasks cannot be used (--gather makes them again)");
    return st;
}

kiln_status kiln_chunk_gather(kiln_worker *w, kiln_chunk_kept *k, const kiln_chunk_unit *u,
                              kiln_error *err)
{
    gathering g = {.w = w, .k = k};
    kiln_status st = KILN_OK;
    if (!u->group_rows) kiln_memory_keep(kiln_scatter_kept(k->layer, &k->parts));
    KILN_GO(kiln_chunk_blame_plan(u, list_rows(&g, u, err), err));
    if (u->group_rows) KILN_GO(kiln_chunk_blame_plan(u, read_slices(&g, u, err), err));
    KILN_GO(take_kept_array(&k->planes, &k->planes_bytes, planes_bytes(&k->parts, g.rows.n), err));
    KILN_GO(gather_parts(&g, err));
done:
    kiln_row_list_release(&g.rows);
    return st;
}
