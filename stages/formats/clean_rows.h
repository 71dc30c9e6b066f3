/* clean_rows -- sanitises rows of any format: drops and clamps, counted by reason, and moves what
 * stays together. */
#ifndef KILN_STAGES_FORMATS_CLEAN_ROWS_H
#define KILN_STAGES_FORMATS_CLEAN_ROWS_H

#include "kernels/similarity/similarity.h"
#include "schema/row_check.h"
#include "stages/formats/reader.h"

#include <jansson.h>

/* Why a row is dropped; the first reason that holds counts. name: the key in counters and in
 * --json */
#define KILN_DROP_MAP(X)                                                   \
    X(POSITION, "position_not_finite", "position not finite in float32")   \
    X(SCALE, "scale_not_finite", "scale not finite or log scale above 88") \
    X(ROTATION, "rotation_not_finite", "rotation not finite")              \
    X(ZERO_ROTATION, "rotation_zero", "rotation zero")                     \
    X(OPACITY, "opacity_nan", "opacity not a number")                      \
    X(COLOUR, "colour_not_finite", "colour or spherical harmonics not finite")
#define KILN_CLAMP_MAP(X)                                                  \
    X(OPACITY_HIGH, "opacity_infinite", "opacity of 1 made 254.75/255")    \
    X(OPACITY_LOW, "opacity_minus_infinite", "opacity of 0 made 0.25/255") \
    X(SCALE_LOW, "scale_below_range", "log scale below -87 made -87")      \
    X(EXTRA, "unknown_column_not_finite", "a column of unknown meaning not finite, kept as it is")

typedef enum {
    KILN_DROP_NONE,
#define X(id, name, text) KILN_DROP_##id,
    KILN_DROP_MAP(X)
#undef X
        KILN_N_DROPS
} kiln_drop;

typedef enum {
#define X(id, name, text) KILN_CLAMP_##id,
    KILN_CLAMP_MAP(X)
#undef X
        KILN_N_CLAMPS
} kiln_clamp;

typedef struct {
    uint64_t read, kept;
    uint64_t dropped[KILN_N_DROPS], clamped[KILN_N_CLAMPS]; /* rows */
} kiln_row_counts;

#define KILN_LOGIT_LOW (-6.92657709f) /* logit(0.25 / 255) */
#define KILN_LOGIT_HIGH 6.92657709f   /* logit(254.75 / 255) */

typedef struct {
    uint64_t n;            /* rows that stay */
    float *means;          /* [3][n] relative to the origin */
    uint32_t *source_row;  /* [n] */
    unsigned char *reason; /* [rows read] kiln_drop of each */
} kiln_clean;
/* Bytes of kiln_rows and kiln_clean for such a source. */
uint64_t kiln_rows_ram(const kiln_source_info *info);
kiln_status kiln_clean_alloc(kiln_clean *c, kiln_error *err) KILN_MUST_CHECK; /* room for a block */
void kiln_clean_release(kiln_clean *c);

/* Moves all rows, which are not clean yet, and their normals (extras nx, ny, nz of float). Bits of
 * what the move does not change stay. */
void kiln_rows_move(kiln_rows *rows, const kiln_source_info *info, const kiln_similarity *move,
                    unsigned threads);

/* Fills c; moves the rows that stay to the front of every array of rows, whose stride becomes c->n
 * (rows->n too). Adds to counts. first_row: source row of the first one. */
void kiln_rows_clean(kiln_rows *rows, const kiln_source_info *info, const double origin[3],
                     uint64_t first_row, kiln_clean *c, kiln_row_counts *counts);

void kiln_row_counts_add(kiln_row_counts *sum, const kiln_row_counts *c);
/* {"position_not_finite": 3} of what is not 0; NULL when memory is gone. */
json_t *kiln_dropped_json(const kiln_row_counts *c);
json_t *kiln_clamped_json(const kiln_row_counts *c);
kiln_status kiln_row_counts_parse(json_t *dropped, json_t *clamped, kiln_row_counts *out,
                                  kiln_error *err) KILN_MUST_CHECK;
const char *kiln_drop_text(kiln_drop d);
const char *kiln_clamp_text(kiln_clamp c);

#endif
