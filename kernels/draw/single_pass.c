/* single_pass -- see kiln_resident_picture: draws a picture without a drawing and with a single wait, at its end. The host does not
 * read back how many Gaussians are visible and how many pairs they have. Buffers are somewhat larger than the last pictures needed.
 * If they are too small, tile_lists lists nothing, the numbers that come with the picture say so, and the caller draws it in steps.
 */
#include "kernels/draw/resident.h"

#include "kernels/draw/draw_gather.h"

#include <string.h>

typedef struct {
    kiln_gathered g;
    uint32_t *counts, *ids;
    float *rgba, *depth;
    uint64_t bytes;
} block;

typedef struct {
    kiln_gather v;
    const kiln_raster_args *picture; /* in host memory */
    uint64_t visible, pairs;         /* capacities */
    block b;                         /* in store->scratch */
    kiln_gather_numbers numbers;
} drawing;

/* Sets the capacities. Returns false if no earlier picture is of this scene, or if they would be too large. */
static bool find_bounds(drawing *d)
{
    enum { MOST = 1 << 30 }; /* of either; far more than pictures have */
    const kiln_store_sizes *last = &d->v.store->last;
    if (last->pairs == 0 || memcmp(last->scene, d->v.all.key, sizeof last->scene) != 0) return false;
    d->visible = kiln_store_bound(last->visible);
    if (d->visible > d->v.rows) d->visible = d->v.rows;
    d->pairs = kiln_store_bound(last->pairs);
    return d->visible > 0 && d->visible <= MOST && d->pairs <= MOST;
}

/* ---- device memory ----------------------------------------------------------------------------------------------------- */
static kiln_tile_lists_args lists_of(const drawing *d, const block *b)
{
    return (kiln_tile_lists_args){.n = d->visible,
                                  .n_visible = b->g.total,
                                  .splats = b->g.splats,
                                  .depths = b->g.depths,
                                  .source_rows = b->g.rows,
                                  .view = d->v.scene->view,
                                  .row0 = d->picture->row0,
                                  .row1 = d->picture->row1,
                                  .capacity = d->pairs,
                                  .tile_counts = b->counts,
                                  .ids = b->ids,
                                  .stats = b->g.list_stats};
}

static kiln_raster_args raster_of(const drawing *d, const block *b)
{
    kiln_raster_args a = *d->picture;
    a.n = d->visible;
    a.splats = b->g.splats;
    a.tile_counts = b->counts;
    a.ranks = b->ids;
    a.n_pairs = d->pairs;
    a.rgba = b->rgba;
    a.depth = b->depth;
    return a;
}

static kiln_status lay_out(const drawing *d, char *at, block *b, kiln_error *err)
{
    kiln_carve c = {at, 0};
    const kiln_raster_args *p = d->picture;
    *b = (block){0};
    /* project writes a scene in one piece to an array of all its rows. */
    KILN_TRY(kiln_gather_lay_out(&d->v, &c, d->v.whole ? d->v.largest.n : d->visible, &b->g, err));
    b->counts = kiln_take(&c, (uint64_t)(p->row1 - p->row0) * kiln_view_tiles_x(p->view), sizeof *b->counts);
    b->ids = kiln_take(&c, d->pairs, sizeof *b->ids);
    b->rgba = kiln_take(&c, 4 * kiln_raster_pixels(p), sizeof *b->rgba);
    if (p->depth) b->depth = kiln_take(&c, kiln_raster_pixels(p), sizeof *b->depth);
    const kiln_tile_lists_args lists = lists_of(d, b);
    const kiln_raster_args raster = raster_of(d, b);
    KILN_TRY(kiln_gather_add_work(&d->v, KILN_OP_tile_lists, &lists, &b->g, err));
    KILN_TRY(kiln_gather_add_work(&d->v, KILN_OP_raster, &raster, &b->g, err));
    kiln_gather_take_work(&c, &b->g);
    b->bytes = c.used;
    return KILN_OK;
}

/* Sets *bytes to the size for an eighth more of both. Along a path that shows more and more, the block would otherwise grow with
 * each picture. */
