#include "stages/formats/sog/webp_pixels.h"

#include "base/endian.h"
#include "base/minmax.h"

#include <string.h>
#include <webp/decode.h>

const char *kiln_webp_size(const unsigned char *head, size_t n, uint64_t bytes, uint32_t *width,
                           uint32_t *height)
{
    enum { RIFF = 8, LOSSLESS = 2 };
    WebPBitstreamFeatures f;
    if (n < 16 || memcmp(head, "RIFF", 4) != 0 || memcmp(head + 8, "WEBP", 4) != 0)
        return n > 8 && memcmp(head, "\x89PNG\r\n\x1a\n", 8) == 0 ? "a PNG; only WebP is read"
                                                                  : "no WebP";
    if ((uint64_t)kiln_get_u32(head + 4) + RIFF > bytes)
        return "cut short: its header promises more bytes";
    const VP8StatusCode code = WebPGetFeatures(head, n, &f);
    if (code == VP8_STATUS_NOT_ENOUGH_DATA)
        return "a WebP with other things before its pixels, which is not read";
    if (code != VP8_STATUS_OK) return "damaged";
    if (f.has_animation) return "an animation";
    if (f.format != LOSSLESS) return "a lossy WebP, so its codes are lost";
    *width = (uint32_t)f.width;
    *height = (uint32_t)f.height;
    return NULL;
}

/* A second copy of the pixels, 32 rows of cache, and the prefix codes: 16 KB for each of their
 * groups, which are at most one for 4 x 4 pixels. libwebp's encoder makes 2,600 at most; a file by
 * another may have 65,536 and take a GiB, which nobody can know before. */
uint64_t kiln_webp_decode_ram(uint64_t width, uint64_t height)
{
    const uint64_t groups = kiln_min_u64(width * height / 16 + 1, 2600);
    return 4 * width * (height + 32) + (groups << 14);
}

const char *kiln_webp_decode(const unsigned char *data, size_t bytes, uint32_t width,
                             uint32_t height, unsigned char *rgba)
{
    WebPDecoderConfig c;
    if (!WebPInitDecoderConfig(&c))
        return "of no use: libwebp is of another version than its headers";
    c.output.colorspace = MODE_RGBA;
    c.output.is_external_memory = 1;
    c.output.u.RGBA.rgba = rgba;
    c.output.u.RGBA.stride = (int)(4 * width);
    c.output.u.RGBA.size = (size_t)4 * width * height;
    const VP8StatusCode code = WebPDecode(data, bytes, &c);
    if (code == VP8_STATUS_OK) return NULL;
    return code == VP8_STATUS_OUT_OF_MEMORY ? "too large for the memory that is free" : "damaged";
}
