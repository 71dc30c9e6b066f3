/* ksplat_read -- the rows of a .ksplat file (ksplat.h). */
#include "stages/formats/reader.h"

#include "base/endian.h"
#include "base/file.h"
#include "base/harmonics.h"
#include "base/memory.h"
#include "kernels/math/half_math.h"
#include "stages/files/packing.h"
#include "stages/formats/codes.h"
#include "stages/formats/ksplat/ksplat_buckets.h"
#include "stages/formats/ksplat/ksplat_header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { PIECE_ROWS = 1024, SH_MAX = 45, ROW_BYTES_MAX = 44 + 4 * SH_MAX /* of level 0 */ };

typedef struct {
    char *path; /* as sentences name it */
    int fd;
    kiln_ksplat_header header;
    kiln_ksplat_buckets buckets; /* levels 1 and 2 */
    /* components of the rows, which sections of a lower degree fill with zeros */
    uint32_t n_sh;
    float logits[256], colours[256], sh_values[256];
    double centres[3][PIECE_ROWS];
    uint16_t words[PIECE_ROWS];
    unsigned char piece[PIECE_ROWS * ROW_BYTES_MAX];
} ksplat_source;

static bool has_suffix(const char *path)
{
    char plain[KILN_PATH_MAX]; /* without the suffix of a packing */
    snprintf(plain, sizeof plain, "%.*s", (int)kiln_packing_stem(path), path);
    return strcasecmp(kiln_path_suffix(plain), "ksplat") == 0;
}

/* A version and a level are little of a mark, so the suffix does too, to say what is wrong with the
 * content. */
static int probe_ksplat(const unsigned char *head, size_t len, const char *path)
{
    if (len == 0) return 0;
    return has_suffix(path) ? 60 : kiln_ksplat_begins(head, len) ? 50 : 0;
}

static void close_ksplat(kiln_source *source)
{
    ksplat_source *s = (ksplat_source *)source;
    if (!s) return;
    kiln_ksplat_buckets_release(&s->buckets);
    kiln_ksplat_header_release(&s->header);
    if (s->fd >= 0) close(s->fd);
    free(s->path);
    free(s);
}

static kiln_status open_ksplat(const kiln_source_at *at, kiln_source **out, kiln_source_info *info,
                               kiln_error *err)
{
    kiln_status st = KILN_OK;
    ksplat_source *s = NULL;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&s, 1, ".ksplat reader", err));
    s->fd = -1;
    KILN_GO(KILN_ALLOC(&s->path, strlen(at->name) + 1, "path", err));
    strcpy(s->path, at->name);
    KILN_GO(kiln_file_open(at->path, &s->fd, err));
    KILN_GO(kiln_ksplat_header_read(s->fd, at->path, s->path, &s->header, err));
    if (s->header.level)
        KILN_GO(kiln_ksplat_buckets_open(s->fd, s->path, &s->header, &s->buckets, err));
    kiln_code_logits(s->logits);
    kiln_code_colours(s->colours);
    for (int b = 0; b < 256; b++)
        s->sh_values[b] =
            (float)(s->header.sh_min + b / 255.0 * (s->header.sh_max - s->header.sh_min));
    s->n_sh = kiln_sh_components(s->header.sh_degree);
    info->kind = KILN_SCENE_SPLATS;
    info->n_rows = s->header.n_rows;
    info->sh_degree = s->header.sh_degree;
    info->file_bytes = s->header.used_bytes;
    *out = (kiln_source *)s;
    return KILN_OK;
done:
    close_ksplat((kiln_source *)s);
    return st;
}

/* ---- columns: of n rows, the value at `at` --------------------------------------------------- */

static void take_floats(const unsigned char *at, uint64_t stride, uint64_t n, float *out)
{
    for (uint64_t i = 0; i < n; i++) out[i] = kiln_get_f32(at + i * stride);
}

static void take_words(const unsigned char *at, uint64_t stride, uint64_t n, uint16_t *out)
{
    for (uint64_t i = 0; i < n; i++) out[i] = kiln_get_u16(at + i * stride);
}

static void take_ksplat_codes(const unsigned char *at, uint64_t stride, uint64_t n,
                              const float table[256], float *out)
{
    for (uint64_t i = 0; i < n; i++) out[i] = table[at[i * stride]];
}

/* As IEEE has it: an exponent of ones is infinity or NaN. */
static float half_value(uint16_t h)
{
    const float finite = kiln_half_value(h);
    return (h & 0x7c00) == 0x7c00 ? kiln_float_of(kiln_bits_of(finite) + 0x38000000u) : finite;
}

static void take_halves(ksplat_source *s, const unsigned char *at, uint64_t stride, uint64_t n,
                        float *out)
{
    take_words(at, stride, n, s->words);
#pragma omp simd
    for (uint64_t i = 0; i < n; i++) out[i] = half_value(s->words[i]);
}

/* ---- pieces: rows of one section ------------------------------------------------------------- */

typedef struct {
    const kiln_ksplat_section *section;
    uint64_t n;  /* rows of s->piece, at most PIECE_ROWS */
    uint64_t at; /* row of the block that the first one is */
} piece;

