/* part_rows -- what a gather takes of a part beside units: its quarantine and its runs. */
#include "base/memory.h"
#include "schema/part_gather.h"

#include <stdlib.h>
#include <string.h>

enum {
    QUARANTINE_ROWS = 64, /* that are in memory at a time */
    RUNS_MOST = 1000,     /* of a part; a task writes one */
};

/* ---- quarantine ------------------------------------------------------------------------------ */
static int by_key(const void *a, const void *b) { return memcmp(a, b, sizeof(kiln_hash)); }

static kiln_status is_wanted_key(kiln_part_gathering *g, kiln_hash key, bool *wanted,
                                 kiln_error *err)
{
    *wanted = true;
    if (!g->wanted) return KILN_OK;
    if (!g->sorted) {
        KILN_TRY(KILN_ALLOC(&g->sorted, g->n_wanted, "keys", err));
        if (g->n_wanted) memcpy(g->sorted, g->wanted, g->n_wanted * sizeof *g->sorted);
        qsort(g->sorted, g->n_wanted, sizeof *g->sorted, by_key);
    }
    *wanted = bsearch(&key, g->sorted, g->n_wanted, sizeof *g->sorted, by_key) != NULL;
    return KILN_OK;
}

static kiln_status read_quarantine_row(kiln_query *q, const kiln_part_gathering *g,
                                       kiln_quarantine_row *row, int64_t *rowid, kiln_error *err)
{
    *row = (kiln_quarantine_row){0};
    *rowid = kiln_column_i64(q);
    row->key = kiln_column_hash(q);
    kiln_column_text(q, row->stage, sizeof row->stage);
    kiln_column_text(q, row->name, sizeof row->name);
    row->attempts = kiln_column_u32(q);
    kiln_column_text(q, row->device, sizeof row->device);
    kiln_column_text(q, row->reason, sizeof row->reason);
    row->failed_ns = kiln_column_i64(q);
    KILN_TRY(kiln_query_check(q, err));
    if (strcmp(row->stage, g->p->info.stage) == 0 && row->failed_ns >= 0) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "unit '%s' in quarantine is of another stage, or failed before 1970",
                     row->name);
}

/* The next rows behind *rowid. */
static kiln_status read_quarantine(const kiln_part_gathering *g,
                                   kiln_quarantine_row rows[QUARANTINE_ROWS], uint32_t *n,
                                   int64_t *rowid, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    *n = 0;
    KILN_TRY(kiln_query_open(
        g->p->m, &q,
        "SELECT rowid, key, stage, name, attempts, device, reason, failed_ns FROM quarantine"
        " WHERE rowid > ? ORDER BY rowid",
        err));
    kiln_bind_i64(&q, *rowid);
    while (*n < QUARANTINE_ROWS) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        KILN_GO(kiln_row_take(g->p->m, &q, read_quarantine_row(&q, g, &rows[*n], rowid, err), err));
        ++*n;
    }
done:
    kiln_query_close(&q);
    return st;
}

/* Is the unit done in the manifest, or was it tried there after this row was written? */
static kiln_status is_outdated(kiln_manifest *m, const kiln_quarantine_row *row, bool *outdated,
                               kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_unit_is_stored(m, row->key, outdated, err));
    if (*outdated) return KILN_OK;
    KILN_TRY(
        kiln_query_open(m, &q, "SELECT 1 FROM quarantine WHERE key = ? AND failed_ns >= ?", err));
    kiln_bind_hash(&q, row->key);
    kiln_bind_i64(&q, row->failed_ns);
    const kiln_status st = kiln_query_step(&q, outdated, err);
    kiln_query_close(&q);
    return st;
}

static kiln_status put_quarantine(kiln_part_gathering *g, const kiln_quarantine_row *rows,
                                  uint32_t n, kiln_error *err)
{
    bool own;
    uint64_t put = 0;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_group_begin(g->m, &own, err));
    for (uint32_t i = 0; i < n; i++) {
        bool wanted, outdated;
        KILN_GO(is_wanted_key(g, rows[i].key, &wanted, err));
        if (!wanted) continue;
        KILN_GO(is_outdated(g->m, &rows[i], &outdated, err));
        if (outdated) continue;
        KILN_GO(kiln_quarantine_put(g->m, &rows[i], err));
        put++;
    }
