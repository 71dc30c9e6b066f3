/* columns -- the columns of rows as a PLY of them has: names, and where the numbers are. */
#ifndef KILN_STAGES_STATS_COLUMNS_H
#define KILN_STAGES_STATS_COLUMNS_H

#include "stages/formats/reader.h"

enum { KILN_STATS_COLUMNS = 96 + KILN_EXTRAS_MAX };

typedef struct {
    char name[96];
    kiln_type type;
    const void *data; /* [n]; NULL: of a list of names */
    double origin;    /* numbers are counted relative to it: float32 would lose far coordinates */
    bool is_extra;    /* of unknown meaning, or none that a picture shows */
} kiln_stats_column;

typedef struct {
    uint32_t n;
    kiln_stats_column at[KILN_STATS_COLUMNS];
} kiln_stats_columns;

/* Of rows as a reader gives them; rows NULL: the names alone. origin: the scene's. */
void kiln_stats_columns_of_rows(const kiln_source_info *info, const kiln_rows *rows,
                                const double origin[3], kiln_stats_columns *out);
/* Of a chunk, whose means are relative to the origin already; planes[k] is the data of plane k, or
 * planes is NULL. */
void kiln_stats_columns_of_chunk(const kiln_chunk *c, const void *const *planes,
                                 const double origin[3], kiln_stats_columns *out);
/* The index of a column; UINT32_MAX: there is none. */
uint32_t kiln_stats_column_find(const kiln_stats_columns *c, const char *name);
/* A number of it as float32, in which quantiles are counted. Doubles that have an origin are those
 * of rows. */
static inline float kiln_stats_value(const kiln_stats_column *c, uint64_t i)
{
    switch (c->type) {
    case KILN_TYPE_F32:
        return ((const float *)c->data)[i];
    case KILN_TYPE_F64:
        return (float)(((const double *)c->data)[i] - c->origin);
    case KILN_TYPE_U32:
        return (float)((const uint32_t *)c->data)[i];
    case KILN_TYPE_I32:
        return (float)((const int32_t *)c->data)[i];
    case KILN_TYPE_U16:
        return (float)((const uint16_t *)c->data)[i];
    case KILN_TYPE_I16:
        return (float)((const int16_t *)c->data)[i];
    case KILN_TYPE_U8:
        return (float)((const uint8_t *)c->data)[i];
    case KILN_TYPE_I8:
        return (float)((const int8_t *)c->data)[i];
    }
    return 0;
}

#endif