static void take_real(ksplat_source *s, const piece *p, uint64_t offset, float *out)
{
    const unsigned char *at = s->piece + offset;
    if (s->header.level == 0)
        take_floats(at, p->section->row_bytes, p->n, out);
    else
        take_halves(s, at, p->section->row_bytes, p->n, out);
}

static void take_means(ksplat_source *s, const piece *p, kiln_rows *rows)
{
    const uint64_t stride = p->section->row_bytes;
    const double range = (double)p->section->range, step = p->section->block_size / 2 / range;
    for (uint64_t c = 0; c < 3; c++) {
        double *mean = rows->means + c * rows->n + p->at;
        const double *centre = s->centres[c];
        if (s->header.level == 0) {
            for (uint64_t i = 0; i < p->n; i++)
                mean[i] = (double)kiln_get_f32(s->piece + i * stride + c * 4);
            continue;
        }
        take_words(s->piece + c * 2, stride, p->n, s->words);
#pragma omp simd
        for (uint64_t i = 0; i < p->n; i++)
            mean[i] = ((double)(int32_t)s->words[i] - range) * step + centre[i];
    }
}

static void take_sh(ksplat_source *s, const piece *p, kiln_rows *rows)
{
    const uint32_t n_sh = kiln_sh_components(p->section->sh_degree);
    const kiln_ksplat_record f = kiln_ksplat_record_of(s->header.level);
    for (uint32_t v = 0; v < s->n_sh; v++) {
        float *out = rows->shN + kiln_ksplat_sh_plane(v) * rows->n + p->at;
        if (v >= n_sh)
            memset(out, 0, p->n * sizeof *out);
        else if (s->header.level == 2)
            take_ksplat_codes(s->piece + f.sh + v, p->section->row_bytes, p->n, s->sh_values, out);
        else
            take_real(s, p, f.sh + v * f.coefficient, out);
    }
}

static void take_ksplat_piece(ksplat_source *s, const piece *p, kiln_rows *rows)
{
    const kiln_ksplat_record f = kiln_ksplat_record_of(s->header.level);
    const uint64_t stride = p->section->row_bytes;
    take_means(s, p, rows);
    for (uint64_t c = 0; c < 3; c++) {
        float *scale = rows->log_scales + c * rows->n + p->at;
        take_real(s, p, f.scales + c * f.real, scale);
        kiln_log_scales(p->n, scale, scale);
        take_ksplat_codes(s->piece + f.colours + c, stride, p->n, s->colours,
                          rows->sh0 + c * rows->n + p->at);
    }
    for (uint64_t c = 0; c < 4; c++)
        take_real(s, p, f.quats + c * f.real, rows->quats + c * rows->n + p->at);
    take_ksplat_codes(s->piece + f.alpha, stride, p->n, s->logits, rows->opacity_logits + p->at);
    take_sh(s, p, rows);
}

static kiln_status read_ksplat_rows(kiln_source *source, uint64_t first, uint64_t n,
                                    uint64_t offset, kiln_rows *rows, uint64_t *next_offset,
                                    kiln_error *err)
{
    ksplat_source *s = (ksplat_source *)source;
    (void)offset;
    rows->n = n;
    for (uint64_t at = 0, k; at < n; at += k) {
        const kiln_ksplat_section *section = kiln_ksplat_section_of(&s->header, first + at);
        const uint64_t row = first + at - section->first_row, left = section->n_rows - row;
        k = n - at < PIECE_ROWS ? n - at : PIECE_ROWS;
        k = k < left ? k : left;
        const uint64_t place = section->rows_at + row * section->row_bytes;
        KILN_TRY(kiln_file_read_at(s->fd, s->path, place, s->piece, k * section->row_bytes, err));
        if (s->header.level)
            KILN_TRY(kiln_ksplat_centres(
                &s->buckets, section, row, k,
                (double *const[3]){s->centres[0], s->centres[1], s->centres[2]}, err));
        take_ksplat_piece(s, &(piece){section, k, at}, rows);
        *next_offset = place + k * section->row_bytes;
    }
    return KILN_OK;
}

static kiln_status finish_reading_ksplat(kiln_source *source, kiln_source_info *info,
                                         kiln_error *err)
{
    const ksplat_source *s = (const ksplat_source *)source;
    (void)err;
    if (s->header.file_bytes > s->header.used_bytes)
        snprintf(info->notes, sizeof info->notes, "bytes after the last section are ignored");
    return KILN_OK;
}

static uint64_t ksplat_reader_ram(const kiln_source_info *info, kiln_read_pass pass)
{
    (void)info, (void)pass;
    return sizeof(ksplat_source) + KILN_KSPLAT_SECTIONS_MAX * sizeof(kiln_ksplat_section) +
           KILN_KSPLAT_INDEX_MAX * sizeof(uint64_t);
}

const kiln_reader kiln_reader_ksplat = {
    .name = "ksplat",
    .suffixes = "ksplat",
    .summary =
        ".ksplat of mkkellogg's viewer: Gaussians, compression level 0 to 2, SH degree 0 to 3",
    .packed = KILN_PACKED_WHOLE,
    .ram = ksplat_reader_ram,
    .probe = probe_ksplat,
    .open = open_ksplat,
    .read = read_ksplat_rows,
    .finish = finish_reading_ksplat,
    .close = close_ksplat,
};
