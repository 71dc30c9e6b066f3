/* png_rows on the CPU: the definition. Each thread takes some rows and makes the codes of the row
 * above them anew.
 *
 * Loops are plain, without a branch in them, so that compilers make vector code of them: twice, for
 * any x86-64 and with AVX2. */
#include "kernels/png_rows/png_rows.h"

#include "base/carve.h"
#include "kernels/png_rows/png_rows_math.h"

#include <string.h>

enum { TILE = 128 };

kiln_png_rows_fn KILN_CPU(png_rows);

/* What is rendered, mostly: three of four floats. All four become codes, as that is what vectors
 * are good at. */
static inline void codes_3_of_4(const float *src, uint32_t width, unsigned char *row)
{
    unsigned char all[4 * TILE];
    for (uint32_t first = 0; first < width; first += TILE, src += 4 * TILE, row += 3 * TILE) {
        const size_t n = width - first < TILE ? width - first : TILE;
#pragma omp simd
        for (size_t i = 0; i < 4 * n; i++) all[i] = (unsigned char)kiln_png_code(src[i], 255.f);
        /* the next pixel writes over the fourth */
        for (size_t x = 0; x + 1 < n; x++) memcpy(row + 3 * x, all + 4 * x, 4);
        memcpy(row + 3 * (n - 1), all + 4 * (n - 1), 3);
    }
}

static inline void codes_8(const float *src, uint32_t width, uint32_t step, uint32_t channels,
                           unsigned char *row)
{
    if (step == 4 && channels == 3) {
        codes_3_of_4(src, width, row);
        return;
    }
    for (uint32_t x = 0; x < width; x++, src += step)
        for (uint32_t c = 0; c < channels; c++)
            *row++ = (unsigned char)kiln_png_code(src[c], 255.f);
}

static inline void codes_16(const float *src, uint32_t width, uint32_t step, uint32_t channels,
                            unsigned char *row)
{
    for (uint32_t x = 0; x < width; x++, src += step)
        for (uint32_t c = 0; c < channels; c++) {
            const int v = kiln_png_code(src[c], 65535.f);
            *row++ = (unsigned char)(v >> 8);
            *row++ = (unsigned char)v;
        }
}

static inline void codes(const kiln_png_rows_args *a, const float *src, uint32_t width,
                         uint32_t step, unsigned char *row)
{
    if (a->bits == 16)
        codes_16(src, width, step, a->channels, row);
    else
        codes_8(src, width, step, a->channels, row);
}

/* Codes of a row, TILE pixels at a time. */
static inline void codes_straight(const kiln_png_rows_args *a, const float *src, unsigned char *row)
{
    float straight[4 * TILE];
    const size_t pixel = a->channels * (a->bits / 8);
    for (uint32_t first = 0; first < a->width;
         first += TILE, src += (size_t)TILE * a->step, row += TILE * pixel) {
        const uint32_t n = a->width - first < TILE ? a->width - first : TILE;
        for (uint32_t x = 0; x < n; x++)
            kiln_png_straighten(src + (size_t)x * a->step, a->over, straight + 4 * x);
        codes(a, straight, n, 4, row);
    }
}

static void codes_of_row(const kiln_png_rows_args *a, uint32_t y, unsigned char *row)
{
    const float *src = a->pixels + (size_t)y * a->width * a->step;
    if (a->straight)
        codes_straight(a, src, row);
    else
        codes(a, src, a->width, a->step, row);
}

/* `pixel` bytes to the left of a row are 0. */
static void filter(const unsigned char *row, const unsigned char *above, size_t bytes, size_t pixel,
                   unsigned char *out)
{
    *out++ = KILN_PNG_PAETH;
    for (size_t i = 0; i < pixel; i++)
        out[i] = (unsigned char)(row[i] - kiln_png_guess(0, above[i], 0));
#pragma omp simd
    for (size_t i = pixel; i < bytes; i++)
        out[i] =
            (unsigned char)(row[i] - kiln_png_guess(row[i - pixel], above[i], above[i - pixel]));
}

/* two_rows: room for the codes of two rows. */
static void filtered_rows(const kiln_png_rows_args *a, uint32_t first, uint32_t n,
                          unsigned char *two_rows, unsigned char *out)
{
    const size_t bytes = (size_t)kiln_png_row_bytes(a) - 1;
    unsigned char *above = two_rows, *row = two_rows + bytes;
    if (n == 0) return;
    if (first > 0)
        codes_of_row(a, first - 1, above);
    else
        memset(above, 0, bytes);
    for (uint32_t y = first; y < first + n; y++, out += bytes + 1) {
        codes_of_row(a, y, row);
        filter(row, above, bytes, bytes / a->width, out);
        unsigned char *const done = above;
        above = row;
        row = done;
    }
}

/* kiln_png_rows_cpu, kiln_png_rows_cpu_avx2 */
kiln_status KILN_CPU(png_rows)(const kiln_exec *x, const kiln_png_rows_args *a, void *work,
                               size_t *work_bytes, kiln_error *err)
{
    kiln_carve c = {.base = work};
    const uint64_t row_bytes = kiln_png_row_bytes(a), two_rows = 2 * (row_bytes - 1);
    unsigned char *const codes_of_threads = kiln_take(&c, x->threads * two_rows, 1);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    if (*work_bytes < c.used)
        return kiln_fail(err, KILN_E_CAP,
                         "png_rows needs %zu bytes of work space, but was given %zu", c.used,
                         *work_bytes);
    KILN_TRY(kiln_png_rows_check(a, err));
#pragma omp parallel for num_threads(x->threads) if (x->threads > 1)
    for (unsigned t = 0; t < x->threads; t++) {
        const uint32_t from = (uint32_t)((uint64_t)a->n * t / x->threads),
                       to = (uint32_t)((uint64_t)a->n * (t + 1) / x->threads);
        filtered_rows(a, a->first + from, to - from, codes_of_threads + t * two_rows,
                      a->rows + from * row_bytes);
    }
    return KILN_OK;
}
