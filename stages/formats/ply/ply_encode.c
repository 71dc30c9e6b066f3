/* ply_encode -- planes to rows. Most columns are float32 to float32; the others go through a
 * double, which holds every value of every type exactly. */
#include "stages/formats/ply/ply_table.h"

#include "base/harmonics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of a tile: about as much as a core's first cache holds. */
enum { TILE_ROWS = 128 };

unsigned kiln_ply_table_planes(const kiln_ply_table *f)
{
    unsigned planes = 0;
    for (uint32_t i = 0; i < f->n_columns; i++) {
        const kiln_ply_column *c = &f->columns[i];
        if (c->plane[0]) planes |= kiln_export_plane_bit(c->plane);
        if (c->kept[0]) planes |= kiln_export_plane_bit(c->kept);
    }
    return planes;
}

static double read_value(const void *data, kiln_type type, uint64_t i)
{
    switch (type) {
    case KILN_TYPE_U8:
        return ((const uint8_t *)data)[i];
    case KILN_TYPE_I8:
        return ((const int8_t *)data)[i];
    case KILN_TYPE_U16:
        return ((const uint16_t *)data)[i];
    case KILN_TYPE_I16:
        return ((const int16_t *)data)[i];
    case KILN_TYPE_U32:
        return ((const uint32_t *)data)[i];
    case KILN_TYPE_I32:
        return ((const int32_t *)data)[i];
    case KILN_TYPE_F32:
        return (double)((const float *)data)[i];
    case KILN_TYPE_F64:
        return ((const double *)data)[i];
    }
    return 0;
}

static void write_value(unsigned char *dst, kiln_type type, double v)
{
    static const double lo[] = {0, -128, 0, -32768, 0, -2147483648.0},
                        hi[] = {255, 127, 65535, 32767, 4294967295.0, 2147483647.0};
    if (type == KILN_TYPE_F64) {
        memcpy(dst, &v, sizeof v);
    } else if (type == KILN_TYPE_F32) {
        float f = (float)v;
        memcpy(dst, &f, sizeof f);
    } else {
        const double r = floor(v + 0.5);
        /* Every conversion is defined: NaN is 0, what is out of range the nearest that the column
         * holds. */
        const int64_t i = isnan(r) ? 0
                                   : (int64_t)(r < lo[type]   ? lo[type]
                                               : r > hi[type] ? hi[type]
                                                              : r);
        memcpy(dst, &i, kiln_type_size(type)); /* little-endian: the low bytes */
    }
}

/* What the reader makes of a kept value: it counts only while the plane still holds that. */
static bool still_means(const kiln_ply_table *f, const kiln_ply_column *c, double kept, float now)
{
    double unit = (double)kiln_ply_colour_unit(c->kept_type);
    if (c->kept_always) return true;
    if (c->role == KILN_ROLE_MEAN) return (float)(kept - f->origin[c->component]) == now;
    if (c->role != KILN_ROLE_RGB) return (float)kept == now;
    if (f->splats) return (float)(((double)(float)kept / unit - 0.5) / KILN_SH_C0_F64) == now;
    return (float)kept / (float)unit == now;
}

/* The plane's value in the unit of the column. */
static double present_value(const kiln_ply_table *f, const kiln_ply_column *c, float now)
{
    double unit = (double)kiln_ply_colour_unit(c->type);
    if (c->role == KILN_ROLE_MEAN && f->origin[c->component] != 0)
        return (double)now + f->origin[c->component];
    if (c->role == KILN_ROLE_RGB)
        return (f->splats ? (double)now * KILN_SH_C0_F64 + 0.5 : (double)now) * unit;
    return (double)now;
}

/* Where the values of a column are. */
typedef struct {
    const kiln_ply_column *column;
    const unsigned char *plane; /* its component; NULL: zeros */
    const unsigned char *kept;  /* NULL: none */
    bool as_it_is;              /* the plane has the bytes of the column */
} column_source;

