/* compressed_ply_read -- the rows of a PLY that PlayCanvas has packed (compressed_ply.h). */
#include "stages/formats/reader.h"

#include "base/checked.h"
#include "base/endian.h"
#include "base/file.h"
#include "base/harmonics.h"
#include "base/memory.h"
#include "stages/formats/codes.h"
#include "stages/formats/compressed_ply/compressed_ply.h"
#include "stages/formats/ply/ply_columns.h"
#include "stages/formats/ply/ply_header.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK_ROWS = KILN_PACKED_GROUP, PIECE_ROWS = 4096, PIECE_BYTES = 1 << 20 };

typedef struct {
    char *path; /* as sentences name it */
    int fd;
    kiln_ply_header header;
    bool has_colours;                      /* bounds of colours */
    uint32_t bound_at[KILN_PACKED_BOUNDS]; /* in a row of chunk */
    uint32_t field_at[KILN_PACKED_FIELDS]; /* in a row of vertex */
    uint32_t sh_at[KILN_PACKED_SH_MAX];    /* in a row of sh, by component of shN */
    uint32_t n_sh;
    uint64_t piece_rows; /* a multiple of CHUNK_ROWS */
    unsigned char *chunks, *vertices, *sh;
    float logits[256], sh_values[256];
} packed_source;

static int probe_compressed_ply(const unsigned char *head, size_t len, const char *path)
{
    (void)path;
    return kiln_ply_begins(head, len) && kiln_ply_is_compressed(head, len) ? KILN_PLY_SCORE : 0;
}

static void close_compressed_ply(kiln_source *source)
{
    packed_source *s = (packed_source *)source;
    if (!s) return;
    free(s->sh);
    free(s->vertices);
    free(s->chunks);
    kiln_ply_header_release(&s->header);
    if (s->fd >= 0) close(s->fd);
    free(s->path);
    free(s);
}

/* ---- header ---------------------------------------------------------------------------------- */

static const kiln_ply_property *find_property(const kiln_ply_property *columns, uint32_t n,
                                              const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(columns[i].name, name) == 0) return &columns[i];
    return NULL;
}

/* An element's properties, all of which have one type. */
typedef struct {
    const char *name;
    const kiln_ply_property *columns;
    uint32_t n;
    kiln_type type;
} typed_element;

static kiln_status find_typed(const packed_source *s, const typed_element *e, const char *name,
                              uint32_t *at, kiln_error *err)
{
    const kiln_ply_property *p = find_property(e->columns, e->n, name);
    if (!p)
        return kiln_fail(err, KILN_E_INPUT, "'%s': property %s of the element %s is missing",
                         s->path, name, e->name);
    if (p->type != e->type)
        return kiln_fail(err, KILN_E_INPUT, "'%s': property %s of the element %s must be %s",
                         s->path, name, e->name, kiln_ply_type_name(e->type));
    *at = p->offset;
    return KILN_OK;
}

static kiln_status plan_packed_bounds(packed_source *s, kiln_error *err)
{
    const kiln_ply_element *e = &s->header.chunk;
    const typed_element typed = {"chunk", e->columns, e->n_columns, KILN_TYPE_F32};
    const uint64_t need = kiln_div_up(s->header.n_rows, CHUNK_ROWS);
    if (!e->there)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' has packed vertices, but no element chunk with their bounds",
                         s->path);
    if (e->unusable)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s': its element chunk is declared twice, or with unknown properties",
                         s->path);
    if (e->n_rows != need)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' declares %llu chunks for %llu vertices; it should be %llu, one for every %d",
            s->path, (unsigned long long)e->n_rows, (unsigned long long)s->header.n_rows,
            (unsigned long long)need, CHUNK_ROWS);
    for (int c = 0; c < 3; c++)
        s->has_colours |=
            find_property(e->columns, e->n_columns,
                          kiln_packed_bound_name(6 * KILN_PACKED_COLOURS + c)) != NULL;
    for (int i = 0; i < (s->has_colours ? KILN_PACKED_BOUNDS : 6 * KILN_PACKED_COLOURS); i++)
        KILN_TRY(find_typed(s, &typed, kiln_packed_bound_name(i), &s->bound_at[i], err));
    return KILN_OK;
}

