/* ply_encode -- planes to rows. Most columns are float32 to float32; the others go through a double, which holds every
 * value of every type exactly. */
#include "stages/export/ply_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TILE_ROWS = 512 };

kiln_status kiln_ply_planes_read(kiln_ply_planes *p, const kiln_ply_table *f, kiln_manifest *m, const kiln_chunk *chunk,
                                 kiln_error *err)
{
    memset(p, 0, sizeof *p);
    p->count = chunk->count;
    KILN_TRY(kiln_alloc((void **)&p->items, 2 * (uint64_t)f->n_columns, sizeof *p->items, "planes", err));
    for (uint32_t i = 0; i < 2 * f->n_columns; i++) {
        const char *name = i % 2 ? f->columns[i / 2].kept : f->columns[i / 2].plane;
        bool there = name[0] == '\0';
        for (uint32_t k = 0; k < p->n && !there; k++) there = strcmp(p->items[k].name, name) == 0;
        if (there) continue;
        const kiln_plane *plane = kiln_chunk_plane(chunk, name);
        if (!plane)
            return kiln_fail(err, KILN_E_INPUT, "chunk '%s' has no plane '%s', which others of its layer have", chunk->name, name);
        size_t bytes = (size_t)(chunk->count * plane->components * kiln_type_size(plane->type));
        strcpy(p->items[p->n].name, name);
        KILN_TRY(kiln_alloc(&p->items[p->n].data, bytes, 1, "planes", err));
        KILN_TRY(kiln_plane_read(m, chunk, name, p->items[p->n++].data, bytes, err));
    }
    return KILN_OK;
}

void kiln_ply_planes_release(kiln_ply_planes *p)
{
    for (uint32_t i = 0; p->items && i < p->n; i++) free(p->items[i].data);
    free(p->items);
    memset(p, 0, sizeof *p);
}

static const void *find(const kiln_ply_planes *p, const char *name)
{
    for (uint32_t i = 0; i < p->n && name[0]; i++)
        if (strcmp(p->items[i].name, name) == 0) return p->items[i].data;
    return NULL;
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
    static const double lo[] = {0, -128, 0, -32768, 0, -2147483648.0}, hi[] = {255, 127, 65535, 32767, 4294967295.0, 2147483647.0};
    if (type == KILN_TYPE_F64) {
        memcpy(dst, &v, sizeof v);
    } else if (type == KILN_TYPE_F32) {
        float f = (float)v;
        memcpy(dst, &f, sizeof f);
    } else {
        const double r = floor(v + 0.5);
        /* Every conversion is defined: NaN is 0, what is out of range the nearest that the column holds. */
        const int64_t i = isnan(r) ? 0 : (int64_t)(r < lo[type] ? lo[type] : r > hi[type] ? hi[type] : r);
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
    if (f->splats) return (float)(((double)(float)kept / unit - 0.5) / KILN_SH_C0) == now;
    return (float)kept / (float)unit == now;
}

/* The plane's value in the unit of the column. */
static double present_value(const kiln_ply_table *f, const kiln_ply_column *c, float now)
{
    double unit = (double)kiln_ply_colour_unit(c->type);
    if (c->role == KILN_ROLE_MEAN && f->origin[c->component] != 0) return (double)now + f->origin[c->component];
    if (c->role == KILN_ROLE_RGB) return (f->splats ? (double)now * KILN_SH_C0 + 0.5 : (double)now) * unit;
    return (double)now;
}

static void encode_converted(const kiln_ply_table *f, const kiln_ply_column *c, const float *plane, const void *kept,
                             const uint32_t *order, uint64_t n, unsigned char *dst)
{
    for (uint64_t i = 0; i < n; i++, dst += f->row_bytes) {
        float now = plane ? plane[order[i]] : 0;
        double was = kept ? read_value(kept, c->kept_type, order[i]) : 0;
        write_value(dst, c->type, kept && still_means(f, c, was, now) ? was : present_value(f, c, now));
    }
}

static void encode_raw(const unsigned char *plane, size_t size, size_t stride, const uint32_t *order, uint64_t n,
                       unsigned char *dst)
{
    if (size == 4)
        for (uint64_t i = 0; i < n; i++) memcpy(dst + i * stride, plane + (size_t)order[i] * 4, 4);
    else
        for (uint64_t i = 0; i < n; i++) memcpy(dst + i * stride, plane + (size_t)order[i] * size, size);
}

static void encode_column(const kiln_ply_table *f, const kiln_ply_planes *p, const kiln_ply_column *c, const uint32_t *order,
                          uint64_t n, unsigned char *rows)
{
    const unsigned char *plane = find(p, c->plane);
    const void *kept = find(p, c->kept);
    size_t size = kiln_type_size(c->type);
    unsigned char *dst = rows + c->offset;
    if (!plane && !kept) {
        for (uint64_t i = 0; i < n; i++) memset(dst + i * f->row_bytes, 0, size);
        return;
    }
    if (plane) plane += c->component * p->count * (c->role == KILN_ROLE_NONE ? size : sizeof(float));
    bool moved = c->role == KILN_ROLE_MEAN && f->origin[c->component] != 0;
    bool as_it_is =
        c->role == KILN_ROLE_NONE || (c->type == KILN_TYPE_F32 && !kept && !moved && !(c->role == KILN_ROLE_RGB && f->splats));
    if (as_it_is)
        encode_raw(plane, size, f->row_bytes, order, n, dst);
    else
        encode_converted(f, c, (const float *)(const void *)plane, kept, order, n, dst);
}

/* Tile by tile, so that a row is in the cache for all its columns. */
void kiln_ply_encode(const kiln_ply_table *f, const kiln_ply_planes *p, const uint32_t *order, uint64_t n, unsigned char *rows)
{
    for (uint64_t at = 0; at < n; at += TILE_ROWS)
        for (uint32_t c = 0; c < f->n_columns; c++)
            encode_column(f, p, &f->columns[c], order + at, n - at < TILE_ROWS ? n - at : TILE_ROWS, rows + at * f->row_bytes);
}
