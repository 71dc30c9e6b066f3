/* made_levels -- see made_levels.h. The worker's side. */
#include "stages/export/made_levels.h"

#include "base/file.h"
#include "base/minmax.h"
#include "stages/lod/lod_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what is stored -------------------------------------------------------------------------- */

/* Planes that draw, and source_row. */
static bool is_stored(int plane)
{
    return plane < KILN_LOD_DRAWN || strcmp(kiln_lod_planes[plane].name, "source_row") == 0;
}

static uint32_t stored_components(int plane, uint32_t sh_degree)
{
    return is_stored(plane) ? kiln_lod_components(&kiln_lod_planes[plane], sh_degree, false) : 0;
}

kiln_status kiln_made_planes(kiln_chunk *c, uint32_t sh_degree, kiln_error *err)
{
    c->n_planes = 0;
    KILN_TRY(KILN_ALLOC(&c->planes, KILN_LOD_PLANES, "planes", err));
    for (int i = 0; i < KILN_LOD_PLANES; i++) {
        const uint32_t components = stored_components(i, sh_degree);
        if (components == 0) continue;
        kiln_plane *p = &c->planes[c->n_planes++];
        (void)snprintf(p->name, sizeof p->name, "%s", kiln_lod_planes[i].name);
        p->type = kiln_lod_planes[i].type;
        p->components = components;
        p->data.raw_bytes = c->count * components * kiln_type_size(p->type);
    }
    return KILN_OK;
}

uint64_t kiln_made_bytes(uint64_t n, uint32_t sh_degree)
{
    uint64_t bytes = 0;
    for (int i = 0; i < KILN_LOD_PLANES; i++)
        bytes += n * stored_components(i, sh_degree) * kiln_type_size(kiln_lod_planes[i].type);
    return bytes;
}

/* ---- rows that are merged -------------------------------------------------------------------- */

typedef struct {
    const kiln_made_request *q;
    const kiln_export_bake *bake;
    const kiln_chunk *chunk;
    kiln_manifest *m;
    kiln_lod_rows from, levels[KILN_LEVELS_MAX]; /* the last of the levels is what is wanted */
    uint64_t counts[KILN_LEVELS_MAX];
    uint32_t n_levels;
} making;

static bool is_of_layer(const kiln_made_request *q, const kiln_export_bake *b)
{
    return q->chunk < b->layer->n_chunks;
}

static const kiln_chunk *chunk_of_request(const kiln_made_request *q, const kiln_export_bake *b)
{
    return is_of_layer(q, b) ? &b->layer->chunks[q->chunk]
                             : &b->levels->chunks[q->chunk - b->layer->n_chunks];
}

/* Reading a plane has looked for finite numbers; merging divides by these. */
static kiln_status check_weights(const making *k, kiln_error *err)
{
    const kiln_coarsen_rows *r = &k->from.rows;
    for (uint64_t i = 0; i < r->n; i++) {
        const bool weighted = !r->visibility || (r->visibility[i] > 0 && r->visibility[i] <= 1);
        const bool prominent =
            !r->prominence || (r->prominence[i] > 0 && r->prominence[i] < INFINITY);
        if (weighted && prominent && r->weights[i] > 0 && r->weights[i] < INFINITY) continue;
        return kiln_fail(err, KILN_E_IO, "row %llu of the level '%s' has weights that cannot be",
                         (unsigned long long)i, k->chunk->name);
    }
    return KILN_OK;
}

static kiln_status read_level(making *k, kiln_error *err)
{
    for (int i = 0; i < KILN_LOD_PLANES; i++) {
        const kiln_lod_plane *p = &kiln_lod_planes[i];
        const uint32_t components = kiln_lod_components(p, k->from.rows.sh_degree, k->q->weighted);
        if (components == 0) continue;
        KILN_TRY(kiln_plane_read(k->m, k->chunk, p->name, kiln_lod_rows_plane(&k->from.rows, p),
                                 k->chunk->count * components * kiln_type_size(p->type), err));
    }
    return check_weights(k, err);
}

static kiln_status read_baked(making *k, kiln_error *err)
{
    kiln_hash of_visibility = k->q->visibility, of_prominence = k->q->prominence;
    const uint64_t bytes = k->chunk->count * sizeof(float);
    const kiln_array visibility = {.raw_bytes = bytes, .n_segments = 1, .segments = &of_visibility};
    const kiln_array prominence = {.raw_bytes = bytes, .n_segments = 1, .segments = &of_prominence};
    const bool seen = !kiln_hash_is_zero(of_visibility);
    KILN_TRY(kiln_lod_rows_read(k->m, k->chunk, seen ? &visibility : NULL,
                                seen ? &prominence : NULL, &k->from, err));
    if (k->q->weighted && k->q->prior.radius > 0)
        kiln_distance_prior_fill(&k->q->prior, &k->from.rows);
    return KILN_OK;
}

