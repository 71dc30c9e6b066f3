/* undistort -- warps a photo of a lens to what a pinhole would have shown, and says which pixels it
 * knows.
 *
 *   photo       f32 in   [lens.height][lens.width][channels], channels 1 to 4
 *   photo_mask  u8  in   [lens.height][lens.width], 0 where the photo does not count; NULL: all of
 *                        it counts
 *   out         f32 out  [target.height][target.width][channels]; 0 where the photo shows nothing
 *   mask        u8  out  [target.height][target.width]: 1 where all samples lie in the photo, count
 *                        in photo_mask and are within lens.limit, else 0
 *
 * KILN_UNDISTORT_BILINEAR is what COLMAP's image_undistorter does: if the target has another size
 * than the photo, the warp is made in the photo's size and then scaled, one axis after the other.
 * The filter is a triangle as wide as a pixel of the smaller of the two. KILN_UNDISTORT_LANCZOS
 * takes 6 x 6 samples at the target's size (Lanczos, 3 lobes); values may leave 0 to 1. levels: 0,
 * or each step's values are clamped to 0 to 1 and rounded to multiples of 1/levels; with 255 the
 * result is that of image_undistorter.
 *
 * Pointers, work, threads: as in knn.h. The work space is up to two pictures of the photo's size.
 * KILN_E_INPUT: a side of 0 or above 2^20 pixels, no channels or more than 4, no such filter.
 */
#ifndef KILN_KERNELS_UNDISTORT_H
#define KILN_KERNELS_UNDISTORT_H

#include "base/extern_c.h"
#include "base/status.h"
#include "kernels/exec.h"
#include "kernels/lens/lens.h"

#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

typedef enum { KILN_UNDISTORT_BILINEAR, KILN_UNDISTORT_LANCZOS } kiln_undistort_filter;
/* As a range of an option (base/option.h), in the order of the values. */
#define KILN_UNDISTORT_FILTERS "bilinear|lanczos"

typedef struct {
    kiln_lens lens;
    kiln_pinhole target;
    uint32_t channels, filter, levels;
    const float *photo;
    const uint8_t *photo_mask;
    float *out;
    uint8_t *mask;
} kiln_undistort_args;

typedef kiln_status kiln_undistort_fn(const kiln_exec *x, const kiln_undistort_args *a, void *work,
                                      size_t *work_bytes, kiln_error *err);

/* Checks sizes, channels and filter for both siblings. */
kiln_status kiln_undistort_check(const kiln_undistort_args *a, kiln_error *err) KILN_MUST_CHECK;
/* Returns the bytes of host memory that the operation takes besides its arrays. */
uint64_t kiln_undistort_bytes(const kiln_undistort_args *a);

/* The arrays that it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_undistort(A)                                            \
    A(IN, photo, (uint64_t)a->lens.width * a->lens.height * a->channels)    \
    A(IN, photo_mask, (uint64_t)a->lens.width * a->lens.height)             \
    A(OUT, out, (uint64_t)a->target.width * a->target.height * a->channels) \
    A(OUT, mask, (uint64_t)a->target.width * a->target.height)

KILN_C_END

#endif
