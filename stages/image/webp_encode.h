/* webp_encode -- codes as lossless WebP: four channels of 8 bits, stored exactly, also where alpha
 * is 0. libwebp encodes. stages/formats/sog/webp_pixels.h has the way back. */
#ifndef KILN_STAGES_IMAGE_WEBP_ENCODE_H
#define KILN_STAGES_IMAGE_WEBP_ENCODE_H

#include "base/memory.h"
#include "base/status.h"

#include <stdint.h>

/* Pixels that a side may have: the format has 14 bits for it. */
enum { KILN_WEBP_SIDE_MAX = 16383 };

/* Host memory of kiln_webp_encode at most, with the picture it makes, besides argb. */
uint64_t kiln_webp_encode_ram(uint64_t width, uint64_t height);
/* The most that the picture takes. */
uint64_t kiln_webp_bytes_max(uint64_t width, uint64_t height);
/* Appends the file to *out. argb [height][width]: alpha in the highest byte, then red, green, blue.
 * Both sides are at least 1 and within the limit. The same pixels give the same bytes; another
 * version of libwebp may give others. KILN_E_NOMEM. */
kiln_status kiln_webp_encode(const uint32_t *argb, uint64_t width, uint64_t height,
                             kiln_buffer *out, kiln_error *err) KILN_MUST_CHECK;

#endif
