/* ply -- the rows of a PLY file.
 *
 * A piece of the file (4 MiB of rows) is read, or for ascii parsed, into binary rows of this machine's byte order, then
 * taken apart into planes in tiles of rows that stay in the L2 cache: one tight loop per column and tile. Gathering 248-byte
 * rows column by column over a whole block takes three times as long (DESIGN.md).
 */
#include "stages/import/reader.h"

#include "base/file.h"
#include "base/memory.h"
#include "stages/import/ply/mip_filter.h"
#include "stages/import/ply/ply_columns.h"
#include "stages/import/ply/ply_header.h"
#include "stages/import/text_lines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "planes are little-endian and written as they lie in memory");

enum { PIECE_BYTES = 4 << 20, TILE_BYTES = 128 << 10 };
#define FLAT_LOG_SCALE (-20.0f) /* the third axis of a 2DGS surfel: formats/ply.md, "2DGS" */

typedef struct {
    char *path; /* as sentences name it */
    int fd;
    kiln_ply_header header;
    kiln_ply_use *uses;
    kiln_source_info info;
    unsigned char *piece; /* [piece_rows][row_bytes] */
    uint64_t piece_rows;
    bool flat;         /* no third scale: 2DGS */
    float *filter;     /* [KILN_BLOCK_ROWS] filter_3D, when the file has it */
    kiln_lines lines;  /* ascii */
    uint64_t next_row; /* ascii: the row at which lines stands */
} ply_source;

static int probe(const unsigned char *head, size_t len, const char *path)
{
    (void)path;
    if (len < 4 || memcmp(head, "ply", 3) != 0) return len == 3 && memcmp(head, "ply", 3) == 0 ? 100 : 0;
    return head[3] == '\n' || head[3] == '\r' || head[3] == ' ' ? 100 : 0;
}

static void close_ply(kiln_source *source)
{
    ply_source *s = (ply_source *)source;
    if (!s) return;
    kiln_lines_release(&s->lines);
    free(s->filter);
    free(s->piece);
    free(s->uses);
    kiln_ply_header_release(&s->header);
    if (s->fd >= 0) close(s->fd);
    free(s->path);
    free(s);
}

static kiln_status open_ply(const kiln_source_at *at, kiln_source **out, kiln_source_info *info, kiln_error *err)
{
    kiln_status st = KILN_OK;
    ply_source *s = NULL;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&s, 1, "PLY reader", err));
    s->fd = -1;
    KILN_GO(KILN_ALLOC(&s->path, strlen(at->name) + 1, "path", err));
    strcpy(s->path, at->name);
    KILN_GO(kiln_file_open(at->path, &s->fd, err));
    KILN_GO(kiln_ply_header_read(s->fd, s->path, &s->header, err));
    KILN_GO(KILN_ALLOC(&s->uses, s->header.n_columns, "PLY columns", err));
    KILN_GO(kiln_ply_plan(&s->header, s->path, s->uses, &s->info, err));
    if (s->info.n_rows > UINT32_MAX - 1) {
        st = kiln_fail(err, KILN_E_INPUT, "'%s' has %llu rows; ids have 32 bits, so at most 4294967294 can be read", s->path,
                       (unsigned long long)s->info.n_rows);
        goto done;
    }
    s->flat = s->info.kind == KILN_SCENE_SPLATS;
    for (uint32_t i = 0; i < s->header.n_columns; i++)
        if (s->uses[i].role == KILN_ROLE_LOG_SCALE && s->uses[i].component == 2) s->flat = false;
    s->piece_rows = PIECE_BYTES / s->header.row_bytes + 1;
    if (s->piece_rows > s->info.n_rows) s->piece_rows = s->info.n_rows;
    KILN_GO(kiln_alloc((void **)&s->piece, s->piece_rows, s->header.row_bytes, "PLY rows", err));
    if (s->info.folded) KILN_GO(KILN_ALLOC(&s->filter, KILN_BLOCK_ROWS, "filter_3D", err));
    if (s->header.format == KILN_PLY_ASCII) {
        KILN_GO(kiln_lines_init(&s->lines, s->fd, s->path, err));
        s->next_row = UINT64_MAX;
    }
    *info = s->info;
    *out = (kiln_source *)s;
    return KILN_OK;
done:
    close_ply((kiln_source *)s);
    return st;
}

