/* tile_lists -- lists for each 16x16 tile the Gaussians that touch it, nearest first. One operation
 * does the work of depth_order, visible_order and tile_pairs_emit.
 *
 * Problem. Those operations need the numbers of visible Gaussians and of pairs as arguments, and
 * only the device knows them. Reading them back makes the host wait twice for every frame.
 *
 * Constraint. The lists are those of the three operations. The host learns nothing before the frame
 * is drawn, so array sizes are guesses ("capacities"). A guess that is too small must do no harm.
 *
 * Layout. The caller passes capacities and a pointer to the real number of Gaussians. If either
 * capacity is too small, nothing is listed, all counts are 0, and `stats` says what would have been
 * needed. That is not a failure.
 *
 *   n                               elements of splats, depths and source_rows
 *   n_visible    [1] u64      in    number of Gaussians: the first *n_visible elements are used
 *   splats       [n]          in    in any order, as project or visible_gather left them; 16-byte
 *                                   aligned
 *   depths       [n] f32      in    depth of each, > 0
 *   source_rows  [n] u32      in    source row of each
 *   row0, row1                      tile rows [row0, row1) of the view
 *   capacity                        elements of ids
 *   tile_counts  [(row1-row0) * tiles_x] u32   out   pairs of each tile, row-major
 *   ids          [capacity] u32     out   positions in splats: tile after tile, within a tile
 *                                         ascending by (bits of depth, source row, position)
 *   stats        [3] u64      out   [0] pairs listed, which are the first of ids; [1] pairs found;
 *                                   [2] *n_visible
 *   plan                      out   for raster on CUDA, or without ends (raster_plan.h)
 *
 * The set of pairs is defined in tile_pairs.h. If *n_visible exceeds n, no pairs are looked for and
 * stats[1] is 0. Pointers, work, threads: as in knn.h. CUDA also uses x->side if it is set.
 * KILN_E_INPUT: n above 2^32 - 2; a view without pixels or with more than 2^20 either way; 2^32
 * tiles or more. KILN_E_CAP, KILN_E_DEVICE: as in knn.h.
 */
#ifndef KILN_KERNELS_TILE_LISTS_H
#define KILN_KERNELS_TILE_LISTS_H

#include "base/extern_c.h"
#include "kernels/project/project.h"
#include "kernels/raster/raster_plan.h"

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
    kiln_raster_plan plan;
} kiln_tile_lists_args;

typedef kiln_status kiln_tile_lists_fn(const kiln_exec *x, const kiln_tile_lists_args *a,
                                       void *work, size_t *work_bytes, kiln_error *err);

/* Checks the arguments for both siblings. */
kiln_status kiln_tile_lists_check(const kiln_tile_lists_args *a, kiln_error *err) KILN_MUST_CHECK;

/* The arrays that it reads and writes, for kernels/arrays.h. */
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
