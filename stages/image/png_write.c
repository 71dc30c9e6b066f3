/* png_write -- floats to 8- or 16-bit PNG, on many threads, with bytes that do not depend on how
 * many.
 *
 * The rows are cut into blocks whose borders depend on the picture's size alone. Each is filtered
 * and deflated by itself and ends on a byte (SYNC_FLUSH), so that blocks one behind the other are
 * one deflate stream. The thread that made a block makes its chunk, too, with its sum; libpng
 * writes all other chunks. The stream's sum comes of the blocks' sums.
 *
 *   IDAT | 78 01 |   IDAT | block 0 |   ...   IDAT | block n - 1, ends the stream |   IDAT |
 *       adler32 of all filtered bytes |
 *   tEXt | seal: hash of all bytes before (product_mark.h) |
 *
 * Paeth and ISA-L's level 1: what a Gaussian leaves behind the filter is small noise, in which a
 * search finds matches that cost more than the bytes they stand for. 1920 x 1080 of the 1M
 * benchmark scene, deflate alone on one core of an AMD EPYC: zlib 1.2.13 with level 6 and the best
 * filter 1.60 MB in 434 ms, with codes alone (Z_HUFFMAN_ONLY), its least, 1.56 MB in 40 ms; ISA-L
 * 2.30 1.55 MB in 12 ms, and it takes runs for what they are. Other processors may find other
 * matches: the pixels are the same, the file is not. png_deflate.c says why a process writes the
 * bytes that another writes.
 *
 * See png_read.c for how libpng's longjmp is confined.
 */
#include "stages/image/image_internal.h"

#include "base/memory.h"
#include "base/minmax.h"
#include "base/option.h"
#include "kernels/ops.h"
#include "stages/products/product_mark.h"

#include <errno.h>
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <png.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    /* as many whole rows, at least one: 99 blocks at 1080p, 0.5 % larger than one */
    BLOCK_BYTES = 1 << 16,
    WAVE_BYTES = 1 << 24, /* blocks that are in memory at once */
    CHUNK_HEAD = 8,       /* length, type */
    CHUNK_SUM = 4,
    NO_BYTES = 1, /* their adler32 */
    FILE_BUFFER = 1 << 20,
};

/* ---- a block --------------------------------------------------------------------------------- */
typedef struct {
    unsigned char *at; /* its chunk, in wave.packed */
    size_t bytes;
    uLong sum;    /* adler32 ... */
    size_t plain; /* ... of so many filtered bytes */
} block;

typedef struct {
    const kiln_picture_job *job;
    size_t row_bytes; /* filtered */
    uint32_t block_rows, n_blocks;
    uint32_t most;   /* blocks of a wave */
    size_t capacity; /* for the chunk of a block */
    unsigned char *packed;
    block *blocks; /* [most] */
} wave;

/* What a thread needs. */
typedef struct {
    bool ready;
    void *deflater; /* 400 KiB */
    unsigned char *filtered;
    void *work; /* of the operation that filters; NULL, as is `filtered`, if the rows are given */
    size_t work_bytes;
} packer;

static uint32_t rows_of_block(const wave *w, uint32_t index)
{
    const uint32_t left = w->job->height - index * w->block_rows;
    return left < w->block_rows ? left : w->block_rows;
}

kiln_png_rows_args kiln_picture_png_rows(const kiln_picture_job *job)
{
    kiln_png_rows_args a = {.width = job->width,
                            .height = job->height,
                            .step = job->step,
                            .channels = job->channels,
                            .bits = job->format == KILN_PNG16 ? 16 : 8,
                            .straight = job->over && job->channels == 4,
                            .n = job->height,
                            .pixels = job->data};
    if (a.straight) memcpy(a.over, job->over, sizeof a.over);
    return a;
}

/* Blocks are filtered beside each other, so each by one thread. */
static const kiln_exec one_thread = {.device = -1, .threads = 1};

static void packer_init(packer *p, const wave *w)
{
    *p = (packer){0};
    p->deflater = malloc(kiln_png_deflate_state_bytes());
    p->ready = p->deflater;
    if (w->job->rows) return;
    const kiln_png_rows_args a = kiln_picture_png_rows(w->job);
    p->ready &= kiln_ops_cpu()->png_rows(&one_thread, &a, NULL, &p->work_bytes, NULL) == KILN_OK;
    p->work = malloc(p->work_bytes);
    p->filtered = malloc(w->block_rows * w->row_bytes);
    p->ready &= p->work && p->filtered;
}

static void packer_release(packer *p)
{
    free(p->deflater);
    free(p->filtered);
    free(p->work);
}

/* Returns the filtered rows of a block; NULL: they cannot be made. */
static const unsigned char *filter_png_block(packer *p, const wave *w, uint32_t index)
{
    const uint32_t first = index * w->block_rows;
    if (w->job->rows) return w->job->rows + first * w->row_bytes;
    kiln_png_rows_args a = kiln_picture_png_rows(w->job);
    size_t have = p->work_bytes;
    a.first = first;
    a.n = rows_of_block(w, index);
    a.rows = p->filtered;
    return kiln_ops_cpu()->png_rows(&one_thread, &a, p->work, &have, NULL) == KILN_OK ? p->filtered
                                                                                      : NULL;
}

