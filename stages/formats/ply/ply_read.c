/* ply_read -- the rows of a PLY file.
 *
 * Ascii rows become binary rows of this machine in scratch first (ply_ascii.h). A piece of the file
 * (4 MiB of rows) is read and taken apart into planes in tiles of rows that stay in the L2 cache:
 * one tight loop per column and tile. Gathering 248-byte rows column by column over a whole block
 * takes three times as long (DESIGN.md).
 */
#include "stages/formats/reader.h"

#include "base/file.h"
#include "base/harmonics.h"
#include "base/memory.h"
#include "stages/formats/codes.h"
#include "stages/formats/ply/mip_filter.h"
#include "stages/formats/ply/ply_ascii.h"
#include "stages/formats/ply/ply_columns.h"
#include "stages/formats/ply/ply_header.h"
#include "stages/formats/text_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "planes are little-endian and written as they lie in memory");

enum { PIECE_BYTES = 4 << 20, TILE_BYTES = 128 << 10 };
#define FLAT_LOG_SCALE (-20.0f) /* the third axis of a 2DGS surfel, which its file lacks */

typedef struct {
    char *path;       /* as sentences name it */
    int fd;           /* of the file */
    int rows_fd;      /* of the rows: that too; ascii: of the spool, -1 while there is none */
    uint64_t rows_at; /* where the first of them lies */
    kiln_ply_header header;
    kiln_ply_use *uses;
    kiln_source_info info;
    unsigned char *piece; /* [piece_rows][row_bytes] */
    uint64_t piece_rows;
    kiln_ply_scales scales;
    bool activated; /* scales and opacities are as pictures need them, not as training has them */
    float *filter;  /* [KILN_BLOCK_ROWS] filter_3D, when the file has it */
} ply_source;

static int probe_ply(const unsigned char *head, size_t len, const char *path)
{
    (void)path;
    if (!kiln_ply_begins(head, len) || kiln_ply_is_compressed(head, len)) return 0;
    return KILN_PLY_SCORE;
}

static void close_ply(kiln_source *source)
{
    ply_source *s = (ply_source *)source;
    if (!s) return;
    free(s->filter);
    free(s->piece);
    free(s->uses);
    kiln_ply_header_release(&s->header);
    if (s->rows_fd >= 0 && s->rows_fd != s->fd) close(s->rows_fd);
    if (s->fd >= 0) close(s->fd);
    free(s->path);
    free(s);
}

static kiln_status open_ply(const kiln_source_at *at, kiln_source **out, kiln_source_info *info,
                            kiln_error *err)
{
    kiln_status st = KILN_OK;
    ply_source *s = NULL;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&s, 1, "PLY reader", err));
    s->fd = s->rows_fd = -1;
    KILN_GO(KILN_ALLOC(&s->path, strlen(at->name) + 1, "path", err));
    strcpy(s->path, at->name);
    KILN_GO(kiln_file_open(at->path, &s->fd, err));
    KILN_GO(kiln_ply_header_read(s->fd, s->path, &s->header, err));
    KILN_GO(KILN_ALLOC(&s->uses, s->header.n_columns, "PLY columns", err));
    KILN_GO(kiln_ply_plan(&s->header, s->path, at->options, s->uses, &s->info, err));
    if (s->info.n_rows > UINT32_MAX - 1) {
        st = kiln_fail(err, KILN_E_INPUT,
                       "'%s' has %llu rows; ids have 32 bits, so at most 4294967294 can be read",
                       s->path, (unsigned long long)s->info.n_rows);
        goto done;
    }
    s->scales = kiln_ply_scales_of(s->uses, s->header.n_columns);
    s->activated = s->info.kind == KILN_SCENE_SPLATS && at->options && at->options->activated;
    s->piece_rows = PIECE_BYTES / s->header.row_bytes + 1;
    if (s->piece_rows > s->info.n_rows) s->piece_rows = s->info.n_rows;
    /* not set, because most who open a file want its header alone */
    KILN_GO(
        kiln_alloc_unset((void **)&s->piece, s->piece_rows, s->header.row_bytes, "PLY rows", err));
    if (s->info.folded) KILN_GO(KILN_ALLOC(&s->filter, KILN_BLOCK_ROWS, "filter_3D", err));
    if (s->header.format == KILN_PLY_ASCII) {
        s->info.spool_bytes = kiln_ply_ascii_bytes(&s->header);
        if (at->spool) KILN_GO(kiln_file_open(at->spool, &s->rows_fd, err));
    } else {
        s->rows_fd = s->fd;
        s->rows_at = s->header.vertex_offset;
        if (s->header.trailing_bytes) /* else lists may follow the rows */
            s->info.file_bytes = s->header.file_bytes - s->header.trailing_bytes;
    }
    *info = s->info;
    *out = (kiln_source *)s;
    return KILN_OK;
