/* on_device -- see kiln_draw_on_device: a drawing, its lists and its picture in device memory. Where draw.c moves a drawing to host
 * memory because something does not fit beside it, this gives up. */
#include "base/memory.h"
#include "kernels/draw/resident.h"

#include <stdlib.h>

/* Draws the bands one after the other. `whole` describes all rows. */
static kiln_status draw_bands(const kiln_drawing *d, const kiln_raster_args *whole, const uint64_t *row_pairs,
                              const uint32_t *starts, uint32_t n, bool *done, kiln_error *err)
{
    *done = true;
    for (uint32_t b = 0; b < n && *done; b++) {
        const uint64_t first = (uint64_t)starts[b] * KILN_TILE * whole->view->width;
        kiln_raster_args a = *whole;
        a.row0 = starts[b];
        a.row1 = starts[b + 1];
        for (uint32_t row = a.row0; row < a.row1; row++) a.n_pairs += row_pairs[row];
        if (a.rgba) a.rgba += 4 * first;
        if (a.depth) a.depth += first;
        KILN_TRY(kiln_resident_raster(d, &a, done, err));
    }
    return KILN_OK;
}

static kiln_status draw_all(const kiln_drawing *d, const kiln_raster_args *whole, kiln_draw_stats *stats, bool *done,
                            kiln_error *err)
{
    kiln_status st;
    uint64_t *row_pairs = NULL;
    uint32_t *starts = NULL;
    const uint32_t n_rows = whole->row1;
    KILN_GO(KILN_ALLOC(&row_pairs, n_rows, "pairs of tile rows", err));
    KILN_GO(KILN_ALLOC(&starts, (uint64_t)n_rows + 1, "bands", err));
    const kiln_tile_pairs_count_args count = {.view = whole->view, .row1 = n_rows, .row_pairs = row_pairs};
    KILN_GO(kiln_resident_count(d, &count, done, err));
    if (*done) KILN_GO(draw_bands(d, whole, row_pairs, starts, kiln_tile_bands(row_pairs, n_rows, starts), done, err));
    *stats = (kiln_draw_stats){.visible = d->n};
    for (uint32_t row = 0; row < n_rows; row++) stats->pairs += row_pairs[row];
    stats->listed = stats->pairs;
done:
    free(starts);
    free(row_pairs);
    return st;
}

kiln_status kiln_draw_on_device(const kiln_draw_scene *s, const float background[3], float *rgba, float *depth,
                                kiln_draw_stats *stats, bool *done, uint64_t *capacity, kiln_error *err)
{
    kiln_drawing d = {0};
    const kiln_raster_args a = {.view = s->view,
                                .profile = s->profile,
                                .fast = s->fast,
                                .row1 = kiln_view_tiles_y(s->view),
                                .rgba = rgba,
                                .depth = depth,
                                .background = {background[0], background[1], background[2]}};
    *stats = (kiln_draw_stats){0};
    *done = false;
    *capacity = 0;
    if (!s->store || !s->header) return KILN_OK;
    KILN_TRY(kiln_resident_collect(s, &d, done, err));
    if (*done) {
        const kiln_status st = draw_all(&d, &a, stats, done, err);
        kiln_drawing_release(&d);
        KILN_TRY(st);
    }
    return *done ? KILN_OK : kiln_resident_slab_capacity(s, capacity, err);
}
