/* pixel_bytes -- a picture's colours as bytes, in the orders in which screens and encoders of video
 * take them.
 *
 *   pixels  [height][stride][4]  f32  in   of each row the first `width` pixels are read; 16-byte
 *                                          aligned
 *   bytes   [kiln_pixel_bytes_size]   u8   out  16-byte aligned on a GPU, by `layout`:
 *     RGBA    [height][width][4]
 *     RGB     [height][width][3]
 *     YUV420  [height][width] luma, then [ceil(height / 2)][ceil(width / 2)] blue and as many red
 *             differences: those of the mean of 2 x 2 pixels, of which those beyond an odd edge are
 *             the ones at the edge
 *
 * Red, green, blue and alpha are the bytes of a PNG (png_rows.h): clamped to [0, 1], NaN as 0,
 * times 255, half up. Luma and differences are made of these bytes in integers, within one step of
 * the exact value: limited range (16 to 235, 16 to 240), by the matrix that players assume if a
 * file names none. That is BT.709 from 1280 pixels in width or more than 576 in height, else
 * BT.601.
 *
 * Pointers, work, threads: as in knn.h. KILN_E_INPUT: a side of 0 or above 2^20 pixels, a stride
 * below the width or above 2^20, an unknown layout. Source of the matrices: ITU-R BT.601-7 and
 * BT.709-6.
 */
#ifndef KILN_KERNELS_PIXEL_BYTES_H
#define KILN_KERNELS_PIXEL_BYTES_H

#include "base/extern_c.h"
#include "base/status.h"
#include "kernels/exec.h"

#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

typedef enum {
    KILN_PIXELS_RGBA,
    KILN_PIXELS_RGB,
    KILN_PIXELS_YUV420,
    KILN_N_PIXEL_LAYOUTS
} kiln_pixel_layout;

typedef struct {
    uint32_t width, height; /* of what is written */
    uint32_t stride;        /* pixels of a row of the picture, at least `width` */
    kiln_pixel_layout layout;
    const float *pixels;
    unsigned char *bytes;
} kiln_pixel_bytes_args;

typedef kiln_status kiln_pixel_bytes_fn(const kiln_exec *x, const kiln_pixel_bytes_args *a,
                                        void *work, size_t *work_bytes, kiln_error *err);

/* Returns the bytes of a picture of this size. */
static inline uint64_t kiln_pixel_bytes_size(kiln_pixel_layout layout, uint32_t width,
                                             uint32_t height)
{
    const uint64_t pixels = (uint64_t)width * height,
                   quarter = ((uint64_t)width + 1) / 2 * (((uint64_t)height + 1) / 2);
    return layout == KILN_PIXELS_YUV420 ? pixels + 2 * quarter
                                        : (layout == KILN_PIXELS_RGBA ? 4 : 3) * pixels;
}

/* Checks the arguments for both siblings. */
kiln_status kiln_pixel_bytes_check(const kiln_pixel_bytes_args *a, kiln_error *err) KILN_MUST_CHECK;

/* The arrays that it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_pixel_bytes(A)                     \
    A(IN, pixels, (uint64_t)4 * a->stride * a->height) \
    A(OUT, bytes, kiln_pixel_bytes_size(a->layout, a->width, a->height))

KILN_C_END

#endif
