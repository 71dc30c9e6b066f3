/* raster_backward -- the gradient of a picture's squared error with respect to what was drawn:
 * means, conics, opacities and colours of the splats.
 *
 *   splats [n]            in     as raster drew them. Those whose `row` is below n_rows get a
 *                                gradient, each row at most one splat; the others are frozen
 *   tile_counts, ranks           in     the lists that raster was given
 *   rgba [rows][width][4]   in     raster's picture of these lists over black
 *   target [rows][width][4] in     what the picture should be, over black, with its alpha
 *   background [3]                 is laid under both
 *   gradients [9][n_rows] out    see kiln_backward_plane; zero for rows without a splat, or whose
 *                                splat no pixel drew
 *
 * The error is E = 1/2 sum over pixels and colours of (C - C*)^2, C = rgba + (1 - alpha)
 * background, C* alike. With d = mean - pixel centre and g = dE/dpower = alpha dE/dalpha, the first
 * six planes are sums over pixels of g times 1, dx, dy, dx dx, dx dy, dy dy: all that
 * project_backward needs to know of the geometry (DESIGN.md). The last three are dE/drgb. A pixel
 * whose alpha was cut at the profile's maximum has no gradient of its power. A colour of 0, where
 * project cuts, has no gradient at all.
 *
 * The bits depend only on the inputs: a pixel's contributions are pinned, and sums are 64-bit
 * integers. Their unit is a power of two that depends on the largest residual and colour
 * (DESIGN.md, also why no sum overflows).
 *
 * Pointers, work, threads: as in knn.h. KILN_E_INPUT: as raster, and more than 2^22 pixels.
 */
#ifndef KILN_KERNELS_RASTER_BACKWARD_H
#define KILN_KERNELS_RASTER_BACKWARD_H

#include "base/extern_c.h"
#include "kernels/raster/raster.h"

KILN_C_BEGIN

typedef enum {
    KILN_BACKWARD_POWER, /* sum of g */
    KILN_BACKWARD_X,     /* sum of g dx, .. */
    KILN_BACKWARD_Y,
    KILN_BACKWARD_XX,
    KILN_BACKWARD_XY,
    KILN_BACKWARD_YY,
    KILN_BACKWARD_RED,
    KILN_BACKWARD_GREEN,
    KILN_BACKWARD_BLUE,
    KILN_BACKWARD_PLANES
} kiln_backward_plane;

enum { KILN_BACKWARD_PIXELS_MAX = 1 << 22 };

typedef struct {
    uint64_t n;
    const kiln_splat2d *splats;
    const kiln_view *view;
    kiln_profile_id profile;
    uint32_t row0, row1;
    const uint32_t *tile_counts;
    const uint32_t *ranks;
    uint64_t n_pairs; /* at least the sum of tile_counts */
    const float *rgba;
    const float *target;
    float background[3];
    uint64_t n_rows;
    float *gradients;
} kiln_raster_backward_args;

typedef kiln_status kiln_raster_backward_fn(const kiln_exec *x, const kiln_raster_backward_args *a,
                                            void *work, size_t *work_bytes, kiln_error *err);

/* Checks view, tile rows and profile for both siblings. */
kiln_status kiln_raster_backward_check(const kiln_raster_backward_args *a,
                                       kiln_error *err) KILN_MUST_CHECK;

/* Number of pixels of tile rows [row0, row1) inside the image. */
static inline uint64_t kiln_raster_backward_pixels(const kiln_raster_backward_args *a)
{
    const uint64_t from = (uint64_t)a->row0 * KILN_TILE, end = (uint64_t)a->row1 * KILN_TILE,
                   height = a->view->height;
    return ((end < height ? end : height) - (from < height ? from : height)) * a->view->width;
}

/* The arrays that it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_raster_backward(A)                                             \
    A(IN, splats, a->n)                                                            \
    A(IN, tile_counts, (uint64_t)(a->row1 - a->row0) * kiln_view_tiles_x(a->view)) \
    A(IN, ranks, a->n_pairs)                                                       \
    A(IN, rgba, 4 * kiln_raster_backward_pixels(a))                                \
    A(IN, target, 4 * kiln_raster_backward_pixels(a))                              \
    A(OUT, gradients, KILN_BACKWARD_PLANES * a->n_rows)

KILN_C_END

#endif
