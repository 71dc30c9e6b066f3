/* ply_encode -- planes to rows. Most columns are float32 to float32; the others go through a
 * double, which holds every value of every type exactly. */
#include "stages/formats/ply/ply_table.h"

#include "base/harmonics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TILE_ROWS = 512 };

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

static void encode_converted(const kiln_ply_table *f, const kiln_ply_column *c, const float *plane,
                             const void *kept, const uint32_t *order, uint64_t n,
                             unsigned char *dst)
{
    for (uint64_t i = 0; i < n; i++, dst += f->row_bytes) {
        float now = plane ? plane[order[i]] : 0;
        double was = kept ? read_value(kept, c->kept_type, order[i]) : 0;
        write_value(dst, c->type,
                    kept && still_means(f, c, was, now) ? was : present_value(f, c, now));
    }
}

static void encode_raw(const unsigned char *plane, size_t size, size_t stride,
                       const uint32_t *order, uint64_t n, unsigned char *dst)
{
    if (size == 4)
        for (uint64_t i = 0; i < n; i++) memcpy(dst + i * stride, plane + (size_t)order[i] * 4, 4);
    else
        for (uint64_t i = 0; i < n; i++)
            memcpy(dst + i * stride, plane + (size_t)order[i] * size, size);
}

static void encode_column(const kiln_ply_table *f, const kiln_export_rows *p,
                          const kiln_ply_column *c, const uint32_t *order, uint64_t n,
                          unsigned char *rows)
{
    const unsigned char *plane = c->plane[0] ? kiln_export_rows_plane(p, c->plane) : NULL;
    const void *kept = c->kept[0] ? kiln_export_rows_plane(p, c->kept) : NULL;
    size_t size = kiln_type_size(c->type);
    unsigned char *dst = rows + c->offset;
    if (!plane && !kept) {
        for (uint64_t i = 0; i < n; i++) memset(dst + i * f->row_bytes, 0, size);
        return;
    }
    if (plane) plane += c->component * p->n * (c->role == KILN_ROLE_NONE ? size : sizeof(float));
    bool moved = c->role == KILN_ROLE_MEAN && f->origin[c->component] != 0;
    bool as_it_is = c->role == KILN_ROLE_NONE || (c->type == KILN_TYPE_F32 && !kept && !moved &&
                                                  !(c->role == KILN_ROLE_RGB && f->splats));
    if (as_it_is)
        encode_raw(plane, size, f->row_bytes, order, n, dst);
    else
        encode_converted(f, c, (const float *)(const void *)plane, kept, order, n, dst);
}

static kiln_status need_plane(const kiln_export_rows *rows, const char *name, kiln_error *err)
{
    if (!name[0] || kiln_export_rows_plane(rows, name)) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "chunk '%s' has no plane '%s', which others of its layer have",
                     rows->chunk->chunk->name, name);
}

/* Tile by tile, so that a row is in the cache for all its columns. */
kiln_status kiln_ply_encode(const kiln_ply_table *f, const kiln_export_rows *rows,
                            const uint32_t *order, uint64_t n, unsigned char *out, kiln_error *err)
{
    for (uint32_t c = 0; c < f->n_columns; c++) {
        KILN_TRY(need_plane(rows, f->columns[c].plane, err));
        KILN_TRY(need_plane(rows, f->columns[c].kept, err));
    }
    for (uint64_t at = 0; at < n; at += TILE_ROWS)
        for (uint32_t c = 0; c < f->n_columns; c++)
            encode_column(f, rows, &f->columns[c], order + at,
                          n - at < TILE_ROWS ? n - at : TILE_ROWS, out + at * f->row_bytes);
    return KILN_OK;
}
