/* tile_table -- tile tables with their bands and arrays. A table is replaced whole; its segments
 * hang on the table's row, so that one DELETE takes all of it. */
#include "base/memory.h"
#include "schema/manifest_internal.h"
#include "schema/row_check.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* OWN: the band number of the table's own arrays */
enum { OWN = -1, OWN_ARRAYS = 3, BAND_ARRAYS = 3 };

typedef struct {
    const char *name;
    size_t offset;
} array_slot;

static const array_slot own_arrays[OWN_ARRAYS] = {
    {"chunks", offsetof(kiln_tile_table, chunks)},
    {"visible_slot", offsetof(kiln_tile_table, visible_slot)},
    {"visible_row", offsetof(kiln_tile_table, visible_row)},
};
static const array_slot band_arrays[BAND_ARRAYS] = {
    {"tile_count", offsetof(kiln_tile_band, tile_count)},
    {"tile_bytes", offsetof(kiln_tile_band, tile_bytes)},
    {"rank_delta", offsetof(kiln_tile_band, rank_delta)},
};

static kiln_array *array_at(void *owner, const array_slot *slot)
{
    return (kiln_array *)((char *)owner + slot->offset);
}

/* ---- put ------------------------------------------------------------------------------------- */
static kiln_status insert_array(kiln_manifest *m, int64_t table, int band, const char *name,
                                const kiln_array *a, kiln_error *err)
{
    kiln_query q;
    uint32_t n = kiln_array_segments(a->raw_bytes);
    if (n > a->n_segments || (n && n != a->n_segments))
        return kiln_fail(err, KILN_E_IO, "array '%s' of %" PRIu64 " bytes has %" PRIu32 " segments",
                         name, a->raw_bytes, a->n_segments);
    for (uint32_t i = 0; i < n; i++) {
        KILN_TRY(kiln_query_open(m, &q,
                                 "INSERT INTO tile_segment (tile_table, band, name, segment, hash, "
                                 "raw_bytes) VALUES (?, ?, ?, ?, ?, ?)",
                                 err));
        kiln_bind_i64(&q, table);
        kiln_bind_i64(&q, band);
        kiln_bind_text(&q, name);
        kiln_bind_i64(&q, i);
        kiln_bind_hash(&q, a->segments[i]);
        kiln_bind_u64(&q, kiln_array_segment_bytes(a->raw_bytes, i));
        KILN_TRY(kiln_query_run(&q, err));
    }
    return KILN_OK;
}

static kiln_status insert_band(kiln_manifest *m, int64_t table, int band, kiln_tile_band *b,
                               kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(
        m, &q, "INSERT INTO tile_band (tile_table, band, row0, row1, pairs) VALUES (?, ?, ?, ?, ?)",
        err));
    kiln_bind_i64(&q, table);
    kiln_bind_i64(&q, band);
    kiln_bind_i64(&q, b->row0);
    kiln_bind_i64(&q, b->row1);
    kiln_bind_u64(&q, b->pairs);
    KILN_TRY(kiln_query_run(&q, err));
    for (int i = 0; i < BAND_ARRAYS; i++)
        KILN_TRY(
            insert_array(m, table, band, band_arrays[i].name, array_at(b, &band_arrays[i]), err));
    return KILN_OK;
}

static kiln_status delete_table(kiln_manifest *m, const kiln_tile_table *t, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(m, &q,
                             "DELETE FROM tile_table WHERE camera = ? AND profile = ? AND "
                             "antialiased = ? AND near_m = ?",
                             err));
    kiln_bind_text(&q, t->camera);
    kiln_bind_text(&q, t->profile);
    kiln_bind_i64(&q, t->antialiased);
    kiln_bind_f64(&q, t->near_m);
    return kiln_query_run(&q, err);
}

