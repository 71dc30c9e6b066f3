/* draw_size -- see draw_size.h: what host_collect.c, draw_bands.c, fit.c and slabs.c allocate,
 * array by array. A change there needs one here; tests/unit/draw_size_test.c measures that both
 * agree. */
#include "kernels/draw/draw_size.h"

#include "base/minmax.h"
#include "kernels/draw/cuts.h"

enum {
    SPLAT = sizeof(kiln_splat2d),
    GATHERED = SPLAT + 4 + 4,    /* with its chunk and source row */
    KEPT = SPLAT + 4,            /* with its chunk */
    SORTING = 4 + 4 + 8 + 8 + 4, /* depth, order; key of depth_order, key and value of sort */
    /* fit.c: a Gaussian's copy in a part, its position in the whole, its mark */
    PART = SPLAT + 4 + 4,
    SLACK = 1 << 20, /* digit counts of the sort, rounding by malloc */
    /* tile_pairs_cpu.c: emit has pieces x tiles cursors, at least one for each tile */
    CURSORS_MAX = 1 << 22,
    /* of emit with 64 threads; with more threads CURSORS_MAX limits the cursors */
    PIECES = 256,
    /* bytes a pair; tile_pairs_cpu.c keeps 8 B for every second pair */
    KEPT_MARKS = 4,
    COUNT_THREADS = 64, /* each has its own sums in tile_pairs_count */
};

void kiln_draw_size_bands(kiln_draw_size *s, const kiln_view *view, const uint64_t *row_pairs)
{
    uint64_t pairs = 0, rows = 0;
    s->band_pairs = s->band_tiles = 0;
    for (uint32_t row = 0; row < kiln_view_tiles_y(view); row++) { /* the rule of kiln_tile_bands */
        if (rows == 0 || pairs > KILN_BAND_PAIRS || row_pairs[row] > KILN_BAND_PAIRS - pairs)
            pairs = rows = 0;
        pairs += row_pairs[row];
        rows++;
        s->band_pairs = kiln_max_u64(s->band_pairs, pairs);
        s->band_tiles = kiln_max_u64(s->band_tiles, rows * kiln_view_tiles_x(view));
    }
}

uint64_t kiln_draw_collect_bytes(const kiln_draw_size *s)
{
    const uint64_t gathering = GATHERED * (s->visible + s->largest_chunk);
    const uint64_t sorting = gathering + SORTING * s->visible;
    /* the order takes the place of the source rows */
    const uint64_t ordering = gathering + KEPT * s->visible;
    return kiln_max_u64(sorting, ordering) + SLACK;
}

uint64_t kiln_draw_kept_bytes(const kiln_draw_size *s) { return KEPT * s->visible; }

uint64_t kiln_draw_picture_bytes(const kiln_draw_size *s, const kiln_view *view)
{
    const uint64_t counting = 8 * (uint64_t)kiln_view_tiles_y(view) * (COUNT_THREADS + 2);
    const uint64_t lists = (4 + KEPT_MARKS) * s->band_pairs + 4 * s->band_tiles;
    const uint64_t cursors =
        8 * kiln_max_u64(s->band_tiles, kiln_min_u64(CURSORS_MAX, PIECES * s->band_tiles));
    const uint64_t parts = s->in_parts ? PART * s->visible + 4 * s->band_pairs : 0;
    return counting + lists + cursors + parts + SLACK;
}

uint64_t kiln_draw_slabs_bytes(const kiln_draw_size *s, const kiln_view *view, uint32_t n_chunks)
{
    const uint64_t pixels = (uint64_t)view->width * view->height;
    const uint64_t tiles = ((uint64_t)kiln_view_tiles_x(view) + 1) * (kiln_view_tiles_y(view) + 1);
    const uint64_t always =
        sizeof(kiln_raster_state) * pixels + 4 * tiles + KILN_CUTS_BYTES + 16 * (uint64_t)n_chunks;
    const uint64_t looking = SPLAT * s->largest_chunk + SLACK;
    const uint64_t slab = kiln_max_u64(kiln_draw_collect_bytes(s),
                                       kiln_draw_kept_bytes(s) + kiln_draw_picture_bytes(s, view));
    return always + kiln_max_u64(looking, slab);
}

uint64_t kiln_draw_shares_bytes(const kiln_draw_shares_size *s)
{
    const uint64_t tiles = (uint64_t)kiln_view_tiles_x(s->view) * kiln_view_tiles_y(s->view);
    const uint64_t visible = s->capacity > 0 ? s->capacity : s->rows,
                   shares = s->share_bytes * visible;
    kiln_draw_size size = {.visible = visible,
                           .largest_chunk = s->largest_chunk,
                           .in_parts = true,
                           .band_tiles = tiles};
    size.band_pairs =
        tiles > 0 && s->rows < KILN_BAND_PAIRS / tiles ? s->rows * tiles : KILN_BAND_PAIRS;
    if (s->capacity > 0) return kiln_draw_slabs_bytes(&size, s->view, s->n_chunks) + shares;
    const uint64_t collecting = kiln_draw_collect_bytes(&size);
    const uint64_t drawing =
        kiln_draw_kept_bytes(&size) + kiln_draw_picture_bytes(&size, s->view) + shares;
    return collecting > drawing ? collecting : drawing;
}