/* ---- filters --------------------------------------------------------------------------------- */

static void compact_made_rows(kiln_coarsen_rows *r, bool weighted, const uint8_t *keep,
                              uint64_t kept)
{
    for (int i = 0; i < KILN_LOD_PLANES; i++) {
        const kiln_lod_plane *p = &kiln_lod_planes[i];
        const uint32_t components = kiln_lod_components(p, r->sh_degree, weighted);
        if (components)
            kiln_filters_compact(kiln_lod_rows_plane(r, p), p->type, components, r->n, keep, kept);
    }
    r->n = kept;
}

static kiln_status read_filter_planes(const making *k, const kiln_filters *f, void **planes,
                                      kiln_error *err)
{
    for (uint32_t i = 0; i < f->n_planes; i++) {
        const kiln_plane *p = kiln_chunk_plane(k->chunk, f->planes[i].name);
        if (!p)
            return kiln_fail(err, KILN_E_INPUT, "chunk '%s' has no plane '%s'", k->chunk->name,
                             f->planes[i].name);
        KILN_TRY(kiln_alloc_unset(&planes[i], p->data.raw_bytes, 1, "planes of a chunk", err));
        KILN_TRY(kiln_plane_read(k->m, k->chunk, p->name, planes[i], p->data.raw_bytes, err));
    }
    return KILN_OK;
}

static kiln_status keep_rows(const kiln_export *e, making *k, kiln_error *err)
{
    kiln_filters f = e->filters;
    void *planes[KILN_FILTERS_MAX] = {NULL};
    uint8_t *keep = NULL;
    kiln_status st = KILN_OK;
    if (f.n == 0 || !is_of_layer(k->q, k->bake)) return KILN_OK;
    KILN_TRY(kiln_filters_bind(&f, k->chunk, k->bake->layer->sh_degree, err));
    if (kiln_filters_chunk(&f, k->chunk, k->bake->scene.origin) == KILN_CHUNK_ALL) return KILN_OK;
    KILN_GO(KILN_ALLOC_UNSET(&keep, k->chunk->count, "the choice of rows", err));
    KILN_GO(read_filter_planes(k, &f, planes, err));
    const uint64_t kept = kiln_filters_keep(&f, k->chunk->count, k->bake->scene.origin,
                                            (const void *const *)planes, keep);
    compact_made_rows(&k->from.rows, k->q->weighted, keep, kept);
done:
    for (uint32_t i = 0; i < KILN_FILTERS_MAX; i++) free(planes[i]);
    free(keep);
    return st;
}

/* ---- merging --------------------------------------------------------------------------------- */

/* A level at a time, as kiln-lod goes: each begins with the nearest neighbours of the rows that
 * are left. */
static uint32_t halvings(uint64_t from, uint64_t to, uint64_t counts[KILN_LEVELS_MAX])
{
    uint32_t n = 0;
    for (uint64_t rows = from >> 1; rows > to && n < KILN_LEVELS_MAX - 1; rows >>= 1)
        counts[n++] = rows;
    counts[n++] = to;
    return n;
}

static kiln_status merge_rows(kiln_worker *w, making *k, kiln_error *err)
{
    kiln_coarsen_rows out[KILN_LEVELS_MAX];
    kiln_coarsen_rows *from = &k->from.rows;
    void *work;
    from->antialiased = k->q->antialiased != 0;
    k->n_levels = halvings(from->n, k->q->n, k->counts);
    for (uint32_t i = 0; i < k->n_levels; i++) {
        KILN_TRY(
            kiln_lod_rows_make(k->counts[i], from->sh_degree, k->q->weighted, &k->levels[i], err));
        out[i] = k->levels[i].rows;
    }
    const kiln_coarsen_levels levels = {.n = k->n_levels, .counts = k->counts, .out = out};
    const size_t bytes = kiln_coarsen_bytes(from->n, from->sh_degree, k->n_levels);
    KILN_TRY(kiln_alloc_unset(&work, bytes, 1, "merging", err));
    const kiln_status st = kiln_coarsen(from, &levels, work, bytes, kiln_worker_threads(w), err);
    free(work);
    return st;
}

