/* splat_read -- .splat of antimatter15's viewer (splat.h). Nothing marks the format, so the suffix
 * decides, after every reader that goes by content. */
#include "stages/formats/reader.h"

#include "base/endian.h"
#include "base/file.h"
#include "base/memory.h"
#include "stages/files/packing.h"
#include "stages/formats/codes.h"
#include "stages/formats/ply/ply_header.h"
#include "stages/formats/splat/splat.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { ROW_BYTES = KILN_SPLAT_ROW_BYTES };
enum { PIECE_ROWS = 4096 }; /* 128 KiB, which stay in the L2 cache while they are taken apart */

typedef struct {
    char *path; /* as sentences name it */
    int fd;
    uint64_t n_rows;
    float logits[256], colours[256], units[256];
    unsigned char piece[PIECE_ROWS * ROW_BYTES];
} splat_source;

/* A PLY under this name is claimed too, to be refused: what other programs make of such a file is
 * noise. */
static int probe_splat(const unsigned char *head, size_t len, const char *path)
{
    char plain[KILN_PATH_MAX]; /* without the suffix of a packing */
    snprintf(plain, sizeof plain, "%.*s", (int)kiln_packing_stem(path), path);
    if (len == 0 || strcasecmp(kiln_path_suffix(plain), "splat") != 0) return 0;
    return kiln_ply_begins(head, len) ? KILN_PLY_SCORE + 1 : 20;
}

/* Whole rows, of which the first has a position and sizes that could be some, and no text. */
static bool may_be_splat(const unsigned char *head, size_t len, uint64_t file_bytes)
{
    float v[6];
    bool plain = true;
    if (len < KILN_SPLAT_ROW_BYTES || file_bytes % KILN_SPLAT_ROW_BYTES) return false;
    for (size_t i = 0; i < len; i++)
        plain &= head[i] < 0x7f && (head[i] >= ' ' || (head[i] && strchr("\t\r\n", head[i])));
    memcpy(v, head, sizeof v);
    for (int i = 0; i < 6; i++)
        if (!isfinite(v[i]) || fabsf(v[i]) > 1e6f || (i >= 3 && v[i] < 0)) return false;
    return !plain;
}

static void close_splat(kiln_source *source)
{
    splat_source *s = (splat_source *)source;
    if (!s) return;
    if (s->fd >= 0) close(s->fd);
    free(s->path);
    free(s);
}

static kiln_status check_splat_size(const char *name, uint64_t size, kiln_error *err)
{
    if (size == 0) return kiln_fail(err, KILN_E_INPUT, "'%s' is empty", name);
    if (size % ROW_BYTES)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' has %llu bytes, which is not a multiple of the %d of a .splat row; "
                         "is the download complete?",
                         name, (unsigned long long)size, ROW_BYTES);
    if (size / ROW_BYTES > UINT32_MAX - 1)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' has %llu rows; ids have 32 bits, so at most 4294967294 can be read",
                         name, (unsigned long long)(size / ROW_BYTES));
    return KILN_OK;
}

/* Content that is not what the name says. */
static kiln_status check_splat_content(const splat_source *s, const char *packing, uint64_t size,
                                       kiln_error *err)
{
    unsigned char head[4];
    if (packing && kiln_packing_stem(s->path) == strlen(s->path))
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is %s data with the name of a .splat file; add the suffix of the "
                         "packing to its name",
                         s->path, packing);
    KILN_TRY(kiln_file_read_at(s->fd, s->path, 0, head,
                               size < sizeof head ? (size_t)size : sizeof head, err));
    if (size >= sizeof head && kiln_ply_begins(head, sizeof head))
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' begins with \"ply\", so it is not a .splat file; rename it to .ply "
                         "to read it as PLY",
                         s->path);
    return KILN_OK;
}

