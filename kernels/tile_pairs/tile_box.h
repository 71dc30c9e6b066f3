/* tile_box -- which tiles of a proven box (tile_ask_math.h) a Gaussian reaches, exactly; on the CPU. */
#ifndef KILN_KERNELS_TILE_BOX_H
#define KILN_KERNELS_TILE_BOX_H

#include "kernels/exec.h"
#include "kernels/tile_pairs/tile_ask_math.h"

enum { KILN_TILE_BOX_FEW = 16 }; /* a box of so many tiles is answered at once */

/* kiln_tile_box_few_cpu: for a box of at most KILN_TILE_BOX_FEW tiles. Returns bit row * w + column of the box. */
uint32_t KILN_CPU(tile_box_few)(const kiln_splat2d *s, const kiln_view *v, const kiln_tile_box *b);
/* kiln_tile_box_row_cpu: for a box that is at most 64 tiles wide and one of its rows of tiles. Returns bit column of the box. */
uint64_t KILN_CPU(tile_box_row)(const kiln_splat2d *s, const kiln_asked *g, const kiln_view *v, const kiln_tile_box *b,
                                int32_t row);

#endif
