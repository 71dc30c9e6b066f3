/* image -- reading and writing pictures: 8- and 16-bit PNG, .npy float32, JPEG, WebP; TIFF (read).
 *
 * A kiln_picture is float32, interleaved, channels 1 to 4, row-major from the top. 8-bit values v
 * are v / 255.f, 16-bit v / 65535.f; written back with round-half-up after a clamp to [0,1].
 * libpng's and libjpeg's errors become statuses with the file's name; limits: 2^20 pixels an axis,
 * KILN_PICTURE_MAX pixels. Thread-safe; nothing global. A PNG is compressed block by block, on as
 * many threads as it is given, 16 MiB at a time.
 */
#ifndef KILN_STAGES_IMAGE_H
#define KILN_STAGES_IMAGE_H

#include "base/memory.h"
#include "base/status.h"
#include "kernels/png_rows/png_rows.h"
#include "stages/products/product_place.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KILN_PICTURE_MAX ((uint64_t)1 << 30)

typedef struct {
    uint32_t width, height, channels; /* channels of data */
    uint32_t depth_bits;              /* 8, 16 or 32 as in the file */
    /* EXIF's, 1 to 8, or 1; pixels are as stored whatever it says */
    uint8_t orientation;
    float *data; /* owned */
    /* the decoder's words where it had to make pixels up (damaged JPEG); "" where all are the
     * file's */
    char warning[200];
} kiln_picture;
void kiln_picture_release(kiln_picture *p);

/* By content: PNG (grey, palette, RGB, with or without alpha, 1 to 16 bit, interlaced too), JPEG
 * (grey, RGB, CMYK), WebP, TIFF (first picture; 8 or 16 bit; grey, palette, RGB, CMYK; with or
 * without alpha), .npy (float32 little-endian C order, [h][w] or [h][w][c]). CMYK becomes (1 - ink)
 * (1 - black), without a colour profile. */
kiln_status kiln_picture_read(const char *path, kiln_picture *out, kiln_error *err) KILN_MUST_CHECK;
/* Size only, from the header. */
kiln_status kiln_picture_size(const char *path, uint32_t *width, uint32_t *height,
                              kiln_error *err) KILN_MUST_CHECK;

/* Size as stored and EXIF's orientation, from the header. */
kiln_status kiln_picture_look(const char *path, uint32_t *width, uint32_t *height,
                              uint8_t *orientation, kiln_error *err) KILN_MUST_CHECK;
/* Does the picture get that size by following its orientation, and not otherwise? Width and height
 * must be exchanged for it: no size says whether to turn upside down. */
bool kiln_picture_turns_to(const kiln_picture *p, uint32_t width, uint32_t height);
/* Turns it then; leaves it as it is else. Takes memory for it twice. */
kiln_status kiln_picture_turn_to(kiln_picture *p, uint32_t width, uint32_t height,
                                 kiln_error *err) KILN_MUST_CHECK;

/* Reads a picture as a mask of width x height pixels: 255 where it counts, 0 where it is black in
 * all its colours (its alpha says nothing). Of another size, the pixel that holds a pixel's centre
 * decides. *out: [height][width], free(*out). */
kiln_status kiln_mask_read(const char *path, uint32_t width, uint32_t height, uint8_t **out,
                           kiln_error *err) KILN_MUST_CHECK;

/* What is written: its name behind KILN_, that as a value of --format, the suffix of its files (of
 * a suffix that stands twice the first is meant), what it is. */
#define KILN_PICTURE_FORMAT_MAP(X)         \
    X(PNG8, "png", "png", "8-bit PNG")     \
    X(PNG16, "png16", "png", "16-bit PNG") \
    X(NPY, "npy", "npy", ".npy float32 RGBA")
typedef enum {
#define X(id, name, suffix, what) KILN_##id,
    KILN_PICTURE_FORMAT_MAP(X)
#undef X
        KILN_N_PICTURE_FORMATS,
    /* Only for a file that is named so: no bake stores them as the format of its pictures. */
    KILN_JPEG = 16, /* quality 95 */
    KILN_WEBP,      /* lossless, 8 bits */
} kiln_picture_format;
typedef struct {
    /* value NULL: our name and version. PNG tEXt, e.g. "Unit", "depth in scene units = value *
     * 0.001" */
    const char *key, *value;
} kiln_picture_text;
/* The mark by which our PNGs are known (product_mark.h): the first text of a picture that is a
 * result. */
#define KILN_PICTURE_SOFTWARE \
    {                         \
        "Software", NULL      \
    }
/* What is to be written, and where. */
typedef struct {
    const char *path;
    kiln_picture_format format;
    uint32_t width, height, step, channels;
    /* height x width x step floats of which the first `channels` (1, 3 or 4; of JPEG and WebP 3)
     * are written */
    const float *data;
    /* NULL, or [3]: four channels hold colour over this background, colour + (1 - alpha) background
     * with colour multiplied by alpha. A PNG then gets straight colours as its specification wants
     * them, colour / alpha, and black where alpha is 0; .npy gets what data holds. */
    const float *over;
    const kiln_picture_text *text;
    uint32_t n_text;
    unsigned threads; /* of a PNG; 0 counts as 1 */
    /* NULL, or all rows of a PNG as kernels/png_rows makes them for kiln_picture_png_rows; data is
     * not read then. */
    const unsigned char *rows;
    /* What stood at `path` when it was allowed to write there; NULL: nothing did. */
    const kiln_product_seen *seen;
} kiln_picture_job;
/* Returns the arguments of the operation that makes the rows of this PNG, all of them, without its
 * `rows`. */
kiln_png_rows_args kiln_picture_png_rows(const kiln_picture_job *job);
/* Written beside its name and renamed (product_place.h); missing folders are made. A PNG with our
 * mark ends with its seal (product_mark.h). The same pixels give the same bytes (one fixed filter,
 * one level, blocks of fixed size), on any number of threads and in every process; with another
 * ISA-L or kind of processor perhaps not. */
kiln_status kiln_picture_write(const kiln_picture_job *job, kiln_error *err) KILN_MUST_CHECK;
/* Host memory that this takes at most besides the data, and besides half a MiB for each thread (of
 * a row that is longer than 64 KiB: three rows and 300 KiB). */
uint64_t kiln_picture_write_bytes(const kiln_picture_job *job);
/* Appends a JPEG of [height][width] red, green, blue to out, for pages; sides of at most 65,500
 * pixels, quality 1 to 100. */
kiln_status kiln_jpeg_encode(const float *rgb, uint32_t width, uint32_t height, int quality,
                             kiln_buffer *out, kiln_error *err) KILN_MUST_CHECK;
/* KILN_E_USAGE: a picture of this format has shorter sides; the sentence names `path`. */
kiln_status kiln_picture_format_check(kiln_picture_format f, const char *path, uint32_t width,
                                      uint32_t height, kiln_error *err) KILN_MUST_CHECK;
static inline bool kiln_picture_is_png(kiln_picture_format f)
{
    return f == KILN_PNG8 || f == KILN_PNG16;
}
/* Of the suffix of `path`, whatever its case; PNG8 where no format has it. */
kiln_picture_format kiln_picture_format_of(const char *path);
/* Is the suffix of `path` that of a format that is written, whatever its case? */
bool kiln_picture_suffix_is_written(const char *path);
const char *kiln_picture_suffix(kiln_picture_format f);
/* The i-th of all suffixes that are written, each once; NULL behind the last. */
const char *kiln_picture_suffix_at(unsigned i);

#endif
