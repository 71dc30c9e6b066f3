/* slabs -- see slabs.h. Each slab is collected, listed and blended like a picture, on top of the
 * state that the slabs before left for every pixel. A pixel meets its Gaussians in the order of a
 * single pass and does the same steps with each. So the position of the cuts does not change its
 * bits. */
#include "kernels/draw/slabs.h"

#include "base/memory.h"
#include "kernels/depth_order/depth_order_math.h"
#include "kernels/draw/cuts.h"
#include "kernels/draw/drawing.h"
#include "kernels/draw/draw_probe.h"
#include "kernels/draw/shares.h"
#include "kernels/raster/raster_math.h"

#include <stdlib.h>

typedef struct {
    uint64_t first, last; /* of the keys of visible Gaussians; first > last: there are none */
} key_range;

typedef struct {
    kiln_runner *runner;
    const kiln_draw_scene *scene;
    key_range *chunks; /* [n_chunks] */
    kiln_cuts cuts;
    uint32_t *live; /* kiln_visible_window.live */
    kiln_draw_window window;
    kiln_raster_state *state;   /* [height][width] */
    const kiln_draw_want *want; /* of shares, instead of a picture; NULL: a picture */
    uint32_t tiles_x, tiles_y;
    int threads;
} drawing;

/* ---- where to cut ---------------------------------------------------------------------------- */
/* Adds a chunk's keys to the cuts and returns their range. */
static key_range add_keys(drawing *v, const kiln_probe *g)
{
    uint64_t first = UINT64_MAX, last = 0;
#pragma omp parallel for num_threads(v->threads) reduction(min : first) reduction(max : last)
    for (uint64_t i = 0; i < g->n; i++) {
        const uint64_t key = kiln_depth_key(g->splats[i].depth, g->source_rows[g->splats[i].row]);
        kiln_cuts_add(&v->cuts, key);
        if (key < first) first = key;
        if (key > last) last = key;
    }
    return (key_range){first, last};
}

static kiln_status look_first(drawing *v, const kiln_draw_scene *geometry, kiln_draw_stats *stats,
                              kiln_error *err)
{
    kiln_probe g = {0};
    kiln_status st = KILN_OK;
    for (uint32_t i = 0; st == KILN_OK && i < v->scene->n_chunks; i++) {
        st = kiln_probe_chunk(v->runner, geometry, i, &g, err);
        if (st != KILN_OK) continue;
        v->chunks[i] = add_keys(v, &g);
        stats->visible += g.n;
        for (uint32_t row = 0; g.n > 0 && row < v->tiles_y; row++) stats->pairs += g.row_pairs[row];
    }
    kiln_probe_release(&g);
    return st;
}

static kiln_status look_again(drawing *v, const kiln_draw_scene *geometry, kiln_error *err)
{
    kiln_probe g = {0};
    kiln_status st = KILN_OK;
    for (uint32_t i = 0; st == KILN_OK && i < v->scene->n_chunks; i++) {
        if (v->chunks[i].first > v->chunks[i].last ||
            !kiln_cuts_asks_for(&v->cuts, v->chunks[i].first, v->chunks[i].last))
            continue;
        st = kiln_probe_chunk(v->runner, geometry, i, &g, err);
        if (st == KILN_OK) (void)add_keys(v, &g);
    }
    kiln_probe_release(&g);
    return st;
}

static kiln_status find_cuts(drawing *v, uint64_t capacity, kiln_draw_stats *stats, kiln_error *err)
{
    bool more;
    kiln_draw_scene geometry = *v->scene;
    if (geometry.geometry_context) geometry.context = geometry.geometry_context;
    KILN_TRY(kiln_cuts_begin(&v->cuts, capacity, err));
    KILN_TRY(look_first(v, &geometry, stats, err));
    KILN_TRY(kiln_cuts_settle(&v->cuts, &more, err));
    while (more) {
        KILN_TRY(look_again(v, &geometry, err));
        KILN_TRY(kiln_cuts_settle(&v->cuts, &more, err));
    }
    return KILN_OK;
}