static kiln_status insert_table(kiln_manifest *m, const kiln_tile_table *t, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(m, &q,
                             "INSERT INTO tile_table (camera, profile, antialiased, near_m, width, "
                             "height, tiles_x, tiles_y, key, digest,"
                             " visible, pairs) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                             err));
    kiln_bind_text(&q, t->camera);
    kiln_bind_text(&q, t->profile);
    kiln_bind_i64(&q, t->antialiased);
    kiln_bind_f64(&q, t->near_m);
    kiln_bind_i64(&q, t->width);
    kiln_bind_i64(&q, t->height);
    kiln_bind_i64(&q, t->tiles_x);
    kiln_bind_i64(&q, t->tiles_y);
    kiln_bind_hash(&q, t->key);
    kiln_bind_hash(&q, t->digest);
    kiln_bind_u64(&q, t->visible);
    kiln_bind_u64(&q, t->pairs);
    return kiln_query_run(&q, err);
}

kiln_status kiln_tile_table_put(kiln_manifest *m, kiln_tile_table *t, kiln_error *err)
{
    bool own;
    kiln_status st = KILN_OK;
    t->digest = kiln_tile_table_digest(t);
    if (kiln_hash_is_zero(t->digest))
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for a digest");
    KILN_TRY(kiln_group_begin(m, &own, err));
    KILN_GO(delete_table(m, t, err));
    KILN_GO(insert_table(m, t, err));
    int64_t table = sqlite3_last_insert_rowid(m->db);
    for (int i = 0; i < OWN_ARRAYS; i++)
        KILN_GO(insert_array(m, table, OWN, own_arrays[i].name, array_at(t, &own_arrays[i]), err));
    for (uint32_t i = 0; i < t->n_bands; i++)
        KILN_GO(insert_band(m, table, (int)i, &t->bands[i], err));
done:
    st = kiln_group_end(m, own, st, err);
    if (st != KILN_OK) kiln_note(err, "tile table of camera '%s'", t->camera);
    return st;
}

kiln_status kiln_tile_tables_keep(kiln_manifest *m, const char *profile, bool antialiased,
                                  double near_m, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(
        m, &q,
        "DELETE FROM tile_table WHERE profile <> ? OR antialiased <> ? OR near_m <> ?"
        " OR camera NOT IN (SELECT name FROM camera)",
        err));
    kiln_bind_text(&q, profile);
    kiln_bind_i64(&q, antialiased);
    kiln_bind_f64(&q, near_m);
    return kiln_query_run(&q, err);
}

/* ---- get ------------------------------------------------------------------------------------- */
static kiln_status read_band(kiln_query *q, kiln_tile_band *b, uint32_t number, kiln_error *err)
{
    b->row0 = kiln_column_u32(q);
    b->row1 = kiln_column_u32(q);
    b->pairs = kiln_column_u64(q);
    const int64_t band = kiln_column_i64(q);
    KILN_TRY(kiln_query_check(q, err));
    if (band == number) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "a tile table has band %" PRId64 " where band %" PRIu32 " belongs", band,
                     number);
}

static kiln_status read_bands(kiln_manifest *m, int64_t table, kiln_tile_table *t, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(
        m, &q, "SELECT row0, row1, pairs, band FROM tile_band WHERE tile_table = ? ORDER BY band",
        err));
    kiln_bind_i64(&q, table);
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        KILN_GO(kiln_row_reserve((void **)&t->bands, t->n_bands, sizeof *t->bands, "bands", err));
        st = read_band(&q, &t->bands[t->n_bands], t->n_bands, err);
        t->n_bands++;
        KILN_GO(kiln_row_take(m, &q, st, err));
    }
done:
    kiln_query_close(&q);
    return st;
}

static kiln_array *find_array(kiln_tile_table *t, int64_t band, const char *name)
{
    bool own = band == OWN;
    if (!own && (band < 0 || band >= t->n_bands)) return NULL;
    void *owner = own ? (void *)t : (void *)&t->bands[band];
    const array_slot *slots = own ? own_arrays : band_arrays;
    int n = own ? OWN_ARRAYS : BAND_ARRAYS;
    for (int i = 0; i < n; i++)
        if (strcmp(slots[i].name, name) == 0) return array_at(owner, &slots[i]);
    return NULL;
}

/* Segments come in order; one that does not follow is there twice, which only a damaged index can
 * give. */
static kiln_status read_segment(kiln_query *q, kiln_tile_table *t, kiln_error *err)
{
    char name[16];
    int64_t band = kiln_column_i64(q);
    kiln_column_text(q, name, sizeof name);
    kiln_hash hash = kiln_column_hash(q);
    uint64_t bytes = kiln_column_u64(q);
    int64_t segment = kiln_column_i64(q);
    KILN_TRY(kiln_query_check(q, err));
    kiln_array *a = find_array(t, band, name);
    if (!a)
        return kiln_fail(err, KILN_E_INPUT,
                         "tile table of camera '%.300s' has an array '%s' in band %" PRId64,
                         t->camera, name, band);
    if (segment != a->n_segments || bytes > KILN_BLOB_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "tile table of camera '%.300s', array '%s' in band %" PRId64
                         ": segment %" PRId64 " occurs twice, is out of order or is too large",
                         t->camera, name, band, segment);
    return kiln_array_append(a, hash, bytes, err);
}

