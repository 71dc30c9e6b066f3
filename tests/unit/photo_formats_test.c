/* photo_formats_test -- photos as other programs write them: WebP, TIFF of every layout, CMYK JPEG,
 * EXIF orientations, masks. The files are made with the libraries themselves, from one picture
 * whose every sample is known. */
#include "stages/image/image_internal.h"
#include "tests/unit/test_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jpeglib.h>
#include <math.h>
#include <tiffio.h>
#include <webp/encode.h>

static char folder[TEST_FOLDER_MAX];

static const char *at(const char *name)
{
    static char path[TEST_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    return test_folder_new(folder, "photos");
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
    uint32_t width, height;
    if (kiln_picture_read(at(name), &p, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_int_equal(kiln_picture_size(at(name), &width, &height, &err), KILN_OK);
    assert_true(width == p.width && height == p.height);
    return p;
}

static void refused(const char *name, const char *because)
{
    kiln_error err = {0};
    kiln_picture p;
    assert_int_equal(kiln_picture_read(at(name), &p, &err), KILN_E_INPUT);
    assert_null(p.data);
    if (!strstr(err.msg, name) || !strstr(err.msg, because))
        fail_msg("'%s' does not say '%s' of '%s'", err.msg, because, name);
}

enum { W = 53, H = 37 }; /* no multiple of a tile or strip */

/* Sample c of pixel (x, y), in 8 or 16 bits. */
static unsigned sample(unsigned x, unsigned y, unsigned c, unsigned bits)
{
    const unsigned v = (x * 5 + y * 3 + c * 60 + (c == 3 ? 1 : 0)) & 255;
    return bits == 8 ? v : v * 257 + (v < 255 ? x % 7 : 0); /* so that the low byte counts */
}

/* ---- WebP ------------------------------------------------------------------------------------ */
static size_t make_webp(const char *name, bool alpha)
{
    static unsigned char pixels[W * H * 4];
    uint8_t *out = NULL;
    const unsigned n = alpha ? 4 : 3;
    for (unsigned i = 0; i < W * H; i++)
        for (unsigned c = 0; c < n; c++)
            pixels[i * n + c] = (unsigned char)(sample(i % W, i / W, c, 8) | (c == 3 ? 1 : 0));
    const size_t bytes = alpha ? WebPEncodeLosslessRGBA(pixels, W, H, W * 4, &out)
                               : WebPEncodeLosslessRGB(pixels, W, H, W * 3, &out);
    assert_true(bytes > 0);
    put(name, out, bytes);
    WebPFree(out);
    return bytes;
}

static void webp_is_read(void **state)
{
    (void)state;
    for (int alpha = 0; alpha < 2; alpha++) {
        make_webp("a.webp", alpha);
        kiln_picture p = read_ok("a.webp");
        assert_true(p.width == W && p.height == H && p.channels == 3u + (unsigned)alpha &&
                    p.depth_bits == 8 && p.orientation == 1);
        for (unsigned i = 0; i < W * H; i++)
            for (unsigned c = 0; c < p.channels; c++)
                assert_true(p.data[i * p.channels + c] ==
                            (float)(sample(i % W, i / W, c, 8) | (c == 3 ? 1 : 0)) / 255.f);
        kiln_picture_release(&p);
    }
}

/* Nine files that use every feature of the lossless bit stream, with the pixels that another
 * decoder finds in them. */
static void webps_of_others_are_read_exactly(void **state)
{
    static unsigned char truth[1 << 20];
    const char *shared = getenv("KILN_SHARED");
    char path[TEST_PATH_MAX];
    (void)state;
    if (!shared || !shared[0]) skip();
    for (int i = 0; i < 9; i++) {
        kiln_error err = {0};
        kiln_picture p;
        snprintf(path, sizeof path, "%s/samples/foreign/webp_%d.rgba", shared, i);
        FILE *f = fopen(path, "rb");
        if (!f) skip();
        const size_t n = fread(truth, 1, sizeof truth, f);
        fclose(f);
        snprintf(path, sizeof path, "%s/samples/foreign/webp_%d.webp", shared, i);
        if (kiln_picture_read(path, &p, &err) != KILN_OK) fail_msg("%s", err.msg);
        assert_int_equal(n, (size_t)p.width * p.height * 4);
        for (size_t k = 0; k < n; k++)
            if (k % 4 < p.channels)
                assert_true(p.data[k / 4 * p.channels + k % 4] == (float)truth[k] / 255.f);
        kiln_picture_release(&p);
    }
}

static void cut_webps_are_refused(void **state)
{
    static unsigned char bytes[1 << 16];
    (void)state;
    make_webp("whole.webp", true);
    const size_t n = get("whole.webp", bytes, sizeof bytes);
    for (size_t cut = 12; cut < n; cut += 1 + cut / 16) {
        put("cut.webp", bytes, cut);
        refused("cut.webp", "is the file complete?");
    }
}

static void animated_webps_are_refused(void **state)
{
    /* VP8X with the animation flag, canvas 2 x 2; ANIM, ANMF are not reached */
    static const unsigned char file[] =
        "RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0\x01\0\0\x01\0\0ANIM";
    (void)state;
    put("moves.webp", file, sizeof file - 1);
    refused("moves.webp", "animated");
}

/* ---- TIFF ------------------------------------------------------------------------------------ */
typedef struct {
    uint16_t bits, samples, photometric, compression, planar;
    bool tiled, big;
    uint16_t extra; /* kind of sample 1 of 2, or 3 of 4 */
} tiff_kind;

static void put_value(unsigned char *to, size_t i, unsigned v, unsigned bits)
{
    const uint16_t v16 = (uint16_t)v;
    if (bits == 8)
        to[i] = (unsigned char)v;
    else
        memcpy(to + 2 * i, &v16, sizeof v16);
}

static void make_tiff(const char *name, const tiff_kind *k)
{
    static unsigned char block[64 * 64 * 4 * 2];
    const uint32_t bw = k->tiled ? 32 : W, bh = k->tiled ? 16 : 10;
    const unsigned in_block = k->planar == PLANARCONFIG_CONTIG ? k->samples : 1;
    TIFF *t = TIFFOpen(at(name), k->big ? "wb8" : "wl");
    assert_non_null(t);
    TIFFSetField(t, TIFFTAG_IMAGEWIDTH, W), TIFFSetField(t, TIFFTAG_IMAGELENGTH, H);
    TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, k->bits),
        TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, k->samples);
    TIFFSetField(t, TIFFTAG_PHOTOMETRIC, k->photometric),
        TIFFSetField(t, TIFFTAG_COMPRESSION, k->compression);
    TIFFSetField(t, TIFFTAG_PLANARCONFIG, k->planar);
    if (k->samples % 2 == 0 && k->photometric != PHOTOMETRIC_SEPARATED)
        TIFFSetField(t, TIFFTAG_EXTRASAMPLES, 1, &k->extra);
    if (k->tiled)
        TIFFSetField(t, TIFFTAG_TILEWIDTH, bw), TIFFSetField(t, TIFFTAG_TILELENGTH, bh);
    else
        TIFFSetField(t, TIFFTAG_ROWSPERSTRIP, bh);
    for (unsigned plane = 0; plane < (in_block == 1 ? k->samples : 1); plane++)
        for (uint32_t y0 = 0; y0 < H; y0 += bh)
            for (uint32_t x0 = 0; x0 < W; x0 += bw) {
                const uint32_t rows = k->tiled || y0 + bh <= H ? bh : H - y0;
                for (uint32_t i = 0; i < bw * rows; i++)
                    for (unsigned s = 0; s < in_block; s++)
                        put_value(
                            block, i * in_block + s,
                            sample(x0 + i % bw, y0 + i / bw, in_block == 1 ? plane : s, k->bits),
                            k->bits);
                const tmsize_t bytes = (tmsize_t)bw * rows * in_block * (k->bits / 8);
                assert_true(
                    (k->tiled ? TIFFWriteEncodedTile(
                                    t, TIFFComputeTile(t, x0, y0, 0, (uint16_t)plane), block, bytes)
                              : TIFFWriteEncodedStrip(t, TIFFComputeStrip(t, y0, (uint16_t)plane),
                                                      block, bytes)) == bytes);
            }
    TIFFClose(t);
}

static void check_tiff(const char *name, const tiff_kind *k)
{
    const float top = k->bits == 8 ? 255.f : 65535.f;
    kiln_picture p = read_ok(name);
    const bool cmyk = k->photometric == PHOTOMETRIC_SEPARATED;
    assert_true(p.width == W && p.height == H && p.depth_bits == k->bits);
    assert_int_equal(p.channels, cmyk ? 3
                                 : k->extra == EXTRASAMPLE_UNSPECIFIED
                                     ? (uint32_t)(k->samples - 1) | 1
                                     : k->samples);
    for (unsigned i = 0; i < W * H; i++)
        for (unsigned c = 0; c < p.channels; c++) {
            float want = (float)sample(i % W, i / W, c, k->bits) / top;
            const float alpha = (float)sample(i % W, i / W, p.channels - 1, k->bits) / top;
            if (k->photometric == PHOTOMETRIC_MINISWHITE) want = 1 - want;
            if (cmyk) want = (1 - want) * (1 - (float)sample(i % W, i / W, 3, k->bits) / top);
            if (k->extra == EXTRASAMPLE_ASSOCALPHA && p.channels % 2 == 0 && c + 1 < p.channels)
                want = alpha > 0 ? fminf(want / alpha, 1) : 0;
            if (fabsf(p.data[i * p.channels + c] - want) > 1e-6f)
                fail_msg("%s: pixel %u channel %u is %g, not %g", name, i, c,
                         (double)p.data[i * p.channels + c], (double)want);
        }
    kiln_picture_release(&p);
}

static void every_layout_of_tiff_is_read(void **state)
{
    static const uint16_t compressions[] = {COMPRESSION_NONE, COMPRESSION_LZW,
                                            COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS};
    static const uint16_t colours[][3] = {{PHOTOMETRIC_MINISBLACK, 1, EXTRASAMPLE_UNASSALPHA},
                                          {PHOTOMETRIC_MINISWHITE, 1, EXTRASAMPLE_UNASSALPHA},
                                          {PHOTOMETRIC_MINISBLACK, 2, EXTRASAMPLE_UNASSALPHA},
                                          {PHOTOMETRIC_RGB, 3, EXTRASAMPLE_UNASSALPHA},
                                          {PHOTOMETRIC_RGB, 4, EXTRASAMPLE_UNASSALPHA},
                                          {PHOTOMETRIC_RGB, 4, EXTRASAMPLE_ASSOCALPHA},
                                          {PHOTOMETRIC_RGB, 4, EXTRASAMPLE_UNSPECIFIED},
                                          {PHOTOMETRIC_SEPARATED, 4, EXTRASAMPLE_UNASSALPHA}};
    unsigned made = 0;
    (void)state;
    for (size_t c = 0; c < sizeof colours / sizeof *colours; c++)
        for (unsigned i = 0; i < 64; i++) {
            const tiff_kind k = {.bits = i & 1 ? 16 : 8,
                                 .samples = colours[c][1],
                                 .photometric = colours[c][0],
                                 .compression = compressions[i >> 1 & 3],
                                 .planar = i & 8 ? PLANARCONFIG_SEPARATE : PLANARCONFIG_CONTIG,
                                 .tiled = i & 16,
                                 .big = i & 32,
                                 .extra = colours[c][2]};
            make_tiff("a.tif", &k);
            check_tiff("a.tif", &k);
            made++;
        }
    assert_int_equal(made, 512);
}

/* A cut file is refused, or has all its pixels before the cut; nothing goes to stderr. */
static void cut_tiffs_give_a_sentence(void **state)
{
    static unsigned char bytes[1 << 16];
    const tiff_kind k = {.bits = 8,
                         .samples = 3,
                         .photometric = PHOTOMETRIC_RGB,
                         .compression = COMPRESSION_LZW,
                         .planar = PLANARCONFIG_CONTIG};
    unsigned n_refused = 0;
    (void)state;
    make_tiff("whole.tif", &k);
    const size_t n = get("whole.tif", bytes, sizeof bytes);
    fflush(stderr);
    for (size_t cut = 4; cut < n; cut += 1 + cut / 16) {
        kiln_error err = {0};
        kiln_picture p;
        put("cut.tif", bytes, cut);
        if (kiln_picture_read(at("cut.tif"), &p, &err) == KILN_E_INPUT)
            n_refused += strstr(err.msg, "cut.tif") != NULL;
        kiln_picture_release(&p);
    }
    assert_true(n_refused > 20);
}

/* Claims of headers: the sentence comes before memory is asked for. */
static void tiffs_that_are_not_read_are_refused_with_a_sentence(void **state)
{
    TIFF *t;
    (void)state;
    t = TIFFOpen(at("bits.tif"), "w");
    TIFFSetField(t, TIFFTAG_IMAGEWIDTH, 4), TIFFSetField(t, TIFFTAG_IMAGELENGTH, 4),
        TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, 32);
    TIFFSetField(t, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_IEEEFP),
        TIFFSetField(t, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    TIFFWriteEncodedStrip(t, 0, "0123456789abcdef", 16);
    TIFFClose(t);
    refused("bits.tif", "8- or 16-bit");
    t = TIFFOpen(at("huge.tif"), "w");
    TIFFSetField(t, TIFFTAG_IMAGEWIDTH, 30000), TIFFSetField(t, TIFFTAG_IMAGELENGTH, 30000),
        TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(t, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB),
        TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, 3);
    TIFFSetField(t, TIFFTAG_ROWSPERSTRIP, 30000);
    TIFFWriteRawStrip(t, 0, "0", 1);
    TIFFClose(t);
    refused("huge.tif", "too short for its 30000 x 30000 pixels");
}

