/* stage -- what is current: the state of each stage, its outputs, and the parameters that later
 * runs use again. */
#include "base/memory.h"
#include "schema/manifest_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* by kiln_stage_state */
static const char *const states[] = {"missing", "fresh", "stale", "partial"};

const char *kiln_stage_state_name(kiln_stage_state s) { return states[s]; }

static kiln_status read_stage(kiln_query *q, kiln_stage_row *out, kiln_error *err)
{
    char state[16];
    out->version = kiln_column_u32(q);
    kiln_column_text(q, state, sizeof state);
    out->input_key = kiln_column_hash(q);
    out->finished_ns = kiln_column_i64(q);
    KILN_TRY(kiln_query_check(q, err));
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        if (strcmp(state, states[i]) != 0) continue;
        out->state = (kiln_stage_state)i;
        return KILN_OK;
    }
    return kiln_fail(err, KILN_E_INPUT, "stage '%s' has an unknown state: '%s'", out->name, state);
}

kiln_status kiln_stage_get(kiln_manifest *m, const char *stage, kiln_stage_row *out,
                           kiln_error *err)
{
    kiln_query q;
    bool row;
    *out = (kiln_stage_row){0};
    snprintf(out->name, sizeof out->name, "%s", stage);
    KILN_TRY(kiln_query_open(
        m, &q, "SELECT version, state, input_key, finished_ns FROM stage WHERE name = ?", err));
    kiln_bind_text(&q, stage);
    kiln_status st = kiln_query_step(&q, &row, err);
    if (st == KILN_OK && row) st = kiln_row_take(m, &q, read_stage(&q, out, err), err);
    kiln_query_close(&q);
    return st;
}

kiln_status kiln_stage_put(kiln_manifest *m, const kiln_stage_row *row, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(m, &q,
                             "INSERT OR REPLACE INTO stage (name, version, state, input_key, "
                             "finished_ns) VALUES (?, ?, ?, ?, ?)",
                             err));
    kiln_bind_text(&q, row->name);
    kiln_bind_i64(&q, row->version);
    kiln_bind_text(&q, kiln_stage_state_name(row->state));
    kiln_bind_hash(&q, row->input_key);
    kiln_bind_i64(&q, row->finished_ns);
    return kiln_query_run(&q, err);
}

/* ---- outputs --------------------------------------------------------------------------------- */
kiln_status kiln_stage_output_get(kiln_manifest *m, const char *stage, const char *role,
                                  kiln_hash *out, kiln_error *err)
{
    kiln_query q;
    bool row;
    *out = (kiln_hash){{0}};
    KILN_TRY(kiln_query_open(m, &q, "SELECT digest FROM stage_output WHERE stage = ? AND role = ?",
                             err));
    kiln_bind_text(&q, stage);
    kiln_bind_text(&q, role);
    kiln_status st = kiln_query_step(&q, &row, err);
    if (st == KILN_OK && row) {
        *out = kiln_column_hash(&q);
        st = kiln_row_take(m, &q, kiln_query_check(&q, err), err);
    }
    kiln_query_close(&q);
    return st;
}

kiln_status kiln_stage_output_put(kiln_manifest *m, const char *stage, const char *role,
                                  kiln_hash digest, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(
        m, &q,
        "INSERT OR REPLACE INTO stage_output (stage, role, digest, layer)"
        " VALUES (?1, ?2, ?3, (SELECT id FROM layer WHERE kind = ?2 AND digest = ?3))",
        err));
    kiln_bind_text(&q, stage);
    kiln_bind_text(&q, role);
    kiln_bind_hash(&q, digest);
    return kiln_query_run(&q, err);
}

kiln_status kiln_stage_outputs_clear(kiln_manifest *m, const char *stage, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(m, &q, "DELETE FROM stage_output WHERE stage = ?", err));
    kiln_bind_text(&q, stage);
    return kiln_query_run(&q, err);
}

/* The layers that finished stages must name, of a row of layers.def each. An import that found no
 * rows makes no layer. Layers of points alone are not made for other scenes, and a stage that is
 * stale may have run on another scene. Layers that are made where they are asked for are never
 * due. */