done:
    close_ply((kiln_source *)s);
    return st;
}

/* ---- binary rows to planes ------------------------------------------------------------------- */

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

static void gather_f32(const unsigned char *rows, size_t stride, kiln_type type, uint64_t n,
                       float *dst)
{
    GATHER_SWITCH(type, float)
}
static void gather_f64(const unsigned char *rows, size_t stride, kiln_type type, uint64_t n,
                       double *dst)
{
    GATHER_SWITCH(type, double)
}

static void gather_raw(const unsigned char *rows, size_t stride, size_t size, uint64_t n,
                       unsigned char *dst)
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

static float *target_plane(const ply_source *s, const kiln_rows *rows, const kiln_ply_use *u)
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
    for (uint64_t i = 0; i < n; i++)
        v[i] = splats ? (float)(((double)v[i] / (double)unit - 0.5) / KILN_SH_C0_F64) : v[i] / unit;
}

/* Tile rows [at, at + n) of the block, from binary rows. */
static void take_tile(const ply_source *s, unsigned char *tile, uint64_t at, uint64_t n,
                      kiln_rows *rows)
{
    size_t stride = s->header.row_bytes;
    for (uint32_t i = 0; i < s->header.n_columns; i++) {
        const kiln_ply_property *p = &s->header.columns[i];
        const kiln_ply_use *u = &s->uses[i];
        size_t size = kiln_type_size(p->type);
        float *dst = target_plane(s, rows, u);
        if (s->header.format == KILN_PLY_BIG && size > 1)
            swap_column(tile + p->offset, n, stride, size);
        if (u->role == KILN_ROLE_MEAN)
            gather_f64(tile + p->offset, stride, p->type, n,
                       rows->means + u->component * rows->n + at);
        if (dst) gather_f32(tile + p->offset, stride, p->type, n, dst + at);
        if (u->role == KILN_ROLE_RGB) finish_colour(s, p->type, n, dst + at);
        if (u->extra >= 0)
            gather_raw(tile + p->offset, stride, size, n,
                       (unsigned char *)rows->extras[u->extra] + at * size);
    }
}

static void take_ply_piece(const ply_source *s, uint64_t at, uint64_t n, kiln_rows *rows)
{
    uint64_t step = TILE_BYTES / s->header.row_bytes + 1;
    for (uint64_t i = 0; i < n; i += step)
        take_tile(s, s->piece + i * s->header.row_bytes, at + i, n - i < step ? n - i : step, rows);
}

/* What is activated already becomes what training has. */
static kiln_status deactivate_rows(kiln_rows *rows, kiln_error *err)
{
    double *alphas = NULL;
    KILN_TRY(KILN_ALLOC(&alphas, rows->n, "opacities of a block", err));
    for (uint64_t i = 0; i < rows->n; i++) alphas[i] = (double)rows->opacity_logits[i];
    kiln_alpha_logits(rows->n, alphas, rows->opacity_logits);
    kiln_log_scales(3 * rows->n, rows->log_scales, rows->log_scales);
    free(alphas);
    return KILN_OK;
}