/* ---- JPEG ------------------------------------------------------------------------------------ */
static void make_jpeg(const char *name, int channels, J_COLOR_SPACE space, bool adobe,
                      const unsigned char *exif, size_t exif_bytes)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr e;
    unsigned char row[16 * 4], *rows[1] = {row};
    static const unsigned char ink[4] = {200, 40, 90, 250};
    FILE *f = fopen(at(name), "wb");
    assert_non_null(f);
    c.err = jpeg_std_error(&e);
    jpeg_create_compress(&c);
    jpeg_stdio_dest(&c, f);
    c.image_width = 16;
    c.image_height = 8;
    c.input_components = channels;
    c.in_color_space = space;
    jpeg_set_defaults(&c);
    if (adobe && channels == 4) jpeg_set_colorspace(&c, JCS_YCCK);
    c.write_Adobe_marker = adobe;
    jpeg_set_quality(&c, 100, TRUE);
    jpeg_start_compress(&c, TRUE);
    if (exif) jpeg_write_marker(&c, JPEG_APP0 + 1, exif, (unsigned)exif_bytes);
    for (int i = 0; i < 16 * channels; i++) row[i] = ink[i % channels];
    for (int y = 0; y < 8; y++) jpeg_write_scanlines(&c, rows, 1);
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    assert_int_equal(fclose(f), 0);
}

