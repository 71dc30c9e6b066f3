/* tiff_read -- TIFF by libtiff to floats: the first picture of the file, 8 or 16 bits a sample,
 * grey, palette, RGB or CMYK, with or without alpha, in strips or tiles, compressed by whatever
 * this libtiff has.
 *
 * libtiff believes headers: a strip, a tile or a directory has the size that it claims. So sizes
 * are compared with the file and with the picture before anything is allocated, and libtiff itself
 * may allocate no more at once than the file explains. What it says goes to handlers of this one
 * file (since libtiff 4.5), never to stderr.
 */
#include "stages/image/image_internal.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>
#include <unistd.h>

enum {
    RATIO_MOST = 1 << 15,  /* of pixels' bytes to the file's: what zstd makes of one colour */
    BLOCK_LEAST = 8 << 20, /* a tile may be so large, however small the picture is */
    LIBTIFF_LEAST = 64 << 20,
    SAMPLES_MOST = 5, /* CMYK with alpha */
};

typedef struct {
    const char *path;
    TIFF *tiff;
    uint64_t file_size;
    kiln_picture *out;
    bool decoding;
    char error[200]; /* libtiff's first */
    uint16_t bits, samples, planar, photometric, compression;
    uint32_t colours;       /* samples of colour in the file */
    bool alpha, multiplied; /* it has alpha; colours are multiplied by it */
    bool tiled;
    uint32_t block_width, block_height;
    uint64_t block_bytes;
    unsigned char *block; /* a tile, or a row: strips may be as large as the picture */
    uint16_t *palette[3]; /* libtiff's own */
    bool palette_of_bytes;
    kiln_error *err;
} tiff_job;

static int on_tiff_error(TIFF *tiff, void *context, const char *module, const char *format,
                         va_list args)
{
    tiff_job *j = context;
    (void)tiff, (void)module;
    if (!j->error[0]) (void)vsnprintf(j->error, sizeof j->error, format, args);
    return 1; /* nobody else is told */
}

/* Warnings of headers are of tags that we do not ask for. Those while pixels are decoded are of
 * pixels that were made up. */
static int on_warning(TIFF *tiff, void *context, const char *module, const char *format,
                      va_list args)
{
    tiff_job *j = context;
    (void)tiff, (void)module;
    if (j->decoding && !j->out->warning[0])
        (void)vsnprintf(j->out->warning, sizeof j->out->warning, format, args);
    return 1;
}

static kiln_status fail_damaged_tiff(const tiff_job *j)
{
    return kiln_fail(j->err, KILN_E_INPUT, "cannot read '%s' as TIFF: %s; is the file complete?",
                     j->path, j->error[0] ? j->error : "it is damaged");
}

static kiln_status refuse_tiff(const tiff_job *j, const char *what)
{
    return kiln_fail(j->err, KILN_E_INPUT, "'%s' is a TIFF %s; save it as 8- or 16-bit RGB or grey",
                     j->path, what);
}

/* ---- header ---------------------------------------------------------------------------------- */
static kiln_status read_size(tiff_job *j)
{
    uint32_t width = 0, height = 0;
    uint16_t orientation = 1;
    if (!TIFFGetField(j->tiff, TIFFTAG_IMAGEWIDTH, &width) ||
        !TIFFGetField(j->tiff, TIFFTAG_IMAGELENGTH, &height))
        return fail_damaged_tiff(j);
    KILN_TRY(kiln_picture_check(j->path, width, height, j->err));
    (void)TIFFGetFieldDefaulted(j->tiff, TIFFTAG_ORIENTATION, &orientation);
    j->out->width = width;
    j->out->height = height;
    j->out->orientation = orientation >= 1 && orientation <= 8 ? (uint8_t)orientation : 1;
    return KILN_OK;
}

/* The first extra sample, where it is alpha; libtiff takes a sample of unknown meaning for what it
 * says. */
