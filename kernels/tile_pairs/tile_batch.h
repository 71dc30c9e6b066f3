/* tile_batch -- which tiles some Gaussians reach; on the CPU. A lane of a vector is a Gaussian, so
 * that most take no branch and their answers stay in order. */
#ifndef KILN_KERNELS_TILE_BATCH_H
#define KILN_KERNELS_TILE_BATCH_H

#include "kernels/exec.h"
#include "kernels/tile_pairs/tile_span_math.h"

#include <stdbool.h>

enum {
    KILN_TILE_LANES = 8,
    KILN_TILE_BATCH = 64,   /* whole vectors; fits the first cache beside splats */
    KILN_TILE_AHEAD = 32,   /* splats are asked for so long before they are read */
    KILN_TILE_FEW_ROWS = 4, /* a Gaussian of so many tile rows is answered with the batch */
};

/* How the tiles of a Gaussian are found. */
typedef enum {
    KILN_TILES_NONE, /* there are none */
    KILN_TILES_FEW,  /* answered: first, tiles */
    KILN_TILES_ROWS, /* kiln_tile_batch_rows_cpu */
    KILN_TILES_ODD,  /* nothing is proven: tile_rows.h */
} kiln_tile_way;

typedef int32_t kiln_tile_ints[KILN_TILE_LANES];
typedef float kiln_tile_floats[KILN_TILE_LANES];

/* Eight Gaussians, one in each lane. */
typedef struct {
    _Alignas(32) kiln_tile_ints way;    /* kiln_tile_way */
    kiln_tile_ints row, h, column, end; /* box: tile rows; tile columns [column, end) */
    kiln_tile_ints few;                 /* h of FEW; else 0 */
    /* of each tile row of FEW its first tile column and how many; else 0 tiles */
    kiln_tile_ints first[KILN_TILE_FEW_ROWS], tiles[KILN_TILE_FEW_ROWS];
    /* kiln_span_form, and the centre of the first pixel row of the box */
    kiln_tile_floats y, centre, left, right, eps, widest, minus_ratio, minus_q, x2, minus_margin,
        least, px0, px_end, first_py;
    uint32_t others; /* bit i: lane i is ROWS or ODD */
} kiln_tile_eight;

/* 8 KiB, of the thread's stack. The caller sets n and id. */
typedef struct {
    /* Which splats: beyond n any. If they lie anywhere, those that follow are asked for. */
    uint32_t n, id[KILN_TILE_BATCH + KILN_TILE_AHEAD];
    bool anywhere;
    kiln_tile_eight of[KILN_TILE_BATCH / KILN_TILE_LANES];
} kiln_tile_batch;

static inline const kiln_tile_eight *kiln_tile_eight_of(const kiln_tile_batch *k, uint32_t i)
{
    return &k->of[i / KILN_TILE_LANES];
}

/* kiln_tile_batch_find_cpu: finds boxes within rows [row0, row1) and answers FEW. What would be FEW
 * but has a row whose tiles are no interval is ROWS. */
void KILN_CPU(tile_batch_find)(const kiln_splat2d *splats, const kiln_view *v, uint32_t row0,
                               uint32_t row1, kiln_tile_batch *k);

/* Of eight tile rows of one Gaussian: tile columns [first, first + n). */
typedef struct {
    _Alignas(32) kiln_tile_ints first, n;
    uint32_t open; /* bit i: of row i nothing is known */
} kiln_tile_spans;

/* kiln_tile_batch_rows_cpu: of Gaussian i, which is ROWS, tile rows r to r + 7 of its box. Those
 * behind the last have n == 0. */
void KILN_CPU(tile_batch_rows)(const kiln_view *v, const kiln_tile_batch *k, uint32_t i, int32_t r,
                               kiln_tile_spans *s);

/* kiln_tile_asked_cpu: is the tile reached? By its pixels at last. For FEW and ROWS; g:
 * kiln_ask_of(s). */
bool KILN_CPU(tile_asked)(const kiln_asked *g, const kiln_splat2d *s, const kiln_view *v,
                          uint32_t column, uint32_t row);

#endif
