/* raster -- blends the listed Gaussians of each tile, front to back, as the profile says.
 *
 *   splats [n]            in     with colour, in any order; the lists say in which order they are
 *                                drawn
 *   tile_counts [tiles]   in     list lengths of the tiles in tile rows [row0, row1)
 *   ranks [n_pairs]       in     tile after tile, positions in splats, nearest first
 *                                (tile_pairs_emit, tile_lists). n_pairs may be more than the sum of
 *                                tile_counts; elements beyond the sum are not read
 *   plan                  in     what tile_lists planned with these lists, or without ends
 *                                (raster_plan.h). On CUDA, drawing one of its parts then needs
 *                                neither a launch nor work space for a plan
 *   rgba [rows][width][4] out    rows: the pixel rows of the tile rows that are drawn, inside the
 *                                image. Red, green, blue over the background, and alpha = 1 - T;
 *                                float32, not clamped
 *   depth [rows][width]   out    or NULL: the expected depth, sum(w z) / max(sum(w), 1e-10),
 *                                gsplat's "ED"
 *   state [rows][width]   inout  or NULL: each pixel's state after nearer Gaussians, updated by
 *                                these; rgba and depth must be NULL then
 *
 * The bits of the picture depend only on the inputs, not on threads, bands or the origin of the
 * lists.
 *
 * A part. Of the tile rows that have lists all are drawn, or [part0, part1): so several calls can
 * draw a picture with the same lists, although only the device knows where those of a row begin.
 * The upper rows can be copied while the lower ones are drawn.
 *
 * Slabs. Gaussians may come in slabs of ascending depth, one call for each with the same state,
 * which is all zero before the first. kiln_raster_finish then turns the state into the picture,
 * with the bits of a single call for all Gaussians.
 *
 * fast. Draws a slightly different picture in less time, with the GPU's own exponential and fused
 * sums: at least 60 dB from the exact one on every scene that was measured (DESIGN.md). On one kind
 * of GPU its bits, too, depend only on the inputs. CUDA only.
 *
 * Opacities must be at most 1. Pointers, work, threads: as in knn.h. KILN_E_INPUT: fast on the CPU;
 * a rank at or above n; n_pairs below the sum of tile_counts (CUDA reports these two in
 * x->violation, violation.h); a view without pixels or with more than 2^20 either way. The outputs
 * are undefined then.
 */
#ifndef KILN_KERNELS_RASTER_H
#define KILN_KERNELS_RASTER_H

#include "base/extern_c.h"
#include "kernels/project/project.h"
#include "kernels/raster/raster_plan.h"

KILN_C_BEGIN

/* A pixel between two slabs. All zero: nothing was drawn yet. */
typedef struct {
    float red, green, blue; /* of the Gaussians drawn so far, without background */
    /* transmittance; 0 stands for 1 (it never becomes 0 itself); negative: the pixel is finished */
    float left;
    float weight, depth; /* sum(w), sum(w z) */
} kiln_raster_state;

typedef struct {
    uint64_t n;
    const kiln_splat2d *splats;
    const kiln_view *view;
    kiln_profile_id profile;
    bool fast;
    uint32_t row0, row1;
    uint32_t part0, part1; /* part1 is 0: all of these rows */
    const uint32_t *tile_counts;
    const uint32_t *ranks;
    uint64_t n_pairs; /* at least the sum of tile_counts */
    kiln_raster_plan plan;
    float background[3];
    float *rgba;
    float *depth;
    kiln_raster_state *state;
} kiln_raster_args;

typedef kiln_status kiln_raster_fn(const kiln_exec *x, const kiln_raster_args *a, void *work,
                                   size_t *work_bytes, kiln_error *err);

/* Checks view, tile rows and profile for both siblings. */
kiln_status kiln_raster_check(const kiln_raster_args *a, kiln_error *err) KILN_MUST_CHECK;

/* Turns the state of n pixels into the picture that raster would give. depth may be NULL. All
 * arrays are host memory. */
void kiln_raster_finish(const kiln_raster_state *state, uint64_t n, const float background[3],
                        unsigned threads, float *rgba, float *depth);

/* Return the first tile row that is drawn, and the one behind the last. */
static inline uint32_t kiln_raster_from(const kiln_raster_args *a)
{
    return a->part1 ? a->part0 : a->row0;
}
static inline uint32_t kiln_raster_to(const kiln_raster_args *a)
{
    return a->part1 ? a->part1 : a->row1;
}

/* Returns the number of pixels of the tile rows that are drawn, inside the image. */
static inline uint64_t kiln_raster_pixels(const kiln_raster_args *a)
{
    const uint64_t from = (uint64_t)kiln_raster_from(a) * KILN_TILE,
                   end = (uint64_t)kiln_raster_to(a) * KILN_TILE;
    const uint64_t height = a->view->height;
    return ((end < height ? end : height) - (from < height ? from : height)) * a->view->width;
}

/* The arrays that it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_raster(A)                                                      \
    A(IN, splats, a->n)                                                            \
    A(IN, tile_counts, (uint64_t)(a->row1 - a->row0) * kiln_view_tiles_x(a->view)) \
    A(IN, ranks, a->n_pairs)                                                       \
    A(OUT, rgba, 4 * kiln_raster_pixels(a))                                        \
    A(OUT, depth, kiln_raster_pixels(a))                                           \
    A(INOUT, state, kiln_raster_pixels(a))

KILN_C_END

#endif
