/* gc_units -- stages, layers and units, and which of them are needed. gc.h has the rule. */
#include "schema/gc_internal.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- stages ---------------------------------------------------------------------------------- */
static kiln_status add_stage(kiln_query *q, kiln_buffer *list, kiln_error *err)
{
    kiln_gc_stage s = {.begun_ns = INT64_MAX};
    kiln_column_text(q, s.name, sizeof s.name);
    s.finished_ns = kiln_column_i64(q);
    KILN_TRY(kiln_query_check(q, err));
    return kiln_buffer_put(list, &s, sizeof s, err);
}

kiln_status kiln_gc_read_rows(kiln_manifest *m, const char *sql, kiln_gc_add_fn *add,
                              kiln_buffer *list, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(m, &q, sql, err));
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        KILN_GO(kiln_row_take(m, &q, add(&q, list, err), err));
    }
done:
    kiln_query_close(&q);
    return st;
}

static kiln_status find_stages(kiln_gc *g, kiln_error *err)
{
    kiln_buffer list = {0};
    const kiln_status st = kiln_gc_read_rows(
        g->m, "SELECT name, finished_ns FROM stage ORDER BY name", add_stage, &list, err);
    g->stages = (kiln_gc_stage *)list.data;
    g->n_stages = list.size / sizeof *g->stages;
    return st;
}

static int stages_by_name(const void *name, const void *stage)
{
    return strcmp(name, ((const kiln_gc_stage *)stage)->name);
}

static int32_t stage_named(const kiln_gc *g, const char *name)
{
    const kiln_gc_stage *s =
        g->n_stages ? bsearch(name, g->stages, g->n_stages, sizeof *s, stages_by_name) : NULL;
    return s ? (int32_t)(s - g->stages) : KILN_GC_NO_STAGE;
}

/* ---- units ----------------------------------------------------------------------------------- */
typedef struct {
    int64_t id, finished_ns;
    kiln_hash key;
    char stage[32];
} unit_row;

static kiln_status read_unit(kiln_query *q, unit_row *u, kiln_error *err)
{
    u->id = kiln_column_i64(q);
    u->key = kiln_column_hash(q);
    kiln_column_text(q, u->stage, sizeof u->stage);
    u->finished_ns = kiln_column_i64(q);
    return kiln_query_check(q, err);
}

static kiln_status find_units(kiln_gc *g, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_buffer list = {0};
    kiln_status st = KILN_OK;
    KILN_TRY(
        kiln_query_open(g->m, &q, "SELECT id, key, stage, finished_ns FROM unit ORDER BY id", err));
    for (;;) {
        unit_row u;
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        KILN_GO(kiln_row_take(g->m, &q, read_unit(&q, &u, err), err));
        const kiln_gc_unit unit = {.id = u.id,
                                   .finished_ns = u.finished_ns,
                                   .key = u.key,
                                   .stage = stage_named(g, u.stage)};
        KILN_GO(kiln_buffer_put(&list, &unit, sizeof unit, err));
    }
done:
    kiln_query_close(&q);
    g->units = (kiln_gc_unit *)list.data;
    g->n_units = list.size / sizeof *g->units;
    return st;
}

/* Did SQLite read all that it was asked for, so that what failed is what the rows say? A disk that
 * fails and pages that are damaged are reported as KILN_E_IO, too. */
static bool is_damage_of_rows(kiln_manifest *m, kiln_status st)
{
    const int rc = sqlite3_errcode(m->db) & 0xff;
    return (st == KILN_E_IO || st == KILN_E_INPUT || st == KILN_E_STALE) &&
           (rc == SQLITE_OK || rc == SQLITE_ROW || rc == SQLITE_DONE);
}

/* A list that cannot be read counts as one that was never stored: it says what may go, and no
 * output consists of it. */
static kiln_status read_used(const kiln_gc *g, kiln_gc_stage *s, kiln_hash **keys, uint64_t *n,
                             kiln_error *err)
{
    kiln_error why = {0};
    const kiln_status st = kiln_units_used_get(g->m, s->name, &s->knows_units, keys, n, &why);
    if (st == KILN_OK) return KILN_OK;
    s->knows_units = false;
    if (!is_damage_of_rows(g->m, st)) return kiln_fail(err, st, "%s", why.msg);
    if (!g->is_proof)
        kiln_warn("the list of units that the output of stage '%s' was made from cannot be read: "
                  "%s; kiln-gc decides without it; "
                  "run that stage with --force to store the list again",
                  s->name, why.msg);
    return KILN_OK;
}