static kiln_status plan_sh(packed_source *s, kiln_source_info *info, kiln_error *err)
{
    const kiln_ply_element *e = &s->header.sh;
    /* gsplat writes it without properties for degree 0 */
    if (!e->there || (e->n_columns == 0 && !e->unusable)) return KILN_OK;
    const uint32_t n = e->n_columns, degree = n == 9 ? 1 : n == 24 ? 2 : n == 45 ? 3 : 0;
    const typed_element typed = {"sh", e->columns, n, KILN_TYPE_U8};
    if (e->unusable || !degree)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s': its element sh has %u properties; only 9, 24 or 45 make whole SH degrees",
            s->path, n);
    if (e->n_rows != s->header.n_rows)
        return kiln_fail(err, KILN_E_INPUT, "'%s' declares %llu rows of sh for %llu vertices",
                         s->path, (unsigned long long)e->n_rows,
                         (unsigned long long)s->header.n_rows);
    for (uint32_t i = 0; i < n; i++) {
        char name[24];
        snprintf(name, sizeof name, "f_rest_%u", i);
        KILN_TRY(find_typed(
            s, &typed, name,
            &s->sh_at[kiln_ply_role(name, KILN_SCENE_SPLATS, true, degree).component], err));
    }
    s->n_sh = n;
    info->sh_degree = degree;
    return KILN_OK;
}

static kiln_status plan_packed_rows(packed_source *s, kiln_source_info *info, kiln_error *err)
{
    const kiln_ply_header *h = &s->header;
    const typed_element typed = {"vertex", h->columns, h->n_columns, KILN_TYPE_U32};
    if (h->format != KILN_PLY_LITTLE)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s': a compressed PLY must be binary_little_endian, but this one is not",
                         s->path);
    if (h->has_lists)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s': the place of its packed rows is unknown, because it has a list property",
            s->path);
    if (h->n_rows > UINT32_MAX - 1)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' has %llu rows; ids have 32 bits, so at most 4294967294 can be read",
                         s->path, (unsigned long long)h->n_rows);
    for (int i = 0; i < KILN_PACKED_FIELDS; i++)
        KILN_TRY(find_typed(s, &typed, kiln_packed_field_name(i), &s->field_at[i], err));
    KILN_TRY(plan_packed_bounds(s, err));
    KILN_TRY(plan_sh(s, info, err));
    info->kind = KILN_SCENE_SPLATS;
    info->n_rows = h->n_rows;
    info->file_bytes = h->file_bytes - h->trailing_bytes;
    kiln_ply_comments(h, info);
    if (h->n_columns > KILN_PACKED_FIELDS)
        snprintf(info->notes, sizeof info->notes, "columns beside the packed ones are ignored (%u)",
                 h->n_columns - KILN_PACKED_FIELDS);
    return KILN_OK;
}

static kiln_status alloc_pieces(packed_source *s, kiln_error *err)
{
    const kiln_ply_header *h = &s->header;
    uint64_t rows = PIECE_BYTES / h->row_bytes / CHUNK_ROWS * CHUNK_ROWS;
    rows = rows < CHUNK_ROWS ? CHUNK_ROWS : rows > PIECE_ROWS ? PIECE_ROWS : rows;
    s->piece_rows = rows;
    KILN_TRY(kiln_alloc((void **)&s->vertices, rows, h->row_bytes, "packed rows", err));
    KILN_TRY(kiln_alloc((void **)&s->chunks, rows / CHUNK_ROWS, h->chunk.row_bytes,
                        "bounds of packed rows", err));
    return kiln_alloc((void **)&s->sh, s->n_sh ? rows : 0, h->sh.row_bytes, "packed SH", err);
}

static float sh_value(int code)
{
    if (code == 0 || code == 255) return code ? KILN_PACKED_SH_LIMIT : -KILN_PACKED_SH_LIMIT;
    return ((float)code - 127.5f) / KILN_PACKED_SH_STEPS;
}

static kiln_status open_compressed_ply(const kiln_source_at *at, kiln_source **out,
                                       kiln_source_info *info, kiln_error *err)
{
    kiln_status st = KILN_OK;
    packed_source *s = NULL;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&s, 1, "compressed PLY reader", err));
    s->fd = -1;
    KILN_GO(KILN_ALLOC(&s->path, strlen(at->name) + 1, "path", err));
    strcpy(s->path, at->name);
    KILN_GO(kiln_file_open(at->path, &s->fd, err));
    KILN_GO(kiln_ply_header_read(s->fd, s->path, &s->header, err));
    KILN_GO(plan_packed_rows(s, info, err));
    KILN_GO(alloc_pieces(s, err));
    kiln_code_logits(s->logits);
    for (int b = 0; b < 256; b++) s->sh_values[b] = sh_value(b);
    *out = (kiln_source *)s;
    return KILN_OK;
done:
    close_compressed_ply((kiln_source *)s);
    return st;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Rows of one chunk. */
typedef struct {
    uint64_t n;
    double lo[3][3], hi[3][3];
    uint32_t fields[KILN_PACKED_FIELDS][CHUNK_ROWS];
} run;

