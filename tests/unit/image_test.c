/* image_test -- pictures survive a round trip, every kind of PNG is read, and a damaged file gives
 * a sentence.
 *
 * Pictures of other kinds than we write (palette, interlaced, few bits, JPEG) are made with libpng
 * and libjpeg directly. */
#include "kernels/ops.h"
#include "stages/image/image_internal.h"
#include "tests/unit/test_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jpeglib.h>
#include <math.h>
#include <png.h>
#include <zlib.h>

static char folder[TEST_FOLDER_MAX];

static const char *at(const char *name)
{
    static char path[2][TEST_PATH_MAX];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static int make_folder(void **state)
{
    (void)state;
    return test_folder_new(folder, "image");
}

static int remove_folder(void **state)
{
    (void)state;
    return test_folder_remove(folder);
}

static void put(const char *name, const void *data, size_t bytes)
{
    FILE *f = fopen(at(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static size_t get(const char *name, unsigned char *data, size_t capacity)
{
    FILE *f = fopen(at(name), "rb");
    assert_non_null(f);
    const size_t n = fread(data, 1, capacity, f);
    fclose(f);
    return n;
}

static kiln_picture read_ok(const char *name)
{
    kiln_error err = {0};
    kiln_picture p;
    if (kiln_picture_read(at(name), &p, &err) != KILN_OK) fail_msg("%s", err.msg);
    return p;
}

static void refused(const char *name, const char *because)
{
    kiln_error err = {0};
    kiln_picture p;
    assert_int_equal(kiln_picture_read(at(name), &p, &err), KILN_E_INPUT);
    assert_null(p.data);
    assert_non_null(strstr(err.msg, name));
    if (!strstr(err.msg, because)) fail_msg("'%s' does not say '%s'", err.msg, because);
}

static void write_job_ok(const kiln_picture_job *job)
{
    static const kiln_product_seen any = {.overwrite = 1};
    kiln_error err = {0};
    kiln_picture_job over = *job;
    over.seen = &any;
    if (kiln_picture_write(&over, &err) != KILN_OK) fail_msg("%s", err.msg);
}

static void write_ok(const char *name, kiln_picture_format format, const float *data,
                     uint32_t width, uint32_t height, uint32_t step, uint32_t channels)
{
    const kiln_picture_job job = {.path = at(name),
                                  .format = format,
                                  .data = data,
                                  .width = width,
                                  .height = height,
                                  .step = step,
                                  .channels = channels};
    write_job_ok(&job);
}

enum { W = 37, H = 11 };

static void fill(float *data, size_t n)
{
    unsigned s = 12345;
    for (size_t i = 0; i < n; i++) {
        s = s * 1664525u + 1013904223u;
        data[i] = (float)(s >> 8) / 16777216.f * 1.2f - 0.1f; /* beyond [0,1] on both sides */
    }
}

static void round_trip(kiln_picture_format format, const char *name, uint32_t channels, float top)
{
    float data[W * H * 4];
    uint32_t width, height;
    kiln_error err = {0};
    fill(data, W * H * 4);
    write_ok(name, format, data, W, H, 4, channels);
    assert_int_equal(kiln_picture_size(at(name), &width, &height, &err), KILN_OK);
    kiln_picture p = read_ok(name);
    assert_int_equal(p.width, W);
    assert_int_equal(p.height, H);
    assert_int_equal(width, W);
    assert_int_equal(height, H);
    assert_int_equal(p.channels, channels);
    for (size_t i = 0; i < W * H; i++)
        for (uint32_t c = 0; c < channels; c++) {
            const float v = data[i * 4 + c], clamped = fminf(fmaxf(v, 0.f), 1.f);
            const float expected = top > 0 ? (float)(unsigned)(clamped * top + .5f) / top : v;
            assert_true(memcmp(&expected, &p.data[i * channels + c], sizeof expected) == 0);
        }
    kiln_picture_release(&p);
}

static void written_pictures_come_back(void **state)
{
    (void)state;
    for (uint32_t channels = 1; channels <= 4; channels += channels == 1 ? 2 : 1) {
        round_trip(KILN_PNG8, "deep/er/a.png", channels, 255.f);
        round_trip(KILN_PNG16, "b.png", channels, 65535.f);
        round_trip(KILN_NPY, "c.npy", channels, 0.f);
    }
}

static void same_pixels_give_the_same_bytes(void **state)
{
    float data[W * H * 3];
    unsigned char one[1 << 14], two[1 << 14];
    (void)state;
    fill(data, W * H * 3);
    write_ok("1.png", KILN_PNG8, data, W, H, 3, 3);
    write_ok("2.png", KILN_PNG8, data, W, H, 3, 3);
    const size_t n = get("1.png", one, sizeof one);
    assert_int_equal(get("2.png", two, sizeof two), n);
    assert_memory_equal(one, two, n);
}

/* Noise is the most that a block can take, black the least; sizes around the border of a block and
 * of a wave, a row longer than both. */
static void bytes_do_not_depend_on_threads(void **state)
{
    static const struct {
        uint32_t width, height;
        kiln_picture_format format;
        bool black;
    } sizes[] = {{1, 1, KILN_PNG8, false},      {21845, 2, KILN_PNG8, false},
                 {21845, 1, KILN_PNG8, false},  {21844, 3, KILN_PNG8, true},
                 {100, 1301, KILN_PNG8, false}, {100, 1302, KILN_PNG8, true},
                 {40000, 3, KILN_PNG16, true},  {300, 10000, KILN_PNG16, false}};
    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const size_t n = (size_t)sizes[k].width * sizes[k].height * 3;
        float *data = calloc(n, sizeof *data);
        unsigned char *bytes[2] = {malloc(6 * n + 65536), malloc(6 * n + 65536)};
        size_t size[2];
        assert_non_null(data && bytes[0] && bytes[1] ? data : NULL);
        if (!sizes[k].black) fill(data, n);
        for (unsigned turn = 0; turn < 2; turn++) {
            write_job_ok(&(kiln_picture_job){.path = at("threads.png"),
                                             .format = sizes[k].format,
                                             .data = data,
                                             .width = sizes[k].width,
                                             .height = sizes[k].height,
                                             .step = 3,
                                             .channels = 3,
                                             .threads = turn ? 5 : 1});
            size[turn] = get("threads.png", bytes[turn], 6 * n + 65536);
        }
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(bytes[0], bytes[1], size[0]);
        kiln_picture p = read_ok("threads.png");
        const float top = sizes[k].format == KILN_PNG16 ? 65535.f : 255.f;
        for (size_t i = 0; i < n; i++)
            assert_true(p.data[i] ==
                        (float)(unsigned)(fminf(fmaxf(data[i], 0.f), 1.f) * top + .5f) / top);
        kiln_picture_release(&p);
        free(bytes[1]);
        free(bytes[0]);
        free(data);
    }
}

/* Rows that a GPU has filtered make the file that the writer makes of the floats: 8 and 16 bits,
 * with and without alpha, several blocks. */
static void rows_that_are_given_make_the_same_file(void **state)
{
    enum { WIDTH = 301, HEIGHT = 401, STEP = 4, MOST = 8 * WIDTH * HEIGHT + 65536 };
    static const float over[3] = {0.25f, 1.f, 0.f};
    float *data = malloc(sizeof *data * WIDTH * HEIGHT * STEP);
    unsigned char *bytes[2] = {malloc(MOST), malloc(MOST)}, *rows = malloc(MOST),
                  *work = malloc(MOST);
    (void)state;
    assert_true(data && bytes[0] && bytes[1] && rows && work);
    fill(data, WIDTH * HEIGHT * STEP);
    for (unsigned kind = 0; kind < 4; kind++) {
        kiln_picture_job job = {.path = at("rows.png"),
                                .format = kind % 2 ? KILN_PNG16 : KILN_PNG8,
                                .data = data,
                                .over = over,
                                .width = WIDTH,
                                .height = HEIGHT,
                                .step = STEP,
                                .channels = kind < 2 ? 3 : 4,
                                .threads = 2};
        write_job_ok(&job);
        const size_t size = get("rows.png", bytes[0], MOST);
        const kiln_exec x = {.device = -1, .threads = 3};
        kiln_png_rows_args a = kiln_picture_png_rows(&job);
        size_t work_bytes = MOST;
        kiln_error err = {0};
        a.rows = rows;
        assert_int_equal(kiln_ops_cpu_baseline()->png_rows(&x, &a, work, &work_bytes, &err),
                         KILN_OK);
        job.data = NULL;
        job.rows = rows;
        write_job_ok(&job);
        assert_int_equal(get("rows.png", bytes[1], MOST), size);
        assert_memory_equal(bytes[0], bytes[1], size);
        rows[size / 2] ^= 1;
        write_job_ok(&job);
        assert_true(get("rows.png", bytes[1], MOST) != size ||
                    memcmp(bytes[0], bytes[1], size) != 0);
    }
    free(work);
    free(rows);
    free(bytes[1]);
    free(bytes[0]);
    free(data);
}

/* What lies over a background is written without it: half of red over white, nothing, all of it,
 * brighter than white. */
static void png_has_straight_alpha(void **state)
{
    static const float over[3] = {1.f, 1.f, 1.f};
    static const float data[] = {1.f, .5f, .5f, .5f, 1.f, 1.f,  1.f,  0.f,
                                 .2f, .4f, .6f, 1.f, 2.f, .75f, .75f, .25f};
    static const float straight[] = {1.f, 0.f, 0.f, .5f, 0.f, 0.f, 0.f, 0.f,
                                     .2f, .4f, .6f, 1.f, 1.f, 0.f, 0.f, .25f};
    (void)state;
    for (unsigned turn = 0; turn < 2; turn++) {
        const kiln_picture_job job = {.path = at("straight.png"),
                                      .format = turn ? KILN_PNG16 : KILN_PNG8,
                                      .data = data,
                                      .over = over,
                                      .width = 4,
                                      .height = 1,
                                      .step = 4,
                                      .channels = 4};
        write_job_ok(&job);
        kiln_picture p = read_ok("straight.png");
        for (size_t i = 0; i < 16; i++)
            assert_true(fabsf(p.data[i] - straight[i]) <= (turn ? 0.5001f / 65535 : 0.5001f / 255));
        kiln_picture_release(&p);
    }
}

static void every_code_of_16_bits_survives(void **state)
{
    float *data = malloc(65536 * sizeof *data);
    (void)state;
    assert_non_null(data);
    for (unsigned i = 0; i < 65536; i++) data[i] = (float)i / 65535.f;
    write_ok("all.png", KILN_PNG16, data, 256, 256, 1, 1);
    kiln_picture p = read_ok("all.png");
    assert_int_equal(p.depth_bits, 16);
    assert_memory_equal(p.data, data, 65536 * sizeof *data);
    kiln_picture_release(&p);
    free(data);
}

static void not_a_number_is_written_as_black(void **state)
{
    const float data[3] = {NAN, INFINITY, -INFINITY};
    (void)state;
    write_ok("n.png", KILN_PNG8, data, 1, 1, 3, 3);
    kiln_picture p = read_ok("n.png");
    assert_true(p.data[0] == 0.f && p.data[1] == 1.f && p.data[2] == 0.f);
    kiln_picture_release(&p);
}

static void text_is_stored(void **state)
{
    const float data[1] = {0};
    const kiln_picture_text text[1] = {{"Unit", "depth in scene units = value * 0.001"}};
    unsigned char bytes[1024];
    (void)state;
    write_job_ok(&(kiln_picture_job){.path = at("t.png"),
                                     .format = KILN_PNG16,
                                     .data = data,
                                     .width = 1,
                                     .height = 1,
                                     .step = 1,
                                     .channels = 1,
                                     .text = text,
                                     .n_text = 1});
    const size_t n = get("t.png", bytes, sizeof bytes);
    assert_non_null(memmem(bytes, n, "tEXtUnit\0depth in scene units = value * 0.001", 45));
}

/* A PNG of any kind: its rows have the bytes as PNG wants them. */
typedef struct {
    int width, height, bits, colour, interlace;
    const unsigned char *rows;
    size_t stride;
} any_png;

static void make_png(const char *name, const any_png *p)
{
    static const png_color palette[4] = {{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {51, 102, 153}};
    static const unsigned char alpha[2] = {255, 51};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    FILE *f = fopen(at(name), "wb");
    assert_non_null(f);
    png_init_io(png, f);
    png_set_IHDR(png, info, (png_uint_32)p->width, (png_uint_32)p->height, p->bits, p->colour,
                 p->interlace, 0, 0);
    if (p->colour == PNG_COLOR_TYPE_PALETTE) {
        png_set_PLTE(png, info, palette, 4);
        png_set_tRNS(png, info, alpha, 2, NULL);
    }
    png_write_info(png, info);
    const int passes = png_set_interlace_handling(png);
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < p->height; y++) png_write_row(png, p->rows + (size_t)y * p->stride);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    assert_int_equal(fclose(f), 0);
}

enum { SIDE = 512 };

/* A picture with a gradient, some noise and a background, as rendered ones have: the bytes of
 * zlib's level 6 with the same filter are the measure. */
static void is_about_as_small_as_level_6(int background_rows)
{
    float *data = malloc((size_t)SIDE * SIDE * 3 * sizeof *data);
    unsigned char *bytes = malloc((size_t)SIDE * SIDE * 4),
                  *codes = malloc((size_t)SIDE * SIDE * 3);
    assert_non_null(data && bytes && codes ? data : NULL);
    fill(data, (size_t)SIDE * SIDE * 3);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            for (int c = 0; c < 3; c++) {
                float *v = &data[3 * (SIDE * y + x) + c];
                *v = y < background_rows
                         ? 0.f
                         : 0.5f + 0.4f * sinf((float)(x + 2 * y + 50 * c) * 0.02f) + 0.02f * *v;
                codes[3 * (SIDE * y + x) + c] = (unsigned char)(*v * 255.f + .5f);
            }
    write_ok("ours.png", KILN_PNG8, data, SIDE, SIDE, 3, 3);
    const size_t ours = get("ours.png", bytes, (size_t)SIDE * SIDE * 4);
    make_png("level6.png", &(any_png){.width = SIDE,
                                      .height = SIDE,
                                      .bits = 8,
                                      .colour = PNG_COLOR_TYPE_RGB,
                                      .rows = codes,
                                      .stride = 3 * SIDE});
    const size_t level_6 = get("level6.png", bytes, (size_t)SIDE * SIDE * 4);
    if (ours > level_6 + level_6 / 4) fail_msg("%zu bytes, libpng's own %zu", ours, level_6);
    free(codes);
    free(bytes);
    free(data);
}

static void png_is_about_as_small_as_level_6(void **state)
{
    static const int background_rows[] = {0, SIDE / 3, SIDE - SIDE / 8};
    (void)state;
    for (size_t i = 0; i < sizeof background_rows / sizeof *background_rows; i++)
        is_about_as_small_as_level_6(background_rows[i]);
}

static void palettes_become_colours_with_alpha(void **state)
{
    const unsigned char rows[1] = {0x1b}; /* indices 0 1 2 3 in two bits each */
    const float expected[16] = {1, 0, 0, 1, 0,          1,           0,           51 / 255.f,
                                0, 0, 1, 1, 51 / 255.f, 102 / 255.f, 153 / 255.f, 1};
    (void)state;
    make_png("p.png", &(any_png){.width = 4,
                                 .height = 1,
                                 .bits = 2,
                                 .colour = PNG_COLOR_TYPE_PALETTE,
                                 .rows = rows,
                                 .stride = 1});
    kiln_picture p = read_ok("p.png");
    assert_int_equal(p.channels, 4);
    assert_memory_equal(p.data, expected, sizeof expected);
    kiln_picture_release(&p);
}

static void one_bit_grey_is_black_and_white(void **state)
{
    const unsigned char rows[1] = {0xa0};
    const float expected[3] = {1, 0, 1};
    (void)state;
    make_png("g1.png", &(any_png){.width = 3,
                                  .height = 1,
                                  .bits = 1,
                                  .colour = PNG_COLOR_TYPE_GRAY,
                                  .rows = rows,
                                  .stride = 1});
    kiln_picture p = read_ok("g1.png");
    assert_int_equal(p.channels, 1);
    assert_int_equal(p.depth_bits, 8);
    assert_memory_equal(p.data, expected, sizeof expected);
    kiln_picture_release(&p);
}

static void interlaced_equals_plain(void **state)
{
    unsigned char rows[H * W * 8];
    (void)state;
    for (size_t i = 0; i < sizeof rows; i++) rows[i] = (unsigned char)(i * 37 + i / 7);
    make_png("plain.png", &(any_png){.width = W,
                                     .height = H,
                                     .bits = 16,
                                     .colour = PNG_COLOR_TYPE_RGB_ALPHA,
                                     .rows = rows,
                                     .stride = W * 8});
    make_png("adam7.png", &(any_png){.width = W,
                                     .height = H,
                                     .bits = 16,
                                     .colour = PNG_COLOR_TYPE_RGB_ALPHA,
                                     .interlace = PNG_INTERLACE_ADAM7,
                                     .rows = rows,
                                     .stride = W * 8});
    kiln_picture a = read_ok("plain.png"), b = read_ok("adam7.png");
    assert_int_equal(a.channels, 4);
    assert_int_equal(a.depth_bits, 16);
    assert_memory_equal(a.data, b.data, W * H * 4 * sizeof(float));
    assert_true(a.data[1] == (float)(rows[2] << 8 | rows[3]) / 65535.f);
    kiln_picture_release(&a);
    kiln_picture_release(&b);
}

static void make_jpeg(const char *name, int channels, J_COLOR_SPACE space)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr e;
    unsigned char row[64 * 4], *rows[1] = {row};
    FILE *f = fopen(at(name), "wb");
    assert_non_null(f);
    c.err = jpeg_std_error(&e);
    jpeg_create_compress(&c);
    jpeg_stdio_dest(&c, f);
    c.image_width = 64;
    c.image_height = 48;
    c.input_components = channels;
    c.in_color_space = space;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 100, TRUE);
    jpeg_start_compress(&c, TRUE);
    for (int y = 0; y < 48; y++) {
        for (int i = 0; i < 64 * channels; i++)
            row[i] = (unsigned char)(i % channels == 0 ? 200 : 40 + y);
        jpeg_write_scanlines(&c, rows, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    assert_int_equal(fclose(f), 0);
}

static void a_jpeg_for_a_page_shows_what_was_given(void **state)
{
    enum { WIDE = 61, HIGH = 37 };
    static float rgb[HIGH * WIDE * 3];
    kiln_buffer file = {0};
    kiln_error err = {0};
    (void)state;
    for (int i = 0; i < WIDE * HIGH; i++) {
        rgb[3 * i] = (float)(i % WIDE) / WIDE;
        rgb[3 * i + 1] = (float)(i / WIDE) / HIGH;
        rgb[3 * i + 2] = 0.25f;
    }
    rgb[2] = NAN; /* counts as black, and what is beyond 1 as 1 */
    rgb[3 * WIDE * HIGH - 1] = 7;
    assert_int_equal(kiln_jpeg_encode(rgb, WIDE, HIGH, 95, &file, &err), KILN_OK);
    assert_int_equal(kiln_file_write(at("page.jpg"), file.data, file.size, &err), KILN_OK);
    kiln_picture p = read_ok("page.jpg");
    assert_int_equal(p.width, WIDE);
    assert_int_equal(p.height, HIGH);
    assert_int_equal(p.channels, 3);
    for (int y = 8; y < HIGH - 8; y++) /* away from the two odd corners */
        for (int k = 0; k < 3 * WIDE; k++)
            assert_true(fabsf(p.data[3 * WIDE * y + k] - rgb[3 * WIDE * y + k]) < 0.04f);
    kiln_picture_release(&p);
    kiln_buffer_release(&file);
}

static void jpegs_are_read(void **state)
{
    uint32_t width, height;
    kiln_error err = {0};
    (void)state;
    make_jpeg("a.jpg", 3, JCS_RGB);
    make_jpeg("a.grey", 1, JCS_GRAYSCALE);
    kiln_picture p = read_ok("a.jpg"), g = read_ok("a.grey");
    assert_int_equal(p.channels, 3);
    assert_int_equal(g.channels, 1);
    assert_int_equal(p.width * 1000 + p.height, 64048);
    assert_float_equal(p.data[0], 200 / 255.f, 0.02f);
    assert_float_equal(p.data[47 * 64 * 3 + 1], 87 / 255.f, 0.02f);
    assert_float_equal(g.data[0], 200 / 255.f, 0.02f);
    assert_int_equal(kiln_picture_size(at("a.jpg"), &width, &height, &err), KILN_OK);
    assert_int_equal(width * 1000 + height, 64048);
    kiln_picture_release(&p);
    kiln_picture_release(&g);
}

/* A middle of zeros: libjpeg goes on with made-up pixels. Where it notices, the file is refused or
 * the warning has its words. (Where the codes fall into step again by chance it notices nothing,
 * and nobody can.) */
static void damage_that_libjpeg_notices_is_told(void **state)
{
    static unsigned char whole[1 << 16], bytes[1 << 16];
    unsigned n_refused = 0, n_warned = 0;
    (void)state;
    FILE *f = fopen("tests/data/photos/ball.jpg", "rb");
    assert_non_null(f);
    const size_t n = fread(whole, 1, sizeof whole, f);
    assert_int_equal(fclose(f), 0);
    assert_true(n > 1000 && n < sizeof whole);
    put("whole.jpg", whole, n);
    kiln_picture good = read_ok("whole.jpg");
    assert_string_equal(good.warning, "");
    kiln_picture_release(&good);
    for (size_t first = n / 2; first + 100 < n; first += 7) {
        kiln_picture p = {0};
        kiln_error err = {0};
        memcpy(bytes, whole, n);
        memset(bytes + first, 0, 32);
        put("hurt.jpg", bytes, n);
        if (kiln_picture_read(at("hurt.jpg"), &p, &err) != KILN_OK)
            n_refused += strstr(err.msg, "Premature") || strstr(err.msg, "premature");
        else
            n_warned += strncmp(p.warning, "Corrupt JPEG data", 17) == 0;
        kiln_picture_release(&p);
    }
    assert_true(n_refused > 0 && n_warned > 0);
}

/* Every proper beginning of a good file is refused; nothing reads beyond it (the sanitizers
 * watch). */
static void cut_everywhere(const char *name, const char *cut, size_t tail)
{
    static unsigned char bytes[1 << 16];
    const size_t n = get(name, bytes, sizeof bytes);
    assert_true(n > 0 && n < sizeof bytes);
    for (size_t keep = 0; keep + tail < n; keep += 1 + keep / 40) {
        put(cut, bytes, keep);
        refused(cut, "");
    }
}

static void make_whole_files(void)
{
    float data[W * H * 4];
    fill(data, W * H * 4);
    write_ok("whole.png", KILN_PNG16, data, W, H, 4, 4);
    write_ok("whole.npy", KILN_NPY, data, W, H, 4, 4);
    make_jpeg("whole.jpg", 3, JCS_RGB);
}

static void truncated_files_are_refused(void **state)
{
    (void)state;
    make_whole_files();
    cut_everywhere("whole.png", "cut.png", 0);
    cut_everywhere("whole.npy", "cut.npy", 0);
    cut_everywhere("whole.jpg", "cut.jpg", 2); /* without its end marker alone a JPEG is whole */
}

static void flipped_bits_never_crash(void **state)
{
    static unsigned char bytes[1 << 16];
    const char *names[] = {"whole.png", "whole.npy", "whole.jpg"};
    (void)state;
    make_whole_files();
    for (int k = 0; k < 3; k++) {
        const size_t n = get(names[k], bytes, sizeof bytes);
        for (size_t i = 0; i < n; i += 1 + i / 60) {
            kiln_error err = {0};
            kiln_picture p;
            bytes[i] ^= 0x55;
            put("flip", bytes, n);
            if (kiln_picture_read(at("flip"), &p, &err) != KILN_OK) assert_true(err.msg[0] != 0);
            kiln_picture_release(&p);
            bytes[i] ^= 0x55;
        }
    }
}

static void huge_claims_are_refused_before_memory_is_asked_for(void **state)
{
    /* signature, IHDR of 30000 x 30000 RGBA16 with its right sum, an empty IDAT */
    static const unsigned char png[] = {0x89, 'P',  'N', 'G', 13,  10, 26, 10,   0,    0, 0,
                                        13,   'I',  'H', 'D', 'R', 0,  0,  0x75, 0x30, 0, 0,
                                        0x75, 0x30, 16,  6,   0,   0,  0,  0,    0,    0, 0};
    unsigned char bytes[64];
    (void)state;
    memcpy(bytes, png, sizeof png);
    const uint32_t sum = (uint32_t)crc32(0, bytes + 12, 17);
    for (int i = 0; i < 4; i++) bytes[29 + i] = (unsigned char)(sum >> (24 - 8 * i));
    memcpy(bytes + 33, "\0\0\0\0IDAT\x35\xaf\x06\x1e", 12);
    put("huge.png", bytes, 45);
    refused("huge.png", "too short");
    put("huge.npy",
        "\x93NUMPY\x01\x00\x56\x00{'descr': '<f4', 'fortran_order': False, 'shape': "
        "(99999999999999999999, 4294967297, 4), }\n",
        96);
    refused("huge.npy", "");
}

static void other_files_are_refused_with_a_sentence(void **state)
{
    const float one[1] = {0};
    kiln_error err = {0};
    (void)state;
    put("empty.png", "", 0);
    refused("empty.png", "empty");
    put("text.png", "hello, world", 12);
    refused("text.png", "not a picture of a known kind");
    put("f8.npy",
        "\x93NUMPY\x01\x00\x42\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }      "
        "\n12345678",
        84);
    refused("f8.npy", "float32");
    put("fortran.npy",
        "\x93NUMPY\x01\x00\x42\x00{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }       "
        "\n1234",
        80);
    refused("fortran.npy", "Fortran");
    put("flat.npy",
        "\x93NUMPY\x01\x00\x42\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }        "
        "\n1234",
        80);
    refused("flat.npy", "shape");
    refused("nothing.png", "No such file");
    assert_int_equal(kiln_picture_write(&(kiln_picture_job){.path = "/proc/nowhere/x.png",
                                                            .format = KILN_PNG8,
                                                            .data = one,
                                                            .width = 1,
                                                            .height = 1,
                                                            .step = 1,
                                                            .channels = 1},
                                        &err),
                     KILN_E_IO);
}

static void format_follows_the_suffix(void **state)
{
    (void)state;
    assert_int_equal(kiln_picture_format_of("a/b.npy"), KILN_NPY);
    assert_int_equal(kiln_picture_format_of("a/b.NPY"), KILN_NPY);
    assert_int_equal(kiln_picture_format_of("a/b.png"), KILN_PNG8);
    assert_int_equal(kiln_picture_format_of("npy"), KILN_PNG8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_pictures_come_back),
        cmocka_unit_test(same_pixels_give_the_same_bytes),
        cmocka_unit_test(bytes_do_not_depend_on_threads),
        cmocka_unit_test(png_is_about_as_small_as_level_6),
        cmocka_unit_test(rows_that_are_given_make_the_same_file),
        cmocka_unit_test(png_has_straight_alpha),
        cmocka_unit_test(every_code_of_16_bits_survives),
        cmocka_unit_test(not_a_number_is_written_as_black),
        cmocka_unit_test(text_is_stored),
        cmocka_unit_test(palettes_become_colours_with_alpha),
        cmocka_unit_test(one_bit_grey_is_black_and_white),
        cmocka_unit_test(interlaced_equals_plain),
        cmocka_unit_test(jpegs_are_read),
        cmocka_unit_test(a_jpeg_for_a_page_shows_what_was_given),
        cmocka_unit_test(damage_that_libjpeg_notices_is_told),
        cmocka_unit_test(truncated_files_are_refused),
        cmocka_unit_test(flipped_bits_never_crash),
        cmocka_unit_test(huge_claims_are_refused_before_memory_is_asked_for),
        cmocka_unit_test(other_files_are_refused_with_a_sentence),
        cmocka_unit_test(format_follows_the_suffix),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
