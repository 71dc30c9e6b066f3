/* The worker's half of kiln-chunk. Between units it keeps the layers' rows, the plan's order and decoded planes: chunks
 * are near each other in space while blocks follow the source, so a chunk reads a few rows of nearly every block. */
#include "stages/chunk/units.h"

#include "base/memory.h"
#include "stages/chunk/plan.h"
#include "stages/engine/layers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    kiln_layer *layer, *spacing; /* spacing: NULL when the layer has the plane itself */
    kiln_hash plan;              /* of which `order` is; zero: none read yet */
    uint32_t *order;
    uint64_t n_order;
    uint64_t *starts; /* rows of the layer by blocks (plan.h) */
    kiln_plane_cache *cache;
} kept;

static void kept_free(void *state)
{
    kept *k = state;
    if (!k) return;
    kiln_plane_cache_free(k->cache);
    free(k->starts);
    free(k->order);
    kiln_layer_free(k->spacing);
    kiln_layer_free(k->layer);
    free(k);
}

/* Half of --ram, which is enough for every plane of a scene that fits into memory, and never less than this. */
static uint64_t cache_budget(void)
{
    const uint64_t least = (uint64_t)1 << 28;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    uint64_t whole = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
    uint64_t half = kiln_size_resolve(kiln_common_values.ram, whole) / 2;
    return half > least ? half : least;
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
    return kiln_plane_cache_new(cache_budget(), &k->cache, err);
}

static kiln_status keep(kiln_worker *w, const kiln_chunk_unit *u, kept **out, kiln_error *err)
{
    kept *k = kiln_worker_state(w);
    bool same = k && kiln_hash_equal(k->layer->digest, u->layer) && !k->spacing == kiln_hash_is_zero(u->spacing);
    if (!same) {
        KILN_TRY(KILN_ALLOC(&k, 1, "the state of chunk", err));
        kiln_status st = open_layers(w, u, k, err);
        if (st != KILN_OK) {
            kept_free(k);
            return st;
        }
        kiln_worker_set_state(w, k, kept_free);
    }
    *out = k;
    return KILN_OK;
}

static kiln_status read_order(kiln_worker *w, const kiln_chunk_unit *u, kept *k, kiln_error *err)
{
    kiln_manifest *m;
    kiln_unit_result r = {0};
    bool found;
    uint64_t bytes = 0;
    kiln_status st = KILN_OK;
    if (k->order && kiln_hash_equal(k->plan, u->plan)) return KILN_OK;
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    free(k->order);
    k->order = NULL;
    KILN_GO(kiln_unit_find(m, u->plan, &found, &r, err));
    if (!found) KILN_GO(kiln_fail(err, KILN_E_BUG, "the plan of the chunks is not stored"));
    KILN_GO(kiln_unit_result_read(m, &r, "order", (void **)&k->order, &bytes, err));
    k->n_order = bytes / sizeof *k->order;
    k->plan = u->plan;
done:
    kiln_unit_result_release(&r);
    return st;
}

/* ---- gathering ---------------------------------------------------------------------------------------------------------- */
typedef struct {
    uint32_t *from;   /* [n] row in its block, grouped by block */
    uint32_t *to;     /* [n] place in the chunk */
    uint64_t *starts; /* [n_blocks + 1] of the groups */
    uint64_t n;
} row_list;

static void row_list_release(row_list *l)
{
    free(l->starts);
    free(l->to);
    free(l->from);
}

/* Counting sort of the chunk's rows by block, so that each block's plane is decoded once a chunk. */
static kiln_status list_rows(const kept *k, const kiln_chunk_unit *u, row_list *l, kiln_error *err)
{
    uint32_t n_blocks = k->layer->n_chunks;
    if (u->begin >= u->end || u->end > k->n_order || u->end - u->begin > KILN_CHUNK_ROWS_MAX)
        return kiln_fail(err, KILN_E_BUG, "rows %llu to %llu are no chunk", (unsigned long long)u->begin,
                         (unsigned long long)u->end);
    l->n = u->end - u->begin;
    KILN_TRY(KILN_ALLOC(&l->from, l->n, "the rows of a chunk", err));
    KILN_TRY(KILN_ALLOC(&l->to, l->n, "the rows of a chunk", err));
    KILN_TRY(KILN_ALLOC(&l->starts, (uint64_t)n_blocks + 2, "the blocks of a chunk", err));
    uint64_t *next = l->starts + 1; /* after the second pass next[b] has become the end of b, the start of b + 1 */
    for (uint64_t i = 0; i < l->n; i++) {
        uint64_t row = k->order[u->begin + i];
        if (row >= k->layer->count)
            return kiln_fail(err, KILN_E_IO, "the plan names row %llu of %llu", (unsigned long long)row,
                             (unsigned long long)k->layer->count);
        next[kiln_block_of(k->starts, n_blocks, row) + 1]++;
    }
    for (uint32_t b = 0; b < n_blocks; b++) next[b + 1] += next[b];
    for (uint64_t i = 0; i < l->n; i++) {
        uint64_t row = k->order[u->begin + i];
        uint32_t b = kiln_block_of(k->starts, n_blocks, row);
        uint64_t at = next[b]++;
        l->from[at] = (uint32_t)(row - k->starts[b]);
        l->to[at] = (uint32_t)i;
    }
    return KILN_OK;
}

typedef struct {
    const unsigned char *from;
    unsigned char *to;
    uint64_t from_rows, to_rows; /* distance between components */
    uint32_t components, size;
} strided;