done:
    st = kiln_group_end(g->m, own, st, err);
    if (st == KILN_OK) g->report->quarantined += put;
    return kiln_gather_of_manifest(g, st);
}

kiln_status kiln_gather_quarantine(kiln_part_gathering *g, kiln_error *err)
{
    kiln_quarantine_row *rows = NULL;
    int64_t rowid = INT64_MIN;
    uint32_t n = QUARANTINE_ROWS;
    kiln_status st = KILN_ALLOC(&rows, QUARANTINE_ROWS, "rows of the quarantine", err);
    while (st == KILN_OK && n == QUARANTINE_ROWS) {
        kiln_error why = {0};
        const kiln_status fault = read_quarantine(g, rows, &n, &rowid, &why);
        if (fault != KILN_OK) {
            st = kiln_gather_refuse(g, fault, &why, err);
            break;
        }
        if (n > 0) st = put_quarantine(g, rows, n, err);
    }
    free(rows);
    return st;
}

/* ---- runs ------------------------------------------------------------------------------------ */
static kiln_status is_recorded(kiln_manifest *m, const kiln_run_row *r, bool *recorded,
                               kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(m, &q,
                             "SELECT 1 FROM run WHERE stage = ? AND start_ns = ? AND stop_ns = ? "
                             "AND parameters = ? AND counters = ?",
                             err));
    kiln_bind_text(&q, r->stage);
    kiln_bind_i64(&q, r->start_ns);
    kiln_bind_i64(&q, r->stop_ns);
    kiln_bind_text(&q, r->parameters);
    kiln_bind_text(&q, r->counters);
    const kiln_status st = kiln_query_step(&q, recorded, err);
    kiln_query_close(&q);
    return st;
}

static kiln_status put_run(kiln_part_gathering *g, const kiln_run_row *r, kiln_error *err)
{
    bool recorded;
    KILN_TRY(is_recorded(g->m, r, &recorded, err));
    if (recorded) return KILN_OK;
    KILN_TRY(kiln_run_row_put(g->m, r, err));
    g->report->runs++;
    return KILN_OK;
}

/* *found false: there is none behind *id. */
static kiln_status next_run(const kiln_part_gathering *g, int64_t *id, bool *found, kiln_run_row *r,
                            kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(
        g->p->m, &q,
        "SELECT id, stage, program, parameters, device, counters, start_ns, stop_ns, exit_code,"
        " json_valid(counters) AND json_valid(parameters) FROM run WHERE id > ? ORDER BY id",
        err));
    kiln_bind_i64(&q, *id);
    kiln_status st = kiln_query_step(&q, found, err);
    if (st == KILN_OK && *found)
        st = kiln_row_take(g->p->m, &q, kiln_run_row_read(&q, r, err), err);
    kiln_query_close(&q);
    *id = r->id;
    if (st == KILN_OK && *found && strcmp(r->stage, g->p->info.stage) != 0)
        st = kiln_row_take(g->p->m, NULL,
                           kiln_fail(err, KILN_E_INPUT,
                                     "a run belongs to stage '%s', but is in a part of stage '%s'",
                                     r->stage, g->p->info.stage),
                           err);
    return st;
}

kiln_status kiln_gather_runs(kiln_part_gathering *g, kiln_error *err)
{
    int64_t id = INT64_MIN;
    for (int n = 0;; n++) {
        kiln_error why = {0};
        kiln_run_row r = {0};
        bool found = false;
        kiln_status fault = next_run(g, &id, &found, &r, &why), st = KILN_OK;
        if (fault == KILN_OK && n == RUNS_MOST)
            fault = kiln_row_take(
                g->p->m, NULL, kiln_fail(&why, KILN_E_INPUT, "it has more than %d runs", RUNS_MOST),
                &why);
        if (fault == KILN_OK && found) st = kiln_gather_of_manifest(g, put_run(g, &r, err));
        kiln_run_row_release(&r);
        if (fault != KILN_OK) return kiln_gather_refuse(g, fault, &why, err);
        if (st != KILN_OK || !found) return st;
    }
}
