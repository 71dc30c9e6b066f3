/* single_pass -- see kiln_resident_picture: draws a picture without a drawing and with a single wait, at its end. The host does not
 * read back how many Gaussians are visible and how many pairs they have. Buffers are somewhat larger than the last pictures needed.
 * If they are too small, tile_lists lists nothing, and the numbers that come with the picture say what it needs. It is then drawn
 * once more with that much; if even this is too little, the caller draws it in steps.
 *
 * Floats of a picture are copied only if the caller wants them. A picture of 3840 x 2160 has 133 MB, which take as long to copy as
 * it takes to draw; its hashes are 2 KB, the rows of its PNG or its bytes 25 MB. They are made on the device.
 */
#include "kernels/draw/resident.h"

#include "kernels/draw/draw_gather.h"

#include <string.h>

typedef struct {
    kiln_gathered g;
    uint32_t *counts, *ids;
    float *rgba, *depth;
    unsigned char *hashes, *rows, *colours; /* NULL: not wanted */
    uint64_t bytes;
} block;

typedef struct {
    kiln_gather v;
    const kiln_raster_args *picture; /* in host memory; its rgba may be NULL */
    const kiln_draw_outputs *to;
    uint64_t visible, pairs; /* capacities */
    block b;                 /* in store->scratch */
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

static kiln_pixel_hashes_args hashes_of(const drawing *d, const block *b)
{
    return (kiln_pixel_hashes_args){.pixels = kiln_raster_pixels(d->picture), .rgba = b->rgba, .hashes = b->hashes};
}

static kiln_png_rows_args rows_of(const drawing *d, const block *b)
{
    kiln_png_rows_args a = *d->to->png;
    a.pixels = b->rgba;
    a.rows = b->rows;
    return a;
}

static kiln_pixel_bytes_args colours_of(const drawing *d, const block *b)
{
    kiln_pixel_bytes_args a = *d->to->bytes;
    a.pixels = b->rgba;
    a.bytes = b->colours;
    return a;
}

static uint64_t hashes_bytes(const drawing *d) { return KILN_PIXEL_HASH_BYTES * kiln_pixel_pieces(kiln_raster_pixels(d->picture)); }
static uint64_t rows_bytes(const drawing *d) { return d->to->png->n * kiln_png_row_bytes(d->to->png); }
static uint64_t colours_bytes(const drawing *d)
{
    const kiln_pixel_bytes_args *a = d->to->bytes;
    return kiln_pixel_bytes_size(a->layout, a->width, a->height);
}

/* Takes what is made of the picture, and the work space for it. */
static kiln_status lay_out_outputs(const drawing *d, kiln_carve *c, block *b, kiln_error *err)
{
    if (d->to->hashes) {
        b->hashes = kiln_take(c, hashes_bytes(d), 1);
        const kiln_pixel_hashes_args hashes = hashes_of(d, b);
        KILN_TRY(kiln_gather_add_work(&d->v, KILN_OP_pixel_hashes, &hashes, &b->g, err));
    }
    if (d->to->png) {
        b->rows = kiln_take(c, rows_bytes(d), 1);
        const kiln_png_rows_args rows = rows_of(d, b);
        KILN_TRY(kiln_gather_add_work(&d->v, KILN_OP_png_rows, &rows, &b->g, err));
    }
    if (!d->to->bytes) return KILN_OK;
    b->colours = kiln_take(c, colours_bytes(d), 1);
    const kiln_pixel_bytes_args colours = colours_of(d, b);
    return kiln_gather_add_work(&d->v, KILN_OP_pixel_bytes, &colours, &b->g, err);
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
    KILN_TRY(lay_out_outputs(d, &c, b, err));
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
/* Makes and copies what the caller wants. Copies to memory that is not page-locked wait, so floats, rows and bytes, which can be in
 * locked memory, come before hashes and numbers. */
static kiln_status hand_out(const drawing *d, kiln_error *err)
{
    const block *b = &d->b;
    const kiln_exec *x = &d->v.x;
    const uint64_t pixels = kiln_raster_pixels(d->picture);
    if (d->to->hashes) {
        const kiln_pixel_hashes_args hashes = hashes_of(d, b);
        KILN_TRY(kiln_gather_launch(&d->v, &b->g, KILN_OP_pixel_hashes, &hashes, err));
    }
    if (d->to->png) {
        const kiln_png_rows_args rows = rows_of(d, b);
        KILN_TRY(kiln_gather_launch(&d->v, &b->g, KILN_OP_png_rows, &rows, err));
    }
    if (d->to->bytes) {
        const kiln_pixel_bytes_args colours = colours_of(d, b);
        KILN_TRY(kiln_gather_launch(&d->v, &b->g, KILN_OP_pixel_bytes, &colours, err));
    }
    if (d->to->rgba) KILN_TRY(kiln_device_copy_out(x, d->to->rgba, b->rgba, 4 * pixels * sizeof *b->rgba, err));
    if (d->to->depth) KILN_TRY(kiln_device_copy_out(x, d->to->depth, b->depth, pixels * sizeof *b->depth, err));
    if (d->to->png) KILN_TRY(kiln_device_copy_out(x, d->to->png->rows, b->rows, rows_bytes(d), err));
    if (d->to->bytes) KILN_TRY(kiln_device_copy_out(x, d->to->bytes->bytes, b->colours, colours_bytes(d), err));
    return d->to->hashes ? kiln_device_copy_out(x, d->to->hashes, b->hashes, hashes_bytes(d), err) : KILN_OK;
}

static kiln_status run(drawing *d, kiln_error *err)
{
    const block *b = &d->b;
    const kiln_gather *v = &d->v;
    const kiln_tile_lists_args lists = lists_of(d, b);
    const kiln_raster_args raster = raster_of(d, b);
    KILN_TRY(kiln_gather_run(v, &b->g, err));
    KILN_TRY(kiln_gather_launch(v, &b->g, KILN_OP_tile_lists, &lists, err));
    KILN_TRY(kiln_gather_launch(v, &b->g, KILN_OP_raster, &raster, err));
    KILN_TRY(hand_out(d, err));
    return kiln_gather_read(v, &b->g, &d->numbers, err);
}

/* Draws with capacities by the sizes of the last pictures. Sets those sizes, also if the capacities were too small. */
static kiln_status draw_once(drawing *d, kiln_draw_stats *stats, bool *fits, bool *done, kiln_error *err)
{
    kiln_draw_store *store = d->v.store;
    *done = false;
    *fits = find_bounds(d);
    if (!*fits) return KILN_OK;
    KILN_TRY(lay_out(d, NULL, &d->b, err));
    KILN_TRY(reserve(d, fits, err));
    if (!*fits) return KILN_OK;
    KILN_TRY(lay_out(d, store->scratch.at, &d->b, err));
    KILN_TRY(run(d, err));
    const uint64_t listed = d->numbers.list_stats[0], found = d->numbers.list_stats[1], visible = d->numbers.list_stats[2];
    *done = visible <= d->visible && listed == found;
    store->last.visible = kiln_store_faded(store->last.visible, visible);
    store->last.pairs = kiln_store_faded(store->last.pairs, found); /* found is 0 if more were visible than there was room for */
    if (*done) *stats = (kiln_draw_stats){.visible = visible, .pairs = found, .listed = found};
    return KILN_OK;
}

static kiln_status draw(drawing *d, kiln_draw_stats *stats, bool *done, kiln_error *err)
{
    enum { TURNS = 2 };
    bool fits;
    KILN_TRY(kiln_gather_open(&d->v, &fits, err));
    for (int turn = 0; fits && !*done && turn < TURNS; turn++) KILN_TRY(draw_once(d, stats, &fits, done, err));
    return KILN_OK;
}

kiln_status kiln_resident_picture(const kiln_draw_scene *s, const kiln_raster_args *a, const kiln_draw_outputs *to,
                                  kiln_draw_stats *stats, bool *done, kiln_error *err)
{
    *stats = (kiln_draw_stats){0};
    drawing d = {.v = {.scene = s, .store = s->store, .x = kiln_runner_exec(s->store->runner), .bytes = kiln_resident_bytes},
                 .picture = a,
                 .to = to};
    *done = false;
    if (d.v.x.device < 0 || s->store->has_drawing || s->store->last.pairs == 0 || s->window) return KILN_OK;
    s->store->picture++;
    const kiln_status st = kiln_store_settle(&d.v.x, draw(&d, stats, done, err));
    kiln_gather_close(&d.v);
    return st;
}