static kiln_status read_segments(kiln_manifest *m, int64_t table, kiln_tile_table *t,
                                 kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(
        m, &q,
        "SELECT band, name, hash, raw_bytes, segment FROM tile_segment WHERE tile_table = ?"
        " ORDER BY band, name, segment",
        err));
    kiln_bind_i64(&q, table);
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        KILN_GO(kiln_row_take(m, &q, read_segment(&q, t, err), err));
    }
done:
    kiln_query_close(&q);
    return st;
}

static kiln_status read_table_row(kiln_query *q, int64_t *id, kiln_tile_table *t, kiln_error *err)
{
    *id = kiln_column_i64(q);
    kiln_column_text(q, t->camera, sizeof t->camera);
    kiln_column_text(q, t->profile, sizeof t->profile);
    t->antialiased = kiln_column_bool(q);
    t->near_m = kiln_column_f64(q);
    t->width = kiln_column_u32(q);
    t->height = kiln_column_u32(q);
    t->tiles_x = kiln_column_u32(q);
    t->tiles_y = kiln_column_u32(q);
    t->key = kiln_column_hash(q);
    t->digest = kiln_column_hash(q);
    t->visible = kiln_column_u64(q);
    t->pairs = kiln_column_u64(q);
    return kiln_query_check(q, err);
}

static kiln_status read_one_table(kiln_manifest *m, kiln_query *q, bool with_arrays,
                                  kiln_tile_table *t, kiln_error *err)
{
    int64_t id;
    KILN_TRY(kiln_row_take(m, q, read_table_row(q, &id, t, err), err));
    KILN_TRY(read_bands(m, id, t, err));
    if (with_arrays) KILN_TRY(read_segments(m, id, t, err));
    return kiln_row_take(m, NULL, kiln_row_check_table(t, with_arrays, err), err);
}

/* Orders tables as queries give them: by camera, profile, antialiased, near. */
static int compare_tables(const kiln_tile_table *a, const kiln_tile_table *b)
{
    int order = strcmp(a->camera, b->camera);
    if (order == 0) order = strcmp(a->profile, b->profile);
    if (order == 0) order = a->antialiased - b->antialiased;
    return order ? order : (a->near_m > b->near_m) - (a->near_m < b->near_m);
}

static kiln_status find_table(kiln_manifest *m, const kiln_tile_table *like, kiln_tile_table **out,
                              kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(m, &q,
                             "SELECT id, camera, profile, antialiased, near_m, width, height, "
                             "tiles_x, tiles_y, key, digest, visible,"
                             " pairs FROM tile_table WHERE camera = ? AND profile = ? AND "
                             "antialiased = ? AND near_m = ?",
                             err));
    kiln_bind_text(&q, like->camera);
    kiln_bind_text(&q, like->profile);
    kiln_bind_i64(&q, like->antialiased);
    kiln_bind_f64(&q, like->near_m);
    KILN_GO(kiln_query_step(&q, &row, err));
    if (!row) goto done;
    KILN_GO(KILN_ALLOC(out, 1, "a tile table", err));
    KILN_GO(read_one_table(m, &q, true, *out, err));
    if (compare_tables(*out, like) != 0)
        st = kiln_row_take(
            m, NULL,
            kiln_fail(err, KILN_E_INPUT,
                      "the tile table of camera '%.300s' is found where that of '%.300s' belongs",
                      (*out)->camera, like->camera),
            err);
done:
    kiln_query_close(&q);
    return st;
}

kiln_status kiln_tile_table_get(kiln_manifest *m, const char *camera, const char *profile,
                                bool antialiased, double near_m, kiln_tile_table **out,
                                kiln_error *err)
{
    bool own;
    kiln_tile_table like = {.antialiased = antialiased, .near_m = near_m};
    *out = NULL;
    /* cannot be stored */
    if (strlen(camera) >= sizeof like.camera || strlen(profile) >= sizeof like.profile)
        return KILN_OK;
    strcpy(like.camera, camera);
    strcpy(like.profile, profile);
    /* all rows from one state: a writer may replace the table meanwhile */
    KILN_TRY(kiln_group_begin(m, &own, err));
    kiln_status st = kiln_group_end(m, own, find_table(m, &like, out, err), err);
    if (st != KILN_OK && *out) {
        kiln_tile_tables_free(*out, 1);
        *out = NULL;
    }
    return st;
}

