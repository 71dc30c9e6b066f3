/* seen -- the Gaussians that a camera sees, collected over chunks: moves of what project and depth_order found, for who keeps
 * them in one place (kernels/draw on a device, where they never come to host memory).
 *
 * visible_gather   appends what one chunk's project gave to what the chunks before gave:
 *   splats [n], n_visible [1]   in     as project left them; the first *n_visible of splats hold something
 *   source_rows [n] u32         in     of the chunk, found by the splat's row
 *   total [1] u64               inout  how many there are; goes on counting beyond `room`, where nothing is written any more
 *   all, depths, rows, chunks [room]   inout: appended from *total on; rows are source rows, chunks say `chunk`: with depths what
 *                                      depth_order asks for
 * visible_window   keeps those of a chunk that a slab wants, in their order:
 *   splats [n], n_visible [1], source_rows [n]   in   as above
 *   window                      in     host memory, but for its array
 *   kept [n], n_kept [1]        out    as splats and n_visible, for visible_gather
 * visible_order    puts them into drawing order:
 *   splats, chunks [n], order [n]      in   order as depth_order gives it, each below n
 *   ordered, ordered_chunks [n]        out  chunks and ordered_chunks may both be NULL
 *   ordered_rows [n] u32               out  the splats' rows in their chunks, once more by themselves
 *
 * Moves of whole numbers: both siblings give the same bits. Splats are 16-byte aligned. work as in knn.h; visible_window alone
 * needs it.
 */
#ifndef KILN_KERNELS_VISIBLE_H
#define KILN_KERNELS_VISIBLE_H

#include "base/extern_c.h"
#include "kernels/project/project.h"

KILN_C_BEGIN

/* The Gaussians of a slab (kernels/draw): with keys of depth_order in [from, to), and on some tile that still asks for more. */
typedef struct {
    uint64_t from, to;
    uint32_t tiles_x, tiles_y;
    const uint32_t *live; /* [tiles_y + 1][tiles_x + 1]: of such tiles above and to the left of here */
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

typedef kiln_status kiln_visible_gather_fn(const kiln_exec *x, const kiln_visible_gather_args *a, void *work, size_t *work_bytes,
                                           kiln_error *err);
typedef kiln_status kiln_visible_window_fn(const kiln_exec *x, const kiln_visible_window_args *a, void *work, size_t *work_bytes,
                                           kiln_error *err);
typedef kiln_status kiln_visible_order_fn(const kiln_exec *x, const kiln_visible_order_args *a, void *work, size_t *work_bytes,
                                          kiln_error *err);

/* What they read and write, for kernels/arrays.h. */
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