/* Keys of units that outputs were made from: what stages remember, the units that remember it, and
 * images. */
static kiln_status find_used(kiln_gc *g, kiln_buffer *used, kiln_error *err)
{
    for (uint64_t i = 0; i < g->n_stages; i++) {
        kiln_gc_stage *s = &g->stages[i];
        const kiln_hash own = kiln_units_used_key(s->name);
        kiln_hash *keys;
        uint64_t n;
        KILN_TRY(read_used(g, s, &keys, &n, err));
        kiln_status st = kiln_buffer_put(used, own.bytes, sizeof own.bytes, err);
        if (st == KILN_OK && n > 0) st = kiln_buffer_put(used, keys, n * sizeof *keys, err);
        free(keys);
        KILN_TRY(st);
    }
    return kiln_gc_read_hashes(g->m, "SELECT key FROM image", used, err);
}

/* ---- of a stage that did not remember its units ---------------------------------------------- */
static int units_by_id(const void *id, const void *unit)
{
    const int64_t a = *(const int64_t *)id, b = ((const kiln_gc_unit *)unit)->id;
    return (a > b) - (a < b);
}

static kiln_status find_newest(kiln_gc *g, const char *stage, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    /* SQLite takes a bare column beside max() from the row that has the maximum */
    KILN_TRY(kiln_query_open(
        g->m, &q, "SELECT id, max(finished_ns) FROM unit WHERE stage = ? GROUP BY name", err));
    kiln_bind_text(&q, stage);
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        const int64_t id = kiln_column_i64(&q);
        KILN_GO(kiln_row_take(g->m, &q, kiln_query_check(&q, err), err));
        kiln_gc_unit *u =
            g->n_units ? bsearch(&id, g->units, g->n_units, sizeof *u, units_by_id) : NULL;
        if (u) u->newest = true;
    }
done:
    kiln_query_close(&q);
    return st;
}

/* An empty array names nothing: the unit of a block without rows is known by its name. */
static const char outputs_sql[] = "SELECT unit, hash, raw_bytes > 0 AND name IN (SELECT name FROM "
                                  "plane UNION SELECT name FROM tile_segment) FROM unit_output"
                                  " ORDER BY unit";

static kiln_status find_outputs(kiln_gc *g, kiln_error *err)
{
    kiln_query q = {0};
    bool row;
    kiln_buffer outputs = {0};
    kiln_status st = KILN_OK;
    uint64_t i = 0;
    KILN_GO(kiln_gc_output_hashes(g->m, &outputs, err));
    kiln_gc_sort_hashes(&outputs);
    KILN_GO(kiln_query_open(g->m, &q, outputs_sql, err));
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        const int64_t unit = kiln_column_i64(&q);
        const kiln_hash hash = kiln_column_hash(&q);
        const bool has_rows = kiln_column_bool(&q);
        KILN_GO(kiln_row_take(g->m, &q, kiln_query_check(&q, err), err));
        while (i < g->n_units && g->units[i].id < unit) i++;
        if (i == g->n_units || g->units[i].id != unit || !has_rows) continue;
        g->units[i].has_rows = true;
        if (!g->units[i].is_output) g->units[i].is_output = kiln_gc_has_hash(&outputs, hash);
    }
done:
    kiln_query_close(&q);
    kiln_buffer_release(&outputs);
    return st;
}

static kiln_status find_begin(kiln_gc *g, kiln_gc_stage *s, kiln_error *err)
{
    kiln_run_row last = {0};
    bool found;
    KILN_TRY(kiln_run_row_last(g->m, s->name, &found, &last, err));
    if (found) s->begun_ns = last.start_ns;
    kiln_run_row_release(&last);
    return KILN_OK;
}

static kiln_status find_by_other_signs(kiln_gc *g, kiln_error *err)
{
    bool any = false;
    for (uint64_t i = 0; i < g->n_stages; i++) {
        if (g->stages[i].knows_units) continue;
        any = true;
        KILN_TRY(find_begin(g, &g->stages[i], err));
        KILN_TRY(find_newest(g, g->stages[i].name, err));
    }
    return any ? find_outputs(g, err) : KILN_OK;
}

