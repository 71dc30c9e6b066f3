/* raster -- blends the listed Gaussians of each tile, front to back, as the profile says.
 *
 *   splats [n]            in   with colour, in any order: drawn in that of the lists
 *   tile_counts [tiles]   in   of tile rows [row0, row1)
 *   ranks [n_pairs]       in   places in splats, nearest first, of one tile behind the other (tile_pairs_emit, tile_lists);
 *                              n_pairs may be a bound: the lists end where the counts say, and nothing behind is read
 *   rgba [rows][width][4] out  rows: the pixel rows of those tile rows inside the image; red, green, blue over the
 *                              background, alpha = 1 - T; float32, not clamped
 *   depth [rows][width]   out  or NULL: sum(w z) / max(sum(w), 1e-10), the expected depth, gsplat's "ED"
 *   state [rows][width]   inout  or NULL: where nearer Gaussians left each pixel, and these leave it; rgba and depth are NULL then
 * The picture's bits depend on nothing but the inputs (not on threads, bands or where the lists came from).
 * Gaussians in slabs of ascending depth, a call each with the same state, all zero before the first: kiln_raster_finish then makes
 * of it the very bits that one call makes of all of them.
 * Opacities are at most 1. work as in knn.h.
 * fast: another picture, at least 60 dB from this one on every scene that was measured (DESIGN.md), sooner: by the GPU's own
 * exponential and fused sums. Its bits, too, depend on nothing but the inputs, on one kind of GPU. By CUDA alone.
 * KILN_E_INPUT: fast asked of the CPU; a rank at or above n; n_pairs below the sum of tile_counts (these two in x->violation by
 * CUDA, violation.h); a view without pixels or above 2^20 either way. The picture is then not to be used.
 */
#ifndef KILN_KERNELS_RASTER_H
#define KILN_KERNELS_RASTER_H

#include "base/extern_c.h"
#include "kernels/project/project.h"

KILN_C_BEGIN

/* A pixel between two slabs; all zero: nothing was drawn. */
typedef struct {
    float red, green, blue; /* of what was drawn, without background */
    float left;             /* transmittance; 0 stands for 1 (it never falls so far), and below 0 the pixel has stopped */
    float weight, depth;    /* sum(w), sum(w z) */
} kiln_raster_state;

typedef struct {
    uint64_t n;
    const kiln_splat2d *splats;
    const kiln_view *view;
    kiln_profile_id profile;
    bool fast;
    uint32_t row0, row1;
    const uint32_t *tile_counts;
    const uint32_t *ranks;
    uint64_t n_pairs; /* at least the sum of tile_counts */
    float background[3];
    float *rgba;
    float *depth;
    kiln_raster_state *state;
} kiln_raster_args;

typedef kiln_status kiln_raster_fn(const kiln_exec *x, const kiln_raster_args *a, void *work, size_t *work_bytes, kiln_error *err);

/* What both siblings ask of their arguments first: view, tile rows, profile. */
kiln_status kiln_raster_check(const kiln_raster_args *a, kiln_error *err) KILN_MUST_CHECK;

/* The picture of n pixels, as raster gives it; depth may be NULL. For host memory. */
void kiln_raster_finish(const kiln_raster_state *state, uint64_t n, const float background[3], unsigned threads, float *rgba,
                        float *depth);

/* Pixels of the tile rows [row0, row1) inside the image. */
static inline uint64_t kiln_raster_pixels(const kiln_raster_args *a)
{
    const uint64_t from = (uint64_t)a->row0 * KILN_TILE, end = (uint64_t)a->row1 * KILN_TILE;
    const uint64_t height = a->view->height;
    return ((end < height ? end : height) - (from < height ? from : height)) * a->view->width;
}

/* What it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_raster(A)                                                      \
    A(IN, splats, a->n)                                                            \
    A(IN, tile_counts, (uint64_t)(a->row1 - a->row0) * kiln_view_tiles_x(a->view)) \
    A(IN, ranks, a->n_pairs)                                                       \
    A(OUT, rgba, 4 * kiln_raster_pixels(a))                                        \
    A(OUT, depth, kiln_raster_pixels(a))                                           \
    A(INOUT, state, kiln_raster_pixels(a))

KILN_C_END

#endif
