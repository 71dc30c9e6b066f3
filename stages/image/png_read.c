/* png_read -- PNG of every colour type and depth to floats.
 *
 * libpng reports an error by longjmp: the jump stays inside this file. decode_png() alone calls
 * setjmp; it has no local that changes after it, everything lives in png_job, which its caller owns
 * and cleans up.
 */
#include "stages/image/image_internal.h"

#include "base/endian.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

/* DEFLATE gives at most 1032 bytes for one (zlib's technical notes): a picture whose pixels cannot
 * come out of a file of this size is refused before memory is asked for. */
enum { DEFLATE_RATIO = 1032 };

typedef struct {
    const char *path;
    FILE *f;
    uint64_t file_size;
    int size_only;
    png_structp png;
    png_infop info;
    kiln_picture *out;
    unsigned char *rows; /* one row, or all of them when interlaced */
    size_t row_bytes;
    int passes;
    kiln_error *err;
    kiln_status st;
} png_job;

static void on_png_read_error(png_structp png, png_const_charp text)
{
    png_job *j = png_get_error_ptr(png);
    j->st = kiln_fail(j->err, KILN_E_INPUT, "cannot read '%s' as PNG: %s; is the file complete?",
                      j->path, text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png, (void)text; /* colour profiles and the like: nothing that changes pixels */
}

/* Grey, RGB or either with alpha, 8 or 16 bits a sample, 16-bit ones in this machine's
 * (little-endian) order. */
static void ask_for_plain_samples(png_job *j)
{
    png_set_expand(j->png);
    if (png_get_bit_depth(j->png, j->info) == 16) png_set_swap(j->png);
    j->passes = png_set_interlace_handling(j->png);
    png_read_update_info(j->png, j->info);
}

static kiln_status read_png_header(png_job *j)
{
    png_init_io(j->png, j->f);
    png_set_user_limits(j->png, KILN_PICTURE_AXIS_MAX, KILN_PICTURE_AXIS_MAX);
    png_set_chunk_cache_max(j->png, 64);
    png_set_chunk_malloc_max(j->png, (png_alloc_size_t)8 << 20);
    /* Texts, profiles and the like are passed over: no pixel depends on them, and libpng takes the
     * limit above for a mere warning before it allocates what their length says, up to 2 GiB for a
     * file of 60 bytes. Transparency (tRNS) is not among them. */
    png_set_keep_unknown_chunks(j->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_read_info(j->png, j->info);
    const uint64_t width = png_get_image_width(j->png, j->info),
                   height = png_get_image_height(j->png, j->info);
    KILN_TRY(kiln_picture_check(j->path, width, height, j->err));
    if (height * png_get_rowbytes(j->png, j->info) / DEFLATE_RATIO > j->file_size)
        return kiln_fail(j->err, KILN_E_INPUT,
                         "'%s' is too short for its %llu x %llu pixels; is the file complete?",
                         j->path, (unsigned long long)width, (unsigned long long)height);
    j->out->width = (uint32_t)width;
    j->out->height = (uint32_t)height;
    return KILN_OK;
}

static kiln_status alloc_png_pixels(png_job *j)
{
    kiln_picture *p = j->out;
    p->channels = png_get_channels(j->png, j->info);
    p->depth_bits = png_get_bit_depth(j->png, j->info);
    j->row_bytes = png_get_rowbytes(j->png, j->info);
    KILN_TRY(KILN_ALLOC(&j->rows, (j->passes > 1 ? (uint64_t)p->height : 1) * j->row_bytes,
                        "rows of a PNG", j->err));
    return KILN_ALLOC(&p->data, (uint64_t)p->width * p->height * p->channels, "pixels of a PNG",
                      j->err);
}

static void row_to_float(const kiln_picture *p, uint32_t y, const unsigned char *row)
{
    const size_t n = (size_t)p->width * p->channels;
    float *dst = p->data + y * n;
    if (p->depth_bits == 16) {
        for (size_t i = 0; i < n; i++) {
            uint16_t v;
            memcpy(&v, row + 2 * i, sizeof v);
            dst[i] = (float)v / 65535.f;
        }
    } else {
        for (size_t i = 0; i < n; i++) dst[i] = (float)row[i] / 255.f;
    }
}

static void read_png_rows(png_job *j)
{
    const uint32_t height = j->out->height;
    for (int pass = 0; pass < j->passes; pass++)
        for (uint32_t y = 0; y < height; y++) {
            unsigned char *row = j->rows + (j->passes > 1 ? y * j->row_bytes : 0);
            png_read_row(j->png, row, NULL);
            if (pass == j->passes - 1) row_to_float(j->out, y, row);
        }
    png_read_end(j->png, NULL); /* checks the sums of what is left, so that a cut file is found */
}

/* Of the chunk eXIf before the pixels; read beside libpng, which would allocate what the chunk's
 * length says. */
static uint8_t find_orientation(const png_job *j)
{
    enum { CHUNKS_MOST = 256, EXIF_MOST = 1 << 16 };
    unsigned char chunk[8], block[EXIF_MOST];
    uint64_t at = 8;
    for (int i = 0; i < CHUNKS_MOST && at + sizeof chunk <= j->file_size; i++) {
        if (fseeko(j->f, (off_t)at, SEEK_SET) != 0 ||
            fread(chunk, 1, sizeof chunk, j->f) != sizeof chunk)
            break;
        const uint32_t size = kiln_get_u32_be(chunk);
        if (memcmp(chunk + 4, "eXIf", 4) == 0)
            return kiln_exif_orientation(
                block, fread(block, 1, size < sizeof block ? size : sizeof block, j->f));
        if (memcmp(chunk + 4, "IDAT", 4) == 0) break;
        at += sizeof chunk + (uint64_t)size + 4; /* the sum */
    }
    return 1;
}

static kiln_status decode_png(png_job *j)
{
    if (setjmp(png_jmpbuf(j->png))) return j->st;
    KILN_TRY(read_png_header(j));
    if (j->size_only) return KILN_OK;
    ask_for_plain_samples(j);
    KILN_TRY(alloc_png_pixels(j));
    read_png_rows(j);
    return KILN_OK;
}

kiln_status kiln_png_read(const char *path, int size_only, kiln_picture *out, kiln_error *err)
{
    png_job j = {.path = path, .size_only = size_only, .out = out, .err = err, .st = KILN_E_INPUT};
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_picture_open(path, &j.f, &j.file_size, err));
    j.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &j, on_png_read_error, on_warning);
    j.info = j.png ? png_create_info_struct(j.png) : NULL;
    out->orientation = find_orientation(&j);
    rewind(j.f);
    st = j.info ? decode_png(&j)
                : kiln_fail(err, KILN_E_NOMEM, "out of memory: cannot read '%s'", path);
    free(j.rows);
    png_destroy_read_struct(&j.png, &j.info, NULL);
    fclose(j.f); /* opened for reading: nothing to lose */
    return st;
}
