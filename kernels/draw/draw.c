/* draw -- see draw.h. Chunks are projected one at a time, so Gaussians that the camera does not see take no memory. */
#include "kernels/draw/draw.h"

#include "base/memory.h"
#include "kernels/draw/fit.h"
#include "kernels/draw/resident.h"
#include "kernels/draw/slabs.h"
#include "kernels/raster/raster.h"
#include "kernels/visible/visible_math.h"

#include <stdlib.h>
#include <string.h>

/* Visible Gaussians in the order of chunks and rows. The arrays have the same length. */
typedef struct {
    uint64_t n, capacity;
    kiln_splat2d *splats;
    uint32_t *chunk, *source_rows;
} gathered;

static void gathered_release(gathered *g)
{
    free(g->splats);
    free(g->chunk);
    free(g->source_rows);
}

static bool grow_one(void **array, uint64_t capacity, size_t elem)
{
    void *more = capacity <= SIZE_MAX / elem ? realloc(*array, (size_t)capacity * elem) : NULL;
    if (!more) return false;
    kiln_memory_use_large_pages(more, (size_t)capacity * elem);
    *array = more;
    return true;
}

static kiln_status grow_gathered(gathered *g, uint64_t need, kiln_error *err)
{
    const uint64_t capacity = need + need / 2;
    if (need <= g->capacity) return KILN_OK;
    if (!grow_one((void **)&g->splats, capacity, sizeof *g->splats) || !grow_one((void **)&g->chunk, capacity, sizeof *g->chunk) ||
        !grow_one((void **)&g->source_rows, capacity, sizeof *g->source_rows))
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for %llu visible Gaussians", (unsigned long long)need);
    g->capacity = capacity;
    return KILN_OK;
}

/* Keeps those of a chunk's visible Gaussians that belong to the slab, in their order. Returns how many. */
static uint64_t keep_wanted(const kiln_visible_window *w, const kiln_draw_chunk *c, kiln_splat2d *splats, uint64_t visible)
{
    uint64_t kept = 0;
    for (uint64_t k = 0; k < visible; k++)
        if (kiln_visible_wanted(w, &splats[k], c->source_rows[splats[k].row])) splats[kept++] = splats[k];
    return kept;
}

static kiln_status gather_chunk(kiln_runner *r, const kiln_draw_scene *s, uint32_t i, gathered *g, kiln_error *err)
{
    enum { WORTH_THREADS = 16384 };
    const int threads = (int)kiln_runner_get_info(r).threads;
    kiln_draw_chunk c = {0};
    uint64_t visible = 0;
    KILN_TRY(s->chunk(s->context, i, &c, err));
    if (c.n == 0) return KILN_OK;
    KILN_TRY(grow_gathered(g, g->n + c.n, err));
    const kiln_project_args a = {.n = c.n,
                                 .means = c.means,
                                 .log_scales = c.log_scales,
                                 .quats = c.quats,
                                 .opacity_logits = c.opacity_logits,
                                 .sh0 = c.sh0,
                                 .shN = c.sh0 && s->sh_degree > 0 ? c.shN : NULL,
                                 .sh_degree = c.sh0 ? s->sh_degree : 0,
                                 .half_sh = s->fast,
                                 .view = s->view,
                                 .cut = s->cut,
                                 .profile = s->profile,
                                 .antialiased = s->antialiased,
                                 .splats = g->splats + g->n,
                                 .n_visible = &visible};
    KILN_TRY(kiln_runner_run(r, KILN_OP_project, &a, err));
    if (s->window) visible = keep_wanted(&s->window->visible, &c, a.splats, visible);
#pragma omp parallel for num_threads(threads) if (visible > WORTH_THREADS)
    for (uint64_t k = g->n; k < g->n + visible; k++) {
        g->chunk[k] = i;
        g->source_rows[k] = c.source_rows[g->splats[k].row];
    }
    g->n += visible;
    return KILN_OK;
}

