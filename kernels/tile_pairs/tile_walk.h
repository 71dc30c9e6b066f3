/* tile_walk -- walks through the tiles of Gaussians, tile row by tile row; on the CPU. What count
 * and emit have in common. */
#ifndef KILN_KERNELS_TILE_WALK_H
#define KILN_KERNELS_TILE_WALK_H

#include "kernels/tile_pairs/tile_batch.h"
#include "kernels/tile_pairs/tile_rows.h"

/* Is told tile columns [column, column + n) of one Gaussian in one tile row; n is above 0. */
typedef void kiln_tile_sink(void *to, uint32_t row, uint32_t column, uint32_t n);

/* What is walked through: tile rows [row0, row1). */
typedef struct {
    const kiln_splat2d *splats;
    const uint32_t *order; /* the splats' places; NULL: one after the other */
    uint64_t n;
    const kiln_view *view;
    uint32_t row0, row1;
} kiln_tile_walk;

/* Fills *k with the Gaussians from `first` on, before `end`. */
static inline void kiln_tile_walk_find(const kiln_tile_walk *w, uint64_t first, uint64_t end,
                                       kiln_tile_batch *k)
{
    k->n = (uint32_t)(end - first < KILN_TILE_BATCH ? end - first : KILN_TILE_BATCH);
    k->anywhere = w->order != NULL;
    for (uint32_t i = 0; i < KILN_TILE_BATCH; i++) {
        const uint64_t at = first + i < w->n ? first + i : first;
        k->id[i] = w->order ? w->order[at] : (uint32_t)at;
    }
    for (uint32_t i = KILN_TILE_BATCH; w->order && i < KILN_TILE_BATCH + KILN_TILE_AHEAD; i++)
        k->id[i] = w->order[first + i < w->n ? first + i : first];
    KILN_CPU(tile_batch_find)(w->splats, w->view, w->row0, w->row1, k);
}

/* Runs of neighbours among the tiles that are asked one by one. */
static inline void kiln_tile_walk_asked(const kiln_tile_walk *w, const kiln_tile_batch *k,
                                        uint32_t i, int32_t row, kiln_tile_sink *sink, void *to)
{
    uint32_t n = 0;
    const kiln_splat2d *const s = &w->splats[k->id[i]];
    const kiln_asked g = kiln_ask_of(s);
    const kiln_tile_eight *const e = kiln_tile_eight_of(k, i);
    int32_t column = e->column[i % KILN_TILE_LANES];
    for (; column < e->end[i % KILN_TILE_LANES]; column++) {
        if (KILN_CPU(tile_asked)(&g, s, w->view, (uint32_t)column, (uint32_t)row)) {
            n++;
        } else if (n > 0) {
            sink(to, (uint32_t)row, (uint32_t)column - n, n);
            n = 0;
        }
    }
    if (n > 0) sink(to, (uint32_t)row, (uint32_t)column - n, n);
}

/* Runs of neighbours of a bit map. */
static inline void kiln_tile_walk_set(const kiln_tile_set *t, uint32_t row, kiln_tile_sink *sink,
                                      void *to)
{
    for (int32_t at = 0; at < t->n; at += 64)
        for (uint64_t bits = t->bits[at / 64]; bits;) {
            const uint32_t from = (uint32_t)__builtin_ctzll(bits);
            const uint64_t ended = ~(bits >> from); /* 0: all of a word */
            const uint32_t n = ended ? (uint32_t)__builtin_ctzll(ended) : 64;
            sink(to, row, (uint32_t)(t->first + at) + from, n);
            bits &= bits + (1ull << from); /* the run's bits become 0, and carry into a 0 */
        }
}

/* Tells `sink` all tiles of Gaussian i of the batch, which is one of `others`. */
static inline __attribute__((always_inline)) void
kiln_tile_walk_other(const kiln_tile_walk *w, const kiln_tile_batch *k, uint32_t i,
                     kiln_tile_sink *sink, void *to)
{
    const kiln_tile_eight *const eight = kiln_tile_eight_of(k, i);
    const uint32_t lane = i % KILN_TILE_LANES;
    if (eight->way[lane] == KILN_TILES_ROWS) {
        for (int32_t r = 0; r < eight->h[lane]; r += KILN_TILE_LANES) {
            kiln_tile_spans s;
            const int32_t left = eight->h[lane] - r,
                          n = left < KILN_TILE_LANES ? left : KILN_TILE_LANES;
            KILN_CPU(tile_batch_rows)(w->view, k, i, r, &s);
            for (int32_t j = 0; j < n; j++) {
                const int32_t row = eight->row[lane] + r + j;
                if (s.open >> j & 1)
                    kiln_tile_walk_asked(w, k, i, row, sink, to);
                else if (s.n[j] > 0)
                    sink(to, (uint32_t)row, (uint32_t)s.first[j], (uint32_t)s.n[j]);
            }
        }
        return;
    }
    kiln_splat_extent e;
    kiln_tile_set t;
    const kiln_splat2d *s = &w->splats[k->id[i]];
    if (!kiln_find_extent(s, w->row0, w->row1, &e)) return;
    for (uint32_t row = e.row_first; row < e.row_end; row++) {
        KILN_CPU(tile_rows_find)(s, &e, w->view, row, &t);
        kiln_tile_walk_set(&t, row, sink, to);
    }
}

#endif
