/* tile_walk -- walks through the tiles of Gaussians, tile row by tile row; on the CPU. What count
 * and emit have in common. */
#ifndef KILN_KERNELS_TILE_WALK_H
#define KILN_KERNELS_TILE_WALK_H

#include "kernels/tile_pairs/tile_box.h"
#include "kernels/tile_pairs/tile_rows.h"

/* Is told some tiles of one Gaussian in one tile row: bit i of `bits` is tile column + i. Bits may
 * be 0. */
typedef void kiln_tile_sink(void *to, uint32_t row, uint32_t column, uint64_t bits);

/* What is walked through: tile rows [row0, row1). */
typedef struct {
    const kiln_splat2d *splats;
    const uint32_t *order; /* the splats' places; NULL: one after the other */
    const kiln_view *view;
    uint32_t row0, row1;
} kiln_tile_walk;

/* Fills *k with up to KILN_TILE_BATCH of the Gaussians [first, end). */
static inline void kiln_tile_walk_find(const kiln_tile_walk *w, uint64_t first, uint64_t end,
                                       kiln_tile_batch *k)
{
    k->n = (uint32_t)(end - first < KILN_TILE_BATCH ? end - first : KILN_TILE_BATCH);
    for (uint32_t i = 0; i < k->n; i++)
        k->id[i] = w->order ? w->order[first + i] : (uint32_t)(first + i);
    KILN_CPU(tile_box_find)(w->splats, w->view, w->row0, w->row1, k);
}

/* For a Gaussian without an answered box. */
static inline __attribute__((always_inline)) void
kiln_tile_walk_rows(const kiln_tile_walk *w, const kiln_tile_batch *k, uint32_t i,
                    kiln_tile_sink *sink, void *to)
{
    const kiln_splat2d *s = &w->splats[k->id[i]];
    if (k->way[i] == KILN_TILES_ROWS) {
        const int32_t end = k->row[i] + k->h[i];
        for (int32_t row = k->row[i]; row < end; row += KILN_TILE_BOX_ROWS) {
            const int32_t left = end - row,
                          h = left < KILN_TILE_BOX_ROWS ? left : KILN_TILE_BOX_ROWS;
            const kiln_tile_box b = {k->column[i], row, k->w[i], h};
            uint64_t tiles[KILN_TILE_BOX_ROWS];
            KILN_CPU(tile_box_rows)(s, w->view, &b, tiles);
            for (int32_t r = 0; r < h; r++)
                sink(to, (uint32_t)(row + r), (uint32_t)b.column, tiles[r]);
        }
    } else if (k->way[i] == KILN_TILES_ODD) {
        kiln_splat_extent e;
        kiln_tile_set t;
        if (!kiln_find_extent(s, w->row0, w->row1, &e)) return;
        for (uint32_t row = e.row_first; row < e.row_end; row++) {
            KILN_CPU(tile_rows_find)(s, &e, w->view, row, &t);
            for (int32_t at = 0; at < t.n; at += 64)
                sink(to, row, (uint32_t)(t.first + at), t.bits[at / 64]);
        }
    }
}

/* Tells `sink` all tiles of Gaussian i of the batch. Always inlined with a constant `sink`. */
static inline __attribute__((always_inline)) void kiln_tile_walk_one(const kiln_tile_walk *w,
                                                                     const kiln_tile_batch *k,
                                                                     uint32_t i,
                                                                     kiln_tile_sink *sink, void *to)
{
    if (!kiln_tiles_are_few(k->way[i])) {
        kiln_tile_walk_rows(w, k, i, sink, to);
        return;
    }
    const uint32_t tiles = k->tiles[i], width = (uint32_t)k->w[i], height = (uint32_t)k->h[i],
                   all = (1u << width) - 1;
    const uint32_t row = (uint32_t)k->row[i], column = (uint32_t)k->column[i];
    sink(to, row, column, tiles & all);
    /* without a branch, as it could not be foreseen */
    sink(to, row + (height > 1), column, tiles >> width & all);
    for (uint32_t r = 2; r < height; r++) sink(to, row + r, column, tiles >> r * width & all);
}

#endif