/* Sorts; the caller frees *order. Frees the source rows, which are not needed afterwards. */
static kiln_status find_order(kiln_runner *r, gathered *g, uint32_t **order, kiln_error *err)
{
    kiln_status st;
    float *depths = NULL;
    const int threads = (int)kiln_runner_get_info(r).threads;
    KILN_GO(KILN_ALLOC_UNSET(&depths, g->n, "depths", err));
    KILN_GO(KILN_ALLOC_UNSET(order, g->n, "drawing order", err));
#pragma omp parallel for num_threads(threads)
    for (uint64_t i = 0; i < g->n; i++) depths[i] = g->splats[i].depth;
    const kiln_depth_order_args a = {.n = g->n, .depths = depths, .source_rows = g->source_rows, .order = *order};
    KILN_GO(kiln_runner_run(r, KILN_OP_depth_order, &a, err));
    kiln_runner_trim(r); /* frees 20 bytes a Gaussian on the CPU, before the ordered copy is allocated */
    free(g->source_rows);
    g->source_rows = NULL;
done:
    free(depths);
    return st;
}

static kiln_status put_in_order(kiln_runner *r, gathered *g, kiln_drawing *out, kiln_error *err)
{
    kiln_status st;
    uint32_t *order = NULL;
    const int threads = (int)kiln_runner_get_info(r).threads;
    KILN_GO(find_order(r, g, &order, err));
    KILN_GO(KILN_ALLOC_UNSET(&out->splats, g->n, "visible Gaussians", err));
    KILN_GO(KILN_ALLOC_UNSET(&out->chunk, g->n, "visible Gaussians", err));
#pragma omp parallel for num_threads(threads)
    for (uint64_t i = 0; i < g->n; i++) {
        out->splats[i] = g->splats[order[i]];
        out->chunk[i] = g->chunk[order[i]];
    }
    out->n = g->n;
done:
    free(order);
    return st;
}

/* kiln_draw_collect in host memory. */
static kiln_status collect_on_host(kiln_runner *r, const kiln_draw_scene *s, kiln_drawing *out, kiln_error *err)
{
    gathered g = {0};
    kiln_status st = KILN_OK;
    kiln_runner_trim(r); /* frees the work space of an earlier picture, several times what is needed here */
    for (uint32_t i = 0; st == KILN_OK && i < s->n_chunks; i++) {
        st = gather_chunk(r, s, i, &g, err);
        if (st == KILN_OK && g.n > UINT32_MAX - 1) st = kiln_fail(err, KILN_E_INPUT, "more than 4294967294 Gaussians are visible");
    }
    if (st == KILN_OK) st = put_in_order(r, &g, out, err);
    gathered_release(&g);
    if (st != KILN_OK) kiln_drawing_release(out);
    return st;
}

kiln_status kiln_draw_collect(kiln_runner *r, const kiln_draw_scene *s, kiln_drawing *out, kiln_error *err)
{
    bool done = false;
    memset(out, 0, sizeof *out);
    if (s->store && s->header) KILN_TRY(kiln_resident_collect(s, out, &done, err));
    return done ? KILN_OK : collect_on_host(r, s, out, err);
}

kiln_status kiln_draw_collect_or_slabs(kiln_runner *r, const kiln_draw_scene *s, kiln_drawing *out, uint64_t *capacity,
                                       kiln_error *err)
{
    bool done = false;
    memset(out, 0, sizeof *out);
    *capacity = 0;
    if (s->store && s->header) {
        KILN_TRY(kiln_resident_collect(s, out, &done, err));
        if (!done) KILN_TRY(kiln_resident_slab_capacity(s, capacity, err));
    }
    return done || *capacity > 0 ? KILN_OK : collect_on_host(r, s, out, err);
}

void kiln_drawing_release(kiln_drawing *d)
{
    if (d->store) d->store->has_drawing = false;
    free(d->splats);
    free(d->chunk);
    memset(d, 0, sizeof *d);
}

kiln_status kiln_drawing_fetch(kiln_drawing *d, kiln_error *err)
{
    kiln_status st;
    kiln_drawing here = {.n = d->n};
    if (!d->store) return KILN_OK;
    KILN_GO(KILN_ALLOC_UNSET(&here.splats, d->n, "visible Gaussians", err));
    KILN_GO(KILN_ALLOC_UNSET(&here.chunk, d->n, "visible Gaussians", err));
    KILN_GO(kiln_resident_read(d, here.splats, here.chunk, NULL, err));
    kiln_drawing_release(d);
    *d = here;
    return KILN_OK;
done:
    kiln_drawing_release(&here);
    return st;
}

