/* pass_outputs -- see the header. */
#include "kernels/draw/pass_outputs.h"

#include "base/minmax.h"
#include "kernels/device.h"

#include <string.h>

kiln_raster_args kiln_pass_raster(const kiln_pass *p, const kiln_pass_block *b)
{
    kiln_raster_args a = *p->picture;
    a.n = p->visible;
    a.splats = b->g.splats;
    a.tile_counts = b->counts;
    a.ranks = b->ids;
    a.n_pairs = p->pairs;
    a.plan = b->plan;
    a.rgba = b->rgba;
    a.depth = b->depth;
    return a;
}

static kiln_pixel_hashes_args hashes_of(const kiln_pass *p, const kiln_pass_block *b)
{
    return (kiln_pixel_hashes_args){
        .pixels = kiln_raster_pixels(p->picture), .rgba = b->rgba, .hashes = b->hashes};
}

static kiln_png_rows_args png_rows_of(const kiln_pass *p, const kiln_pass_block *b)
{
    kiln_png_rows_args a = *p->to->png;
    a.pixels = b->rgba;
    a.rows = b->rows;
    return a;
}

static kiln_pixel_bytes_args colours_of(const kiln_pass *p, const kiln_pass_block *b)
{
    kiln_pixel_bytes_args a = *p->to->bytes;
    a.pixels = b->rgba;
    a.bytes = b->colours;
    return a;
}

static uint64_t hashes_bytes(const kiln_pass *p)
{
    return KILN_PIXEL_HASH_BYTES * kiln_pixel_pieces(kiln_raster_pixels(p->picture));
}
static uint64_t rows_bytes(const kiln_pass *p)
{
    return p->to->png->n * kiln_png_row_bytes(p->to->png);
}
static uint64_t colours_bytes(const kiln_pass *p)
{
    const kiln_pixel_bytes_args *a = p->to->bytes;
    return kiln_pixel_bytes_size(a->layout, a->width, a->height);
}

kiln_status kiln_pass_lay_out_outputs(const kiln_pass *p, kiln_carve *c, kiln_pass_block *b,
                                      kiln_error *err)
{
    if (p->to->hashes) {
        b->hashes = kiln_take(c, hashes_bytes(p), 1);
        const kiln_pixel_hashes_args hashes = hashes_of(p, b);
        KILN_TRY(kiln_gather_add_work(&p->v, KILN_OP_pixel_hashes, &hashes, &b->g, err));
    }
    if (p->to->png) {
        b->rows = kiln_take(c, rows_bytes(p), 1);
        const kiln_png_rows_args rows = png_rows_of(p, b);
        KILN_TRY(kiln_gather_add_work(&p->v, KILN_OP_png_rows, &rows, &b->g, err));
    }
    if (!p->to->bytes) return KILN_OK;
    b->colours = kiln_take(c, colours_bytes(p), 1);
    const kiln_pixel_bytes_args colours = colours_of(p, b);
    return kiln_gather_add_work(&p->v, KILN_OP_pixel_bytes, &colours, &b->g, err);
}

/* ---- what leaves the device, part by part ---------------------------------------------------- */
/* Some tile rows of the picture. */
typedef struct {
    uint32_t row0, row1, y0, y1; /* tile rows, and their pixel rows */
} part;

static part part_of(const kiln_pass *p, uint32_t k, uint32_t n)
{
    const uint32_t first = p->picture->row0, rows = p->picture->row1 - first,
                   height = p->v.scene->view->height;
    part s = {.row0 = kiln_plan_row(first, first + rows, n, k),
              .row1 = kiln_plan_row(first, first + rows, n, k + 1)};
    s.y0 = (uint32_t)kiln_min_u64((uint64_t)s.row0 * KILN_TILE, height);
    s.y1 = (uint32_t)kiln_min_u64((uint64_t)s.row1 * KILN_TILE, height);
    return s;
}

/* Planes of YUV are no part's. */
static bool is_cut(const kiln_pass *p)
{
    return p->to->bytes && p->to->bytes->layout != KILN_PIXELS_YUV420;
}

/* More parts pay where more is copied. Each has its launches, and its last tiles leave the device
 * idle. */
uint32_t kiln_pass_parts(const kiln_pass *p)
{
    enum { BYTES = 4000000 };
    const uint64_t pixels = kiln_raster_pixels(p->picture),
                   rows = p->picture->row1 - p->picture->row0;
    uint64_t bytes = p->to->rgba ? 4 * pixels * sizeof(float) : 0;
    if (p->to->png) bytes += rows_bytes(p);
    if (is_cut(p)) bytes += colours_bytes(p);
    return p->v.x.side ? (uint32_t)kiln_min_u64(kiln_min_u64(1 + bytes / BYTES, KILN_PLAN_PARTS),
                                                kiln_max_u64(rows, 1))
                       : 1;
}

/* The bytes of a part: of those rows of it that they are made of. */
static kiln_pixel_bytes_args colours_of_part(const kiln_pass *p, const part *s)
{
    kiln_pixel_bytes_args a = colours_of(p, &p->b);
    const uint64_t row = kiln_pixel_bytes_size(a.layout, a.width, 1);
    const uint32_t y0 = (uint32_t)kiln_min_u64(s->y0, a.height),
                   y1 = (uint32_t)kiln_min_u64(s->y1, a.height);
    a.height = y1 - y0;
    a.pixels += (uint64_t)4 * y0 * a.stride;
    a.bytes += row * y0;
    return a;
}