/* ---- finished tiles -------------------------------------------------------------------------- */
static bool is_live(const drawing *v, uint32_t tile_x, uint32_t tile_y)
{
    const kiln_view *view = v->scene->view;
    const uint32_t x0 = tile_x * KILN_TILE, y0 = tile_y * KILN_TILE;
    for (uint32_t y = y0; y < y0 + KILN_TILE && y < view->height; y++)
        for (uint32_t x = x0; x < x0 + KILN_TILE && x < view->width; x++)
            if (!kiln_state_stopped(v->state[(uint64_t)y * view->width + x].left)) return true;
    return v->want && v->want->alphas; /* which count behind finished pixels, too */
}

/* Makes v->live, a summed-area table of the tiles that are not finished: sums along rows, then down
 * the columns. */
static void sum_live(drawing *v)
{
    const uint64_t step = (uint64_t)v->tiles_x + 1;
#pragma omp parallel for num_threads(v->threads)
    for (uint32_t y = 0; y < v->tiles_y; y++) {
        uint32_t *row = v->live + (y + 1) * step;
        for (uint32_t x = 0; x < v->tiles_x; x++) row[x + 1] = row[x] + is_live(v, x, y);
    }
    for (uint64_t at = step; at < (v->tiles_y + 1) * step; at++) v->live[at] += v->live[at - step];
}

static uint32_t live_above(const drawing *v, uint32_t row)
{
    return v->live[(uint64_t)row * (v->tiles_x + 1) + v->tiles_x];
}

/* ---- a slab ---------------------------------------------------------------------------------- */
static bool is_in_slab(const drawing *v, uint32_t chunk)
{
    return v->chunks[chunk].first < v->window.visible.to &&
           v->chunks[chunk].last >= v->window.visible.from;
}

static kiln_status give_slab_chunk(void *context, uint32_t chunk, kiln_draw_chunk *out,
                                   kiln_error *err)
{
    const drawing *v = context;
    *out = (kiln_draw_chunk){0};
    return is_in_slab(v, chunk) ? v->scene->chunk(v->scene->context, chunk, out, err) : KILN_OK;
}

static kiln_status give_header(void *context, uint32_t chunk, kiln_draw_chunk_header *out,
                               kiln_error *err)
{
    const drawing *v = context;
    KILN_TRY(v->scene->header(v->scene->context, chunk, out, err));
    if (!is_in_slab(v, chunk)) out->hidden = true;
    return KILN_OK;
}

/* Draws the tile rows that have an unfinished tile; adjacent rows together. */
static kiln_status draw_live_rows(drawing *v, const kiln_band_way *way, kiln_draw_stats *stats,
                                  kiln_error *err)
{
    kiln_raster_args a = {
        .view = v->scene->view, .profile = v->scene->profile, .fast = v->scene->fast};
    for (uint32_t row = 0; row < v->tiles_y; row = a.row1 + 1) {
        kiln_bands_listed listed;
        bool done;
        a.row0 = a.row1 = row;
        while (a.row1 < v->tiles_y && live_above(v, a.row1 + 1) > live_above(v, a.row1)) a.row1++;
        if (a.row0 == a.row1) continue;
        a.state = v->state + (uint64_t)a.row0 * KILN_TILE * a.view->width;
        KILN_TRY(kiln_bands_draw(way, &a, &listed, &done, err));
        stats->listed += listed.pairs;
    }
    return KILN_OK;
}

static kiln_status draw_collected(drawing *v, kiln_drawing *d, kiln_draw_stats *stats,
                                  kiln_error *err)
{
    kiln_bands_source of = {.runner = v->runner, .drawing = d};
    const kiln_band_way way = kiln_bands_of(&of);
    return draw_live_rows(v, &way, stats, err);
}