kiln_status kiln_drawing_names(kiln_runner *r, const kiln_drawing *d, uint32_t *chunk, uint32_t *row, kiln_error *err)
{
    const int threads = (int)kiln_runner_get_info(r).threads;
    if (d->store) return kiln_resident_read(d, NULL, chunk, row, err);
#pragma omp parallel for num_threads(threads)
    for (uint64_t i = 0; i < d->n; i++) {
        chunk[i] = d->chunk[i];
        row[i] = d->splats[i].row;
    }
    return KILN_OK;
}

/* ---- parts of a picture ------------------------------------------------------------------------------------------------ */
kiln_status kiln_draw_count(kiln_runner *r, kiln_drawing *d, const kiln_tile_pairs_count_args *a, kiln_error *err)
{
    bool done = false;
    kiln_tile_pairs_count_args with = *a;
    if (d->store) KILN_TRY(kiln_resident_count(d, a, &done, err));
    if (done) return KILN_OK;
    KILN_TRY(kiln_drawing_fetch(d, err));
    with.n = d->n;
    with.splats = d->splats;
    return kiln_fit_count(r, &with, err);
}

kiln_status kiln_draw_emit(kiln_runner *r, kiln_drawing *d, const kiln_tile_pairs_emit_args *a, kiln_error *err)
{
    bool done = false;
    kiln_tile_pairs_emit_args with = *a;
    if (d->store) KILN_TRY(kiln_resident_emit(d, a, &done, err));
    if (done) return KILN_OK;
    KILN_TRY(kiln_drawing_fetch(d, err));
    with.n = d->n;
    with.splats = d->splats;
    return kiln_fit_emit(r, &with, err);
}

kiln_status kiln_draw_raster(kiln_runner *r, kiln_drawing *d, const kiln_raster_args *a, kiln_error *err)
{
    bool done = false;
    kiln_raster_args with = *a;
    if (d->store) KILN_TRY(kiln_resident_raster(d, a, &done, err));
    if (done) return KILN_OK;
    KILN_TRY(kiln_drawing_fetch(d, err));
    with.n = d->n;
    with.splats = d->splats;
    return kiln_fit_raster(r, &with, err);
}

kiln_status kiln_draw_band(kiln_runner *r, kiln_drawing *d, const kiln_raster_args *a, uint32_t *counts, uint32_t *ranks,
                           kiln_error *err)
{
    bool done = false;
    kiln_raster_args with = *a;
    with.tile_counts = with.ranks = NULL;
    if (d->store) KILN_TRY(kiln_resident_raster(d, &with, &done, err));
    if (done) return KILN_OK;
    KILN_TRY(kiln_drawing_fetch(d, err));
    with.n = d->n;
    with.splats = d->splats;
    return kiln_fit_band(r, &with, counts, ranks, err);
}

/* ---- picture ---------------------------------------------------------------------------------------------------------- */

/* Bands of tile rows, relative to the first row that is drawn. Owns row_pairs [rows] and starts [rows + 1]. */
typedef struct {
    uint32_t n, *starts;
    uint64_t *row_pairs, most_pairs, most_rows, total;
} bands;

static void bands_release(bands *b)
{
    free(b->starts);
    free(b->row_pairs);
}

static uint64_t pairs_of(const bands *b, uint32_t band)
{
    uint64_t pairs = 0;
    for (uint32_t row = b->starts[band]; row < b->starts[band + 1]; row++) pairs += b->row_pairs[row];
    return pairs;
}

static kiln_status count_pairs(kiln_runner *r, kiln_drawing *d, const kiln_raster_args *whole, bands *b, kiln_error *err)
{
    const uint32_t n_rows = whole->row1 - whole->row0;
    KILN_TRY(KILN_ALLOC(&b->row_pairs, n_rows, "pairs of tile rows", err));
    KILN_TRY(KILN_ALLOC(&b->starts, (uint64_t)n_rows + 1, "bands", err));
    const kiln_tile_pairs_count_args a = {.view = whole->view, .row0 = whole->row0, .row1 = whole->row1, .row_pairs = b->row_pairs};
    KILN_TRY(kiln_draw_count(r, d, &a, err));
    b->n = kiln_tile_bands(b->row_pairs, n_rows, b->starts);
    for (uint32_t i = 0; i < b->n; i++) {
        const uint64_t pairs = pairs_of(b, i), rows = b->starts[i + 1] - b->starts[i];
        if (pairs > b->most_pairs) b->most_pairs = pairs;
        if (rows > b->most_rows) b->most_rows = rows;
        b->total += pairs;
    }
    return KILN_OK;
}