static const char SELECT_TABLES[] =
    "SELECT id, camera, profile, antialiased, near_m, width, height, tiles_x, tiles_y, key, "
    "digest, visible,"
    " pairs FROM tile_table ORDER BY camera, profile, antialiased, near_m";

static kiln_status read_tables(kiln_manifest *m, bool with_arrays, kiln_tile_table **tables,
                               uint32_t *n, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(m, &q, SELECT_TABLES, err));
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        KILN_GO(kiln_row_reserve((void **)tables, *n, sizeof **tables, "tile tables", err));
        kiln_tile_table *t = &(*tables)[(*n)++]; /* counted before: a half-read one is freed too */
        KILN_GO(read_one_table(m, &q, with_arrays, t, err));
        if (*n > 1 && compare_tables(t - 1, t) >= 0)
            KILN_GO(kiln_row_take(
                m, NULL,
                kiln_fail(err, KILN_E_INPUT,
                          "the tile table of camera '%.300s' occurs twice or is out of order",
                          t->camera),
                err));
    }
done:
    kiln_query_close(&q);
    return st;
}

kiln_status kiln_tile_tables_get(kiln_manifest *m, bool with_arrays, kiln_tile_table **out,
                                 uint32_t *n, kiln_error *err)
{
    bool own;
    *out = NULL;
    *n = 0;
    KILN_TRY(kiln_group_begin(m, &own, err)); /* tables and their bands from one state */
    kiln_status st = kiln_group_end(m, own, read_tables(m, with_arrays, out, n, err), err);
    if (st == KILN_OK && *n == 0) st = KILN_ALLOC(out, 0, "tile tables", err); /* never NULL */
    if (st == KILN_OK) return st;
    kiln_tile_tables_free(*out, *n);
    *out = NULL;
    *n = 0;
    return st;
}

static void release_arrays(kiln_tile_table *t)
{
    for (int k = 0; k < OWN_ARRAYS; k++) free(array_at(t, &own_arrays[k])->segments);
    for (uint32_t b = 0; b < t->n_bands; b++)
        for (int k = 0; k < BAND_ARRAYS; k++)
            free(array_at(&t->bands[b], &band_arrays[k])->segments);
    free(t->bands);
}

void kiln_tile_tables_free(kiln_tile_table *t, uint32_t n)
{
    for (uint32_t i = 0; t && i < n; i++) release_arrays(&t[i]);
    free(t);
}

/* two: the one before, without its arrays, and the one that is read. */
static kiln_status each_table(kiln_manifest *m, bool with_arrays, kiln_tile_table two[2],
                              kiln_tile_table_fn *each, void *context, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(m, &q, SELECT_TABLES, err));
    for (uint32_t n = 0;; n++) {
        kiln_tile_table *t = &two[1];
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        KILN_GO(read_one_table(m, &q, with_arrays, t, err));
        if (n && compare_tables(two, t) >= 0)
            KILN_GO(kiln_row_take(
                m, NULL,
                kiln_fail(err, KILN_E_INPUT,
                          "the tile table of camera '%.300s' occurs twice or is out of order",
                          t->camera),
                err));
        KILN_GO(each(context, t, err));
        release_arrays(t);
        two[0] = *t;
        memset(t, 0, sizeof *t);
    }
done:
    release_arrays(&two[1]);
    kiln_query_close(&q);
    return st;
}

kiln_status kiln_tile_tables_each(kiln_manifest *m, bool with_arrays, kiln_tile_table_fn *each,
                                  void *context, kiln_error *err)
{
    bool own;
    kiln_tile_table *two;
    KILN_TRY(KILN_ALLOC(&two, 2, "a tile table", err));
    kiln_status st = kiln_group_begin(m, &own, err); /* tables and their bands from one state */
    if (st == KILN_OK)
        st = kiln_group_end(m, own, each_table(m, with_arrays, two, each, context, err), err);
    free(two);
    return st;
}
