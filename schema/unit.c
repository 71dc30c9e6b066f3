/* unit -- the build cache: what was made under which key. */
#include "base/log.h"
#include "base/memory.h"
#include "schema/manifest_internal.h"
#include "schema/row_check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static kiln_status read_output(kiln_query *q, kiln_unit_result *r, kiln_error *err)
{
    kiln_unit_output *more = realloc(r->outputs, (r->n + (size_t)1) * sizeof *more);
    if (!more)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for %" PRIu32 " outputs of a unit",
                         r->n + 1);
    r->outputs = more;
    kiln_unit_output *o = &more[r->n++];
    *o = (kiln_unit_output){0};
    kiln_column_text(q, o->name, sizeof o->name);
    o->segment = kiln_column_u32(q);
    o->hash = kiln_column_hash(q);
    o->raw_bytes = kiln_column_u64(q);
    o->elem = kiln_column_u32(q);
    KILN_TRY(kiln_query_check(q, err));
    KILN_TRY(kiln_row_check_output(o, err));
    int order = r->n == 1 ? -1 : strcmp(o[-1].name, o->name);
    if (order < 0 || (order == 0 && o[-1].segment < o->segment)) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "output '%.80s' of a unit occurs twice or is out of order",
                     o->name);
}

kiln_status kiln_unit_read_outputs(kiln_manifest *m, int64_t unit, kiln_unit_result *r,
                                   kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(m, &q,
                             "SELECT name, segment, hash, raw_bytes, elem FROM unit_output WHERE "
                             "unit = ? ORDER BY name, segment",
                             err));
    kiln_bind_i64(&q, unit);
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        KILN_GO(kiln_row_take(m, &q, read_output(&q, r, err), err));
    }
done:
    kiln_query_close(&q);
    return st;
}

/* *unit: its row. */
static kiln_status find_counters(kiln_manifest *m, kiln_hash key, bool *found, int64_t *unit,
                                 char **counters, kiln_error *err)
{
    kiln_query q;
    *found = false;
    *counters = NULL;
    KILN_TRY(kiln_query_open(m, &q, "SELECT id, counters FROM unit WHERE key = ?", err));
    kiln_bind_hash(&q, key);
    kiln_status st = kiln_query_step(&q, found, err);
    if (st == KILN_OK && *found) {
        *unit = kiln_column_i64(&q);
        *counters = kiln_column_text_dup(&q);
        st = kiln_row_take(m, &q, kiln_query_check(&q, err), err);
    }
    kiln_query_close(&q);
    if (st == KILN_OK) return KILN_OK;
    free(*counters);
    *counters = NULL;
    *found = false;
    return st;
}

kiln_status kiln_unit_counters_find(kiln_manifest *m, kiln_hash key, bool *found, char **counters,
                                    kiln_error *err)
{
    int64_t unit;
    return find_counters(m, key, found, &unit, counters, err);
}

kiln_status kiln_unit_find(kiln_manifest *m, kiln_hash key, bool *found, kiln_unit_result *out,
                           kiln_error *err)
{
    int64_t unit = 0;
    *out = (kiln_unit_result){0};
    kiln_status st = find_counters(m, key, found, &unit, &out->counters, err);
    if (st == KILN_OK && *found) st = kiln_unit_read_outputs(m, unit, out, err);
    if (st != KILN_OK) {
        kiln_unit_result_release(out);
        *found = false;
    }
    return st;
}

kiln_status kiln_unit_counters_visit(kiln_manifest *m, const char *stage, const char *name,
                                     kiln_unit_counters_fn *visit, void *context, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(m, &q, "SELECT counters FROM unit WHERE stage = ? AND name = ?", err));
    kiln_bind_text(&q, stage);
    kiln_bind_text(&q, name);
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        char *counters = kiln_column_text_dup(&q);
        st = kiln_row_take(m, &q, kiln_query_check(&q, err), err);
        if (st == KILN_OK) st = visit(context, counters, err);
        free(counters);
        KILN_GO(st);
    }
done:
    kiln_query_close(&q);
    return st;
}

static kiln_status insert_unit(kiln_manifest *m, const kiln_unit_done *u, const char *counters,
                               kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(m, &q,
                             "INSERT INTO unit (key, stage, name, counters, wall_ns, finished_ns) "
                             "VALUES (?, ?, ?, ?, ?, ?)",
                             err));
    kiln_bind_hash(&q, u->key);
    kiln_bind_text(&q, u->stage);
    kiln_bind_text(&q, u->name);
    kiln_bind_text(&q, counters ? counters : "{}");
    kiln_bind_i64(&q, u->wall_ns);
    kiln_bind_i64(&q, kiln_wall_ns());
    return kiln_query_run(&q, err);
}