static bool pack_png_block(packer *p, const wave *w, uint32_t index, block *b)
{
    const unsigned char *const rows = filter_png_block(p, w, index);
    const bool last = index + 1 == w->n_blocks;
    unsigned char *const data = b->at + CHUNK_HEAD;
    size_t bytes;
    if (!rows) return false;
    b->plain = rows_of_block(w, index) * w->row_bytes;
    b->sum = isal_adler32(NO_BYTES, rows, b->plain);
    const kiln_png_block given = {.rows = rows,
                                  .plain = b->plain,
                                  .last = last,
                                  .out = data,
                                  .capacity = w->capacity - CHUNK_HEAD - CHUNK_SUM};
    if (!kiln_png_deflate(p->deflater, &given, &bytes)) return false;
    png_save_uint_32(b->at, (png_uint_32)bytes);
    memcpy(b->at + 4, "IDAT", 4);
    png_save_uint_32(data + bytes, crc32_gzip_refl(0, b->at + 4, 4 + bytes));
    b->bytes = CHUNK_HEAD + bytes + CHUNK_SUM;
    return true;
}

/* ---- many ------------------------------------------------------------------------------------ */

/* Sizes alone. A row has at most 8 bytes for each of 2^20 pixels. */
static void divide_into_blocks(const kiln_picture_job *job, wave *w)
{
    const kiln_png_rows_args rows = kiln_picture_png_rows(job);
    *w = (wave){.job = job, .row_bytes = (size_t)kiln_png_row_bytes(&rows)};
    w->block_rows = (uint32_t)kiln_min_u64(
        w->row_bytes < BLOCK_BYTES ? BLOCK_BYTES / w->row_bytes : 1, job->height);
    w->n_blocks = (job->height + w->block_rows - 1) / w->block_rows;
    const size_t plain = w->block_rows * w->row_bytes;
    w->capacity = CHUNK_HEAD + plain + plain / 64 + 1024 +
                  /* what does not compress is stored; pages that are not filled take no memory */
                  CHUNK_SUM;
    w->most = (uint32_t)kiln_min_u64(plain < WAVE_BYTES ? WAVE_BYTES / plain : 1, w->n_blocks);
}

uint64_t kiln_png_write_bytes(const kiln_picture_job *job)
{
    wave w;
    divide_into_blocks(job, &w);
    return w.most * (w.capacity + sizeof *w.blocks);
}

/* Blocks `first` and those behind it, as many as a wave has. */
static kiln_status pack_wave(wave *w, uint32_t first, uint32_t n, kiln_error *err)
{
    const unsigned wanted = w->job->threads ? w->job->threads : 1,
                   threads = wanted < n ? wanted : n;
    bool failed = false;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        packer p;
        packer_init(&p, w);
#pragma omp for schedule(dynamic, 1)
        for (uint32_t i = 0; i < n; i++) {
            w->blocks[i].at = w->packed + i * w->capacity;
            if (p.ready && pack_png_block(&p, w, first + i, &w->blocks[i])) continue;
#pragma omp atomic write
            failed = true;
        }
        packer_release(&p);
    }
    return failed
               ? kiln_fail(err, KILN_E_NOMEM, "out of memory: cannot compress '%s'", w->job->path)
               : KILN_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */
typedef struct {
    const kiln_picture_job *job;
    FILE *f;
    kiln_hasher *written; /* all bytes so far, for the seal; NULL: it gets none */
    png_structp png;
    png_infop info;
    uLong sum; /* of all blocks written */
    kiln_error *err;
    kiln_status st;
} png_out;