static kiln_status draw_part(const kiln_pass *p, const part *s, kiln_error *err)
{
    const kiln_pass_block *b = &p->b;
    const uint64_t before = (uint64_t)s->y0 * p->v.scene->view->width;
    kiln_raster_args raster = kiln_pass_raster(p, b);
    raster.part0 = s->row0;
    raster.part1 = s->row1;
    raster.rgba += 4 * before;
    if (raster.depth) raster.depth += before;
    KILN_TRY(kiln_gather_launch(&p->v, &b->g, KILN_OP_raster, &raster, err));
    if (p->to->png) {
        kiln_png_rows_args rows = png_rows_of(p, b);
        rows.first = s->y0;
        rows.n = s->y1 - s->y0;
        rows.rows += s->y0 * kiln_png_row_bytes(&rows);
        KILN_TRY(kiln_gather_launch(&p->v, &b->g, KILN_OP_png_rows, &rows, err));
    }
    if (!is_cut(p)) return KILN_OK;
    const kiln_pixel_bytes_args colours = colours_of_part(p, s);
    return colours.height > 0 ? kiln_gather_launch(&p->v, &b->g, KILN_OP_pixel_bytes, &colours, err)
                              : KILN_OK;
}

static kiln_status copy_part(const kiln_pass *p, const part *s, struct CUevent_st *mark,
                             kiln_error *err)
{
    const kiln_pass_block *b = &p->b;
    const kiln_exec *x = &p->v.x;
    const uint64_t width = p->v.scene->view->width, before = s->y0 * width,
                   pixels = (s->y1 - s->y0) * width;
    if (p->to->rgba)
        KILN_TRY(kiln_device_copy_out_beside(x, mark, p->to->rgba + 4 * before,
                                             b->rgba + 4 * before, 4 * pixels * sizeof *b->rgba,
                                             err));
    if (p->to->depth)
        KILN_TRY(kiln_device_copy_out_beside(x, mark, p->to->depth + before, b->depth + before,
                                             pixels * sizeof *b->depth, err));
    if (p->to->png) {
        const uint64_t row = kiln_png_row_bytes(p->to->png);
        KILN_TRY(kiln_device_copy_out_beside(x, mark, p->to->png->rows + s->y0 * row,
                                             b->rows + s->y0 * row, (s->y1 - s->y0) * row, err));
    }
    if (!is_cut(p)) return KILN_OK;
    const kiln_pixel_bytes_args colours = colours_of_part(p, s);
    return kiln_device_copy_out_beside(
        x, mark, p->to->bytes->bytes + (colours.bytes - b->colours), colours.bytes,
        kiln_pixel_bytes_size(colours.layout, colours.width, colours.height), err);
}

/* Hashes land in the store's own memory; those of more than 250 MB of floats in the caller's. */
static unsigned char *landing_of_hashes(const kiln_pass *p)
{
    const bool fit = hashes_bytes(p) <= KILN_STORE_LANDING - KILN_STORE_NUMBERS;
    return fit ? (unsigned char *)p->v.landing + KILN_STORE_NUMBERS : p->to->hashes;
}

/* What is made of the whole picture. */
static kiln_status hand_out(const kiln_pass *p, kiln_error *err)
{
    const kiln_pass_block *b = &p->b;
    const kiln_exec *x = &p->v.x;
    if (p->to->hashes) {
        const kiln_pixel_hashes_args hashes = hashes_of(p, b);
        KILN_TRY(kiln_gather_launch(&p->v, &b->g, KILN_OP_pixel_hashes, &hashes, err));
    }
    if (p->to->bytes && !is_cut(p)) {
        const kiln_pixel_bytes_args colours = colours_of(p, b);
        KILN_TRY(kiln_gather_launch(&p->v, &b->g, KILN_OP_pixel_bytes, &colours, err));
        KILN_TRY(kiln_device_copy_out(x, p->to->bytes->bytes, b->colours, colours_bytes(p), err));
    }
    return p->to->hashes
               ? kiln_device_copy_out(x, landing_of_hashes(p), b->hashes, hashes_bytes(p), err)
               : KILN_OK;
}

/* A part is copied when the next one is on its way: a copy to memory that is not page-locked holds
 * up the launches behind it. */
kiln_status kiln_pass_draw_parts(const kiln_pass *p, kiln_error *err)
{
    const uint32_t n = kiln_pass_parts(p);
    struct CUevent_st **const marks = kiln_store_marks(p->v.store);
    for (uint32_t k = 0; k <= n; k++) {
        if (k < n) {
            const part s = part_of(p, k, n);
            KILN_TRY(draw_part(p, &s, err));
            if (!marks[k]) KILN_TRY(kiln_device_mark_new(p->v.x.device, &marks[k], err));
            KILN_TRY(kiln_device_mark(&p->v.x, marks[k], err));
        }
        if (k == 0) continue;
        const part before = part_of(p, k - 1, n);
        KILN_TRY(copy_part(p, &before, marks[k - 1], err));
    }
    return hand_out(p, err);
}

void kiln_pass_bring(const kiln_pass *p)
{
    if (p->to->hashes && landing_of_hashes(p) != p->to->hashes)
        memcpy(p->to->hashes, landing_of_hashes(p), hashes_bytes(p));
}