static kiln_status write_rows(const kiln_export *e, const kiln_made_request *q,
                              const kiln_coarsen_rows *rows, kiln_error *err)
{
    uint64_t at = q->at;
    kiln_status st = KILN_OK;
    const int fd = open(e->made_path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return kiln_fail(err, KILN_E_IO, "cannot open the merged rows in scratch: %s",
                         strerror(errno));
    for (int i = 0; i < KILN_LOD_PLANES && st == KILN_OK; i++) {
        const uint64_t bytes = rows->n * stored_components(i, rows->sh_degree) *
                               kiln_type_size(kiln_lod_planes[i].type);
        if (bytes == 0) continue;
        const int error =
            kiln_file_pwrite(fd, at, kiln_lod_rows_plane(rows, &kiln_lod_planes[i]), bytes, NULL);
        if (error) st = kiln_scratch_write_failed(fd, e->target, error, err);
        at += bytes;
    }
    (void)close(fd);
    return st;
}

static void release_making(making *k)
{
    kiln_lod_rows_release(&k->from);
    for (uint32_t i = 0; i < k->n_levels; i++) kiln_lod_rows_release(&k->levels[i]);
    free(k);
}

static kiln_status open_manifest_of(kiln_export_worker *x, uint32_t bake, kiln_manifest **out,
                                    kiln_error *err)
{
    if (bake == 0) return kiln_worker_manifest(x->w, out, err);
    if (!x->others[bake])
        KILN_TRY(kiln_manifest_open(x->e->bakes[bake].path, KILN_OPEN_READ, "export", true,
                                    &x->others[bake], err));
    *out = x->others[bake];
    return KILN_OK;
}

static const kiln_made_request *request_at(const kiln_export *e, uint64_t unit)
{
    return (const kiln_made_request *)e->plan + unit;
}

kiln_status kiln_made_unit(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const kiln_made_request *q = request_at(x->e, unit);
    kiln_status st = KILN_OK;
    kiln_bounds bounds;
    making *k;
    if ((unit + 1) * sizeof *q > x->e->plan_bytes || q->bake >= x->e->n_bakes)
        return kiln_fail(err, KILN_E_BUG, "there is no level %llu to be made",
                         (unsigned long long)unit);
    KILN_TRY(KILN_ALLOC(&k, 1, "a level", err));
    k->q = q;
    k->bake = &x->e->bakes[q->bake];
    k->chunk = chunk_of_request(q, k->bake);
    KILN_GO(open_manifest_of(x, q->bake, &k->m, err));
    KILN_GO(
        kiln_lod_rows_make(k->chunk->count, k->bake->layer->sh_degree, q->weighted, &k->from, err));
    KILN_GO(is_of_layer(q, k->bake) ? read_baked(k, err) : read_level(k, err));
    KILN_GO(keep_rows(x->e, k, err));
    if (k->from.rows.n < q->n)
        KILN_GO(kiln_fail(err, KILN_E_INPUT,
                          "chunk '%s' has %llu rows that filters leave, not %llu", k->chunk->name,
                          (unsigned long long)k->from.rows.n, (unsigned long long)q->n));
    KILN_GO(merge_rows(x->w, k, err));
    const kiln_coarsen_rows *rows = &k->levels[k->n_levels - 1].rows;
    KILN_GO(write_rows(x->e, q, rows, err));
    kiln_chunk_bounds(1, rows->n, rows->means, rows->log_scales, rows->opacity_logits, &bounds);
    KILN_GO(kiln_export_result(x, &bounds, sizeof bounds, err));
done:
    release_making(k);
    return st;
}

uint64_t kiln_made_ram(const kiln_export *e, uint64_t unit)
{
    const kiln_made_request *q = request_at(e, unit);
    const kiln_export_bake *b = &e->bakes[q->bake];
    const kiln_chunk *c = chunk_of_request(q, b);
    const uint32_t degree = b->layer->sh_degree;
    uint64_t counts[KILN_LEVELS_MAX], levels = 0, filtered = 0;
    const uint32_t n = halvings(c->count, q->n, counts);
    const uint64_t from = kiln_lod_rows_bytes(c->count, degree, q->weighted);
    for (uint32_t i = 0; i < n; i++) levels += kiln_lod_rows_bytes(counts[i], degree, q->weighted);
    /* at most all of them */
    for (uint32_t i = 0; i < c->n_planes && e->filters.n; i++)
        filtered += c->planes[i].data.raw_bytes;
    return from +
           kiln_max_u64(levels + kiln_coarsen_bytes(c->count, degree, n), filtered + c->count) +
           kiln_read_ram(from) + ((uint64_t)1 << 20);
}
