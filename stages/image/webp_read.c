/* webp_read -- WebP by libwebp, lossy or lossless, with or without alpha, to floats. An animation
 * has no one picture and is refused.
 *
 * A WebP of a few bytes may hold 2^28 pixels of one colour, so that its length says nothing about
 * its size: who decodes has asked for the size before. The file is read whole, because libwebp
 * decodes from memory; one that is longer than its pixels could need is refused.
 */
#include "stages/image/image_internal.h"

#include "base/endian.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <webp/decode.h>

enum {
    HEAD = 4096, /* features are in the first chunk */
    CHUNKS_MOST = 64,
    EXIF_MOST = 1 << 16,
    BYTES_A_PIXEL_MOST = 8,
    BESIDE_PIXELS = 8 << 20, /* profiles, texts, thumbnails */
};

typedef struct {
    const char *path;
    FILE *f;
    uint64_t file_size;
    kiln_picture *out;
    unsigned char *file, *pixels; /* [file_size], [height][width][channels] */
    bool alpha;
} webp_job;

static kiln_status read_webp_header(webp_job *j, kiln_error *err)
{
    unsigned char head[HEAD];
    WebPBitstreamFeatures features;
    const size_t got = fread(head, 1, sizeof head, j->f);
    if (ferror(j->f)) return kiln_fail(err, KILN_E_IO, "cannot read '%s'", j->path);
    if (WebPGetFeatures(head, got, &features) != VP8_STATUS_OK)
        return kiln_fail(err, KILN_E_INPUT,
                         "cannot read '%s' as WebP: its header is damaged; is the file complete?",
                         j->path);
    if (features.has_animation)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is an animated WebP; save the chosen frame as a picture of its own",
                         j->path);
    KILN_TRY(kiln_picture_check(j->path, (uint64_t)features.width, (uint64_t)features.height, err));
    j->out->width = (uint32_t)features.width;
    j->out->height = (uint32_t)features.height;
    j->alpha = features.has_alpha != 0;
    return KILN_OK;
}

/* The chunk EXIF stands behind the pixels. What is damaged there says nothing. */
static uint8_t find_orientation(const webp_job *j)
{
    unsigned char chunk[8], block[EXIF_MOST];
    uint64_t at = 12;
    for (int i = 0; i < CHUNKS_MOST && at + sizeof chunk <= j->file_size; i++) {
        if (fseeko(j->f, (off_t)at, SEEK_SET) != 0 ||
            fread(chunk, 1, sizeof chunk, j->f) != sizeof chunk)
            break;
        const uint32_t size = kiln_get_u32(chunk + 4);
        if (memcmp(chunk, "EXIF", 4) == 0)
            return kiln_exif_orientation(
                block, fread(block, 1, size < sizeof block ? size : sizeof block, j->f));
        at += sizeof chunk + size + (size & 1);
    }
    return 1;
}

static kiln_status read_webp_file(webp_job *j, kiln_error *err)
{
    const uint64_t pixels = (uint64_t)j->out->width * j->out->height;
    if (j->file_size > BYTES_A_PIXEL_MOST * pixels + BESIDE_PIXELS)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' has %llu bytes for %u x %u pixels, which is impossible; save it again", j->path,
            (unsigned long long)j->file_size, j->out->width, j->out->height);
    KILN_TRY(KILN_ALLOC_UNSET(&j->file, j->file_size, "a WebP file", err));
    if (fseeko(j->f, 0, SEEK_SET) != 0 || fread(j->file, 1, j->file_size, j->f) != j->file_size)
        return kiln_fail(err, KILN_E_IO, "cannot read '%s'", j->path);
    return KILN_OK;
}

static kiln_status decode_webp(webp_job *j, kiln_error *err)
{
    kiln_picture *p = j->out;
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return kiln_fail(err, KILN_E_BUG, "libwebp has another version than its headers");
    p->channels = j->alpha ? 4 : 3;
    p->depth_bits = 8;
    const uint64_t row = (uint64_t)p->width * p->channels, values = row * p->height;
    KILN_TRY(read_webp_file(j, err));
    KILN_TRY(KILN_ALLOC(&j->pixels, values, "pixels of a WebP", err));
    config.output.colorspace = j->alpha ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = j->pixels;
    config.output.u.RGBA.stride = (int)row;
    config.output.u.RGBA.size = values;
    const VP8StatusCode code = WebPDecode(j->file, j->file_size, &config);
    WebPFreeDecBuffer(&config.output);
    if (code == VP8_STATUS_OUT_OF_MEMORY)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory: cannot read '%s'", j->path);
    if (code != VP8_STATUS_OK)
        return kiln_fail(
            err, KILN_E_INPUT,
            "cannot read '%s' as WebP: its pixels are damaged or incomplete; is the file complete?",
            j->path);
    free(j->file);
    j->file = NULL;
    KILN_TRY(KILN_ALLOC_UNSET(&p->data, values, "pixels of a WebP", err));
    for (uint64_t i = 0; i < values; i++) p->data[i] = (float)j->pixels[i] / 255.f;
    return KILN_OK;
}

kiln_status kiln_webp_read(const char *path, int size_only, kiln_picture *out, kiln_error *err)
{
    webp_job j = {.path = path, .out = out};
    KILN_TRY(kiln_picture_open(path, &j.f, &j.file_size, err));
    kiln_status st = read_webp_header(&j, err);
    if (st == KILN_OK) out->orientation = find_orientation(&j);
    if (st == KILN_OK && !size_only) st = decode_webp(&j, err);
    free(j.file);
    free(j.pixels);
    fclose(j.f); /* opened for reading: nothing to lose */
    return st;
}
