/* exif -- which way a picture is up, by the tag Orientation of its EXIF block, and turning it that
 * way.
 *
 * An EXIF block is a TIFF file in small (CIPA DC-008, 4.5): byte order, offset of the first
 * directory, entries of 12 bytes. Nothing but that one tag is looked at, and every offset is
 * checked against the block.
 */
#include "stages/image/image_internal.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, ENTRY = 12 };

static uint32_t exif_number(const unsigned char *p, unsigned bytes, bool big)
{
    uint32_t v = 0;
    for (unsigned i = 0; i < bytes; i++) v |= (uint32_t)p[i] << 8 * (big ? bytes - 1 - i : i);
    return v;
}

uint8_t kiln_exif_orientation(const unsigned char *block, size_t size)
{
    /* in JPEG always, in WebP now and then */
    if (size >= 6 && memcmp(block, "Exif\0", 6) == 0) block += 6, size -= 6;
    if (size < 8 || (memcmp(block, "II*\0", 4) != 0 && memcmp(block, "MM\0*", 4) != 0)) return 1;
    const bool big = block[0] == 'M';
    const uint64_t directory = exif_number(block + 4, 4, big);
    if (directory + 2 > size) return 1;
    const uint32_t n = exif_number(block + directory, 2, big);
    for (uint32_t i = 0; i < n && directory + 2 + (uint64_t)(i + 1) * ENTRY <= size; i++) {
        const unsigned char *entry = block + directory + 2 + (size_t)i * ENTRY;
        if (exif_number(entry, 2, big) != TAG_ORIENTATION) continue;
        const uint32_t v = exif_number(entry + 8, 2, big);
        return exif_number(entry + 2, 2, big) == TYPE_SHORT && v >= 1 && v <= 8 ? (uint8_t)v : 1;
    }
    return 1;
}

/* ---- turning --------------------------------------------------------------------------------- */
/* Where pixel (x, y) of the turned picture is in a stored one of width w and height h. */
static uint64_t stored_at(uint8_t orientation, uint64_t x, uint64_t y, uint64_t w, uint64_t h)
{
    const uint64_t from_x = orientation == 5 || orientation == 6 ? y : w - 1 - y;
    const uint64_t from_y = orientation == 5 || orientation == 8 ? x : h - 1 - x;
    return from_y * w + from_x;
}

bool kiln_picture_turns_to(const kiln_picture *p, uint32_t width, uint32_t height)
{
    const bool as_stored = p->width == width && p->height == height;
    return !as_stored && p->orientation >= 5 && p->width == height && p->height == width;
}

kiln_status kiln_picture_turn_to(kiln_picture *p, uint32_t width, uint32_t height, kiln_error *err)
{
    float *turned;
    if (!kiln_picture_turns_to(p, width, height)) return KILN_OK;
    KILN_TRY(
        KILN_ALLOC_UNSET(&turned, (uint64_t)width * height * p->channels, "a turned picture", err));
    for (uint64_t y = 0; y < height; y++)
        for (uint64_t x = 0; x < width; x++)
            memcpy(turned + (y * width + x) * p->channels,
                   p->data + stored_at(p->orientation, x, y, p->width, p->height) * p->channels,
                   p->channels * sizeof *turned);
    free(p->data);
    p->data = turned;
    p->width = width;
    p->height = height;
    p->orientation = 1;
    return KILN_OK;
}
