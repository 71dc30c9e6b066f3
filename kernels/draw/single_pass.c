/* single_pass -- see kiln_resident_picture: draws a picture without a drawing and with a single wait, at its end. The host does not
 * read back how many Gaussians are visible and how many pairs they have. Buffers are somewhat larger than the last pictures needed.
 * If they are too small, tile_lists lists nothing, and the numbers that come with the picture say what it needs. It is then drawn
 * once more with that much; if even this is too little, the caller draws it in steps.
 *
 * Floats of a picture are copied only if the caller wants them. A picture of 3840 x 2160 has 133 MB, which take as long to copy as
 * it takes to draw; its hashes are 2 KB, the rows of its PNG or its bytes 25 MB. They are made on the device. What is large is
 * copied in bands of tile rows: the upper ones cross the bus while the lower ones are drawn.
 */
#include "kernels/draw/resident.h"

#include "base/minmax.h"
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

/* ---- what leaves the device, band by band -------------------------------------------------------------------------------- */
/* Some tile rows of the picture. */
typedef struct {
    uint32_t row0, row1, y0, y1; /* tile rows, and their pixel rows */
} band;

static band band_of(const drawing *d, uint32_t k, uint32_t n)
{
    const uint32_t first = d->picture->row0, rows = d->picture->row1 - first, height = d->v.scene->view->height;
    band s = {.row0 = first + rows * k / n, .row1 = first + rows * (k + 1) / n};
    s.y0 = (uint32_t)kiln_min_u64((uint64_t)s.row0 * KILN_TILE, height);
    s.y1 = (uint32_t)kiln_min_u64((uint64_t)s.row1 * KILN_TILE, height);
    return s;
}

/* Planes of YUV are no band's. */
static bool is_cut(const drawing *d) { return d->to->bytes && d->to->bytes->layout != KILN_PIXELS_YUV420; }

/* How many bands pay: a few where much is copied, else one, as each has its launches, and its last tiles leave the device idle. */
static uint32_t count_bands(const drawing *d)
{
    enum { LEAST_BYTES = 4 << 20 };
    const uint64_t pixels = kiln_raster_pixels(d->picture);
    uint64_t bytes = d->to->rgba ? 4 * pixels * sizeof(float) : 0;
    if (d->to->png) bytes += rows_bytes(d);
    if (is_cut(d)) bytes += colours_bytes(d);
    return d->v.x.side && bytes >= LEAST_BYTES && d->picture->row1 - d->picture->row0 >= KILN_STORE_BANDS ? KILN_STORE_BANDS : 1;
}

/* The bytes of a band: of those rows of it that they are made of. */
static kiln_pixel_bytes_args colours_of_band(const drawing *d, const band *s)
{
    kiln_pixel_bytes_args a = colours_of(d, &d->b);
    const uint64_t row = kiln_pixel_bytes_size(a.layout, a.width, 1);
    const uint32_t y0 = (uint32_t)kiln_min_u64(s->y0, a.height), y1 = (uint32_t)kiln_min_u64(s->y1, a.height);
    a.height = y1 - y0;
    a.pixels += (uint64_t)4 * y0 * a.stride;
    a.bytes += row * y0;
    return a;
}

static kiln_status draw_band(const drawing *d, const band *s, kiln_error *err)
{
    const block *b = &d->b;
    const uint64_t before = (uint64_t)s->y0 * d->v.scene->view->width;
    kiln_raster_args raster = raster_of(d, b);
    raster.part0 = s->row0;
    raster.part1 = s->row1;
    raster.rgba += 4 * before;
    if (raster.depth) raster.depth += before;
    KILN_TRY(kiln_gather_launch(&d->v, &b->g, KILN_OP_raster, &raster, err));
    if (d->to->png) {
        kiln_png_rows_args rows = rows_of(d, b);
        rows.first = s->y0;
        rows.n = s->y1 - s->y0;
        rows.rows += s->y0 * kiln_png_row_bytes(&rows);
        KILN_TRY(kiln_gather_launch(&d->v, &b->g, KILN_OP_png_rows, &rows, err));
    }
    if (!is_cut(d)) return KILN_OK;
    const kiln_pixel_bytes_args colours = colours_of_band(d, s);
    return colours.height > 0 ? kiln_gather_launch(&d->v, &b->g, KILN_OP_pixel_bytes, &colours, err) : KILN_OK;
}

