/* visible -- collects the visible Gaussians of many chunks into one array on the device and sorts
 * them, so that they never come to host memory. kernels/draw uses these operations with project and
 * depth_order.
 *
 * visible_gather   appends the visible Gaussians of one chunk to those of the chunks before:
 *   splats [n], n_visible [1]      in     as project left them; the first *n_visible of splats are
 *                                         used
 *   source_rows [n] u32            in     of the chunk, indexed by the splat's row
 *   total [1] u64                  inout  visible Gaussians so far. Goes on counting beyond
 *                                         `capacity`; nothing is written there
 *   all, depths, rows, chunks      inout  [capacity] each, appended from *total on. rows are source
 *                                         rows, chunks hold `chunk`; depths and rows are what
 *                                         depth_order needs
 * visible_window   keeps those visible Gaussians of a chunk that belong to a slab of depth, in
 *                  their order:
 *   splats, n_visible, source_rows in     as above
 *   window                         in     host memory, except its array `live`
 *   kept [n], n_kept [1]           out    as splats and n_visible, for visible_gather
 * visible_order    puts Gaussians into drawing order:
 *   splats, chunks [n]             in     chunks may be NULL
 *   order [n]                      in     as depth_order gives it, each below n
 *   ordered, ordered_chunks [n]    out    ordered_chunks is NULL if chunks is
 *   ordered_rows [n] u32           out    the row of each splat in its chunk, once more
 *
 * The operations only move data, so both siblings give the same bits. Splats are 16-byte aligned.
 * Pointers, work, threads: as in knn.h; only visible_window needs work space. Errors: KILN_E_CAP,
 * KILN_E_DEVICE as in knn.h.
 */
#ifndef KILN_KERNELS_VISIBLE_H
#define KILN_KERNELS_VISIBLE_H

#include "base/extern_c.h"
#include "kernels/project/project.h"

KILN_C_BEGIN

/* Selects the Gaussians of a slab (kernels/draw): those whose sort key (depth_order_math.h) is in
 * [from, to) and whose box has at least one live tile. A tile is live while one of its pixels is
 * not finished. */
typedef struct {
    uint64_t from, to;
    uint32_t tiles_x, tiles_y;
    /* [tiles_y + 1][tiles_x + 1] summed-area table: live tiles above and to the left */
    const uint32_t *live;
} kiln_visible_window;

typedef struct {
    uint64_t n;
    const kiln_splat2d *splats;
    const uint64_t *n_visible;
    const uint32_t *source_rows;
    uint32_t chunk;
    uint64_t capacity;
    uint64_t *total;
    kiln_splat2d *all;
    float *depths;
    uint32_t *rows, *chunks;
} kiln_visible_gather_args;

typedef struct {
    uint64_t n;
    const kiln_splat2d *splats;
    const uint64_t *n_visible;
    const uint32_t *source_rows;
    kiln_visible_window window;
    kiln_splat2d *kept;
    uint64_t *n_kept;
} kiln_visible_window_args;

typedef struct {
    uint64_t n;
    const kiln_splat2d *splats;
    const uint32_t *chunks, *order;
    kiln_splat2d *ordered;
    uint32_t *ordered_chunks, *ordered_rows;
} kiln_visible_order_args;

typedef kiln_status kiln_visible_gather_fn(const kiln_exec *x, const kiln_visible_gather_args *a,
                                           void *work, size_t *work_bytes, kiln_error *err);
typedef kiln_status kiln_visible_window_fn(const kiln_exec *x, const kiln_visible_window_args *a,
                                           void *work, size_t *work_bytes, kiln_error *err);
typedef kiln_status kiln_visible_order_fn(const kiln_exec *x, const kiln_visible_order_args *a,
                                          void *work, size_t *work_bytes, kiln_error *err);

/* The arrays that they read and write, for kernels/arrays.h. */
#define KILN_ARRAYS_visible_gather(A) \
    A(IN, splats, a->n)               \
    A(IN, n_visible, 1)               \
    A(IN, source_rows, a->n)          \
    A(INOUT, total, 1)                \
    A(INOUT, all, a->capacity)        \
    A(INOUT, depths, a->capacity)     \
    A(INOUT, rows, a->capacity)       \
    A(INOUT, chunks, a->capacity)

#define KILN_ARRAYS_visible_window(A)                                                         \
    A(IN, splats, a->n)                                                                       \
    A(IN, n_visible, 1)                                                                       \
    A(IN, source_rows, a->n)                                                                  \
    A(IN, window.live, ((uint64_t)a->window.tiles_x + 1) * ((uint64_t)a->window.tiles_y + 1)) \
    A(OUT, n_kept, 1)                                                                         \
    A(OUT_USED, kept, a->n, a->n_kept)

#define KILN_ARRAYS_visible_order(A) \
    A(IN, splats, a->n)              \
    A(IN, chunks, a->n)              \
    A(IN, order, a->n)               \
    A(OUT, ordered, a->n)            \
    A(OUT, ordered_chunks, a->n)     \
    A(OUT, ordered_rows, a->n)

KILN_C_END

#endif