/* ---- which are needed ------------------------------------------------------------------------ */
static bool is_needed(const kiln_gc *g, const kiln_gc_unit *u, const kiln_buffer *used)
{
    if (u->stage == KILN_GC_NO_STAGE || kiln_gc_has_hash(used, u->key)) return true;
    const kiln_gc_stage *s = &g->stages[u->stage];
    if (u->finished_ns > s->finished_ns) return true;
    if (s->knows_units) return false;
    return u->finished_ns >= s->begun_ns || (u->has_rows ? u->is_output : u->newest);
}

static kiln_status keep_needed(kiln_gc *g, kiln_error *err)
{
    kiln_buffer used = {0};
    kiln_status st = KILN_OK;
    KILN_GO(find_used(g, &used, err));
    kiln_gc_sort_hashes(&used);
    KILN_GO(find_by_other_signs(g, err));
    for (uint64_t i = 0; i < g->n_units; i++) g->units[i].kept = is_needed(g, &g->units[i], &used);
done:
    kiln_buffer_release(&used);
    return st;
}

/* ---- layers ---------------------------------------------------------------------------------- */
static kiln_status add_layer(kiln_query *q, kiln_buffer *list, kiln_error *err)
{
    kiln_gc_layer l = {.kind = ""};
    l.id = kiln_column_i64(q);
    kiln_column_text(q, l.kind, sizeof l.kind);
    l.kept = kiln_column_bool(q);
    KILN_TRY(kiln_query_check(q, err));
    return kiln_buffer_put(list, &l, sizeof l, err);
}

static kiln_status find_layers(kiln_gc *g, kiln_error *err)
{
    kiln_buffer list = {0};
    const kiln_status st = kiln_gc_read_rows(g->m,
                                             "SELECT id, kind, EXISTS (SELECT 1 FROM stage_output "
                                             "o WHERE o.layer = layer.id) FROM layer ORDER BY id",
                                             add_layer, &list, err);
    g->layers = (kiln_gc_layer *)list.data;
    g->n_layers = list.size / sizeof *g->layers;
    return st;
}

/* ---- what is lost ---------------------------------------------------------------------------- */
/* Rows: a sentence, and the stage that can make the layer again. */
static const char misnamed_sql[] = "SELECT 'stage ' || stage || ' names layer ''' || role || ''', "
                                   "which does not exist with that kind and digest',"
                                   /* a name of the file's own is no command to run */
                                   " CASE WHEN stage GLOB '*[^a-z]*' THEN 'STAGE' ELSE stage END"
                                   " FROM stage_output o LEFT JOIN layer l ON l.id = o.layer AND "
                                   "l.kind = o.role AND l.digest = o.digest"
                                   " WHERE l.id IS NULL AND (o.layer IS NOT NULL OR o.role IN (NULL"
#define LAYER(kind, ...) ", '" #kind "'"
#include "schema/layers.def"
                                   ")) ORDER BY instr('"
#define LAYER(kind, ...) #kind " "
#include "schema/layers.def"
                                   "', role), stage"; /* what others are made from comes first */

static kiln_status refuse_first(kiln_manifest *m, const char *sql, kiln_error *err)
{
    kiln_query q;
    bool row;
    char sentence[400], stage[32];
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(m, &q, sql, err));
    KILN_GO(kiln_query_step(&q, &row, err));
    if (!row) goto done;
    kiln_column_text(&q, sentence, sizeof sentence);
    kiln_column_text(&q, stage, sizeof stage);
    KILN_GO(kiln_row_take(m, &q, kiln_query_check(&q, err), err));
    st = kiln_fail(err, KILN_E_IO,
                   "manifest '%s' is damaged: %s; nothing was dropped, because that layer could be "
                   "part of it; run kiln-%s --force "
                   "to make it again, or kiln-verify to list all damage",
                   m->path, sentence, stage);
done:
    kiln_query_close(&q);
    return st;
}

/* A layer that no output names is dropped. So where an output is lost, a layer that is needed would
 * go for one that is not. */
static kiln_status refuse_lost_outputs(const kiln_gc *g, kiln_error *err)
{
    KILN_TRY(refuse_first(g->m, misnamed_sql, err));
    return refuse_first(g->m, kiln_lost_outputs_sql, err);
}

kiln_status kiln_gc_find_rows(kiln_gc *g, kiln_error *err)
{
    if (!g->is_proof) KILN_TRY(refuse_lost_outputs(g, err));
    KILN_TRY(find_layers(g, err));
    KILN_TRY(find_stages(g, err));
    KILN_TRY(find_units(g, err));
    return keep_needed(g, err);
}
