/* Frames of a video: sizes, headers, frame rates, and colours against the formulas of BT.601 and
 * BT.709. */
#include "stages/render/video_frame.h"

#include "tests/unit/manifest_fixture.h"

#include <math.h>

static void rates_are_fractions(void **state)
{
    (void)state;
    static const struct {
        double fps;
        kiln_video_rate want;
    } cases[] = {{30, {30, 1}},          {24, {24, 1}},          {23.976, {24000, 1001}},
                 {29.97, {30000, 1001}}, {59.94, {60000, 1001}}, {12.5, {25, 2}},
                 {0.1, {1, 10}},         {1000, {1000, 1}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const kiln_video_rate r = kiln_video_rate_of(cases[i].fps);
        assert_true(r.num == cases[i].want.num && r.den == cases[i].want.den);
    }
}

static void heads_say_the_size(void **state)
{
    (void)state;
    char head[128];
    assert_int_equal(kiln_video_head(KILN_VIDEO_RGB, 4, 2, (kiln_video_rate){30, 1}, head), 0);
    const size_t n =
        kiln_video_head(KILN_VIDEO_Y4M, 1048576, 1048576, (kiln_video_rate){1000000, 1001}, head);
    assert_int_equal(n, strlen(head));
    assert_string_equal(head, "YUV4MPEG2 W1048576 H1048576 F1000000:1001 Ip A1:1 C420jpeg "
                              "XYSCSS=420JPEG XCOLORRANGE=LIMITED\n");
    assert_int_equal(kiln_video_frame_bytes(KILN_VIDEO_RGB, 5, 3), 45);
    assert_int_equal(kiln_video_frame_bytes(KILN_VIDEO_Y4M, 5, 3), 6 + 15 + 2 * 3 * 2);
    assert_int_equal(kiln_video_frame_bytes(KILN_VIDEO_NONE, 5, 3), 0);
}

enum { W = 5, H = 3, STRIDE = 7 };

/* Picture with every kind of value; the pixels beyond the width are not to be seen. */
static void fill(float rgba[4 * STRIDE * H])
{
    for (int y = 0; y < H; y++)
        for (int x = 0; x < STRIDE; x++)
            for (int c = 0; c < 4; c++)
                rgba[4 * (y * STRIDE + x) + c] =
                    x < W ? (float)((x * 41 + y * 67 + c * 23) % 100) / 80.0f - 0.1f : 77.0f;
    rgba[0] = NAN;
    rgba[1] = INFINITY;
    rgba[2] = -INFINITY;
}

static int byte_of(float v) { return v >= 1 ? 255 : v >= 0 ? (int)(v * 255.0f + 0.5f) : 0; }

static void rgb_frames_are_the_bytes_of_a_png(void **state)
{
    (void)state;
    float rgba[4 * STRIDE * H];
    unsigned char out[3 * W * H + 1] = {0};
    fill(rgba);
    out[3 * W * H] = 99;
    assert_int_equal(kiln_video_frame_write(&(kiln_video_frame){KILN_VIDEO_RGB, W, H, ""}, rgba,
                                            STRIDE, 1, out, NULL),
                     KILN_OK);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int c = 0; c < 3; c++)
                assert_int_equal(out[3 * (y * W + x) + c], byte_of(rgba[4 * (y * STRIDE + x) + c]));
    assert_int_equal(out[3 * W * H], 99);
    assert_true(out[0] == 0 && out[1] == 255 && out[2] == 0);
}

