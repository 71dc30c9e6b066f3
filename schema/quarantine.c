/* quarantine -- units that failed on every device, with the reason, until a run does them. */
#include "base/memory.h"
#include "schema/manifest_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

kiln_status kiln_quarantine_put(kiln_manifest *m, const kiln_quarantine_row *row, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(
        m, &q,
        "INSERT OR REPLACE INTO quarantine (key, stage, name, attempts, device, reason, failed_ns)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        err));
    kiln_bind_hash(&q, row->key);
    kiln_bind_text(&q, row->stage);
    kiln_bind_text(&q, row->name);
    kiln_bind_i64(&q, row->attempts);
    kiln_bind_text(&q, row->device);
    kiln_bind_text(&q, row->reason);
    kiln_bind_i64(&q, row->failed_ns);
    return kiln_query_run(&q, err);
}

kiln_status kiln_quarantine_remove(kiln_manifest *m, kiln_hash key, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(m, &q, "DELETE FROM quarantine WHERE key = ?", err));
    kiln_bind_hash(&q, key);
    return kiln_query_run(&q, err);
}

kiln_status kiln_quarantine_clear(kiln_manifest *m, const char *stage, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(m, &q, "DELETE FROM quarantine WHERE stage = ?", err));
    kiln_bind_text(&q, stage);
    return kiln_query_run(&q, err);
}

static kiln_status read_row(kiln_query *q, kiln_quarantine_row **rows, uint32_t n, kiln_error *err)
{
    kiln_quarantine_row *more = realloc(*rows, (n + (size_t)1) * sizeof *more);
    if (!more)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for %" PRIu32 " rows of the quarantine",
                         n + 1);
    *rows = more;
    kiln_quarantine_row *row = &more[n];
    memset(row, 0, sizeof *row);
    row->key = kiln_column_hash(q);
    kiln_column_text(q, row->stage, sizeof row->stage);
    kiln_column_text(q, row->name, sizeof row->name);
    row->attempts = kiln_column_u32(q);
    kiln_column_text(q, row->device, sizeof row->device);
    kiln_column_text(q, row->reason, sizeof row->reason);
    row->failed_ns = kiln_column_i64(q);
    KILN_TRY(kiln_query_check(q, err));
    int order = n == 0 ? -1 : strcmp(row[-1].name, row->name);
    if (order == 0) order = memcmp(row[-1].key.bytes, row->key.bytes, sizeof row->key.bytes);
    if (order < 0) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "unit '%s' occurs twice in the quarantine or is out of order", row->name);
}

kiln_status kiln_quarantine_get(kiln_manifest *m, const char *stage, kiln_quarantine_row **out,
                                uint32_t *n, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    *out = NULL;
    *n = 0;
    KILN_TRY(kiln_query_open(
        m, &q,
        "SELECT key, stage, name, attempts, device, reason, failed_ns FROM quarantine"
        " WHERE stage = ? ORDER BY name, key",
        err));
    kiln_bind_text(&q, stage);
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        KILN_GO(kiln_row_take(m, &q, read_row(&q, out, *n, err), err));
        ++*n;
    }
done:
    kiln_query_close(&q);
    if (st != KILN_OK) {
        free(*out);
        *out = NULL;
        *n = 0;
    }
    return st;
}