/* ---- ascii rows to binary rows ------------------------------------------------------------------------------------------- */

static kiln_number parse_integer(const kiln_lines *l, const char *w, size_t n, kiln_type type, unsigned char *dst)
{
    static const double lo[] = {0, -128, 0, -32768, 0, -2147483648.0}, hi[] = {255, 127, 65535, 32767, 4294967295.0, 2147483647.0};
    double v;
    kiln_number r = kiln_parse_f64(l, w, n, &v);
    if (r != KILN_NUMBER_OK) return r;
    if (!(v >= lo[type] && v <= hi[type])) return KILN_NUMBER_TOO_LARGE;
    if (v != floor(v)) return KILN_NUMBER_NOT_ONE;
    int64_t i = (int64_t)v;
    memcpy(dst, &i, kiln_type_size(type)); /* little-endian: the low bytes */
    return KILN_NUMBER_OK;
}

static kiln_number parse_value(const kiln_lines *l, const char *w, size_t n, kiln_type type, unsigned char *dst)
{
    kiln_number r;
    if (type == KILN_TYPE_F32) {
        float v = 0;
        r = kiln_parse_f32(l, w, n, &v);
        memcpy(dst, &v, sizeof v);
    } else if (type == KILN_TYPE_F64) {
        double v = 0;
        r = kiln_parse_f64(l, w, n, &v);
        memcpy(dst, &v, sizeof v);
    } else {
        r = parse_integer(l, w, n, type, dst);
    }
    return r;
}

static kiln_status parse_row(ply_source *s, uint64_t row, const char *line, size_t size, unsigned char *dst, kiln_error *err)
{
    kiln_words words = {line, line + size};
    const char *w;
    size_t n;
    for (uint32_t i = 0; i < s->header.n_columns; i++) {
        const kiln_ply_property *p = &s->header.columns[i];
        if (!kiln_token_next(&words, &w, &n))
            return kiln_fail(err, KILN_E_INPUT, "'%s', row %llu has %u values instead of %u", s->path, (unsigned long long)row, i,
                             s->header.n_columns);
        kiln_number r = parse_value(&s->lines, w, n, p->type, dst + p->offset);
        if (r != KILN_NUMBER_OK)
            return kiln_fail(err, KILN_E_INPUT, "'%s', row %llu, property %s: the value %s", s->path, (unsigned long long)row,
                             p->name, r == KILN_NUMBER_NOT_ONE ? "is not a number" : "does not fit its type");
    }
    if (kiln_token_next(&words, &w, &n))
        return kiln_fail(err, KILN_E_INPUT, "'%s', row %llu has more than %u values", s->path, (unsigned long long)row,
                         s->header.n_columns);
    return KILN_OK;
}

static bool is_blank_line(const char *line, size_t size)
{
    kiln_words words = {line, line + size};
    const char *w;
    size_t n;
    return !kiln_token_next(&words, &w, &n);
}

/* The next line with something in it; NULL at the end. */
static kiln_status next_line(ply_source *s, const char **line, size_t *size, kiln_error *err)
{
    do KILN_TRY(kiln_lines_next(&s->lines, line, size, err));
    while (*line && is_blank_line(*line, *size));
    return KILN_OK;
}

static kiln_status seek_ascii(ply_source *s, uint64_t first, uint64_t offset, kiln_error *err)
{
    const char *line;
    size_t size;
    if (offset != UINT64_MAX) {
        kiln_lines_seek(&s->lines, offset);
    } else if (first == 0) {
        kiln_lines_seek(&s->lines, s->header.data_offset);
        for (uint64_t i = 0; i < s->header.lines_before; i++) {
            KILN_TRY(next_line(s, &line, &size, err));
            if (!line) return kiln_fail(err, KILN_E_INPUT, "'%s' ends before its first vertex row", s->path);
        }
    } else if (s->next_row != first) {
        return kiln_fail(err, KILN_E_BUG, "'%s': ascii rows asked for out of order", s->path);
    }
    s->next_row = first;
    return KILN_OK;
}

