/* png_rows -- rows of a picture as a PNG holds them before they are compressed: codes of 8 or 16
 * bits behind the Paeth filter.
 *
 *   pixels  [height][width][step]  f32  in   the first `channels` of a pixel are written; 16-byte
 *                                            aligned if step is 4
 *   rows    [n][1 + width * channels * bits / 8]  u8  out  rows first to first + n - 1, each behind
 *                                                          the byte that names its filter
 *
 * A code is the value clamped to [0, 1] (NaN counts as 0), times 2^bits - 1, rounded half up; 16
 * bits big end first. The filter subtracts from each byte the best guess of those to its left,
 * above and above left (PNG, third edition, 9.4). The row above the first is read too, but for row
 * 0, above which is nothing.
 *
 * If `straight` is set, pixels hold colour over the background `over`: colour + (1 - alpha)
 * background, with colour multiplied by alpha. Rows then get colour / alpha, and black where alpha
 * is 0. It needs four channels.
 *
 * Pointers, work, threads: as in knn.h. KILN_E_INPUT: a side of 0 or above 2^20 pixels, rows beyond
 * the picture, channels other than 1, 3 and 4 or more than step, bits other than 8 and 16, straight
 * without four channels.
 */
#ifndef KILN_KERNELS_PNG_ROWS_H
#define KILN_KERNELS_PNG_ROWS_H

#include "base/extern_c.h"
#include "base/status.h"
#include "kernels/exec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

typedef struct {
    uint32_t width, height;
    uint32_t step, channels, bits;
    bool straight;
    float over[3];
    uint32_t first, n;
    const float *pixels;
    unsigned char *rows;
} kiln_png_rows_args;

typedef kiln_status kiln_png_rows_fn(const kiln_exec *x, const kiln_png_rows_args *a, void *work,
                                     size_t *work_bytes, kiln_error *err);

/* Returns the bytes of a row, with the one that names the filter. */
static inline uint64_t kiln_png_row_bytes(const kiln_png_rows_args *a)
{
    return 1 + (uint64_t)a->width * a->channels * (a->bits / 8);
}

/* Checks the arguments for both siblings. */
kiln_status kiln_png_rows_check(const kiln_png_rows_args *a, kiln_error *err) KILN_MUST_CHECK;

/* The arrays that it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_png_rows(A)                             \
    A(IN, pixels, (uint64_t)a->width * a->height * a->step) \
    A(OUT, rows, a->n *kiln_png_row_bytes(a))

KILN_C_END

#endif
