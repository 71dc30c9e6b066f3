/* tile_pairs -- finds which Gaussians touch which 16x16 tile. tile_pairs_count counts the pairs of
 * each tile row; tile_pairs_emit lists them by tile.
 *
 * Problem. Renderers bound a Gaussian by a rectangle and list tiles that it does not reach. Stored
 * tables must not depend on how tightly an algorithm bounds.
 *
 * Constraint. The set of pairs is a definition, with nothing extra: a pair (tile, Gaussian) is in
 * it if, for some pixel centre of the tile inside the image and inside the Gaussian's tile bounds,
 * kiln_power() >= power_min. kiln_power is pinned (kernels/math/power_math.h), and the raster
 * evaluates the same function. gsplat calls a pair an isect; Inria's list of them is point_list.
 *
 * Layout. Count takes the same memory however many pairs there are. Its sums cut the image into
 * bands (below), and emit is called once for each band.
 *
 *   splats  [n]   in   visible Gaussians in depth order
 *   row0, row1         tile rows [row0, row1) of the view
 *
 * tile_pairs_count:
 *   row_pairs    [row1-row0] u64              out   pairs of each tile row
 *
 * tile_pairs_emit:
 *   tile_counts  [(row1-row0) * tiles_x] u32  out   pairs of each tile, row-major
 *   ranks        [capacity] u32               out   tile after tile, the positions in splats of its
 *                                                   Gaussians, ascending
 *   n_pairs      [2] u64                      out   or NULL
 *
 * If n_pairs is NULL, capacity must be exactly the number of pairs that count gave. If it is not:
 * KILN_E_BUG on the CPU, a violation in x->violation on CUDA (violation.h). Nothing is written
 * beyond capacity.
 *
 * If n_pairs is given, capacity is an upper bound, for callers that have not counted. n_pairs[0] is
 * the number of pairs listed, n_pairs[1] the number found. If more are found than capacity allows,
 * none is listed; that is not a failure.
 *
 * Pointers, work, threads: as in knn.h. KILN_E_INPUT: n above 2^32 - 2; a view without pixels or
 * with more than 2^20 either way; emit: 2^32 tiles or more in one call. KILN_E_CAP, KILN_E_DEVICE:
 * as in knn.h. KILN_E_BUG: rows that the view does not have.
 */
#ifndef KILN_KERNELS_TILE_PAIRS_H
#define KILN_KERNELS_TILE_PAIRS_H

#include "base/extern_c.h"
#include "kernels/project/project.h"

KILN_C_BEGIN

typedef struct {
    uint64_t n;
    const kiln_splat2d *splats;
    const kiln_view *view;
    uint32_t row0, row1;
    uint64_t *row_pairs;
} kiln_tile_pairs_count_args;

typedef struct {
    uint64_t n;
    const kiln_splat2d *splats;
    const kiln_view *view;
    uint32_t row0, row1;
    uint64_t capacity;
    uint32_t *tile_counts;
    uint32_t *ranks;
    uint64_t *n_pairs;
} kiln_tile_pairs_emit_args;

typedef kiln_status kiln_tile_pairs_count_fn(const kiln_exec *x,
                                             const kiln_tile_pairs_count_args *a, void *work,
                                             size_t *work_bytes, kiln_error *err);
typedef kiln_status kiln_tile_pairs_emit_fn(const kiln_exec *x, const kiln_tile_pairs_emit_args *a,
                                            void *work, size_t *work_bytes, kiln_error *err);

/* Check the arguments for both siblings. */
kiln_status kiln_tile_pairs_check(uint64_t n, const kiln_view *v, uint32_t row0, uint32_t row1,
                                  kiln_error *err) KILN_MUST_CHECK;
/* Also checks that the tiles of the call can be numbered with 32 bits. */
kiln_status kiln_tile_pairs_emit_check(const kiln_tile_pairs_emit_args *a,
                                       kiln_error *err) KILN_MUST_CHECK;

/* Cuts tile rows into bands and returns how many there are. A band is the longest run of rows, cut
 * greedily from the top, whose pairs total at most KILN_BAND_PAIRS; a row with more is a band of
 * its own. Band b is rows [starts[b], starts[b+1]). starts has tiles_y + 1 elements; row_pairs has
 * tiles_y. */
enum { KILN_BAND_PAIRS = 1 << 22 };
uint32_t kiln_tile_bands(const uint64_t *row_pairs, uint32_t tiles_y, uint32_t *starts);

/* The arrays that it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_tile_pairs_count(A) \
    A(IN, splats, a->n)                 \
    A(OUT, row_pairs, a->row1 - a->row0)

/* The arrays that it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_tile_pairs_emit(A)                                              \
    A(IN, splats, a->n)                                                             \
    A(OUT, tile_counts, (uint64_t)(a->row1 - a->row0) * kiln_view_tiles_x(a->view)) \
    A(OUT, n_pairs, 2)                                                              \
    A(OUT_USED, ranks, a->capacity, a->n_pairs)

KILN_C_END

#endif