static kiln_status weigh_collected(drawing *v, kiln_drawing *d, kiln_draw_stats *stats,
                                   kiln_error *err)
{
    kiln_shares shares;
    kiln_status st;
    KILN_GO(kiln_shares_begin(v->runner, d, v->want, &shares, err));
    const kiln_band_way way = kiln_shares_bands(&shares);
    KILN_GO(draw_live_rows(v, &way, stats, err));
    KILN_GO(kiln_shares_add(&shares, err));
done:
    kiln_shares_release(&shares);
    return st;
}

static kiln_status draw_slab(drawing *v, const kiln_slab *slab, kiln_draw_stats *stats,
                             kiln_error *err)
{
    kiln_drawing d;
    kiln_draw_scene scene = *v->scene;
    v->window.visible.from = slab->from;
    v->window.visible.to = slab->to;
    v->window.most = slab->count;
    scene.window = &v->window;
    scene.chunk = give_slab_chunk;
    scene.header = scene.header ? give_header : NULL;
    scene.context = v;
    KILN_TRY(kiln_draw_collect(v->runner, &scene, &d, err));
    const kiln_status st =
        v->want ? weigh_collected(v, &d, stats, err) : draw_collected(v, &d, stats, err);
    kiln_drawing_release(&d);
    sum_live(v);
    return st;
}

static kiln_status draw_slabs(drawing *v, kiln_draw_stats *stats, kiln_error *err)
{
    kiln_slab slab;
    for (uint64_t at = 0; kiln_cuts_next(&v->cuts, &at, &slab); stats->slabs++) {
        if (live_above(v, v->tiles_y) == 0) continue;
        KILN_TRY(draw_slab(v, &slab, stats, err));
        stats->drawn++;
    }
    return KILN_OK;
}

/* What is drawn is in v->state, or in the sums of v->want. */
static kiln_status draw_view(drawing *v, uint64_t capacity, kiln_draw_stats *stats, kiln_error *err)
{
    kiln_status st;
    const kiln_draw_scene *s = v->scene;
    v->tiles_x = kiln_view_tiles_x(s->view);
    v->tiles_y = kiln_view_tiles_y(s->view);
    v->threads = (int)kiln_runner_get_info(v->runner).threads;
    KILN_GO(KILN_ALLOC(&v->chunks, s->n_chunks, "chunks in view", err));
    KILN_GO(KILN_ALLOC(&v->live, ((uint64_t)v->tiles_x + 1) * (v->tiles_y + 1), "tiles", err));
    KILN_GO(KILN_ALLOC(&v->state, (uint64_t)s->view->width * s->view->height,
                       "pixels between slabs", err));
    /* one for all slabs, so that no slab evicts planes of another */
    if (s->store) kiln_store_next_picture(s->store);
    v->window.visible =
        (kiln_visible_window){.tiles_x = v->tiles_x, .tiles_y = v->tiles_y, .live = v->live};
    sum_live(v);
    KILN_GO(find_cuts(v, capacity, stats, err));
    KILN_GO(draw_slabs(v, stats, err));
done:
    kiln_cuts_release(&v->cuts);
    free(v->live);
    free(v->chunks);
    return st;
}

kiln_status kiln_slabs_draw(kiln_runner *r, const kiln_draw_scene *s, uint64_t capacity,
                            const kiln_raster_args *a, kiln_draw_stats *stats, kiln_error *err)
{
    drawing v = {.runner = r, .scene = s};
    const kiln_status st = draw_view(&v, capacity, stats, err);
    if (st == KILN_OK)
        kiln_raster_finish(v.state, (uint64_t)s->view->width * s->view->height, a->background,
                           (unsigned)v.threads, a->rgba, a->depth);
    free(v.state);
    return st;
}

kiln_status kiln_slabs_weigh(kiln_runner *r, const kiln_draw_scene *s, uint64_t capacity,
                             const kiln_draw_want *want, kiln_draw_stats *stats, kiln_error *err)
{
    drawing v = {.runner = r, .scene = s, .want = want};
    const kiln_status st = draw_view(&v, capacity, stats, err);
    free(v.state);
    return st;
}
