/* tile_rows -- which tiles of one tile row a Gaussian reaches, for Gaussians without a proven box
 * or not in tile_batch.h; on the CPU. */
#ifndef KILN_KERNELS_TILE_ROWS_H
#define KILN_KERNELS_TILE_ROWS_H

#include "kernels/exec.h"
#include "kernels/tile_pairs/tile_pairs_math.h"

/* bits for the widest view of kernels/view.h */
enum { KILN_TILE_SET_WORDS = (1 << 20) / KILN_TILE / 64 };

/* The tile columns [first, first + n) of one Gaussian; bit i of `bits` is column first + i. Of n ==
 * 0 nothing is set. */
typedef struct {
    int32_t first, n;
    uint64_t bits[KILN_TILE_SET_WORDS];
} kiln_tile_set;

/* kiln_tile_rows_find_cpu: sets *t to the tiles of the tile row that the Gaussian reaches. e: from
 * kiln_find_extent. */
void KILN_CPU(tile_rows_find)(const kiln_splat2d *s, const kiln_splat_extent *e, const kiln_view *v,
                              uint32_t tile_row, kiln_tile_set *t);

#endif