static void cmyk_jpegs_become_rgb(void **state)
{
    static const float values[4] = {200 / 255.f, 40 / 255.f, 90 / 255.f, 250 / 255.f};
    (void)state;
    for (int adobe = 0; adobe < 2; adobe++) {
        make_jpeg("cmyk.jpg", 4, JCS_CMYK, adobe, NULL, 0);
        kiln_picture p = read_ok("cmyk.jpg");
        assert_int_equal(p.channels, 3);
        /* Adobe's are inverted: what is stored is what the ink leaves */
        for (int c = 0; c < 3; c++)
            assert_float_equal(p.data[c],
                               adobe ? values[c] * values[3] : (1 - values[c]) * (1 - values[3]),
                               0.02f);
        kiln_picture_release(&p);
    }
}

/* ---- orientation ----------------------------------------------------------------------------- */
/* The block of a camera, in either byte order, with an entry before the one that counts. */
static size_t exif_block(unsigned char *b, bool big, unsigned orientation)
{
    static const unsigned char little_endian[] = "Exif\0\0II*"
                                                 "\0\x08\0\0\0\x02\0\x0f\x01\x02\0\x01\0\0\0x\0\0\0"
                                                 "\x12\x01\x03\0\x01\0\0\0\x01\0\0\0\0\0\0\0";
    static const unsigned char big_endian[] =
        "Exif\0\0MM\0*"
        "\0\0\0\x08\0\x02\x01\x0f\0\x02\0\0\0\x01x\0\0\0\x01\x12\0\x03\0\0\0\x01\0\x01\0\0\0\0\0\0";
    memcpy(b, big ? big_endian : little_endian, sizeof big_endian - 1);
    b[6 + 8 + 2 + 12 + 8 + (big ? 1 : 0)] = (unsigned char)orientation;
    return sizeof big_endian - 1;
}

