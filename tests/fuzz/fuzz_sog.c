/* fuzz_sog -- one file of a SOG scene in a folder whose other files are good: 20 Gaussians of
 * degree 1, seven images of one colour each, and a lod-meta.json that has them as its only level.
 * In an archive (reader-sog) a checksum would keep the fuzzer from them.
 */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

/* Lossless WebP of one colour, without a byte a pixel. */
static size_t webp(uint32_t width, uint32_t height, const uint8_t rgba[4], uint8_t out[64])
{
    uint8_t bits[40] = {0};
    size_t n = 0;
#define PUT(value, count)                       \
    for (uint32_t b = 0; b < (count); b++, n++) \
    bits[n / 8] |= (uint8_t)(((uint32_t)(value) >> b & 1u) << n % 8)
    PUT(0x2f, 8);
    PUT(width - 1, 14);
    PUT(height - 1, 14);
    PUT(1, 1); /* alpha is used; version 0; no transforms, colour cache, meta prefix codes */
    PUT(0, 3 + 3);
    const uint8_t codes[4] = {rgba[1], rgba[0], rgba[2], rgba[3]};
    for (int c = 0; c < 4; c++) {
        PUT(1, 1); /* simple code of one symbol with 8 bits */
        PUT(0, 1);
        PUT(1, 1);
        PUT(codes[c], 8);
    }
    PUT(1, 4); /* distances: the symbol 0 alone */
#undef PUT
    const uint32_t length = (uint32_t)(n + 7) / 8, padded = length + (length & 1);
    const uint32_t riff = 12 + padded;
    memcpy(out, "RIFF....WEBPVP8L", 16);
    memcpy(out + 4, &riff, 4);
    memcpy(out + 16, &length, 4);
    memcpy(out + 20, bits, padded);
    return 20 + padded;
}

static void put_codebook(char *text, size_t capacity, const char *key, const char *rest)
{
    const size_t at = strlen(text);
    (void)snprintf(text + at, capacity - at, ",\"%s\":{%s\"codebook\":[0", key, rest);
    for (int i = 1; i < 256; i++) {
        const size_t end = strlen(text);
        (void)snprintf(text + end, capacity - end, ",%d", i % 8);
    }
    const size_t end = strlen(text);
    (void)snprintf(text + end, capacity - end, "]}");
}

static void write_good_files(void)
{
    static const char *const images[] = {"means_l.webp", "means_u.webp", "scales.webp",
                                         "quats.webp",   "sh0.webp",     "shN_labels.webp"};
    static const uint8_t colour[4] = {3, 0, 9, 253};
    static char text[4096];
    uint8_t file[64];
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        (void)kiln_fuzz_file("sog", images[i], file, webp(8, 3, colour, file));
    (void)kiln_fuzz_file("sog", "shN_centroids.webp", file, webp(192, 1, colour, file));
    (void)snprintf(text, sizeof text,
                   "{\"version\":2,\"count\":20,\"means\":{\"mins\":[-1,-1,-1],\"maxs\":[1,1,1],"
                   "\"files\":[\"means_l.webp\","
                   "\"means_u.webp\"]},\"quats\":{\"files\":[\"quats.webp\"]}");
    put_codebook(text, sizeof text, "scales", "\"files\":[\"scales.webp\"],");
    put_codebook(text, sizeof text, "sh0", "\"files\":[\"sh0.webp\"],");
    put_codebook(
        text, sizeof text, "shN",
        "\"count\":64,\"bands\":1,\"files\":[\"shN_centroids.webp\",\"shN_labels.webp\"],");
    (void)snprintf(text + strlen(text), sizeof text - strlen(text), "}");
    (void)kiln_fuzz_file("sog", "meta.json", text, strlen(text));
}

void kiln_fuzz_sog(const void *argument, const uint8_t *data, size_t size)
{
    const char *name = argument;
    char main_file[600];
    const bool is_lod = strcmp(name, "lod-meta.json") == 0;
    write_good_files();
    (void)kiln_fuzz_file("sog", name, data, size);
    (void)snprintf(main_file, sizeof main_file, "%s/sog/%s", kiln_fuzz_folder(),
                   is_lod ? name : "meta.json");
    kiln_fuzz_source(kiln_reader_named(is_lod ? "lod" : "sog"), main_file, data, size);
}