static kiln_status read_ascii(ply_source *s, uint64_t row, uint64_t n, kiln_error *err)
{
    for (uint64_t i = 0; i < n; i++) {
        const char *line;
        size_t size;
        KILN_TRY(next_line(s, &line, &size, err));
        if (!line)
            return kiln_fail(err, KILN_E_INPUT, "'%s' ends before row %llu of %llu; is the download complete?", s->path,
                             (unsigned long long)(row + i), (unsigned long long)s->info.n_rows);
        KILN_TRY(parse_row(s, row + i, line, size, s->piece + i * s->header.row_bytes, err));
    }
    s->next_row = row + n;
    return KILN_OK;
}

/* ---- binary rows to planes ----------------------------------------------------------------------------------------------- */

static void swap_column(unsigned char *rows, uint64_t n, size_t stride, size_t size)
{
    for (uint64_t i = 0; i < n; i++, rows += stride)
        for (size_t a = 0, b = size - 1; a < b; a++, b--) {
            unsigned char t = rows[a];
            rows[a] = rows[b];
            rows[b] = t;
        }
}

#define GATHER(ctype, dtype)                     \
    for (uint64_t i = 0; i < n; i++) {           \
        ctype v;                                 \
        memcpy(&v, rows + i * stride, sizeof v); \
        dst[i] = (dtype)v;                       \
    }                                            \
    break
#define GATHER_SWITCH(type, dtype) \
    switch (type) {                \
    case KILN_TYPE_U8:             \
        GATHER(uint8_t, dtype);    \
    case KILN_TYPE_I8:             \
        GATHER(int8_t, dtype);     \
    case KILN_TYPE_U16:            \
        GATHER(uint16_t, dtype);   \
    case KILN_TYPE_I16:            \
        GATHER(int16_t, dtype);    \
    case KILN_TYPE_U32:            \
        GATHER(uint32_t, dtype);   \
    case KILN_TYPE_I32:            \
        GATHER(int32_t, dtype);    \
    case KILN_TYPE_F32:            \
        GATHER(float, dtype);      \
    case KILN_TYPE_F64:            \
        GATHER(double, dtype);     \
    }

static void gather_f32(const unsigned char *rows, size_t stride, kiln_type type, uint64_t n, float *dst)
{
    GATHER_SWITCH(type, float)
}
static void gather_f64(const unsigned char *rows, size_t stride, kiln_type type, uint64_t n, double *dst)
{
    GATHER_SWITCH(type, double)
}

static void gather_raw(const unsigned char *rows, size_t stride, size_t size, uint64_t n, unsigned char *dst)
{
    switch (size) {
    case 1:
        for (uint64_t i = 0; i < n; i++) dst[i] = rows[i * stride];
        break;
    case 4:
        for (uint64_t i = 0; i < n; i++) memcpy(dst + i * 4, rows + i * stride, 4);
        break;
    default:
        for (uint64_t i = 0; i < n; i++) memcpy(dst + i * size, rows + i * stride, size);
    }
}

static float *target(const ply_source *s, const kiln_rows *rows, const kiln_ply_use *u)
{
    float *base = NULL;
    switch (u->role) {
    case KILN_ROLE_LOG_SCALE:
        base = rows->log_scales;
        break;
    case KILN_ROLE_QUAT:
        base = rows->quats;
        break;
    case KILN_ROLE_OPACITY:
        base = rows->opacity_logits;
        break;
    case KILN_ROLE_SH0:
        base = rows->sh0;
        break;
    case KILN_ROLE_SHN:
        base = rows->shN;
        break;
    case KILN_ROLE_RGB:
        base = s->info.kind == KILN_SCENE_SPLATS ? rows->sh0 : rows->rgb;
        break;
    case KILN_ROLE_FILTER:
        base = s->filter;
        break;
    case KILN_ROLE_MEAN:
    case KILN_ROLE_NONE:
        return NULL;
    }
    return base + u->component * rows->n;
}

/* Colours to 0..1, and for Gaussians on to the coefficient of degree 0. */
static void finish_colour(const ply_source *s, kiln_type type, uint64_t n, float *v)
{
    float unit = kiln_ply_colour_unit(type);
    bool splats = s->info.kind == KILN_SCENE_SPLATS;
    for (uint64_t i = 0; i < n; i++) v[i] = splats ? (float)(((double)v[i] / (double)unit - 0.5) / KILN_SH_C0) : v[i] / unit;
}