static void take_bounds(const packed_source *s, const unsigned char *row, run *r)
{
    for (int what = 0; what < 3; what++)
        for (int c = 0; c < 3; c++) {
            float lo = 0, hi = 1; /* of colours, where old files have none */
            if (what != KILN_PACKED_COLOURS || s->has_colours) {
                lo = kiln_get_f32(row + s->bound_at[6 * what + c]);
                hi = kiln_get_f32(row + s->bound_at[6 * what + 3 + c]);
            }
            r->lo[what][c] = (double)lo;
            r->hi[what][c] = (double)hi;
        }
}

static void take_fields(const packed_source *s, const unsigned char *rows, run *r)
{
    const uint64_t stride = s->header.row_bytes;
    for (int f = 0; f < KILN_PACKED_FIELDS; f++)
        for (uint64_t i = 0; i < r->n; i++)
            r->fields[f][i] = kiln_get_u32(rows + i * stride + s->field_at[f]);
}

/* out[i] = lo + (hi - lo) of the field's part of its largest value, as splat-transform has it. */
static void lerp(const uint32_t *field, uint64_t n, int shift, int bits, double lo, double hi,
                 double *out)
{
    const uint32_t most = KILN_PACKED_MOST(bits);
    const double whole = (double)most;
#pragma omp simd
    for (uint64_t i = 0; i < n; i++) {
        const double t = (double)(int32_t)(field[i] >> shift & most) / whole;
        out[i] = lo * (1.0 - t) + hi * t;
    }
}

static const int shifts[3] = {KILN_PACKED_X_AT, KILN_PACKED_Y_AT, KILN_PACKED_Z_AT};
static const int widths[3] = {KILN_PACKED_XZ_BITS, KILN_PACKED_Y_BITS, KILN_PACKED_XZ_BITS};
static const int colour_shifts[3] = {KILN_PACKED_RED_AT, KILN_PACKED_GREEN_AT, KILN_PACKED_BLUE_AT};

static void take_vectors(const run *r, uint64_t at, kiln_rows *rows)
{
    double v[CHUNK_ROWS];
    for (uint64_t c = 0; c < 3; c++) {
        float *scale = rows->log_scales + c * rows->n + at, *sh0 = rows->sh0 + c * rows->n + at;
        lerp(r->fields[KILN_PACKED_POSITION], r->n, shifts[c], widths[c],
             r->lo[KILN_PACKED_POSITIONS][c], r->hi[KILN_PACKED_POSITIONS][c],
             rows->means + c * rows->n + at);
        lerp(r->fields[KILN_PACKED_SCALE], r->n, shifts[c], widths[c], r->lo[KILN_PACKED_SCALES][c],
             r->hi[KILN_PACKED_SCALES][c], v);
        for (uint64_t i = 0; i < r->n; i++) scale[i] = (float)v[i];
        lerp(r->fields[KILN_PACKED_COLOUR], r->n, colour_shifts[c], KILN_PACKED_COLOUR_BITS,
             r->lo[KILN_PACKED_COLOURS][c], r->hi[KILN_PACKED_COLOURS][c], v);
        for (uint64_t i = 0; i < r->n; i++) sh0[i] = (float)((v[i] - 0.5) / KILN_SH_C0_F64);
    }
}

static void take_opacities(const packed_source *s, const run *r, float *out)
{
    for (uint64_t i = 0; i < r->n; i++) out[i] = s->logits[r->fields[KILN_PACKED_COLOUR][i] & 255];
}

static void take_quats(const run *r, uint64_t at, kiln_rows *rows)
{
    float *w = rows->quats + at, *x = w + rows->n, *y = x + rows->n, *z = y + rows->n;
#pragma omp simd
    for (uint64_t i = 0; i < r->n; i++) {
        const uint32_t v = r->fields[KILN_PACKED_ROTATION][i], place = v >> KILN_PACKED_LARGEST_AT;
        const double a = kiln_packed_part(v, 2 * KILN_PACKED_PART_BITS),
                     b = kiln_packed_part(v, KILN_PACKED_PART_BITS), c = kiln_packed_part(v, 0);
        const double rest = 1.0 - (a * a + b * b + c * c);
        const float first = (float)a, second = (float)b, third = (float)c,
                    largest = (float)sqrt(rest > 0 ? rest : 0.0);
        w[i] = place == 0 ? largest : first;
        x[i] = place == 1 ? largest : place == 0 ? first : second;
        y[i] = place == 2 ? largest : place < 2 ? second : third;
        z[i] = place == 3 ? largest : third;
    }
}

