/* png_rows -- rows of a picture as a PNG wants them: codes of 8 or 16 bits, big end first, behind the Paeth filter (PNG, third
 * edition, 9.4): each byte less the best guess of those to its left, above and above left.
 *
 * Loops are plain, without a branch in them, so that compilers make vector code of them: twice, for any x86-64 and with AVX2. */
#include "stages/image/image_internal.h"

#include <string.h>

enum { FILTER_PAETH = 4, TILE = 128 };

/* Compiled anew in each set below, with what that set may use. */
#define KILN_BODY static inline __attribute__((always_inline))

size_t kiln_png_pixel_bytes(const kiln_picture_job *job) { return (size_t)job->channels * (job->format == KILN_PNG16 ? 2 : 1); }

/* Round half up after a clamp; what is not a number becomes 0. */
KILN_BODY int quantise(float v, float top)
{
    const float c = v > 0.f ? (v < 1.f ? v : 1.f) : 0.f;
    return (int)(c * top + 0.5f);
}

/* What is rendered, mostly: three of four floats. All four become codes, as that is what vectors are good at. */
KILN_BODY void codes_3_of_4(const float *src, uint32_t width, unsigned char *row)
{
    unsigned char all[4 * TILE];
    for (uint32_t first = 0; first < width; first += TILE, src += 4 * TILE, row += 3 * TILE) {
        const size_t n = width - first < TILE ? width - first : TILE;
#pragma omp simd
        for (size_t i = 0; i < 4 * n; i++) all[i] = (unsigned char)quantise(src[i], 255.f);
        for (size_t x = 0; x + 1 < n; x++) memcpy(row + 3 * x, all + 4 * x, 4); /* the next pixel writes over the fourth */
        memcpy(row + 3 * (n - 1), all + 4 * (n - 1), 3);
    }
}

KILN_BODY void codes_8(const float *src, uint32_t width, uint32_t step, uint32_t channels, unsigned char *row)
{
    if (step == 4 && channels == 3) {
        codes_3_of_4(src, width, row);
        return;
    }
    for (uint32_t x = 0; x < width; x++, src += step)
        for (uint32_t c = 0; c < channels; c++) *row++ = (unsigned char)quantise(src[c], 255.f);
}

KILN_BODY void codes_16(const float *src, uint32_t width, uint32_t step, uint32_t channels, unsigned char *row)
{
    for (uint32_t x = 0; x < width; x++, src += step)
        for (uint32_t c = 0; c < channels; c++) {
            const int v = quantise(src[c], 65535.f);
            *row++ = (unsigned char)(v >> 8);
            *row++ = (unsigned char)v;
        }
}

/* A pixel over a background to one with straight alpha. What is not a number becomes 0 in quantise. */
KILN_BODY void straighten(const float *src, const float *over, float out[4])
{
    const float alpha = src[3], left = 1.f - alpha;
    for (int c = 0; c < 3; c++) out[c] = alpha > 0.f ? (src[c] - left * over[c]) / alpha : 0.f;
    out[3] = alpha;
}

/* Codes of a row, TILE pixels at a time. */
KILN_BODY void codes_straight(const kiln_picture_job *job, const float *src, unsigned char *row)
{
    float straight[4 * TILE];
    const size_t pixel = kiln_png_pixel_bytes(job);
    for (uint32_t first = 0; first < job->width; first += TILE, src += (size_t)TILE * job->step, row += TILE * pixel) {
        const uint32_t n = job->width - first < TILE ? job->width - first : TILE;
        for (uint32_t x = 0; x < n; x++) straighten(src + (size_t)x * job->step, job->over, straight + 4 * x);
        if (job->format == KILN_PNG16)
            codes_16(straight, n, 4, 4, row);
        else
            codes_8(straight, n, 4, 4, row);
    }
}

KILN_BODY void codes(const kiln_picture_job *job, uint32_t y, unsigned char *row)
{
    const float *src = job->data + (size_t)y * job->width * job->step;
    if (job->over && job->channels == 4) {
        codes_straight(job, src, row);
        return;
    }
    if (job->format == KILN_PNG16)
        codes_16(src, job->width, job->step, job->channels, row);
    else
        codes_8(src, job->width, job->step, job->channels, row);
}

KILN_BODY unsigned char distance(unsigned char a, unsigned char b) { return (unsigned char)(a < b ? b - a : a - b); }

/* a: left, b: above, c: above left. The guess is whichever is nearest to a + b - c, ties in this order, as the specification has
 * it. In bytes throughout, which are twice as many in a vector: the distance to c is the sum of the others, so that c is not nearer
 * than they are, where a and b lie on the same side of it, else their difference. */
KILN_BODY unsigned char paeth(unsigned char a, unsigned char b, unsigned char c)
{
    const unsigned char to_a = distance(b, c), to_b = distance(a, c);
    const unsigned char same_side = (unsigned char)((a >= c) == (b >= c) ? 255 : 0);
    const unsigned char to_c = distance(to_a, to_b) | same_side;
    const unsigned char of_b_and_c = to_b <= to_c ? b : c, nearer = to_b < to_c ? to_b : to_c;
    return to_a <= nearer ? a : of_b_and_c;
}

/* `pixel` bytes to the left of a row are 0. */
KILN_BODY void filter(const unsigned char *row, const unsigned char *above, size_t bytes, size_t pixel, unsigned char *out)
{
    *out++ = FILTER_PAETH;
    for (size_t i = 0; i < pixel; i++) out[i] = (unsigned char)(row[i] - paeth(0, above[i], 0));
#pragma omp simd
    for (size_t i = pixel; i < bytes; i++) out[i] = (unsigned char)(row[i] - paeth(row[i - pixel], above[i], above[i - pixel]));
}

KILN_BODY void filtered_rows(const kiln_picture_job *job, uint32_t first, uint32_t n, unsigned char *two_rows, unsigned char *out)
{
    const size_t pixel = kiln_png_pixel_bytes(job), bytes = job->width * pixel;
    unsigned char *above = two_rows, *row = two_rows + bytes;
    if (first > 0)
        codes(job, first - 1, above);
    else
        memset(above, 0, bytes);
    for (uint32_t y = first; y < first + n; y++, out += bytes + 1) {
        codes(job, y, row);
        filter(row, above, bytes, pixel, out);
        unsigned char *const done = above;
        above = row;
        row = done;
    }
}

/* ---- the two sets --------------------------------------------------------------------------------------------------------- */
void kiln_png_rows_baseline(const kiln_picture_job *job, uint32_t first, uint32_t n, unsigned char *two_rows, unsigned char *out)
{
    filtered_rows(job, first, n, two_rows, out);
}

__attribute__((target("avx2"))) static void rows_avx2(const kiln_picture_job *job, uint32_t first, uint32_t n,
                                                      unsigned char *two_rows, unsigned char *out)
{
    filtered_rows(job, first, n, two_rows, out);
}

void kiln_png_rows(const kiln_picture_job *job, uint32_t first, uint32_t n, unsigned char *two_rows, unsigned char *out)
{
    __builtin_cpu_init();
    (__builtin_cpu_supports("avx2") ? rows_avx2 : kiln_png_rows_baseline)(job, first, n, two_rows, out);
}
