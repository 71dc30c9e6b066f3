/* blend_weights -- how much of a picture each listed Gaussian makes up: the sum of alpha T over the
 * pixels, T the transmittance that nearer Gaussians leave. Where they are asked for, also its
 * largest alpha T of any pixel, and the sum of alpha alone, which is what it would make up if
 * nothing stood in front of it.
 *
 *   splats [n]            in     colours are not read
 *   tile_counts [tiles], ranks [n_pairs], row0, row1, view, profile   in, as in raster.h
 *   weights [n]           inout  to element i is added, for each pixel in which Gaussian i is
 *                                drawn, the whole part of 2^24 alpha T (KILN_BLEND_UNIT). Elements
 *                                of Gaussians that no tile lists stay as they are
 *   peaks [n]             inout  or NULL; element i becomes the largest of these whole parts, if it
 *                                was less
 *   alphas [n]            inout  or NULL; to element i is added the whole part of 2^24 alpha of
 *                                each pixel in which alpha shows, finished pixels too. Lists are
 *                                then read to their ends
 *   mask [rows][width]    in     or NULL; a pixel of 0 counts nowhere
 *   state [rows][width]   inout  or NULL, as in raster.h: a view whose Gaussians come in slabs.
 *                                Only `left` is read and written; a pixel that the mask leaves out
 *                                is left as stopped
 *
 * alpha, T, and which pixels are drawn are those of raster, bit for bit. Sums and maxima are of
 * integers, so that threads, bands, slabs and the order of tiles do not show: both siblings give
 * the same bits. No profile lets alpha be 1, so that a call adds less than 2^24 for each pixel; a
 * picture has at most 2^40.
 *
 * Opacities must be at most 1. Pointers, work, threads: as in knn.h. KILN_E_INPUT: a rank at or
 * above n; n_pairs below the sum of tile_counts (CUDA reports these two in x->violation); a view
 * without pixels or with more than 2^20 either way. The outputs are undefined then.
 */
#ifndef KILN_KERNELS_BLEND_WEIGHTS_H
#define KILN_KERNELS_BLEND_WEIGHTS_H

#include "base/extern_c.h"
#include "kernels/raster/raster.h"

KILN_C_BEGIN

enum { KILN_BLEND_UNIT = 1 << 24 }; /* what a whole pixel counts */

typedef struct {
    uint64_t n;
    const kiln_splat2d *splats;
    const kiln_view *view;
    kiln_profile_id profile;
    uint32_t row0, row1;
    const uint32_t *tile_counts;
    const uint32_t *ranks;
    uint64_t n_pairs; /* at least the sum of tile_counts */
    uint64_t *weights;
    uint32_t *peaks;
    uint64_t *alphas;
    const uint8_t *mask;
    kiln_raster_state *state;
} kiln_blend_weights_args;

typedef kiln_status kiln_blend_weights_fn(const kiln_exec *x, const kiln_blend_weights_args *a,
                                          void *work, size_t *work_bytes, kiln_error *err);

/* The arguments of raster that describe the same lists: for its checks and its counts of pixels. */
kiln_raster_args kiln_blend_weights_raster(const kiln_blend_weights_args *a);

/* The arrays that it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_blend_weights(A)                                               \
    A(IN, splats, a->n)                                                            \
    A(IN, tile_counts, (uint64_t)(a->row1 - a->row0) * kiln_view_tiles_x(a->view)) \
    A(IN, ranks, a->n_pairs)                                                       \
    A(INOUT, weights, a->n)                                                        \
    A(INOUT, peaks, a->n)                                                          \
    A(INOUT, alphas, a->n)                                                         \
    A(IN, mask, kiln_blend_weights_pixels(a))                                      \
    A(INOUT, state, kiln_blend_weights_pixels(a))

static inline uint64_t kiln_blend_weights_pixels(const kiln_blend_weights_args *a)
{
    const kiln_raster_args r = kiln_blend_weights_raster(a);
    return kiln_raster_pixels(&r);
}

KILN_C_END

#endif