/* A chunk at a time, whose codes stay in the L1 cache while they are taken apart. */
static void take_sh(const packed_source *s, const unsigned char *first, uint64_t at, uint64_t n,
                    kiln_rows *rows)
{
    const uint64_t stride = s->header.sh.row_bytes;
    for (uint64_t k = 0; k < s->n_sh; k++) {
        const unsigned char *code = first + s->sh_at[k];
        float *out = rows->shN + k * rows->n + at;
        for (uint64_t i = 0; i < n; i++) out[i] = s->sh_values[code[i * stride]];
    }
}

/* Rows [row, row + n) of the file, which are [at, at + n) of the block: at most a piece, which ends
 * where a chunk does. */
static kiln_status read_piece(packed_source *s, uint64_t row, uint64_t n, uint64_t at,
                              kiln_rows *rows, kiln_error *err)
{
    const kiln_ply_header *h = &s->header;
    const uint64_t chunk = row / CHUNK_ROWS, n_chunks = (row + n - 1) / CHUNK_ROWS - chunk + 1;
    run r;
    KILN_TRY(kiln_file_read_at(s->fd, s->path, h->chunk.offset + chunk * h->chunk.row_bytes,
                               s->chunks, n_chunks * h->chunk.row_bytes, err));
    KILN_TRY(kiln_file_read_at(s->fd, s->path, h->vertex_offset + row * h->row_bytes, s->vertices,
                               n * h->row_bytes, err));
    if (s->n_sh)
        KILN_TRY(kiln_file_read_at(s->fd, s->path, h->sh.offset + row * h->sh.row_bytes, s->sh,
                                   n * h->sh.row_bytes, err));
    for (uint64_t i = 0; i < n; i += r.n) {
        const uint64_t to_edge = CHUNK_ROWS - (row + i) % CHUNK_ROWS;
        r.n = n - i < to_edge ? n - i : to_edge;
        take_bounds(s, s->chunks + ((row + i) / CHUNK_ROWS - chunk) * h->chunk.row_bytes, &r);
        take_fields(s, s->vertices + i * h->row_bytes, &r);
        take_vectors(&r, at + i, rows);
        take_quats(&r, at + i, rows);
        take_opacities(s, &r, rows->opacity_logits + at + i);
        if (s->n_sh) take_sh(s, s->sh + i * h->sh.row_bytes, at + i, r.n, rows);
    }
    return KILN_OK;
}

static kiln_status read_compressed_ply_rows(kiln_source *source, uint64_t first, uint64_t n,
                                            uint64_t offset, kiln_rows *rows, uint64_t *next_offset,
                                            kiln_error *err)
{
    packed_source *s = (packed_source *)source;
    (void)offset;
    rows->n = n;
    for (uint64_t at = 0, k; at < n; at += k) {
        k = s->piece_rows - (first + at) % CHUNK_ROWS;
        if (k > n - at) k = n - at;
        KILN_TRY(read_piece(s, first + at, k, at, rows, err));
    }
    *next_offset = s->header.vertex_offset + (first + n) * s->header.row_bytes;
    return KILN_OK;
}

static kiln_status finish_reading_compressed_ply(kiln_source *source, kiln_source_info *info,
                                                 kiln_error *err)
{
    const packed_source *s = (const packed_source *)source;
    (void)err;
    if (s->header.trailing_bytes) {
        const size_t at = strlen(info->notes);
        snprintf(info->notes + at, sizeof info->notes - at,
                 "%sbytes after the last declared row are ignored", at ? "; " : "");
    }
    return KILN_OK;
}

/* The text of the header and its columns; a piece of rows, of which one of vertex has up to 8 bytes
 * a column. */
static uint64_t compressed_ply_reader_ram(const kiln_source_info *info, kiln_read_pass pass)
{
    const uint64_t columns = KILN_PLY_COLUMNS_MAX * sizeof(kiln_ply_property),
                   widest = KILN_PLY_COLUMNS_MAX * sizeof(double);
    const uint64_t chunks = PIECE_ROWS / CHUNK_ROWS * KILN_PLY_PACKED_MAX * sizeof(double);
    (void)info, (void)pass;
    return sizeof(packed_source) + KILN_PLY_HEADER_MAX + columns + PIECE_BYTES +
           CHUNK_ROWS * widest + chunks + PIECE_ROWS * KILN_PACKED_SH_MAX;
}

const kiln_reader kiln_reader_compressed_ply = {
    .name = "compressed-ply",
    .suffixes = "ply",
    .summary = "PLY compressed by PlayCanvas (SuperSplat, splat-transform, gsplat): Gaussians, SH "
               "degree 0 to 3",
    .packed = KILN_PACKED_HEAD,
    .ram = compressed_ply_reader_ram,
    .probe = probe_compressed_ply,
    .open = open_compressed_ply,
    .read = read_compressed_ply_rows,
    .finish = finish_reading_compressed_ply,
    .close = close_compressed_ply,
};