static kiln_status copy_band(const drawing *d, const band *s, struct CUevent_st *mark, kiln_error *err)
{
    const block *b = &d->b;
    const kiln_exec *x = &d->v.x;
    const uint64_t width = d->v.scene->view->width, before = s->y0 * width, pixels = (s->y1 - s->y0) * width;
    if (d->to->rgba)
        KILN_TRY(kiln_device_copy_out_beside(x, mark, d->to->rgba + 4 * before, b->rgba + 4 * before, 4 * pixels * sizeof *b->rgba,
                                             err));
    if (d->to->depth)
        KILN_TRY(kiln_device_copy_out_beside(x, mark, d->to->depth + before, b->depth + before, pixels * sizeof *b->depth, err));
    if (d->to->png) {
        const uint64_t row = kiln_png_row_bytes(d->to->png);
        KILN_TRY(kiln_device_copy_out_beside(x, mark, d->to->png->rows + s->y0 * row, b->rows + s->y0 * row, (s->y1 - s->y0) * row,
                                             err));
    }
    if (!is_cut(d)) return KILN_OK;
    const kiln_pixel_bytes_args colours = colours_of_band(d, s);
    return kiln_device_copy_out_beside(x, mark, d->to->bytes->bytes + (colours.bytes - b->colours), colours.bytes,
                                       kiln_pixel_bytes_size(colours.layout, colours.width, colours.height), err);
}

/* Hashes land in the store's own memory; those of more than 250 MB of floats in the caller's. */
static unsigned char *landing_of_hashes(const drawing *d)
{
    const bool fit = hashes_bytes(d) <= KILN_STORE_LANDING - KILN_STORE_NUMBERS;
    return fit ? (unsigned char *)d->v.store->landing + KILN_STORE_NUMBERS : d->to->hashes;
}

/* What is made of the whole picture. */
static kiln_status hand_out(const drawing *d, kiln_error *err)
{
    const block *b = &d->b;
    const kiln_exec *x = &d->v.x;
    if (d->to->hashes) {
        const kiln_pixel_hashes_args hashes = hashes_of(d, b);
        KILN_TRY(kiln_gather_launch(&d->v, &b->g, KILN_OP_pixel_hashes, &hashes, err));
    }
    if (d->to->bytes && !is_cut(d)) {
        const kiln_pixel_bytes_args colours = colours_of(d, b);
        KILN_TRY(kiln_gather_launch(&d->v, &b->g, KILN_OP_pixel_bytes, &colours, err));
        KILN_TRY(kiln_device_copy_out(x, d->to->bytes->bytes, b->colours, colours_bytes(d), err));
    }
    return d->to->hashes ? kiln_device_copy_out(x, landing_of_hashes(d), b->hashes, hashes_bytes(d), err) : KILN_OK;
}

/* All bands are drawn before the first is copied: a copy to memory that is not page-locked would hold up the launches. */
static kiln_status draw_bands(const drawing *d, kiln_error *err)
{
    const uint32_t n = count_bands(d);
    struct CUevent_st **const marks = d->v.store->marks;
    for (uint32_t k = 0; k < n; k++) {
        const band s = band_of(d, k, n);
        KILN_TRY(draw_band(d, &s, err));
        if (!marks[k]) KILN_TRY(kiln_device_mark_new(d->v.x.device, &marks[k], err));
        KILN_TRY(kiln_device_mark(&d->v.x, marks[k], err));
    }
    for (uint32_t k = 0; k < n; k++) {
        const band s = band_of(d, k, n);
        KILN_TRY(copy_band(d, &s, marks[k], err));
    }
    return hand_out(d, err);
}

/* ---- drawing ----------------------------------------------------------------------------------------------------------- */
static kiln_status run(drawing *d, kiln_error *err)
{
    const block *b = &d->b;
    const kiln_gather *v = &d->v;
    const kiln_tile_lists_args lists = lists_of(d, b);
    KILN_TRY(kiln_gather_run(v, &b->g, err));
    KILN_TRY(kiln_gather_launch(v, &b->g, KILN_OP_tile_lists, &lists, err));
    KILN_TRY(draw_bands(d, err));
    KILN_TRY(kiln_gather_read(v, &b->g, &d->numbers, err));
    if (d->to->hashes && landing_of_hashes(d) != d->to->hashes) memcpy(d->to->hashes, landing_of_hashes(d), hashes_bytes(d));
    return KILN_OK;
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
