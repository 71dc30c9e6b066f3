/* metrics -- computes PSNR and SSIM of two pictures: RGB, clamped to [0,1] first; NaN counts as 0.
 *
 *   a, b   f32  in   channel c of pixel (x, y) is at a[(y * a_row + x) * a_step + c]; a_step and
 *                    b_step are 3 or 4; a_row and b_row are in pixels
 *   mask   u8   in   [height][width], 0: the pixel is left out; NULL: none is
 *   out    [1]  out
 *
 * SSIM is that of fused-ssim (rahul-goel/fused-ssim 0ac916a): 11 x 11 Gaussian, sigma 1.5, both
 * max(0,.) clamps. "same" pads with zeros, "valid" averages [5:-5, 5:-5]. It is computed in
 * float32, within 2e-7 of float64. Sums are fixed point (round(value * 2^48), metrics_math.h), so
 * their order does not matter and every run gives the same bits.
 *
 * psnr is +INFINITY for equal pictures and for those closer than 2^-25 everywhere. ssim_valid is
 * NAN below 11 pixels in either axis.
 *
 * With a mask, masked pixels are black in both pictures (splatfacto and gsplat multiply both by the
 * mask) and do not count: squared error and channel means are those of the other pixels, and SSIM
 * is the map's mean over the other pixels, for "valid" over those of them in [5:-5, 5:-5]. So no
 * sample that is left out decides a bit. All numbers of an empty mask are NAN, as is ssim_valid of
 * one that is empty within [5:-5, 5:-5]. A mask without a 0 gives the bits of NULL.
 *
 * Pointers, work, threads: as in knn.h; the work space does not grow with the picture.
 * KILN_E_INPUT: a side of 0 or above 2^20 pixels, a step other than 3 or 4, rows shorter than the
 * width.
 */
#ifndef KILN_KERNELS_METRICS_H
#define KILN_KERNELS_METRICS_H

#include "base/extern_c.h"
#include "base/status.h"
#include "kernels/exec.h"

#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

typedef struct {
    double psnr, mse, ssim_same, ssim_valid;
    double mean_a[3], mean_b[3]; /* clamped values */
} kiln_metrics;

typedef struct {
    uint32_t width, height;
    const float *a, *b;
    uint32_t a_step, b_step, a_row, b_row;
    const uint8_t *mask; /* [height][width], 0: left out; NULL: all pixels count */
    kiln_metrics *out;
} kiln_metrics_args;

typedef kiln_status kiln_metrics_fn(const kiln_exec *x, const kiln_metrics_args *a, void *work,
                                    size_t *work_bytes, kiln_error *err);

/* Checks size, step and rows for both siblings. */
kiln_status kiln_metrics_check(const kiln_metrics_args *a, kiln_error *err) KILN_MUST_CHECK;

/* Returns the number of floats from the first of a picture to its last. */
static inline uint64_t kiln_metrics_floats(uint32_t row, uint32_t step, uint32_t width,
                                           uint32_t height)
{
    return height == 0 ? 0 : ((uint64_t)row * (height - 1) + width) * step;
}

/* The arrays that it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_metrics(A)                                              \
    A(IN, a, kiln_metrics_floats(a->a_row, a->a_step, a->width, a->height)) \
    A(IN, b, kiln_metrics_floats(a->b_row, a->b_step, a->width, a->height)) \
    A(IN, mask, (uint64_t)a->width * a->height)                             \
    A(OUT, out, 1)

KILN_C_END

#endif
