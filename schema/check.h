/* check -- what the parts of kiln_manifest_verify share: reporting a problem and going on. */
#ifndef KILN_SCHEMA_CHECK_H
#define KILN_SCHEMA_CHECK_H

#include "base/extern_c.h"
#include "schema/manifest_internal.h"

KILN_C_BEGIN

typedef struct {
    int64_t id;
    kiln_hash hash;
    uint32_t elem;
    uint64_t raw_bytes;
    bool sound;
} kiln_blob_row;

/* What the threads of check_sweep.c have found sound. The thread that reports leaves it out. */
enum { KILN_CHECK_RULES_MAX = 24 };
typedef struct {
    bool rules[KILN_CHECK_RULES_MAX]; /* of kiln_check_rule */
    bool rows;                        /* all that kiln_check_rows reads */
    kiln_blob_row *blobs;             /* all rows, in the order of their ids */
    uint64_t n_blobs;
    bool *planes; /* in the order in which kiln_check_layers comes to them */
    uint64_t n_planes;
    bool *tables; /* in the order of kiln_tile_tables_get */
    uint32_t n_tables;
} kiln_sound;

typedef struct {
    kiln_manifest *m;
    kiln_problem_fn *report;
    void *context;
    const kiln_sound *sound; /* NULL: nothing is known to be sound */
    bool quick;              /* no blob is read */
    uint64_t n_planes;       /* number of planes that kiln_check_layers has come to */
    uint64_t problems;
    uint64_t unread; /* arrays that were not read, because their row has a problem */
    uint64_t bytes;  /* raw bytes whose hash was computed */
    char first[600]; /* the first sentence, for the error */
} kiln_check;

/* a listener of kiln_manifest: the sentence is a problem */
void kiln_check_hear(void *check, const char *sentence);
void kiln_check_problem(kiln_check *c, const char *fmt, ...) KILN_PRINTF(2, 3);
/* A failed call: damage (KILN_E_IO, KILN_E_INPUT, KILN_E_STALE, KILN_E_BUG) becomes a problem and
 * KILN_OK; the rest stays. */
kiln_status kiln_check_take(kiln_check *c, kiln_status st, const kiln_error *err) KILN_MUST_CHECK;
/* A growing block that several checks use one after the other. *data has at least `bytes`; contents
 * are lost. */
typedef struct {
    void *data;
    uint64_t capacity;
} kiln_scratch;
kiln_status kiln_scratch_want(kiln_scratch *s, uint64_t bytes, kiln_error *err) KILN_MUST_CHECK;

/* A query whose rows are sentences of what is wrong. Rule 0 is SQLite's own check of the file's
 * structure. */
unsigned kiln_check_rules(void);
kiln_status kiln_check_rule(kiln_check *c, unsigned rule, kiln_error *err) KILN_MUST_CHECK;

kiln_status kiln_check_rows(kiln_check *c, kiln_error *err) KILN_MUST_CHECK;   /* check_rows.c */
kiln_status kiln_check_layers(kiln_check *c, kiln_error *err) KILN_MUST_CHECK; /* check_layers.c */
kiln_status kiln_check_tables(kiln_check *c, kiln_error *err) KILN_MUST_CHECK; /* check_tables.c */

/* ---- parts for the sweep --------------------------------------------------------------------- */
/* All layers with the planes whose values are checked. */
typedef struct {
    const kiln_layer *layer;
    const kiln_chunk *chunk;
    const kiln_plane *plane;
    uint64_t source_rows; /* of the scene; UINT64_MAX when unknown */
    uint64_t number;      /* in kiln_sound.planes */
} kiln_plane_place;
typedef struct {
    kiln_layer **layers;
    kiln_plane_place *places;
    uint64_t n_layers, n_places, n_planes; /* n_planes: of all planes, those without a place too */
} kiln_plane_list;
/* Release it also after a failure. */
kiln_status kiln_check_list_planes(kiln_check *c, kiln_plane_list *out,
                                   kiln_error *err) KILN_MUST_CHECK;
void kiln_plane_list_release(kiln_plane_list *l);
/* Checks what a plane holds. data: as kiln_plane_read gives it. */
kiln_status kiln_check_values(kiln_check *c, const kiln_plane_place *at, const void *data,
                              kiln_error *err) KILN_MUST_CHECK;

/* The layers whose chunks tile tables name. layer: NULL when the tables are stale; levels: of it,
 * NULL when there are none. */
typedef struct {
    kiln_layer *layer, *levels;
} kiln_check_drawn;
kiln_status kiln_check_drawn_get(kiln_check *c, kiln_check_drawn *out,
                                 kiln_error *err) KILN_MUST_CHECK;
void kiln_check_drawn_release(kiln_check_drawn *d);
/* One table with all of its arrays. */
kiln_status kiln_check_table(kiln_check *c, const kiln_tile_table *t, const kiln_check_drawn *drawn,
                             kiln_error *err) KILN_MUST_CHECK;
/* An upper bound of the memory that kiln_check_table takes. */
uint64_t kiln_check_table_ram(const kiln_tile_table *t);
typedef void kiln_array_fn(void *context, const kiln_array *a);
void kiln_check_table_arrays(const kiln_tile_table *t, kiln_array_fn *fn, void *context);

/* Checks everything with several threads, each with a connection of its own to the same state of
 * the file, and reports nothing. Begins a transaction of m: what was found holds as long as it is
 * open. NULL: nothing is known to be sound, and a transaction of m may be open or not. Free with
 * kiln_sound_free. */
kiln_sound *kiln_sweep(kiln_manifest *m, const kiln_verify_options *o);
void kiln_sound_free(kiln_sound *s);

KILN_C_END

#endif
