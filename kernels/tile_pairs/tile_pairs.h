/* tile_pairs -- which Gaussians touch which 16x16 tile: exactly those, no extras, because a table's bytes are this set.
 *
 * A pair (tile, Gaussian) is in the set when, for some pixel centre of the tile inside the image and inside the
 * Gaussian's tile bounds, kiln_power() >= power_min. kiln_power is pinned (kernels/math/power_math.h); the raster
 * evaluates the same function.
 *
 *   splats  [n]   in   visible Gaussians in depth order
 *   row0, row1    tile rows [row0, row1) of the view
 * tile_pairs_count: row_pairs [row1-row0] u64 out: pairs of each tile row. However many there are,
 *                   it takes the same memory.
 * tile_pairs_emit:  tile_counts [(row1-row0) * tiles_x] u32 out, row-major; ranks [room] u32 out: for each tile the
 *                   increasing positions in splats, tiles one after the other. n_pairs [2] u64 out, or NULL.
 *                   NULL: room is what count said; KILN_E_BUG when the pairs are not exactly `room` (in x->violation by CUDA,
 *                   violation.h; nothing is written behind room).
 *                   Not NULL: room is a bound, for who has not counted; [0] is how many pairs are listed, the first of ranks,
 *                   [1] how many there are. When they are more than room none is listed, which is no failure.
 * work as in knn.h. KILN_E_INPUT: n above 2^32 - 2; emit on CUDA: 2^32 tiles.
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

typedef kiln_status kiln_tile_pairs_count_fn(const kiln_exec *x, const kiln_tile_pairs_count_args *a, void *work,
                                             size_t *work_bytes, kiln_error *err);
typedef kiln_status kiln_tile_pairs_emit_fn(const kiln_exec *x, const kiln_tile_pairs_emit_args *a, void *work, size_t *work_bytes,
                                            kiln_error *err);

/* What both siblings ask of their arguments. */
kiln_status kiln_tile_pairs_check(uint64_t n, const kiln_view *v, uint32_t row0, uint32_t row1, kiln_error *err) KILN_MUST_CHECK;
/* The same, and that the tiles of one call can be numbered. */
kiln_status kiln_tile_pairs_emit_check(const kiln_tile_pairs_emit_args *a, kiln_error *err) KILN_MUST_CHECK;

/* Bands: the longest runs of tile rows from the top whose pairs total at most 2^22, or one row.
 * starts[b] .. starts[b+1]; returns the number of bands; room for tiles_y + 1 starts. */
enum { KILN_BAND_PAIRS = 1 << 22 };
uint32_t kiln_tile_bands(const uint64_t *row_pairs, uint32_t tiles_y, uint32_t *starts);

/* What it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_tile_pairs_count(A) \
    A(IN, splats, a->n)                 \
    A(OUT, row_pairs, a->row1 - a->row0)

/* What it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_tile_pairs_emit(A)                                              \
    A(IN, splats, a->n)                                                             \
    A(OUT, tile_counts, (uint64_t)(a->row1 - a->row0) * kiln_view_tiles_x(a->view)) \
    A(OUT, n_pairs, 2)                                                              \
    A(OUT_USED, ranks, a->capacity, a->n_pairs)

KILN_C_END

#endif