static kiln_status insert_output(kiln_manifest *m, int64_t unit, const kiln_unit_output *o,
                                 kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(m, &q,
                             "INSERT INTO unit_output (unit, name, segment, hash, raw_bytes, elem) "
                             "VALUES (?, ?, ?, ?, ?, ?)",
                             err));
    kiln_bind_i64(&q, unit);
    kiln_bind_text(&q, o->name);
    kiln_bind_i64(&q, o->segment);
    kiln_bind_hash(&q, o->hash);
    kiln_bind_u64(&q, o->raw_bytes);
    kiln_bind_i64(&q, o->elem);
    return kiln_query_run(&q, err);
}

/* Outputs of a unit that is gone, whose number the new one got: a damaged file has them. Nothing
 * reads them. */
static kiln_status drop_orphans(kiln_manifest *m, int64_t unit, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(m, &q, "DELETE FROM unit_output WHERE unit = ?", err));
    kiln_bind_i64(&q, unit);
    return kiln_query_run(&q, err);
}

kiln_status kiln_unit_is_stored(kiln_manifest *m, kiln_hash key, bool *stored, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(m, &q, "SELECT 1 FROM unit WHERE key = ?", err));
    kiln_bind_hash(&q, key);
    kiln_status st = kiln_query_step(&q, stored, err);
    kiln_query_close(&q);
    return st;
}

kiln_status kiln_unit_store(kiln_manifest *m, const kiln_unit_done *u, const kiln_unit_result *r,
                            const kiln_blob *blobs, kiln_error *err)
{
    bool stored, own;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_group_begin(m, &own, err));
    KILN_GO(kiln_unit_is_stored(m, u->key, &stored, err));
    if (stored) goto done;
    for (uint32_t i = 0; i < r->n; i++)
        if (blobs[i].packed) KILN_GO(kiln_manifest_put_blob(m, &blobs[i], err));
    KILN_GO(insert_unit(m, u, r->counters, err));
    int64_t unit = sqlite3_last_insert_rowid(m->db);
    KILN_GO(drop_orphans(m, unit, err));
    for (uint32_t i = 0; i < r->n; i++) KILN_GO(insert_output(m, unit, &r->outputs[i], err));
    KILN_GO(kiln_quarantine_remove(m, u->key, err));
done:
    return kiln_group_end(m, own, st, err);
}

kiln_status kiln_unit_forget(kiln_manifest *m, kiln_hash key, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(m, &q, "DELETE FROM unit WHERE key = ?", err));
    kiln_bind_hash(&q, key);
    return kiln_query_run(&q, err);
}

void kiln_unit_result_release(kiln_unit_result *r)
{
    free(r->outputs);
    free(r->counters);
    *r = (kiln_unit_result){0};
}

kiln_status kiln_unit_result_array(const kiln_unit_result *r, const char *name, kiln_array *a,
                                   kiln_error *err)
{
    *a = (kiln_array){0};
    for (uint32_t i = 0; i < r->n; i++) {
        const kiln_unit_output *o = &r->outputs[i];
        if (strcmp(o->name, name) != 0) continue;
        kiln_status st =
            o->segment == a->n_segments
                ? kiln_array_append(a, o->hash, o->raw_bytes, err)
                : kiln_fail(err, KILN_E_IO, "output '%s' of a unit lacks segment %" PRIu32, name,
                            a->n_segments);
        if (st != KILN_OK) {
            free(a->segments);
            *a = (kiln_array){0};
            return st;
        }
    }
    if (a->n_segments == 0) return kiln_fail(err, KILN_E_STALE, "a unit has no output '%s'", name);
    return KILN_OK;
}

kiln_status kiln_unit_result_read(kiln_manifest *m, const kiln_unit_result *r, const char *name,
                                  void **data, uint64_t *bytes, kiln_error *err)
{
    kiln_array a;
    *data = NULL;
    *bytes = 0;
    KILN_TRY(kiln_unit_result_array(r, name, &a, err));
    kiln_status st = kiln_alloc(data, a.raw_bytes, 1, name, err);
    if (st == KILN_OK) st = kiln_manifest_read_array(m, &a, *data, err);
    if (st == KILN_OK)
        *bytes = a.raw_bytes;
    else {
        free(*data);
        *data = NULL;
    }
    free(a.segments);
    return st;
}