static void exif_blocks_are_read_within_their_bounds(void **state)
{
    unsigned char b[64];
    (void)state;
    for (unsigned o = 0; o < 10; o++)
        for (int big = 0; big < 2; big++) {
            const size_t n = exif_block(b, big, o);
            assert_int_equal(kiln_exif_orientation(b, n), o >= 1 && o <= 8 ? o : 1);
            assert_int_equal(kiln_exif_orientation(b + 6, n - 6), o >= 1 && o <= 8 ? o : 1);
            /* on the heap, where the sanitizers see a byte too many */
            for (size_t cut = 0; cut < n; cut++) {
                unsigned char *copy = malloc(cut ? cut : 1);
                memcpy(copy, b, cut);
                const unsigned got = kiln_exif_orientation(copy, cut);
                assert_true(got >= 1 && got <= 8);
                free(copy);
            }
        }
    b[10] = 0xff, b[11] = 0xff, b[12] = 0xff, b[13] = 0xff; /* the directory beyond the block */
    assert_int_equal(kiln_exif_orientation(b, 50), 1);
}

static void put_big_endian(unsigned char *to, uint32_t v)
{
    for (int i = 0; i < 4; i++) to[i] = (unsigned char)(v >> (24 - 8 * i));
}

/* A chunk eXIf without its sum right behind IHDR's: only its place is looked at; libpng passes over
 * it with a warning. */
