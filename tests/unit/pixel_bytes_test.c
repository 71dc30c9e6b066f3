/* pixel_bytes_test -- colours as bytes in every layout, by plain formulas and by every CPU sibling,
 * on any number of threads. That luma and colour differences are those of BT.601 and BT.709 is
 * video_frame_test's. */
#include "kernels/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

enum { STRIDE = 301, HEIGHT = 7, MOST = 4 * STRIDE * HEIGHT };

static float data[4 * STRIDE * HEIGHT];

/* Every kind of value. */
static int fill_data(void **state)
{
    static const float odd[] = {NAN, INFINITY,   -INFINITY,    -0.f,
                                1.f, 0.5f / 255, 254.5f / 255, 3e38f};
    (void)state;
    for (uint32_t i = 0; i < 4 * STRIDE * HEIGHT; i++)
        data[i] = (float)(i * 2654435761u % 1000003u) / 900000.0f - 0.05f;
    for (size_t i = 0; i < sizeof data / sizeof *data; i += 5)
        data[i] = odd[i / 5 % (sizeof odd / sizeof *odd)];
    return 0;
}

/* ---- plainly --------------------------------------------------------------------------------- */
static int byte_at(uint32_t x, uint32_t y, int c)
{
    const float v = data[4 * (y * STRIDE + x) + (uint32_t)c];
    return isnan(v) ? 0 : (int)floorf(fminf(fmaxf(v, 0.f), 1.f) * 255.f + 0.5f);
}

/* Luma (what 0) or a difference (1 blue, 2 red) by BT.601, of a colour in bytes. */
static double exact(int what, const double rgb[3])
{
    const double y = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
    if (what == 0) return 16 + 219 * y / 255;
    return 128 + (what == 1 ? 112 * (rgb[2] - y) / 0.886 : 112 * (rgb[0] - y) / 0.701) / 255;
}

static void must_be_interleaved(const kiln_pixel_bytes_args *a, uint32_t channels)
{
    const unsigned char *at = a->bytes;
    for (uint32_t y = 0; y < a->height; y++)
        for (uint32_t x = 0; x < a->width; x++)
            for (uint32_t c = 0; c < channels; c++, at++)
                if (*at != byte_at(x, y, (int)c))
                    fail_msg("%u,%u channel %u of %u: %d", x, y, c, channels, *at);
}

static void must_be_yuv(const kiln_pixel_bytes_args *a)
{
    const unsigned char *at = a->bytes;
    for (uint32_t y = 0; y < a->height; y++)
        for (uint32_t x = 0; x < a->width; x++, at++) {
            const double rgb[3] = {byte_at(x, y, 0), byte_at(x, y, 1), byte_at(x, y, 2)};
            if (fabs(*at - exact(0, rgb)) > 0.51) fail_msg("luma of %u,%u: %d", x, y, *at);
        }
    for (int what = 1; what <= 2; what++)
        for (uint32_t y = 0; y < a->height; y += 2)
            for (uint32_t x = 0; x < a->width; x += 2, at++) {
                double mean[3] = {0};
                for (uint32_t k = 0; k < 4; k++)
                    for (int c = 0; c < 3; c++)
                        mean[c] += byte_at(x + k % 2 < a->width ? x + k % 2 : x,
                                           y + k / 2 < a->height ? y + k / 2 : y, c) /
                                   4.0;
                if (fabs(*at - exact(what, mean)) > 0.51)
                    fail_msg("difference %d of %u,%u: %d", what, x, y, *at);
            }
}

/* ---- the siblings ---------------------------------------------------------------------------- */
static void make_bytes(const kiln_ops *ops, unsigned threads, kiln_pixel_bytes_args *a,
                       unsigned char *bytes)
{
    const kiln_exec x = {.device = -1, .threads = threads};
    const uint64_t n = kiln_pixel_bytes_size(a->layout, a->width, a->height);
    unsigned char work[1];
    size_t work_bytes = 0;
    kiln_error err = {0};
    a->bytes = bytes;
    memset(bytes, 99, MOST);
    assert_int_equal(ops->pixel_bytes(&x, a, NULL, &work_bytes, &err), KILN_OK);
    assert_int_equal(ops->pixel_bytes(&x, a, work, &work_bytes, &err), KILN_OK);
    for (uint64_t i = n; i < MOST; i++) assert_int_equal(bytes[i], 99);
}

static void every_layout_has_its_bytes(void **state)
{
    static const uint32_t sizes[][2] = {
        {STRIDE, HEIGHT}, {STRIDE - 1, HEIGHT - 1}, {128, 2}, {129, 3}, {2, 1}, {1, 2}, {1, 1}};
    const kiln_ops *const tables[] = {kiln_ops_cpu(), kiln_ops_cpu_baseline()};
    unsigned char *const bytes = malloc(MOST), *const first = malloc(MOST);
    (void)state;
    assert_true(bytes && first);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int layout = 0; layout < KILN_N_PIXEL_LAYOUTS; layout++) {
            kiln_pixel_bytes_args a = {.width = sizes[k][0],
                                       .height = sizes[k][1],
                                       .stride = STRIDE,
                                       .layout = (kiln_pixel_layout)layout,
                                       .pixels = data};
            make_bytes(tables[0], 1, &a, first);
            if (layout == KILN_PIXELS_YUV420)
                must_be_yuv(&a);
            else
                must_be_interleaved(&a, layout == KILN_PIXELS_RGBA ? 4 : 3);
            for (unsigned threads = 1; threads <= 3; threads++)
                for (size_t t = 0; t < 2; t++) {
                    make_bytes(tables[t], threads, &a, bytes);
                    assert_memory_equal(bytes, first, MOST);
                }
        }
    free(first);
    free(bytes);
}

static void impossible_arguments_are_refused(void **state)
{
    (void)state;
    for (int what = 0; what < 7; what++) {
        kiln_pixel_bytes_args a = {.width = 8, .height = 4, .stride = 8, .layout = KILN_PIXELS_RGB};
        kiln_error err = {0};
        if (what == 1) a.width = 0;
        if (what == 2) a.height = 0;
        if (what == 3) a.stride = 7;
        if (what == 4) a.height = (1 << 20) + 1;
        if (what == 5) a.stride = (1 << 20) + 1;
        if (what == 6) a.layout = KILN_N_PIXEL_LAYOUTS;
        assert_int_equal(kiln_pixel_bytes_check(&a, &err), what == 0 ? KILN_OK : KILN_E_INPUT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout_has_its_bytes),
        cmocka_unit_test(impossible_arguments_are_refused),
    };
    return cmocka_run_group_tests_name("pixel_bytes", tests, fill_data, NULL);
}