/* One colour all over: luma and chroma by the formulas, rounded. */
static void check_colour(uint32_t width, uint32_t height, const int rgb[3], double kr, double kb)
{
    const size_t bytes = kiln_video_frame_bytes(KILN_VIDEO_Y4M, width, height),
                 luma = (size_t)width * height;
    const size_t chroma = (size_t)((width + 1) / 2) * ((height + 1) / 2);
    float *rgba = malloc(16 * luma);
    unsigned char *out = malloc(bytes + 1);
    assert_true(rgba && out);
    for (size_t i = 0; i < luma; i++)
        for (size_t c = 0; c < 4; c++) rgba[4 * i + c] = c < 3 ? (float)rgb[c] / 255.0f : 1;
    out[bytes] = 99;
    assert_int_equal(kiln_video_frame_write(&(kiln_video_frame){KILN_VIDEO_Y4M, width, height, ""},
                                            rgba, width, 1, out, NULL),
                     KILN_OK);
    assert_memory_equal(out, "FRAME\n", 6);
    const double r = rgb[0] / 255.0, g = rgb[1] / 255.0, b = rgb[2] / 255.0,
                 y = kr * r + (1 - kr - kb) * g + kb * b;
    const double want[3] = {16 + 219 * y, 128 + 112 * (b - y) / (1 - kb),
                            128 + 112 * (r - y) / (1 - kr)};
    for (size_t i = 0; i < luma; i++) assert_true(fabs(out[6 + i] - want[0]) < 0.51);
    for (size_t i = 0; i < chroma; i++) {
        assert_true(fabs(out[6 + luma + i] - want[1]) < 0.51);
        assert_true(fabs(out[6 + luma + chroma + i] - want[2]) < 0.51);
    }
    assert_int_equal(out[bytes], 99);
    free(out);
    free(rgba);
}

static void y4m_frames_are_bt601_when_small_and_bt709_when_large(void **state)
{
    (void)state;
    static const int colours[][3] = {{0, 0, 0},   {255, 255, 255}, {255, 0, 0},  {0, 255, 0},
                                     {0, 0, 255}, {12, 200, 77},   {254, 1, 128}};
    for (size_t i = 0; i < sizeof colours / sizeof *colours; i++) {
        check_colour(3, 5, colours[i], 0.299, 0.114);
        check_colour(1279, 2, colours[i], 0.299, 0.114);
        check_colour(1280, 2, colours[i], 0.2126, 0.0722);
        check_colour(2, 577, colours[i], 0.2126, 0.0722);
        check_colour(1, 1, colours[i], 0.299, 0.114);
    }
}

/* Luma is that of its pixel; chroma is that of the mean of its four, of which those beyond an odd
 * edge are the ones at the edge. */
static void chroma_is_of_four_pixels(void **state)
{
    (void)state;
    float rgba[4 * STRIDE * H];
    unsigned char out[6 + W * H + 12];
    fill(rgba);
    assert_int_equal(kiln_video_frame_write(&(kiln_video_frame){KILN_VIDEO_Y4M, W, H, ""}, rgba,
                                            STRIDE, 1, out, NULL),
                     KILN_OK);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            const float *p = rgba + 4 * (y * STRIDE + x);
            const double luma =
                0.299 * byte_of(p[0]) + 0.587 * byte_of(p[1]) + 0.114 * byte_of(p[2]);
            assert_true(fabs(out[6 + y * W + x] - (16 + 219 * luma / 255)) < 0.51);
        }
    for (int y = 0; y < 2; y++)
        for (int x = 0; x < 3; x++) {
            double mean[3] = {0};
            for (int k = 0; k < 4; k++) {
                const int px = 2 * x + k % 2 < W ? 2 * x + k % 2 : 2 * x,
                          py = 2 * y + k / 2 < H ? 2 * y + k / 2 : 2 * y;
                for (int c = 0; c < 3; c++)
                    mean[c] += byte_of(rgba[4 * (py * STRIDE + px) + c]) / 4.0 / 255;
            }
            const double luma = 0.299 * mean[0] + 0.587 * mean[1] + 0.114 * mean[2];
            assert_true(fabs(out[6 + W * H + 3 * y + x] - (128 + 112 * (mean[2] - luma) / 0.886)) <
                        0.51);
            assert_true(fabs(out[6 + W * H + 6 + 3 * y + x] -
                             (128 + 112 * (mean[0] - luma) / 0.701)) < 0.51);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_fractions),
        cmocka_unit_test(heads_say_the_size),
        cmocka_unit_test(rgb_frames_are_the_bytes_of_a_png),
        cmocka_unit_test(y4m_frames_are_bt601_when_small_and_bt709_when_large),
        cmocka_unit_test(chroma_is_of_four_pixels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