static void orientation_is_found_in_every_format(void **state)
{
    static unsigned char bytes[1 << 16], more[1 << 16], exif[64];
    const tiff_kind k = {.bits = 8,
                         .samples = 3,
                         .photometric = PHOTOMETRIC_RGB,
                         .compression = COMPRESSION_NONE,
                         .planar = PLANARCONFIG_CONTIG};
    const size_t n = exif_block(exif, true, 6);
    uint32_t width, height;
    uint8_t orientation;
    kiln_error err = {0};
    (void)state;
    make_jpeg("o.jpg", 3, JCS_RGB, false, exif, n);
    assert_int_equal(kiln_picture_look(at("o.jpg"), &width, &height, &orientation, &err), KILN_OK);
    assert_int_equal(width * 100 + height * 10 + orientation, 1686);
    make_tiff("o.tif", &k);
    TIFF *t = TIFFOpen(at("o.tif"), "r+");
    TIFFSetField(t, TIFFTAG_ORIENTATION, ORIENTATION_LEFTBOT);
    assert_true(TIFFRewriteDirectory(t));
    TIFFClose(t);
    assert_int_equal(kiln_picture_look(at("o.tif"), &width, &height, &orientation, &err), KILN_OK);
    assert_int_equal(orientation, 8);
    make_webp("o.webp", false);
    size_t size = get("o.webp", bytes, sizeof bytes);
    memcpy(bytes + size, "EXIF", 4);
    memcpy(bytes + size + 4, &(uint32_t){(uint32_t)n}, 4);
    memcpy(bytes + size + 8, exif, n);
    put("o.webp", bytes, size + 8 + n);
    assert_int_equal(kiln_picture_look(at("o.webp"), &width, &height, &orientation, &err), KILN_OK);
    assert_int_equal(orientation, 6);
    float black[4 * 3] = {0};
    const kiln_picture_job job = {.path = at("o.png"),
                                  .format = KILN_PNG8,
                                  .width = 2,
                                  .height = 2,
                                  .step = 3,
                                  .channels = 3,
                                  .data = black};
    assert_int_equal(kiln_picture_write(&job, &err), KILN_OK);
    size = get("o.png", bytes, sizeof bytes);
    memcpy(more, bytes, 33);
    put_big_endian(more + 33, (uint32_t)(n - 6));
    memcpy(more + 37, "eXIf", 4);
    memcpy(more + 41, exif + 6, n - 6);
    put_big_endian(more + 41 + n - 6, 0);
    memcpy(more + 45 + n - 6, bytes + 33, size - 33);
    put("o.png", more, size + 12 + n - 6);
    assert_int_equal(kiln_picture_look(at("o.png"), &width, &height, &orientation, &err), KILN_OK);
    assert_int_equal(orientation, 6);
}