/* Draws one band. `a` describes all rows. */
static kiln_status draw_band(kiln_runner *r, kiln_drawing *d, const bands *b, uint32_t band, uint32_t *counts, uint32_t *ranks,
                             kiln_raster_args a, kiln_draw_shares *shares, kiln_error *err)
{
    const uint64_t first = (uint64_t)b->starts[band] * KILN_TILE * a.view->width;
    a.row1 = a.row0 + b->starts[band + 1];
    a.row0 += b->starts[band];
    a.n_pairs = pairs_of(b, band);
    if (a.rgba) a.rgba += 4 * first;
    if (a.depth) a.depth += first;
    if (a.state) a.state += first;
    return shares ? kiln_draw_band_shares(r, d, &a, shares, counts, ranks, err) : kiln_draw_band(r, d, &a, counts, ranks, err);
}

kiln_status kiln_draw_rows(kiln_runner *r, kiln_drawing *d, const kiln_raster_args *a, kiln_draw_shares *shares, uint64_t *pairs,
                           kiln_error *err)
{
    kiln_status st;
    bands b = {0};
    uint32_t *counts = NULL, *ranks = NULL;
    KILN_GO(count_pairs(r, d, a, &b, err));
    KILN_GO(KILN_ALLOC(&counts, b.most_rows * kiln_view_tiles_x(a->view), "tile counts", err));
    KILN_GO(KILN_ALLOC_UNSET(&ranks, b.most_pairs, "pairs of a band", err));
    for (uint32_t i = 0; i < b.n; i++) KILN_GO(draw_band(r, d, &b, i, counts, ranks, *a, shares, err));
    *pairs = b.total;
done:
    free(ranks);
    free(counts);
    bands_release(&b);
    return st;
}

/* Arguments of raster for a whole view, without lists and Gaussians. */
kiln_raster_args kiln_draw_whole(const kiln_draw_scene *s, const float background[3], float *rgba, float *depth)
{
    kiln_raster_args a = {
        .view = s->view, .profile = s->profile, .fast = s->fast, .row1 = kiln_view_tiles_y(s->view), .rgba = rgba, .depth = depth};
    memcpy(a.background, background, sizeof a.background);
    return a;
}

kiln_status kiln_draw_picture(kiln_runner *r, const kiln_draw_scene *s, kiln_drawing *d, const float background[3], float *rgba,
                              float *depth, uint64_t *pairs, kiln_error *err)
{
    uint64_t listed = 0;
    const kiln_raster_args a = kiln_draw_whole(s, background, rgba, depth);
    KILN_TRY(kiln_draw_rows(r, d, &a, NULL, &listed, err));
    if (pairs) *pairs = listed;
    return KILN_OK;
}

/* ---- without a drawing ------------------------------------------------------------------------------------------------- */
kiln_status kiln_draw_single_pass(const kiln_draw_scene *s, const float background[3], const kiln_draw_outputs *to,
                                  kiln_draw_stats *stats, bool *done, kiln_error *err)
{
    const kiln_raster_args a = kiln_draw_whole(s, background, to->rgba, to->depth);
    *done = false;
    return s->store && s->header ? kiln_resident_picture(s, &a, to, stats, done, err) : KILN_OK;
}

kiln_status kiln_draw_view(kiln_runner *r, const kiln_draw_scene *s, const float background[3], float *rgba, float *depth,
                           kiln_draw_stats *stats, kiln_error *err)
{
    kiln_draw_stats t = {0};
    const kiln_draw_outputs to = {.rgba = rgba, .depth = depth};
    kiln_drawing d;
    bool done;
    KILN_TRY(kiln_draw_single_pass(s, background, &to, &t, &done, err));
    if (!done) {
        KILN_TRY(kiln_draw_collect(r, s, &d, err));
        const kiln_status st = kiln_draw_picture(r, s, &d, background, rgba, depth, &t.pairs, err);
        t.visible = d.n;
        t.listed = t.pairs;
        kiln_drawing_release(&d);
        KILN_TRY(st);
    }
    if (stats) *stats = t;
    return KILN_OK;
}