/* Tile rows [at, at + n) of the block, from binary rows. */
static void take_tile(const ply_source *s, unsigned char *tile, uint64_t at, uint64_t n, kiln_rows *rows)
{
    size_t stride = s->header.row_bytes;
    for (uint32_t i = 0; i < s->header.n_columns; i++) {
        const kiln_ply_property *p = &s->header.columns[i];
        const kiln_ply_use *u = &s->uses[i];
        size_t size = kiln_type_size(p->type);
        float *dst = target(s, rows, u);
        if (s->header.format == KILN_PLY_BIG && size > 1) swap_column(tile + p->offset, n, stride, size);
        if (u->role == KILN_ROLE_MEAN) gather_f64(tile + p->offset, stride, p->type, n, rows->means + u->component * rows->n + at);
        if (dst) gather_f32(tile + p->offset, stride, p->type, n, dst + at);
        if (u->role == KILN_ROLE_RGB) finish_colour(s, p->type, n, dst + at);
        if (u->extra >= 0) gather_raw(tile + p->offset, stride, size, n, (unsigned char *)rows->extras[u->extra] + at * size);
    }
}

static void take_piece(const ply_source *s, uint64_t at, uint64_t n, kiln_rows *rows)
{
    uint64_t step = TILE_BYTES / s->header.row_bytes + 1;
    for (uint64_t i = 0; i < n; i += step)
        take_tile(s, s->piece + i * s->header.row_bytes, at + i, n - i < step ? n - i : step, rows);
}

static kiln_status read_rows(kiln_source *source, uint64_t first, uint64_t n, uint64_t offset, kiln_rows *rows,
                             uint64_t *next_offset, kiln_error *err)
{
    ply_source *s = (ply_source *)source;
    const kiln_ply_header *h = &s->header;
    bool ascii = h->format == KILN_PLY_ASCII;
    rows->n = n;
    if (ascii) KILN_TRY(seek_ascii(s, first, offset, err));
    for (uint64_t at = 0; at < n; at += s->piece_rows) {
        uint64_t k = n - at < s->piece_rows ? n - at : s->piece_rows;
        if (ascii)
            KILN_TRY(read_ascii(s, first + at, k, err));
        else
            KILN_TRY(
                kiln_file_read_at(s->fd, s->path, h->vertex_offset + (first + at) * h->row_bytes, s->piece, k * h->row_bytes, err));
        take_piece(s, at, k, rows);
    }
    if (s->flat)
        for (uint64_t i = 0; i < n; i++) rows->log_scales[2 * n + i] = FLAT_LOG_SCALE;
    if (s->info.folded) kiln_mip_filter_fold(n, s->filter, rows->log_scales, rows->opacity_logits);
    *next_offset = ascii ? kiln_lines_offset(&s->lines) : h->vertex_offset + (first + n) * h->row_bytes;
    return KILN_OK;
}

static kiln_status finish(kiln_source *source, kiln_source_info *info, kiln_error *err)
{
    ply_source *s = (ply_source *)source;
    const char *line = NULL;
    size_t size;
    if (s->header.format == KILN_PLY_ASCII && s->next_row == s->info.n_rows && !s->header.more_elements)
        KILN_TRY(next_line(s, &line, &size, err));
    if (line || s->header.trailing_bytes) {
        size_t at = strlen(info->notes);
        snprintf(info->notes + at, sizeof info->notes - at, "%sbytes after the last declared row are ignored", at ? "; " : "");
    }
    return KILN_OK;
}

/* Columns of the header, a piece of rows, filter_3D, the window of lines. */
static uint64_t ram(const kiln_source_info *info, kiln_pass pass)
{
    const uint64_t columns = KILN_PLY_COLUMNS_MAX * (sizeof(kiln_ply_property) + sizeof(kiln_ply_use) + sizeof(double));
    (void)pass;
    return sizeof(ply_source) + KILN_PLY_HEADER_MAX + columns + PIECE_BYTES + (info->folded ? KILN_BLOCK_ROWS * sizeof(float) : 0) +
           (info->needs_full_scan ? 2 * (uint64_t)KILN_LINE_MAX : 0);
}

const kiln_reader kiln_reader_ply = {
    .name = "ply",
    .suffixes = "ply",
    .summary = "PLY: Gaussians (INRIA, gsplat, nerfstudio, Brush, mip-splatting, 2DGS) and point clouds; ascii and binary",
    .ram = ram,
    .probe = probe,
    .open = open_ply,
    .read = read_rows,
    .finish = finish,
    .close = close_ply,
};
