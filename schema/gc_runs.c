/* gc_runs -- the records of runs that nothing tells of any more.
 *
 * kiln-info, kiln-report and the times of the pipeline read two things of each stage: the last run
 * that made its output, and the tasks on other hosts that computed units for it: kiln_run_row_last
 * and kiln_run_rows_of_tasks. Tasks behind that run are of the output that comes next. The newest
 * record of a stage says how its last try ended. All others are history. */
#include "schema/gc_internal.h"

#include <string.h>

static const char runs_sql[] =
    "WITH r AS MATERIALIZED (SELECT id, stage, " KILN_SQL_RUN_MADE_OUTPUT " AS made,"
    "   exit_code IN (0, 7) AND " KILN_SQL_RUN_STORED_UNITS " AS is_task,"
    "   length(CAST(counters AS BLOB)) + length(CAST(parameters AS BLOB)) AS bytes FROM run),"
    " newest AS (SELECT stage, max(id) AS id, max(iif(made, id, 0)) AS made FROM r GROUP BY stage),"
    " before AS (SELECT r.stage, max(r.id) AS id FROM r JOIN newest USING (stage) WHERE r.made AND "
    "r.id < newest.made"
    "   GROUP BY r.stage)"
    " SELECT r.id, stage, bytes,"
    "   r.id IN (newest.id, newest.made) OR (is_task AND r.id > ifnull(before.id, 0))"
    " FROM r JOIN newest USING (stage) LEFT JOIN before USING (stage) ORDER BY r.id";

static kiln_status add_run(kiln_query *q, kiln_buffer *list, kiln_error *err)
{
    kiln_gc_run r = {.stage = ""};
    r.id = kiln_column_i64(q);
    kiln_column_text(q, r.stage, sizeof r.stage);
    r.bytes = (uint64_t)kiln_column_i64(q);
    r.kept = kiln_column_bool(q);
    KILN_TRY(kiln_query_check(q, err));
    return kiln_buffer_put(list, &r, sizeof r, err);
}

kiln_status kiln_gc_find_runs(kiln_gc *g, kiln_error *err)
{
    kiln_buffer list = {0};
    const kiln_status st = kiln_gc_read_rows(g->m, runs_sql, add_run, &list, err);
    g->runs = (kiln_gc_run *)list.data;
    g->n_runs = list.size / sizeof *g->runs;
    return st;
}

void kiln_gc_keep_runs(kiln_gc *g)
{
    g->keeps_runs = true;
    for (uint64_t i = 0; i < g->n_runs; i++) g->runs[i].kept = true;
}

kiln_gc_count kiln_gc_runs(const kiln_gc *g, const char *stage)
{
    kiln_gc_count c = {0};
    for (uint64_t i = 0; i < g->n_runs; i++)
        if (!stage || strcmp(stage, g->runs[i].stage) == 0)
            ++*(g->runs[i].kept ? &c.kept : &c.dropped);
    return c;
}

uint64_t kiln_gc_run_bytes(const kiln_gc *g)
{
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < g->n_runs; i++)
        if (!g->runs[i].kept) bytes += g->runs[i].bytes;
    return bytes;
}