static void find_alpha(tiff_job *j)
{
    uint16_t n = 0, *types = NULL;
    (void)TIFFGetFieldDefaulted(j->tiff, TIFFTAG_EXTRASAMPLES, &n, &types);
    if (n == 0 || !types || j->samples <= j->colours) return;
    j->alpha = types[0] == EXTRASAMPLE_ASSOCALPHA || types[0] == EXTRASAMPLE_UNASSALPHA;
    j->multiplied = types[0] == EXTRASAMPLE_ASSOCALPHA;
}

static kiln_status find_palette(tiff_job *j)
{
    if (j->bits != 8) return refuse_tiff(j, "with a palette of other than 8 bits");
    if (!TIFFGetField(j->tiff, TIFFTAG_COLORMAP, &j->palette[0], &j->palette[1], &j->palette[2]))
        return fail_damaged_tiff(j);
    j->palette_of_bytes = true; /* as old writers have it */
    for (int i = 0; i < 256; i++)
        for (int c = 0; c < 3; c++) j->palette_of_bytes &= j->palette[c][i] < 256;
    return KILN_OK;
}

static kiln_status read_layout(tiff_job *j)
{
    uint16_t format = SAMPLEFORMAT_UINT;
    (void)TIFFGetFieldDefaulted(j->tiff, TIFFTAG_BITSPERSAMPLE, &j->bits);
    (void)TIFFGetFieldDefaulted(j->tiff, TIFFTAG_SAMPLESPERPIXEL, &j->samples);
    (void)TIFFGetFieldDefaulted(j->tiff, TIFFTAG_PLANARCONFIG, &j->planar);
    (void)TIFFGetFieldDefaulted(j->tiff, TIFFTAG_COMPRESSION, &j->compression);
    (void)TIFFGetFieldDefaulted(j->tiff, TIFFTAG_SAMPLEFORMAT, &format);
    if (!TIFFGetField(j->tiff, TIFFTAG_PHOTOMETRIC, &j->photometric))
        j->photometric = j->samples < 3 ? PHOTOMETRIC_MINISBLACK : PHOTOMETRIC_RGB;
    if ((j->bits != 8 && j->bits != 16) || format != SAMPLEFORMAT_UINT)
        return refuse_tiff(j, "of other than 8- or 16-bit integers");
    if (j->samples == 0 || j->samples > SAMPLES_MOST)
        return refuse_tiff(j, "of more than 5 channels, or of none");
    if (!TIFFIsCODECConfigured(j->compression))
        return refuse_tiff(j, "with a compression that this libtiff lacks");
    switch (j->photometric) {
    case PHOTOMETRIC_MINISBLACK:
    case PHOTOMETRIC_MINISWHITE:
        j->colours = 1;
        break;
    case PHOTOMETRIC_PALETTE:
        j->colours = 1;
        KILN_TRY(find_palette(j));
        break;
    case PHOTOMETRIC_RGB:
        j->colours = 3;
        break;
    case PHOTOMETRIC_SEPARATED:
        j->colours = 4;
        break;
    case PHOTOMETRIC_YCBCR:
        if (j->compression != COMPRESSION_JPEG || j->bits != 8 || j->samples != 3 ||
            j->planar != PLANARCONFIG_CONTIG)
            return refuse_tiff(j, "in YCbCr");
        /* libjpeg converts */
        (void)TIFFSetField(j->tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
        j->colours = 3;
        break;
    default:
        return refuse_tiff(j, "with colours of another kind");
    }
    if (j->samples < j->colours) return refuse_tiff(j, "with fewer channels than its colours need");
    find_alpha(j);
    return KILN_OK;
}

/* Finds the size of what is decoded at once: a tile, or one row of a strip. */
static uint64_t find_block(tiff_job *j)
{
    j->tiled = TIFFIsTiled(j->tiff) != 0;
    j->block_width = j->out->width;
    j->block_height = 1;
    if (!j->tiled) return TIFFScanlineSize64(j->tiff);
    if (!TIFFGetField(j->tiff, TIFFTAG_TILEWIDTH, &j->block_width) ||
        !TIFFGetField(j->tiff, TIFFTAG_TILELENGTH, &j->block_height))
        return 0;
    return TIFFTileSize64(j->tiff);
}

static kiln_status alloc_tiff_pixels(tiff_job *j)
{
    kiln_picture *p = j->out;
    const uint64_t pixels = (uint64_t)p->width * p->height,
                   stored = pixels * j->samples * (j->bits / 8);
    const uint64_t in_block = j->planar == PLANARCONFIG_SEPARATE ? 1 : j->samples;
    j->block_bytes = find_block(j);
    if (j->block_width == 0 || j->block_height == 0 || j->block_width > KILN_PICTURE_AXIS_MAX ||
        j->block_height > KILN_PICTURE_AXIS_MAX ||
        j->block_bytes < (uint64_t)j->block_width * j->block_height * in_block * (j->bits / 8))
        return fail_damaged_tiff(j);
    if (j->block_bytes > (stored > BLOCK_LEAST ? stored : BLOCK_LEAST))
        return refuse_tiff(j, "with tiles far larger than itself");
    if (stored / RATIO_MOST > j->file_size)
        return kiln_fail(j->err, KILN_E_INPUT,
                         "'%s' is too short for its %u x %u pixels; is the file complete?", j->path,
                         p->width, p->height);
    p->channels =
        (j->colours == 1 && j->photometric != PHOTOMETRIC_PALETTE ? 1 : 3) + (j->alpha ? 1 : 0);
    p->depth_bits = j->bits;
    KILN_TRY(KILN_ALLOC(&j->block, j->block_bytes, "a tile of a TIFF", j->err));
    return KILN_ALLOC(&p->data, pixels * p->channels, "pixels of a TIFF", j->err);
}

/* ---- pixels ---------------------------------------------------------------------------------- */
static float value_at(const tiff_job *j, uint64_t i)
{
    uint16_t v;
    if (j->bits == 8) return (float)j->block[i] / 255.f;
    memcpy(&v, j->block + 2 * i, sizeof v); /* libtiff has put it into this machine's order */
    return (float)v / 65535.f;
}

/* Sample `s` of a pixel; value number i of the block. */
static void put_sample(const tiff_job *j, uint64_t pixel, uint32_t s, uint64_t i)
{
    const kiln_picture *p = j->out;
    float *to = p->data + pixel * p->channels, v = value_at(j, i);
    const uint32_t colours = p->channels - (j->alpha ? 1 : 0);
    if (s >= j->colours) {
        if (j->alpha && s == j->colours) to[colours] = v;
        return;
    }
    if (j->palette[0]) {
        for (int c = 0; c < 3; c++)
            to[c] = (float)j->palette[c][j->block[i]] / (j->palette_of_bytes ? 255.f : 65535.f);
        return;
    }
    /* naive: (1 - ink) (1 - black); each ink takes its part away */
    if (j->photometric == PHOTOMETRIC_SEPARATED) {
        for (uint32_t c = 0; c < 3; c++)
            if (s == 3 || s == c) to[c] *= 1.0f - v;
        return;
    }
    to[s] = j->photometric == PHOTOMETRIC_MINISWHITE ? 1.0f - v : v;
}

static void put_block(const tiff_job *j, uint32_t x0, uint32_t y0, uint32_t plane)
{
    const kiln_picture *p = j->out;
    const bool separate = j->planar == PLANARCONFIG_SEPARATE;
    const uint32_t samples = separate ? 1 : j->samples;
    for (uint32_t y = 0; y < j->block_height && y0 + y < p->height; y++)
        for (uint32_t x = 0; x < j->block_width && x0 + x < p->width; x++)
            for (uint32_t s = 0; s < samples; s++)
                put_sample(j, (uint64_t)(y0 + y) * p->width + x0 + x, separate ? plane : s,
                           ((uint64_t)y * j->block_width + x) * samples + s);
}

static kiln_status read_tiff_block(tiff_job *j, uint32_t x, uint32_t y, uint32_t plane)
{
    if (!j->tiled)
        return TIFFReadScanline(j->tiff, j->block, y, (uint16_t)plane) == 1 ? KILN_OK
                                                                            : fail_damaged_tiff(j);
    const tmsize_t want = (tmsize_t)j->block_bytes;
    return TIFFReadEncodedTile(j->tiff, TIFFComputeTile(j->tiff, x, y, 0, (uint16_t)plane),
                               j->block, want) == want
               ? KILN_OK
               : fail_damaged_tiff(j);
}

/* Straight colours, as the other formats have them; black where alpha is 0. */
static void divide_by_alpha(const kiln_picture *p)
{
    const uint32_t n = p->channels;
    for (uint64_t i = 0; i < (uint64_t)p->width * p->height; i++) {
        float *v = p->data + i * n, alpha = v[n - 1];
        for (uint32_t c = 0; c + 1 < n; c++)
            v[c] = alpha > 0 ? (v[c] < alpha ? v[c] / alpha : 1.0f) : 0.0f;
    }
}

static kiln_status read_pixels(tiff_job *j)
{
    const kiln_picture *p = j->out;
    const uint32_t planes = j->planar == PLANARCONFIG_SEPARATE ? j->samples : 1;
    KILN_TRY(alloc_tiff_pixels(j));
    for (uint64_t i = 0; j->photometric == PHOTOMETRIC_SEPARATED &&
                         i < (uint64_t)p->width * p->height * p->channels;
         i++)
        p->data[i] = 1.0f; /* white paper */
    j->decoding = true;
    for (uint32_t plane = 0; plane < planes; plane++)
        for (uint64_t y = 0; y < p->height; y += j->block_height)
            for (uint64_t x = 0; x < p->width; x += j->block_width) {
                KILN_TRY(read_tiff_block(j, (uint32_t)x, (uint32_t)y, plane));
                put_block(j, (uint32_t)x, (uint32_t)y, plane);
            }
    if (j->multiplied) divide_by_alpha(p);
    return KILN_OK;
}

static kiln_status open_tiff(tiff_job *j, int *fd)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    const uint64_t most = j->file_size + LIBTIFF_LEAST;
    if (!options)
        return kiln_fail(j->err, KILN_E_NOMEM, "out of memory: cannot read '%s'", j->path);
    TIFFOpenOptionsSetErrorHandlerExtR(options, on_tiff_error, j);
    TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, j);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)most);
    /* m: no mapping, which a file that is cut meanwhile would make a fault */
    j->tiff = TIFFFdOpenExt(*fd, j->path, "rm", options);
    TIFFOpenOptionsFree(options);
    if (!j->tiff) return fail_damaged_tiff(j);
    *fd = -1; /* is closed with it */
    return KILN_OK;
}

kiln_status kiln_tiff_read(const char *path, int size_only, kiln_picture *out, kiln_error *err)
{
    tiff_job j = {.path = path, .out = out, .planar = PLANARCONFIG_CONTIG, .err = err};
    kiln_file_info info;
    int fd = -1;
    kiln_status st;
    KILN_GO(kiln_file_stat(path, &info, err));
    KILN_GO(kiln_file_open(path, &fd, err));
    j.file_size = info.size;
    KILN_GO(open_tiff(&j, &fd));
    KILN_GO(read_size(&j));
    if (!size_only) KILN_GO(read_layout(&j));
    if (!size_only) KILN_GO(read_pixels(&j));
done:
    if (j.tiff) TIFFClose(j.tiff);
    if (fd >= 0) (void)close(fd); /* was only read */
    free(j.block);
    return st;
}
