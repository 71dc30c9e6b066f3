/* pixel_bytes on the CPU: the definition. Each thread takes some rows, for YUV some pairs of them.
 *
 * Floats become bytes TILE pixels at a time, all four of a pixel, as that is what vectors are good
 * at; what is written is then taken from these bytes. */
#include "kernels/pixel_bytes/pixel_bytes.h"

#include "kernels/pixel_bytes/pixel_bytes_math.h"

#include <string.h>

enum { TILE = 128 }; /* even, so that none cuts 2 x 2 pixels */

kiln_pixel_bytes_fn KILN_CPU(pixel_bytes);

static inline void to_bytes(const float *src, size_t pixels, unsigned char *out)
{
#pragma omp simd
    for (size_t i = 0; i < 4 * pixels; i++) out[i] = (unsigned char)kiln_png_code(src[i], 255.f);
}

static inline size_t tile_at(const kiln_pixel_bytes_args *a, uint32_t x)
{
    return a->width - x < TILE ? a->width - x : TILE;
}

static inline const float *pixel_at(const kiln_pixel_bytes_args *a, uint32_t x, uint32_t y)
{
    return a->pixels + 4 * ((size_t)y * a->stride + x);
}

static void write_rgba(const kiln_pixel_bytes_args *a, uint32_t y)
{
    to_bytes(pixel_at(a, 0, y), a->width, a->bytes + (size_t)4 * y * a->width);
}

static void write_rgb(const kiln_pixel_bytes_args *a, uint32_t y)
{
    unsigned char all[4 * TILE], *row = a->bytes + (size_t)3 * y * a->width;
    for (uint32_t x = 0; x < a->width; x += TILE, row += 3 * TILE) {
        const size_t n = tile_at(a, x);
        to_bytes(pixel_at(a, x, y), n, all);
        /* the next pixel writes over the fourth */
        for (size_t i = 0; i + 1 < n; i++) memcpy(row + 3 * i, all + 4 * i, 4);
        memcpy(row + 3 * (n - 1), all + 4 * (n - 1), 3);
    }
}

static inline void write_luma(const kiln_yuv_matrix *m, const unsigned char *all, size_t n,
                              unsigned char *out)
{
    for (size_t i = 0; i < n; i++) {
        const int32_t rgb[3] = {all[4 * i], all[4 * i + 1], all[4 * i + 2]};
        out[i] = kiln_yuv_luma(m, rgb);
    }
}

/* above, below: bytes of a tile of two rows, n pixels each. */
static inline void write_differences(const kiln_yuv_matrix *m, const unsigned char *above,
                                     const unsigned char *below, size_t n, unsigned char *cb,
                                     unsigned char *cr)
{
    for (size_t i = 0; i < n; i += 2) {
        const size_t left = 4 * i, right = i + 1 < n ? left + 4 : left;
        int32_t sum[3];
        for (size_t c = 0; c < 3; c++)
            sum[c] = above[left + c] + above[right + c] + below[left + c] + below[right + c];
        cb[i / 2] = kiln_yuv_byte(m->cb, sum, 2, 128);
        cr[i / 2] = kiln_yuv_byte(m->cr, sum, 2, 128);
    }
}

/* Rows 2 pair and 2 pair + 1. */
static void write_yuv420(const kiln_pixel_bytes_args *a, const kiln_yuv_matrix *m, uint32_t pair)
{
    const size_t half_width = ((size_t)a->width + 1) / 2, half_height = ((size_t)a->height + 1) / 2;
    const uint32_t y = 2 * pair, below = y + 1 < a->height ? y + 1 : y;
    unsigned char *const cb = a->bytes + (size_t)a->width * a->height + pair * half_width;
    unsigned char all[2][4 * TILE];
    for (uint32_t x = 0; x < a->width; x += TILE) {
        const size_t n = tile_at(a, x);
        to_bytes(pixel_at(a, x, y), n, all[0]);
        to_bytes(pixel_at(a, x, below), n, all[1]);
        write_luma(m, all[0], n, a->bytes + (size_t)y * a->width + x);
        if (below != y) write_luma(m, all[1], n, a->bytes + (size_t)below * a->width + x);
        write_differences(m, all[0], all[1], n, cb + x / 2, cb + half_width * half_height + x / 2);
    }
}

static void write_pixel_rows(const kiln_pixel_bytes_args *a, const kiln_yuv_matrix *m, uint32_t row)
{
    if (a->layout == KILN_PIXELS_RGBA)
        write_rgba(a, row);
    else if (a->layout == KILN_PIXELS_RGB)
        write_rgb(a, row);
    else
        write_yuv420(a, m, row);
}

/* kiln_pixel_bytes_cpu, kiln_pixel_bytes_cpu_avx2 */
kiln_status KILN_CPU(pixel_bytes)(const kiln_exec *x, const kiln_pixel_bytes_args *a, void *work,
                                  size_t *work_bytes, kiln_error *err)
{
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    KILN_TRY(kiln_pixel_bytes_check(a, err));
    const kiln_yuv_matrix m = kiln_yuv_matrix_of(a->width, a->height);
    const uint32_t rows = a->layout == KILN_PIXELS_YUV420 ? (a->height + 1) / 2 : a->height;
#pragma omp parallel for num_threads(x->threads) if (x->threads > 1)
    for (uint32_t i = 0; i < rows; i++) write_pixel_rows(a, &m, i);
    return KILN_OK;
}