static void encode_converted(const kiln_ply_table *f, const column_source *s, uint64_t first,
                             uint64_t n, unsigned char *dst)
{
    const kiln_ply_column *c = s->column;
    const float *plane = (const float *)(const void *)s->plane;
    for (uint64_t i = first; i < first + n; i++, dst += f->row_bytes) {
        float now = plane ? plane[i] : 0;
        double was = s->kept ? read_value(s->kept, c->kept_type, i) : 0;
        write_value(dst, c->type,
                    s->kept && still_means(f, c, was, now) ? was : present_value(f, c, now));
    }
}

/* Planes are read in too many places for the processor to see what comes next: so the column's
 * values of the next tile are asked for. They may lie behind the plane, where nothing is read. */
static void encode_raw(const unsigned char *from, size_t size, size_t stride, uint64_t n,
                       unsigned char *dst)
{
    enum { LINE = 64 };
    for (size_t at = 0; at < n * size; at += LINE) __builtin_prefetch(from + n * size + at);
    if (size == 4)
        for (uint64_t i = 0; i < n; i++) memcpy(dst + i * stride, from + i * 4, 4);
    else
        for (uint64_t i = 0; i < n; i++) memcpy(dst + i * stride, from + i * size, size);
}

static void encode_column(const kiln_ply_table *f, const column_source *s, uint64_t first,
                          uint64_t n, unsigned char *rows)
{
    const size_t size = kiln_type_size(s->column->type);
    unsigned char *dst = rows + s->column->offset;
    if (!s->plane && !s->kept)
        for (uint64_t i = 0; i < n; i++) memset(dst + i * f->row_bytes, 0, size);
    else if (s->as_it_is)
        encode_raw(s->plane + first * size, size, f->row_bytes, n, dst);
    else
        encode_converted(f, s, first, n, dst);
}

static column_source column_source_of(const kiln_ply_table *f, const kiln_export_rows *p,
                                      const kiln_ply_column *c)
{
    const bool moved = c->role == KILN_ROLE_MEAN && f->origin[c->component] != 0;
    const size_t size = c->role == KILN_ROLE_NONE ? kiln_type_size(c->type) : sizeof(float);
    column_source s = {.column = c,
                       .plane = c->plane[0] ? kiln_export_rows_plane(p, c->plane) : NULL,
                       .kept = c->kept[0] ? kiln_export_rows_plane(p, c->kept) : NULL};
    if (s.plane) s.plane += c->component * p->n * size;
    s.as_it_is = c->role == KILN_ROLE_NONE || (c->type == KILN_TYPE_F32 && !s.kept && !moved &&
                                               !(c->role == KILN_ROLE_RGB && f->splats));
    return s;
}

static kiln_status need_plane(const kiln_export_rows *rows, const char *name, kiln_error *err)
{
    if (!name[0] || kiln_export_rows_plane(rows, name)) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "chunk '%s' has no plane '%s', which others of its layer have",
                     rows->chunk->chunk->name, name);
}

/* Tile by tile, so that rows stay in the first cache for all of their columns. */
kiln_status kiln_ply_encode(const kiln_ply_table *f, const kiln_export_rows *rows, uint64_t first,
                            uint64_t n, unsigned char *out, kiln_error *err)
{
    column_source sources[KILN_PLY_COLUMNS_MAX];
    for (uint32_t c = 0; c < f->n_columns; c++) {
        KILN_TRY(need_plane(rows, f->columns[c].plane, err));
        KILN_TRY(need_plane(rows, f->columns[c].kept, err));
        sources[c] = column_source_of(f, rows, &f->columns[c]);
    }
    for (uint64_t at = 0; at < n; at += TILE_ROWS)
        for (uint32_t c = 0; c < f->n_columns; c++)
            encode_column(f, &sources[c], first + at, n - at < TILE_ROWS ? n - at : TILE_ROWS,
                          out + at * f->row_bytes);
    return KILN_OK;
}
