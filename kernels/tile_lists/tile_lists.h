/* tile_lists -- which Gaussians each 16x16 tile draws, nearest first: depth_order, visible_order and tile_pairs_emit in one
 * operation, of as many Gaussians as only the device knows. A frame made of it needs no word from the device before it is drawn.
 *
 *   n                         room of the next three arrays: a bound of how many Gaussians there are
 *   n_visible    [1]          in   how many there are, the first of splats
 *   splats       [n]          in   in any order, as project or visible_gather left them; 16-byte aligned
 *   depths       [n] f32      in   theirs, > 0
 *   source_rows  [n] u32      in   theirs
 *   row0, row1                     tile rows [row0, row1) of the view
 *   room                      of ids: a bound of how many pairs there are
 *   tile_counts  [(row1-row0) * tiles_x] u32   out, row-major
 *   ids          [room] u32   out  for each tile, tiles one after the other, its Gaussians' positions in splats: by (bits of
 *                                  depth, source row, position), ascending
 *   stats         [3] u64      out  pairs listed, the first of ids; pairs there are; *n_visible
 *
 * The pairs are those of tile_pairs.h. Where a bound is too small nothing is listed and all counts are 0, which is no failure:
 * stats says what is needed. With *n_visible above n nobody has looked for pairs: stats[1] is 0. work as in knn.h. CUDA: beside
 * x->stream it uses x->side, where there is one. KILN_E_INPUT: n above 2^32 - 2; a view that is none; 2^32 tiles.
 */
#ifndef KILN_KERNELS_TILE_LISTS_H
#define KILN_KERNELS_TILE_LISTS_H

#include "base/extern_c.h"
#include "kernels/project/project.h"

KILN_C_BEGIN

typedef struct {
    uint64_t n;
    const uint64_t *n_visible;
    const kiln_splat2d *splats;
    const float *depths;
    const uint32_t *source_rows;
    const kiln_view *view;
    uint32_t row0, row1;
    uint64_t capacity;
    uint32_t *tile_counts;
    uint32_t *ids;
    uint64_t *stats;
} kiln_tile_lists_args;

typedef kiln_status kiln_tile_lists_fn(const kiln_exec *x, const kiln_tile_lists_args *a, void *work, size_t *work_bytes,
                                       kiln_error *err);

/* What both siblings ask of their arguments. */
kiln_status kiln_tile_lists_check(const kiln_tile_lists_args *a, kiln_error *err) KILN_MUST_CHECK;

/* What it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_tile_lists(A)                                                   \
    A(IN, n_visible, 1)                                                             \
    A(IN, splats, a->n)                                                             \
    A(IN, depths, a->n)                                                             \
    A(IN, source_rows, a->n)                                                        \
    A(OUT, tile_counts, (uint64_t)(a->row1 - a->row0) * kiln_view_tiles_x(a->view)) \
    A(OUT, stats, 3)                                                                \
    A(OUT_USED, ids, a->capacity, a->stats)

KILN_C_END

#endif