#define DUE_BEGIN "WITH makes (stage, kind, made) AS (VALUES (NULL, NULL, NULL)"
#define DUE_ROW(kind, stage, made) ", ('" stage "', '" kind "', '" made "')"
#define DUE_END                                                                                    \
    "), due AS (SELECT makes.stage, kind FROM makes JOIN stage ON stage.name = makes.stage"        \
    " WHERE NOT (makes.stage = 'import' AND EXISTS (SELECT 1 FROM scene WHERE root_half IS NULL))" \
    " AND made <> 'ASKED' AND (made <> 'POINTS' OR (state IN ('fresh', 'partial') AND EXISTS "     \
    "(SELECT 1 FROM scene WHERE "                                                                  \
    "scene.kind = 'points'))))"

const char kiln_lost_outputs_sql[] = DUE_BEGIN
#define LAYER(kind, stage, made, ...) DUE_ROW(#kind, #stage, #made)
#include "schema/layers.def"
    DUE_END
    " SELECT 'stage ' || stage || ' says that it finished, but names no layer ''' || kind || ''', "
    "although one exists', stage"
    " FROM due WHERE EXISTS (SELECT 1 FROM layer WHERE layer.kind = due.kind)"
    " AND NOT EXISTS (SELECT 1 FROM stage_output o WHERE o.stage = due.stage AND o.role = due.kind)"
    " ORDER BY instr('"
#define LAYER(kind, ...) #kind " "
#include "schema/layers.def"
    "', kind)";

static const char lost_layer_sql[] = DUE_BEGIN
#define LAYER(kind, stage, made, ...) DUE_ROW(#kind, #stage, #made)
#include "schema/layers.def"
    DUE_END
    " SELECT 1 FROM due WHERE stage = ? AND NOT EXISTS (SELECT 1 FROM stage_output o JOIN layer l"
    " ON l.id = o.layer AND l.kind = o.role AND l.digest = o.digest WHERE o.stage = due.stage AND "
    "o.role = due.kind)"
    " AND EXISTS (SELECT 1 FROM layer WHERE layer.kind = due.kind)";

/* Where the file has no layer of the kind, the stage made none: stages of tests do not. */
kiln_status kiln_stage_lost_layer(kiln_manifest *m, const char *stage, bool *lost, kiln_error *err)
{
    kiln_query q;
    *lost = false;
    KILN_TRY(kiln_query_open(m, &q, lost_layer_sql, err));
    kiln_bind_text(&q, stage);
    const kiln_status st = kiln_query_step(&q, lost, err);
    kiln_query_close(&q);
    return st;
}

/* ---- parameters ------------------------------------------------------------------------------ */
static kiln_status add_parameter(kiln_query *q, kiln_parameter **list, uint32_t *n, kiln_error *err)
{
    kiln_parameter *more = realloc(*list, (*n + (size_t)1) * sizeof *more);
    if (!more)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for %" PRIu32 " parameters", *n + 1);
    *list = more;
    kiln_parameter *p = &more[(*n)++];
    kiln_column_text(q, p->name, sizeof p->name);
    p->value = kiln_column_text_dup(q);
    KILN_TRY(kiln_query_check(q, err));
    if (*n == 1 || strcmp(p[-1].name, p->name) < 0) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "the parameter '%s' occurs twice or is out of order",
                     p->name);
}

kiln_status kiln_parameters_get(kiln_manifest *m, const char *stage, kiln_parameter **out,
                                uint32_t *n, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_parameter *list = NULL;
    uint32_t count = 0;
    kiln_status st = KILN_OK;
    *out = NULL;
    *n = 0;
    KILN_TRY(kiln_query_open(
        m, &q, "SELECT name, value FROM parameter WHERE stage = ? ORDER BY name", err));
    kiln_bind_text(&q, stage);
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        KILN_GO(kiln_row_take(m, &q, add_parameter(&q, &list, &count, err), err));
    }
    *out = list;
    *n = count;
    list = NULL;
done:
    kiln_query_close(&q);
    if (list) kiln_parameters_free(list, count);
    return st;
}

void kiln_parameters_free(kiln_parameter *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) free(p[i].value);
    free(p);
}

kiln_status kiln_parameter_put(kiln_manifest *m, const char *stage, const char *name,
                               const char *value, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(
        m, &q, "INSERT OR REPLACE INTO parameter (stage, name, value) VALUES (?, ?, ?)", err));
    kiln_bind_text(&q, stage);
    kiln_bind_text(&q, name);
    kiln_bind_text(&q, value);
    return kiln_query_run(&q, err);
}

kiln_status kiln_parameters_clear(kiln_manifest *m, const char *stage, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(m, &q, "DELETE FROM parameter WHERE stage = ?", err));
    kiln_bind_text(&q, stage);
    return kiln_query_run(&q, err);
}