static void on_png_write_error(png_structp png, png_const_charp text)
{
    png_out *o = png_get_error_ptr(png);
    if (ferror(o->f)) /* libpng comes here straight from fwrite */
        o->st = kiln_file_write_failed(o->job->path, errno, o->err);
    else
        o->st = kiln_fail(o->err, KILN_E_IO, "cannot write '%s': %s", o->job->path, text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text) { (void)png, (void)text; }

static bool put_bytes(png_out *o, const void *bytes, size_t n)
{
    kiln_hasher_update(o->written, bytes, n);
    return fwrite(bytes, 1, n, o->f) == n;
}

static void on_bytes(png_structp png, png_bytep bytes, size_t n)
{
    if (!put_bytes(png_get_io_ptr(png), bytes, n)) png_error(png, "write error");
}

static void on_flush(png_structp png) { (void)png; }

static bool is_marked(const kiln_picture_job *job)
{
    return job->n_text > 0 && !job->text[0].value;
}

static void write_text(png_out *o)
{
    char software[64];
    (void)snprintf(software, sizeof software, KILN_PRODUCT_GENERATOR "%s", kiln_version);
    for (uint32_t i = 0; i < o->job->n_text; i++) {
        png_text t = {.compression = PNG_TEXT_COMPRESSION_NONE};
        /* libpng's struct lacks const; it only reads */
        t.key = (char *)(uintptr_t)o->job->text[i].key;
        t.text = o->job->text[i].value ? (char *)(uintptr_t)o->job->text[i].value : software;
        t.text_length = strlen(t.text);
        png_set_text(o->png, o->info, &t, 1);
    }
}

static kiln_status write_png_head(png_out *o)
{
    /* RFC 1950: deflate, 32 KiB of window, the fastest level */
    static const unsigned char zlib_head[2] = {0x78, 0x01};
    const kiln_picture_job *job = o->job;
    const int colour = job->channels == 1   ? PNG_COLOR_TYPE_GRAY
                       : job->channels == 3 ? PNG_COLOR_TYPE_RGB
                                            : PNG_COLOR_TYPE_RGB_ALPHA;
    if (setjmp(png_jmpbuf(o->png))) return o->st;
    png_set_write_fn(o->png, o, on_bytes, on_flush);
    png_set_user_limits(o->png, KILN_PICTURE_AXIS_MAX, KILN_PICTURE_AXIS_MAX);
    png_set_IHDR(o->png, o->info, job->width, job->height, job->format == KILN_PNG16 ? 16 : 8,
                 colour, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    write_text(o);
    png_write_info(o->png, o->info);
    png_write_chunk(o->png, (png_const_bytep) "IDAT", zlib_head, sizeof zlib_head);
    return KILN_OK;
}

static kiln_status write_wave(png_out *o, const wave *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const block *b = &w->blocks[i];
        o->sum = adler32_combine(o->sum, b->sum, (z_off_t)b->plain);
        if (!put_bytes(o, b->at, b->bytes))
            return kiln_file_write_failed(o->job->path, errno, o->err);
    }
    return KILN_OK;
}

static kiln_status write_sum(png_out *o)
{
    unsigned char sum[4];
    if (setjmp(png_jmpbuf(o->png))) return o->st;
    png_save_uint_32(sum, (png_uint_32)o->sum);
    png_write_chunk(o->png, (png_const_bytep) "IDAT", sum, sizeof sum);
    return KILN_OK;
}

/* Ends the hash. Without memory for it there is no seal: the file then goes by its mark alone. */
static kiln_status write_seal(png_out *o)
{
    unsigned char seal[KILN_PNG_SEAL_BYTES];
    if (!o->written) return KILN_OK;
    kiln_product_seal_png(kiln_hasher_end(o->written), seal);
    o->written = NULL;
    if (fwrite(seal, 1, sizeof seal, o->f) != sizeof seal)
        return kiln_file_write_failed(o->job->path, errno, o->err);
    return KILN_OK;
}

static kiln_status write_end(png_out *o)
{
    KILN_TRY(write_sum(o));
    KILN_TRY(write_seal(o));
    if (setjmp(png_jmpbuf(o->png))) return o->st;
    png_write_chunk(o->png, (png_const_bytep) "IEND", NULL, 0);
    return KILN_OK;
}

static kiln_status encode_png(png_out *o)
{
    kiln_status st;
    wave w;
    divide_into_blocks(o->job, &w);
    KILN_GO(KILN_ALLOC(&w.blocks, w.most, "blocks of a PNG", o->err));
    KILN_GO(KILN_ALLOC_UNSET(&w.packed, w.most * w.capacity, "blocks of a PNG", o->err));
    KILN_GO(write_png_head(o));
    for (uint32_t first = 0; first < w.n_blocks; first += w.most) {
        const uint32_t n = (uint32_t)kiln_min_u64(w.n_blocks - first, w.most);
        KILN_GO(pack_wave(&w, first, n, o->err));
        KILN_GO(write_wave(o, &w, n));
    }
    KILN_GO(write_end(o));
done:
    free(w.packed);
    free(w.blocks);
    return st;
}

kiln_status kiln_png_write(const kiln_picture_job *job, FILE *f, kiln_error *err)
{
    png_out o = {.job = job,
                 .f = f,
                 .written = is_marked(job) ? kiln_hasher_new() : NULL,
                 .sum = NO_BYTES,
                 .err = err,
                 .st = KILN_E_IO};
    o.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &o, on_png_write_error, on_warning);
    o.info = o.png ? png_create_info_struct(o.png) : NULL;
    (void)setvbuf(f, NULL, _IOFBF, FILE_BUFFER); /* without it: only slower */
    const kiln_status st =
        o.info ? encode_png(&o)
               : kiln_fail(err, KILN_E_NOMEM, "out of memory: cannot write '%s'", job->path);
    png_destroy_write_struct(&o.png, &o.info);
    (void)kiln_hasher_end(o.written); /* of a file that failed */
    return st;
}
