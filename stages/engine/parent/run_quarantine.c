/* The units that this run gave up. Each is put into the manifest at once, so that it is there even
 * if the run then dies. At the end of the stage they replace all its earlier rows in the
 * quarantine. */
#include "stages/engine/parent/run_quarantine.h"

#include "base/count.h"
#include "base/log.h"
#include "base/memory.h"
#include "stages/engine/json_text.h"
#include "stages/engine/parent/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kiln_status grow(kiln_quarantine *q, kiln_error *err)
{
    if (q->n < q->capacity) return KILN_OK;
    const uint64_t capacity = q->capacity ? 2 * q->capacity : 8;
    kiln_quarantine_row *rows;
    KILN_TRY(KILN_ALLOC(&rows, capacity, "the quarantine", err));
    if (q->n) memcpy(rows, q->rows, q->n * sizeof *rows);
    free(q->rows);
    q->rows = rows;
    q->capacity = capacity;
    return KILN_OK;
}

static kiln_status put_row(kiln_run *r, const kiln_quarantine_row *row, kiln_error *err)
{
    kiln_manifest *const to = kiln_run_store(r);
    KILN_TRY(kiln_manifest_begin(to, err));
    kiln_status st = kiln_quarantine_put(to, row, err);
    if (st == KILN_OK) st = kiln_manifest_commit(to, err);
    if (st != KILN_OK) kiln_manifest_rollback(to);
    return st;
}

kiln_status kiln_run_quarantine(kiln_run *r, const kiln_unit *u, const kiln_trial *trial,
                                const char *device, const char *reason, kiln_error *err)
{
    KILN_TRY(grow(&r->quarantine, err));
    kiln_quarantine_row *row = &r->quarantine.rows[r->quarantine.n++];
    *row = (kiln_quarantine_row){
        .key = u->key, .attempts = trial->attempts, .failed_ns = kiln_wall_ns()};
    (void)snprintf(row->stage, sizeof row->stage, "%s", r->program->name);
    (void)snprintf(row->name, sizeof row->name, "%s", u->name);
    (void)snprintf(row->device, sizeof row->device, "%.159s", device);
    (void)snprintf(row->reason, sizeof row->reason, "%.1023s", reason);
    /* the others of a part can be used without it */
    if (u->optional || r->hosts.part) r->quarantine.n_failed++;
    kiln_warn("%s: '%s' is quarantined after %s, the last on %s: %s", r->program->name, u->name,
              KILN_COUNT(trial->attempts, "attempt"), device, reason);
    const bool stored =
        r->manifest && !u->volatile_result && !u->was_cached && !kiln_run_is_once(r);
    return stored ? put_row(r, row, err) : KILN_OK;
}

kiln_status kiln_run_quarantine_again(kiln_run *r, const kiln_quarantine_row *row, kiln_error *err)
{
    KILN_TRY(grow(&r->quarantine, err));
    r->quarantine.rows[r->quarantine.n++] = *row;
    r->quarantine.n_failed++;
    return KILN_OK;
}

kiln_status kiln_run_store_quarantine(kiln_run *r, kiln_error *err)
{
    KILN_TRY(kiln_quarantine_clear(r->manifest, r->program->name, err));
    for (uint64_t i = 0; i < r->quarantine.n; i++)
        KILN_TRY(kiln_quarantine_put(r->manifest, &r->quarantine.rows[i], err));
    return KILN_OK;
}

json_t *kiln_quarantine_json(const kiln_quarantine *q)
{
    json_t *list = json_array();
    for (uint64_t i = 0; list && i < q->n; i++) {
        const kiln_quarantine_row *row = &q->rows[i];
        json_t *one =
            json_pack("{s:o, s:i, s:o, s:o}", "unit", kiln_json_string(row->name), "attempts",
                      (int)row->attempts, "device", kiln_json_string(row->device), "reason",
                      kiln_json_string(row->reason));
        if (json_array_append_new(list, one) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}