static kiln_status ample_bytes(const drawing *d, uint64_t *bytes, kiln_error *err)
{
    block b;
    drawing more = *d;
    more.visible += more.visible / 8;
    more.pairs += more.pairs / 8;
    KILN_TRY(lay_out(&more, NULL, &b, err));
    *bytes = b.bytes;
    return KILN_OK;
}

/* Reserves the block without evicting planes. The records block may go, as there is no drawing. */
static kiln_status reserve(const drawing *d, bool *fits, kiln_error *err)
{
    kiln_draw_store *s = d->v.store;
    const uint64_t left = s->scratch.bytes + s->records.bytes + kiln_runner_left(s->runner);
    uint64_t bytes = d->b.bytes, ample;
    if (bytes > s->scratch.bytes) {
        *fits = bytes <= left;
        if (!*fits) return KILN_OK;
        KILN_TRY(ample_bytes(d, &ample, err));
        if (ample <= left) bytes = ample;
        kiln_store_drop_records(s);
    }
    return kiln_store_reserve(s, &s->scratch, bytes, fits, err);
}

/* ---- drawing ----------------------------------------------------------------------------------------------------------- */
/* The picture is copied before the numbers: a copy to memory that is not page-locked waits. */
static kiln_status run(drawing *d, kiln_error *err)
{
    const block *b = &d->b;
    const kiln_gather *v = &d->v;
    const kiln_raster_args *p = d->picture;
    const uint64_t pixels = kiln_raster_pixels(p);
    const kiln_tile_lists_args lists = lists_of(d, b);
    const kiln_raster_args raster = raster_of(d, b);
    KILN_TRY(kiln_gather_run(v, &b->g, err));
    KILN_TRY(kiln_gather_launch(v, &b->g, KILN_OP_tile_lists, &lists, err));
    KILN_TRY(kiln_gather_launch(v, &b->g, KILN_OP_raster, &raster, err));
    KILN_TRY(kiln_device_copy_out(&v->x, p->rgba, b->rgba, 4 * pixels * sizeof *p->rgba, err));
    if (p->depth) KILN_TRY(kiln_device_copy_out(&v->x, p->depth, b->depth, pixels * sizeof *p->depth, err));
    return kiln_gather_read(v, &b->g, &d->numbers, err);
}

static kiln_status draw(drawing *d, kiln_draw_stats *stats, bool *done, kiln_error *err)
{
    kiln_draw_store *store = d->v.store;
    KILN_TRY(kiln_gather_open(&d->v, done, err));
    if (*done) *done = find_bounds(d);
    if (!*done) return KILN_OK;
    KILN_TRY(lay_out(d, NULL, &d->b, err));
    KILN_TRY(reserve(d, done, err));
    if (!*done) return KILN_OK;
    KILN_TRY(lay_out(d, store->scratch.at, &d->b, err));
    KILN_TRY(run(d, err));
    const uint64_t listed = d->numbers.list_stats[0], found = d->numbers.list_stats[1], visible = d->numbers.list_stats[2];
    *done = visible <= d->visible && listed == found;
    if (!*done) return KILN_OK;
    store->last.visible = kiln_store_faded(store->last.visible, visible);
    store->last.pairs = kiln_store_faded(store->last.pairs, found);
    *stats = (kiln_draw_stats){.visible = visible, .pairs = found, .listed = found};
    return KILN_OK;
}

kiln_status kiln_resident_picture(const kiln_draw_scene *s, const kiln_raster_args *a, kiln_draw_stats *stats, bool *done,
                                  kiln_error *err)
{
    *stats = (kiln_draw_stats){0};
    drawing d = {.v = {.scene = s, .store = s->store, .x = kiln_runner_exec(s->store->runner), .bytes = kiln_resident_bytes},
                 .picture = a};
    *done = false;
    if (d.v.x.device < 0 || s->store->has_drawing || s->store->last.pairs == 0 || s->window) return KILN_OK;
    s->store->picture++;
    const kiln_status st = kiln_store_settle(&d.v.x, draw(&d, stats, done, err));
    kiln_gather_close(&d.v);
    return st;
}
