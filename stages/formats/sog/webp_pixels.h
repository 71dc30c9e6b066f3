/* webp_pixels -- lossless WebP as codes: four channels of 8 bits, exactly as they were stored.
 * libwebp decodes. */
#ifndef KILN_STAGES_FORMATS_SOG_WEBP_PIXELS_H
#define KILN_STAGES_FORMATS_SOG_WEBP_PIXELS_H

#include <stddef.h>
#include <stdint.h>

/* So many bytes of the beginning say how large the picture is. */
enum { KILN_WEBP_HEAD = 64 };
/* Returns NULL, or what is wrong: no WebP, lossy, animated, shorter than its header says. head[n],
 * n = the smaller of `bytes`, all there are, and KILN_WEBP_HEAD. Nothing is decoded. */
const char *kiln_webp_size(const unsigned char *head, size_t n, uint64_t bytes, uint32_t *width,
                           uint32_t *height);
/* Host memory of kiln_webp_decode besides data and pixels. */
uint64_t kiln_webp_decode_ram(uint64_t width, uint64_t height);
/* rgba[height][width][4] of the whole file. Returns NULL, or what is wrong. */
const char *kiln_webp_decode(const unsigned char *data, size_t bytes, uint32_t width,
                             uint32_t height, unsigned char *rgba);

#endif