/* EXIF 4.6.4: where the stored picture's first row and column are meant to be. Stored: 3 x 2,
 * values 10 y + x. */
static void pictures_turn_as_exif_says(void **state)
{
    static const struct {
        uint8_t orientation;
        float turned[6]; /* 2 x 3 */
    } ways[] = {{5, {0, 10, 1, 11, 2, 12}},
                {6, {10, 0, 11, 1, 12, 2}},
                {7, {12, 2, 11, 1, 10, 0}},
                {8, {2, 12, 1, 11, 0, 10}}};
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        kiln_error err = {0};
        kiln_picture p = {.width = 3,
                          .height = 2,
                          .channels = 1,
                          .orientation = ways[i].orientation,
                          .data = malloc(6 * sizeof(float))};
        for (int k = 0; k < 6; k++) p.data[k] = (float)(10 * (k / 3) + k % 3);
        assert_int_equal(kiln_picture_turn_to(&p, 3, 2, &err), KILN_OK);
        assert_true(p.width == 3 && p.data[1] == 1); /* fits as it is stored */
        assert_int_equal(kiln_picture_turn_to(&p, 2, 3, &err), KILN_OK);
        assert_true(p.width == 2 && p.height == 3);
        assert_memory_equal(p.data, ways[i].turned, sizeof ways[i].turned);
        kiln_picture_release(&p);
    }
    kiln_picture upside_down = {.width = 3, .height = 2, .channels = 1, .orientation = 3};
    assert_false(kiln_picture_turns_to(&upside_down, 2, 3));
}

/* ---- masks ----------------------------------------------------------------------------------- */
static void masks_are_black_or_count(void **state)
{
    /* 2 x 2 of a mask of 4 x 2: columns 1 and 3 decide */
    const float grey[8] = {1, 0, 0, 1 / 255.f, 0, 1, 1, 0},
                alpha[4 * 4] = {0, 0, 0, 1, 0, 0.5f, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0};
    kiln_error err = {0};
    uint8_t *mask;
    (void)state;
    const kiln_picture_job a = {.path = at("m.png"),
                                .format = KILN_PNG8,
                                .width = 4,
                                .height = 2,
                                .step = 1,
                                .channels = 1,
                                .data = grey};
    assert_int_equal(kiln_picture_write(&a, &err), KILN_OK);
    assert_int_equal(kiln_mask_read(at("m.png"), 2, 2, &mask, &err), KILN_OK);
    assert_memory_equal(mask, ((const uint8_t[]){0, 255, 255, 0}), 4);
    free(mask);
    const kiln_picture_job b = {.path = at("n.npy"),
                                .format = KILN_NPY,
                                .width = 2,
                                .height = 2,
                                .step = 4,
                                .channels = 4,
                                .data = alpha};
    assert_int_equal(kiln_picture_write(&b, &err), KILN_OK);
    assert_int_equal(kiln_mask_read(at("n.npy"), 2, 2, &mask, &err), KILN_OK);
    assert_memory_equal(mask, ((const uint8_t[]){0, 255, 255, 0}), 4);
    free(mask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(webp_is_read),
        cmocka_unit_test(webps_of_others_are_read_exactly),
        cmocka_unit_test(cut_webps_are_refused),
        cmocka_unit_test(animated_webps_are_refused),
        cmocka_unit_test(every_layout_of_tiff_is_read),
        cmocka_unit_test(cut_tiffs_give_a_sentence),
        cmocka_unit_test(tiffs_that_are_not_read_are_refused_with_a_sentence),
        cmocka_unit_test(cmyk_jpegs_become_rgb),
        cmocka_unit_test(exif_blocks_are_read_within_their_bounds),
        cmocka_unit_test(orientation_is_found_in_every_format),
        cmocka_unit_test(pictures_turn_as_exif_says),
        cmocka_unit_test(masks_are_black_or_count),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
