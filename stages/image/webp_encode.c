/* webp_encode -- see the header. Method and quality are chosen by measurement (DESIGN.md): codes
 * are noise for the most part, in which a longer search finds nothing. libwebp has one thread a
 * picture, so the slowest picture of an export is what others wait for. */
#include "stages/image/webp_encode.h"

#include <stdbool.h>
#include <webp/encode.h>

typedef struct {
    kiln_buffer *out;
    kiln_status st;
    kiln_error *err;
} sink;

static int take_bytes(const uint8_t *data, size_t size, const WebPPicture *picture)
{
    sink *s = picture->custom_ptr;
    if (s->st == KILN_OK) s->st = kiln_buffer_put(s->out, data, size, s->err);
    return s->st == KILN_OK;
}

/* libwebp collects the bits of the picture before it hands them over, in a buffer that doubles;
 * ours doubles too. */
uint64_t kiln_webp_encode_ram(uint64_t width, uint64_t height)
{
    return (16 << 20) + 64 * width * height;
}

uint64_t kiln_webp_bytes_max(uint64_t width, uint64_t height)
{
    return (1 << 20) + 8 * width * height;
}

kiln_status kiln_webp_encode(const uint32_t *argb, uint64_t width, uint64_t height,
                             kiln_buffer *out, kiln_error *err)
{
    enum { SMALL = 1 << 18 }; /* pixels that a longer search costs next to nothing for */
    const bool small = width * height <= SMALL;
    sink s = {out, KILN_OK, err};
    WebPConfig config;
    WebPPicture picture;
    if (width < 1 || height < 1 || width > KILN_WEBP_SIDE_MAX || height > KILN_WEBP_SIDE_MAX)
        return kiln_fail(err, KILN_E_BUG, "a WebP picture of %llu x %llu pixels",
                         (unsigned long long)width, (unsigned long long)height);
    if (!WebPConfigInit(&config) || !WebPPictureInit(&picture))
        return kiln_fail(err, KILN_E_BUG, "libwebp has another version than its headers");
    config.lossless = 1;
    config.exact = 1;
    config.method = small ? 4 : 1;
    config.quality = small ? 75 : 0;
    picture.use_argb = 1;
    picture.width = (int)width;
    picture.height = (int)height;
    picture.argb = (uint32_t *)(uintptr_t)argb; /* is only read, because `exact` is set */
    picture.argb_stride = (int)width;
    picture.writer = take_bytes;
    picture.custom_ptr = &s;
    const int good = WebPEncode(&config, &picture);
    const WebPEncodingError why = picture.error_code;
    WebPPictureFree(&picture); /* argb is not its own */
    if (good) return KILN_OK;
    if (s.st != KILN_OK) return s.st;
    if (why == VP8_ENC_ERROR_OUT_OF_MEMORY || why == VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY)
        return kiln_fail(err, KILN_E_NOMEM,
                         "out of memory for a WebP picture of %llu x %llu pixels",
                         (unsigned long long)width, (unsigned long long)height);
    return kiln_fail(err, KILN_E_BUG,
                     "libwebp does not encode a picture of %llu x %llu pixels: error %d",
                     (unsigned long long)width, (unsigned long long)height, (int)why);
}