static kiln_status open_splat(const kiln_source_at *at, kiln_source **out, kiln_source_info *info,
                              kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_file_info file;
    splat_source *s = NULL;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&s, 1, ".splat reader", err));
    s->fd = -1;
    KILN_GO(KILN_ALLOC(&s->path, strlen(at->name) + 1, "path", err));
    strcpy(s->path, at->name);
    KILN_GO(kiln_file_open(at->path, &s->fd, err));
    KILN_GO(kiln_file_stat(at->path, &file, err));
    KILN_GO(check_splat_content(s, at->packing, file.size, err));
    KILN_GO(check_splat_size(s->path, file.size, err));
    kiln_code_logits(s->logits);
    kiln_code_colours(s->colours);
    for (int b = 0; b < 256; b++)
        s->units[b] = ((float)b - KILN_SPLAT_QUAT_STEPS) / KILN_SPLAT_QUAT_STEPS;
    s->n_rows = file.size / ROW_BYTES;
    info->kind = KILN_SCENE_SPLATS;
    info->n_rows = s->n_rows;
    *out = (kiln_source *)s;
    return KILN_OK;
done:
    close_splat((kiln_source *)s);
    return st;
}

static void take_splat_codes(const unsigned char *rows, uint64_t n, const float table[256],
                             float *dst)
{
    for (uint64_t i = 0; i < n; i++) dst[i] = table[rows[i * ROW_BYTES]];
}

/* Rows [at, at + n) of the block; column by column, a tight loop each. */
static void take_splat_piece(const splat_source *s, uint64_t at, uint64_t n, kiln_rows *rows)
{
    const uint64_t stride = rows->n;
    const unsigned char *p = s->piece;
    for (uint64_t c = 0; c < 3; c++) {
        double *mean = rows->means + c * stride + at;
        float *scale = rows->log_scales + c * stride + at;
        for (uint64_t i = 0; i < n; i++) mean[i] = (double)kiln_get_f32(p + i * ROW_BYTES + c * 4);
        for (uint64_t i = 0; i < n; i++)
            scale[i] = kiln_get_f32(p + i * ROW_BYTES + KILN_SPLAT_SCALE_AT + c * 4);
        kiln_log_scales(n, scale, scale);
        take_splat_codes(p + KILN_SPLAT_COLOUR_AT + c, n, s->colours, rows->sh0 + c * stride + at);
    }
    for (uint64_t c = 0; c < 4; c++)
        take_splat_codes(p + KILN_SPLAT_QUAT_AT + c, n, s->units, rows->quats + c * stride + at);
    take_splat_codes(p + KILN_SPLAT_ALPHA_AT, n, s->logits, rows->opacity_logits + at);
}

static kiln_status read_splat_rows(kiln_source *source, uint64_t first, uint64_t n, uint64_t offset,
                                   kiln_rows *rows, uint64_t *next_offset, kiln_error *err)
{
    splat_source *s = (splat_source *)source;
    (void)offset;
    rows->n = n;
    for (uint64_t at = 0; at < n; at += PIECE_ROWS) {
        const uint64_t k = n - at < PIECE_ROWS ? n - at : PIECE_ROWS;
        KILN_TRY(kiln_file_read_at(s->fd, s->path, (first + at) * ROW_BYTES, s->piece,
                                   k * ROW_BYTES, err));
        take_splat_piece(s, at, k, rows);
    }
    *next_offset = (first + n) * ROW_BYTES;
    return KILN_OK;
}

_Static_assert(sizeof(splat_source) <= KILN_READER_RAM,
               "so little that kiln_reader_splat need not say it");

const kiln_reader kiln_reader_splat = {
    .name = "splat",
    .suffixes = "splat",
    .summary = ".splat of antimatter15's viewer: Gaussians without SH, 32 bytes each",
    .packed = KILN_PACKED_WHOLE,
    .probe = probe_splat,
    .may_be = may_be_splat,
    .open = open_splat,
    .read = read_splat_rows,
    .close = close_splat,
};