static void copy_rows(const strided *s, const uint32_t *from, const uint32_t *to, uint64_t n, unsigned threads)
{
#pragma omp parallel for num_threads(threads) schedule(static) if (s->components * n > 65536)
    for (uint32_t c = 0; c < s->components; c++) {
        if (s->size == 4) { /* nearly all of them */
            const uint32_t *src = (const uint32_t *)(const void *)s->from + c * s->from_rows;
            uint32_t *dst = (uint32_t *)(void *)s->to + c * s->to_rows;
            for (uint64_t i = 0; i < n; i++) dst[to[i]] = src[from[i]];
        } else {
            for (uint64_t i = 0; i < n; i++)
                memcpy(s->to + (c * s->to_rows + to[i]) * s->size, s->from + (c * s->from_rows + from[i]) * s->size, s->size);
        }
    }
}

static kiln_status gather_plane(kiln_worker *w, const kept *k, const kiln_layer *l, const kiln_plane *p, const row_list *rows,
                                void **out, kiln_error *err)
{
    kiln_manifest *m;
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    uint32_t size = kiln_type_size(p->type);
    KILN_TRY(kiln_alloc(out, rows->n * p->components, size, p->name, err));
    for (uint32_t b = 0; b < l->n_chunks; b++) {
        uint64_t first = rows->starts[b], n = rows->starts[b + 1] - first;
        const kiln_chunk *block = &l->chunks[b];
        const void *data;
        if (n == 0) continue;
        const kiln_plane *q = kiln_chunk_plane(block, p->name);
        if (q && (q->type != p->type || q->components != p->components))
            return kiln_fail(err, KILN_E_IO, "plane '%s' of block '%s' has another type than in the other blocks", p->name,
                             block->name);
        KILN_TRY(kiln_plane_cache_get(k->cache, m, block, p->name, &data, err));
        strided s = {
            .from = data, .to = *out, .from_rows = block->count, .to_rows = rows->n, .components = p->components, .size = size};
        copy_rows(&s, rows->from + first, rows->to + first, n, kiln_worker_threads(w));
    }
    return KILN_OK;
}

static kiln_status put_bounds(kiln_worker *w, const kiln_chunk *model, void *const *planes, uint64_t n, kiln_error *err)
{
    const float *means = NULL, *log_scales = NULL, *opacity_logits = NULL;
    kiln_bounds bounds;
    for (uint32_t p = 0; p < model->n_planes; p++) {
        if (!strcmp(model->planes[p].name, "means")) means = planes[p];
        if (!strcmp(model->planes[p].name, "log_scales")) log_scales = planes[p];
        if (!strcmp(model->planes[p].name, "opacity_logits")) opacity_logits = planes[p];
    }
    if (!means || !log_scales || !opacity_logits)
        return kiln_fail(err, KILN_E_INPUT, "the layer has no Gaussians: planes are missing");
    kiln_chunk_bounds(n, means, log_scales, opacity_logits, &bounds);
    return kiln_worker_put(w, "bounds", &bounds, sizeof bounds, sizeof(float), err);
}

static kiln_status gather_layer(kiln_worker *w, const kept *k, const row_list *rows, kiln_error *err)
{
    const kiln_chunk *model = kiln_layer_model(k->layer);
    void **planes;
    kiln_status st = KILN_OK;
    KILN_TRY(KILN_ALLOC(&planes, model->n_planes, "the planes of a chunk", err));
    for (uint32_t p = 0; p < model->n_planes; p++) {
        const kiln_plane *plane = &model->planes[p];
        uint64_t bytes = rows->n * plane->components * kiln_type_size(plane->type);
        KILN_GO(gather_plane(w, k, k->layer, plane, rows, &planes[p], err));
        KILN_GO(kiln_worker_put(w, plane->name, planes[p], bytes, kiln_type_size(plane->type), err));
    }
    KILN_GO(put_bounds(w, model, planes, rows->n, err));
done:
    for (uint32_t p = 0; p < model->n_planes; p++) free(planes[p]);
    free(planes);
    return st;
}

static kiln_status gather_spacing(kiln_worker *w, const kept *k, const row_list *rows, kiln_error *err)
{
    void *data = NULL;
    const kiln_plane plane = {.name = "spacing2", .type = KILN_TYPE_F32, .components = 1};
    if (!k->spacing) return KILN_OK;
    kiln_status st = gather_plane(w, k, k->spacing, &plane, rows, &data, err);
    if (st == KILN_OK) st = kiln_worker_put(w, plane.name, data, rows->n * sizeof(float), sizeof(float), err);
    free(data);
    return st;
}

static kiln_status gather(kiln_worker *w, kept *k, const kiln_chunk_unit *u, kiln_error *err)
{
    row_list rows = {0};
    kiln_status st = KILN_OK;
    KILN_GO(read_order(w, u, k, err));
    KILN_GO(list_rows(k, u, &rows, err));
    KILN_GO(gather_layer(w, k, &rows, err));
    KILN_GO(gather_spacing(w, k, &rows, err));
done:
    row_list_release(&rows);
    return st;
}

kiln_status kiln_chunk_compute(kiln_worker *w, const char *name, const void *payload, size_t payload_bytes, kiln_error *err)
{
    kiln_chunk_unit u;
    kept *k;
    if (payload_bytes != sizeof u) return kiln_fail(err, KILN_E_BUG, "unit '%s' came with %zu bytes", name, payload_bytes);
    memcpy(&u, payload, sizeof u);
    KILN_TRY(keep(w, &u, &k, err));
    return u.unit == KILN_CHUNK_PLAN ? kiln_chunk_plan(w, k->layer, &u, err) : gather(w, k, &u, err);
}
