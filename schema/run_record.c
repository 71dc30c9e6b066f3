/* run_record -- one row for each execution of a stage. */
#include "schema/manifest_internal.h"

#include <inttypes.h>
#include <stdlib.h>

kiln_status kiln_run_row_put(kiln_manifest *m, const kiln_run_row *r, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(m, &q,
                             "INSERT INTO run (stage, program, parameters, device, counters, "
                             "start_ns, stop_ns, exit_code)"
                             " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                             err));
    kiln_bind_text(&q, r->stage);
    kiln_bind_text(&q, r->program ? r->program : "");
    kiln_bind_text(&q, r->parameters ? r->parameters : "{}");
    kiln_bind_text(&q, r->device ? r->device : "");
    kiln_bind_text(&q, r->counters ? r->counters : "{}");
    kiln_bind_i64(&q, r->start_ns);
    kiln_bind_i64(&q, r->stop_ns);
    kiln_bind_i64(&q, r->exit_code);
    return kiln_query_run(&q, err);
}

kiln_status kiln_run_row_read(kiln_query *q, kiln_run_row *out, kiln_error *err)
{
    out->id = kiln_column_i64(q);
    kiln_column_text(q, out->stage, sizeof out->stage);
    out->program = kiln_column_text_dup(q);
    out->parameters = kiln_column_text_dup(q);
    out->device = kiln_column_text_dup(q);
    out->counters = kiln_column_text_dup(q);
    out->start_ns = kiln_column_i64(q);
    out->stop_ns = kiln_column_i64(q);
    out->exit_code = (int)kiln_column_i64(q);
    const bool is_json = kiln_column_bool(q);
    KILN_TRY(kiln_query_check(q, err));
    if (!is_json)
        return kiln_fail(err, KILN_E_INPUT,
                         "the counters or parameters of run %" PRId64 " of stage '%s' are not JSON",
                         out->id, out->stage);
    if (out->start_ns >= 0 && out->stop_ns >= 0) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "run %" PRId64 " of stage '%s' began before 1970", out->id,
                     out->stage);
}

#define COLUMNS                                                                        \
    "id, stage, program, parameters, device, counters, start_ns, stop_ns, exit_code, " \
    "json_valid(counters) AND "                                                        \
    "json_valid(parameters)"
#define STORED_UNITS KILN_SQL_RUN_STORED_UNITS
#define MADE_OUTPUT KILN_SQL_RUN_MADE_OUTPUT

kiln_status kiln_run_row_last(kiln_manifest *m, const char *stage, bool *found, kiln_run_row *out,
                              kiln_error *err)
{
    kiln_query q;
    *out = (kiln_run_row){0};
    *found = false;
    KILN_TRY(kiln_query_open(m, &q,
                             "SELECT " COLUMNS " FROM run WHERE stage = ? AND " MADE_OUTPUT
                             " ORDER BY id DESC LIMIT 1",
                             err));
    kiln_bind_text(&q, stage);
    kiln_status st = kiln_query_step(&q, found, err);
    if (st == KILN_OK && *found) st = kiln_row_take(m, &q, kiln_run_row_read(&q, out, err), err);
    kiln_query_close(&q);
    if (st != KILN_OK) {
        kiln_run_row_release(out);
        *found = false;
    }
    return st;
}

kiln_status kiln_run_rows_of_tasks(kiln_manifest *m, const kiln_run_row *last, kiln_run_row **out,
                                   uint32_t *n, kiln_error *err)
{
    kiln_query q;
    bool more = true;
    *out = NULL;
    *n = 0;
    KILN_TRY(kiln_query_open(
        m, &q,
        "SELECT " COLUMNS
        " FROM run WHERE stage = ?1 AND id < ?2 AND exit_code IN (0, 7) AND " STORED_UNITS
        " AND id > ifnull((SELECT max(id) FROM run WHERE stage = ?1 AND id < ?2 AND " MADE_OUTPUT
        "), 0)"
        " ORDER BY id",
        err));
    kiln_bind_text(&q, last->stage);
    kiln_bind_i64(&q, last->id);
    kiln_status st = kiln_query_step(&q, &more, err);
    while (st == KILN_OK && more) {
        st = kiln_row_reserve((void **)out, *n, sizeof **out, "runs of tasks", err);
        if (st == KILN_OK)
            st = kiln_row_take(m, &q, kiln_run_row_read(&q, &(*out)[(*n)++], err), err);
        if (st == KILN_OK) st = kiln_query_step(&q, &more, err);
    }
    kiln_query_close(&q);
    return st;
}

void kiln_run_rows_free(kiln_run_row *rows, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) kiln_run_row_release(&rows[i]);
    free(rows);
}

void kiln_run_row_release(kiln_run_row *r)
{
    free(r->program);
    free(r->parameters);
    free(r->device);
    free(r->counters);
    *r = (kiln_run_row){0};
}
