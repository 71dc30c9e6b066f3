/* pixel_bytes_math -- luma and colour differences of bytes, shared by both siblings. The bytes
 * themselves are png_rows_math.h's. */
#ifndef KILN_KERNELS_PIXEL_BYTES_MATH_H
#define KILN_KERNELS_PIXEL_BYTES_MATH_H

#include "base/extern_c.h"
#include "kernels/png_rows/png_rows_math.h"

#include <stdint.h>

KILN_C_BEGIN

/* Luma is 16 + 219 (kr r + kg g + kb b), differences 128 + 224 (b - luma) / (2 (1 - kb)), of
 * colours from 0 to 1. Here the weights are of bytes, in 2^-20. */
typedef struct {
    int32_t y[3], cb[3], cr[3];
} kiln_yuv_matrix;

/* The matrix of a picture of this size. Host code alone: kernels are given it. */
kiln_yuv_matrix kiln_yuv_matrix_of(uint32_t width, uint32_t height);

KILN_C_END

/* sum: of 2^shift pixels, at most 4, whose weights add up to 224 at most: no step leaves 31 bits,
 * and what is shifted is above 0.
 */
static inline KILN_HD unsigned char kiln_yuv_byte(const int32_t weights[3], const int32_t sum[3],
                                                  int shift, int32_t offset)
{
    const int32_t v = weights[0] * sum[0] + weights[1] * sum[1] + weights[2] * sum[2];
    return (unsigned char)((v + (offset << (20 + shift)) + (1 << (19 + shift))) >> (20 + shift));
}

static inline KILN_HD unsigned char kiln_yuv_luma(const kiln_yuv_matrix *m, const int32_t rgb[3])
{
    return kiln_yuv_byte(m->y, rgb, 0, 16);
}

#endif
