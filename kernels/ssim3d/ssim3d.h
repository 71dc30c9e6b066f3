/* ssim3d -- computes the mean SSIM of two batches of volumes as a loss has it, with a window of 11
 * x 11 x 11 voxels; and what its gradient needs. ssim.h has the same of pictures.
 *
 *   a, b       [planes][depth][height][width]     f32  in
 *   partials   [3][planes][depth][height][width]  f32  out  what ssim3d_backward takes; NULL: not
 *                                                           wanted
 *   mean       [1]                                f32  out  of the map over all planes; NAN where a
 *                                                           value of it is no number
 *
 * ssim3d_backward -- computes the gradient of `mean` to a, times what comes from above.
 *
 *   a, b, partials                                      in   as given to ssim3d and gotten from it
 *   upstream   [1]                                f32  in   dL/dmean
 *   gradient   [planes][depth][height][width]     f32  out  dL/da
 *
 * The definition is that of fused_ssim3d (rahul-goel/fused-ssim 0ac916a): a Gaussian of sigma 1.5,
 * C1 = 0.01^2, C2 = 0.03^2, zeros outside the volume. Variances below 0 are 0, as in ssim.h. valid:
 * the mean is over [5:-5, 5:-5, 5:-5], NAN below 11 voxels in any axis, and the gradient is of
 * that. Sums are fixed point, so the mean has the same bits on every device.
 *
 * Pointers, work, threads: as in knn.h. KILN_E_INPUT: no plane, a side of 0 or above 2^20 voxels,
 * above 2^40 values.
 */
#ifndef KILN_KERNELS_SSIM3D_H
#define KILN_KERNELS_SSIM3D_H

#include "base/extern_c.h"
#include "base/status.h"
#include "kernels/exec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

typedef struct {
    uint64_t planes;
    uint32_t width, height, depth;
    bool valid;
    const float *a, *b;
    float *partials, *mean;
} kiln_ssim3d_args;

typedef struct {
    uint64_t planes;
    uint32_t width, height, depth;
    bool valid;
    const float *a, *b, *partials, *upstream;
    float *gradient;
} kiln_ssim3d_backward_args;

typedef kiln_status kiln_ssim3d_fn(const kiln_exec *x, const kiln_ssim3d_args *a, void *work,
                                   size_t *work_bytes, kiln_error *err);
typedef kiln_status kiln_ssim3d_backward_fn(const kiln_exec *x, const kiln_ssim3d_backward_args *a,
                                            void *work, size_t *work_bytes, kiln_error *err);

/* Checks the sizes for both operations and siblings. */
kiln_status kiln_ssim3d_check(uint64_t planes, uint32_t width, uint32_t height, uint32_t depth,
                              kiln_error *err) KILN_MUST_CHECK;

/* The arrays that they read and write, for kernels/arrays.h. */
#define KILN_ARRAYS_ssim3d(A)                                         \
    A(IN, a, a->planes * a->depth * a->height * a->width)             \
    A(IN, b, a->planes * a->depth * a->height * a->width)             \
    A(OUT, partials, 3 * a->planes * a->depth * a->height * a->width) \
    A(OUT, mean, 1)

#define KILN_ARRAYS_ssim3d_backward(A)                               \
    A(IN, a, a->planes * a->depth * a->height * a->width)            \
    A(IN, b, a->planes * a->depth * a->height * a->width)            \
    A(IN, partials, 3 * a->planes * a->depth * a->height * a->width) \
    A(IN, upstream, 1)                                               \
    A(OUT, gradient, a->planes * a->depth * a->height * a->width)

KILN_C_END

#endif