/* Scales that the file does not have. */
static void complete_scales(const ply_source *s, kiln_rows *rows)
{
    const uint64_t n = rows->n;
    float *scales = rows->log_scales;
    if (s->scales == KILN_SCALES_ONE)
        for (uint64_t i = 0; i < n; i++) scales[n + i] = scales[2 * n + i] = scales[i];
    if (s->scales == KILN_SCALES_FLAT)
        for (uint64_t i = 0; i < n; i++) scales[2 * n + i] = FLAT_LOG_SCALE;
}

static kiln_status read_ply_rows(kiln_source *source, uint64_t first, uint64_t n, uint64_t offset,
                                 kiln_rows *rows, uint64_t *next_offset, kiln_error *err)
{
    ply_source *s = (ply_source *)source;
    const kiln_ply_header *h = &s->header;
    (void)offset; /* rows have a fixed size */
    rows->n = n;
    for (uint64_t at = 0; at < n; at += s->piece_rows) {
        uint64_t k = n - at < s->piece_rows ? n - at : s->piece_rows;
        KILN_TRY(kiln_file_read_at(s->rows_fd, s->path, s->rows_at + (first + at) * h->row_bytes,
                                   s->piece, k * h->row_bytes, err));
        take_ply_piece(s, at, k, rows);
    }
    if (s->activated) KILN_TRY(deactivate_rows(rows, err));
    complete_scales(s, rows);
    if (s->info.folded) kiln_mip_filter_fold(n, s->filter, rows->log_scales, rows->opacity_logits);
    *next_offset = s->rows_at + (first + n) * h->row_bytes;
    return KILN_OK;
}

static kiln_status spool_ply(kiln_source *source, int fd, unsigned threads, kiln_error *err)
{
    const ply_source *s = (const ply_source *)source;
    return kiln_ply_ascii_spool(&s->header, s->fd, s->path, fd, threads, err);
}

static kiln_status finish_reading_ply(kiln_source *source, kiln_source_info *info, kiln_error *err)
{
    ply_source *s = (ply_source *)source;
    unsigned char follows = s->header.trailing_bytes != 0;
    if (s->header.format == KILN_PLY_ASCII)
        KILN_TRY(kiln_file_read_at(s->rows_fd, s->path, s->info.spool_bytes - 1, &follows, 1, err));
    if (follows) {
        size_t at = strlen(info->notes);
        snprintf(info->notes + at, sizeof info->notes - at,
                 "%sbytes after the last declared row are ignored", at ? "; " : "");
    }
    return KILN_OK;
}

/* Columns of the header, a piece of rows, filter_3D; pieces of text. */
static uint64_t ply_reader_ram(const kiln_source_info *info, kiln_read_pass pass)
{
    const uint64_t columns =
        KILN_PLY_COLUMNS_MAX * (sizeof(kiln_ply_property) + sizeof(kiln_ply_use) + sizeof(double));
    const uint64_t alphas = KILN_BLOCK_ROWS * sizeof(double);
    const uint64_t open = sizeof(ply_source) + alphas + KILN_PLY_HEADER_MAX + columns +
                          PIECE_BYTES + (info->folded ? KILN_BLOCK_ROWS * sizeof(float) : 0);
    if (pass == KILN_PASS_SPOOL_THREAD) return KILN_TEXT_ROWS_THREAD_RAM;
    return open + (pass == KILN_PASS_SPOOL ? KILN_TEXT_ROWS_RAM : 0);
}

const kiln_reader kiln_reader_ply = {
    .name = "ply",
    .suffixes = "ply",
    .summary = "PLY: Gaussians (INRIA, gsplat, nerfstudio, Brush, mip-splatting, 2DGS) and point "
               "clouds; ascii and binary",
    .packed = KILN_PACKED_HEAD,
    .ram = ply_reader_ram,
    .probe = probe_ply,
    .open = open_ply,
    .spool = spool_ply,
    .read = read_ply_rows,
    .finish = finish_reading_ply,
    .close = close_ply,
};
