/* gc_steps -- drops what the plan found, in short transactions: first the rows that name blobs,
 * then the blobs. So a blob that a row names is always there, wherever a kill comes.
 *
 * Foreign keys are on while units and layers go, whose own rows go with them, and off while blobs
 * go: for each blob SQLite would read all rows that could name it. What stands in for that check:
 * the plan has read all of them, no other process has written since (data_version, asked inside
 * each transaction, and the lock), and at the end another plan finds every named blob in its
 * place. */
#include "schema/gc_internal.h"

#include <stdlib.h>
#include <string.h>

/* each dirties all pages of an index by hash, whatever its number */
enum { UNITS_OF_STEP = 4096, BLOBS_OF_STEP = 16384 };
#define BYTES_OF_STEP ((uint64_t)64 << 20)

/* ---- the plan -------------------------------------------------------------------------------- */
static kiln_status find_unneeded(kiln_gc *g, kiln_error *err)
{
    KILN_TRY(kiln_query_number(g->m, "PRAGMA data_version", &g->data_version, err));
    KILN_TRY(kiln_gc_find_rows(g, err));
    KILN_TRY(kiln_gc_find_runs(g, err));
    return kiln_gc_find_blobs(g, err);
}

static kiln_status plan_gc(kiln_manifest *m, bool is_proof, kiln_gc **out, kiln_error *err)
{
    kiln_gc *g = NULL;
    bool own;
    kiln_status st;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&g, 1, "what is not needed any more", err));
    g->m = m;
    g->is_proof = is_proof;
    KILN_GO(kiln_group_begin(m, &own, err)); /* one state */
    KILN_GO(kiln_group_end(m, own, find_unneeded(g, err), err));
    *out = g;
    return KILN_OK;
done:
    kiln_gc_free(g);
    return st;
}

kiln_status kiln_gc_plan(kiln_manifest *m, kiln_gc **out, kiln_error *err)
{
    return plan_gc(m, false, out, err);
}

void kiln_gc_free(kiln_gc *g)
{
    if (!g) return;
    free(g->stages);
    free(g->units);
    free(g->layers);
    free(g->runs);
    free(g->blobs);
    free(g);
}

kiln_gc_count kiln_gc_layers(const kiln_gc *g, const char *kind)
{
    kiln_gc_count c = {0};
    for (uint64_t i = 0; i < g->n_layers; i++) {
        if (kind && strcmp(kind, g->layers[i].kind) != 0) continue;
        ++*(g->layers[i].kept ? &c.kept : &c.dropped);
    }
    return c;
}

kiln_gc_count kiln_gc_units(const kiln_gc *g, const char *stage)
{
    kiln_gc_count c = {0};
    for (uint64_t i = 0; i < g->n_units; i++) {
        const int32_t s = g->units[i].stage;
        if (stage && (s == KILN_GC_NO_STAGE || strcmp(stage, g->stages[s].name) != 0)) continue;
        ++*(g->units[i].kept ? &c.kept : &c.dropped);
    }
    return c;
}

kiln_gc_count kiln_gc_blobs(const kiln_gc *g)
{
    return (kiln_gc_count){.dropped = g->n_blobs, .kept = g->n_blobs_kept};
}
uint64_t kiln_gc_bytes(const kiln_gc *g) { return g->bytes; }
uint64_t kiln_gc_bytes_done(const kiln_gc *g) { return g->bytes_done; }

/* ---- steps ----------------------------------------------------------------------------------- */
static kiln_status delete_row(kiln_manifest *m, const char *sql, int64_t id, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(m, &q, sql, err));
    kiln_bind_i64(&q, id);
    return kiln_query_run(&q, err);
}

/* Whole: a layer that lacked chunks could become current again, as one of its digest "stays as it
 * is". */
static kiln_status drop_layer(kiln_gc *g, kiln_error *err)
{
    return delete_row(g->m, "DELETE FROM layer WHERE id = ?", g->layers[g->next_layer++].id, err);
}

static kiln_status drop_units(kiln_gc *g, kiln_error *err)
{
    for (int n = 0; n < UNITS_OF_STEP && g->next_unit < g->n_units; g->next_unit++) {
        if (g->units[g->next_unit].kept) continue;
        KILN_TRY(delete_row(g->m, "DELETE FROM unit WHERE id = ?", g->units[g->next_unit].id, err));
        n++;
    }
    return KILN_OK;
}

static kiln_status drop_runs(kiln_gc *g, kiln_error *err)
{
    uint64_t bytes = 0;
    for (int n = 0; n < UNITS_OF_STEP && bytes < BYTES_OF_STEP && g->next_run < g->n_runs;
         g->next_run++) {
        if (g->runs[g->next_run].kept) continue;
        bytes += g->runs[g->next_run].bytes;
        KILN_TRY(delete_row(g->m, "DELETE FROM run WHERE id = ?", g->runs[g->next_run].id, err));
        n++;
    }
    return KILN_OK;
}

static kiln_status drop_blobs(kiln_gc *g, kiln_error *err)
{
    uint64_t bytes = 0;
    for (int n = 0; n < BLOBS_OF_STEP && bytes < BYTES_OF_STEP && g->next_blob < g->n_blobs; n++) {
        bytes += g->blobs[g->next_blob].bytes;
        KILN_TRY(
            delete_row(g->m, "DELETE FROM blob WHERE id = ?", g->blobs[g->next_blob++].id, err));
    }
    g->bytes_done += bytes;
    return KILN_OK;
}

typedef kiln_status drop_fn(kiln_gc *g, kiln_error *err);

/* NULL: all is dropped. */
static drop_fn *next_drop(kiln_gc *g)
{
    while (g->next_layer < g->n_layers && g->layers[g->next_layer].kept) g->next_layer++;
    while (g->next_unit < g->n_units && g->units[g->next_unit].kept) g->next_unit++;
    while (g->next_run < g->n_runs && g->runs[g->next_run].kept) g->next_run++;
    if (g->next_layer < g->n_layers) return drop_layer;
    if (g->next_unit < g->n_units) return drop_units;
    if (g->next_run < g->n_runs) return drop_runs;
    return g->next_blob < g->n_blobs ? drop_blobs : NULL;
}

static kiln_status drop_if_unchanged(kiln_gc *g, drop_fn *fn, kiln_error *err)
{
    int64_t version;
    KILN_TRY(kiln_query_number(g->m, "PRAGMA data_version", &version, err));
    if (version != g->data_version)
        return kiln_fail(
            err, KILN_E_BUSY,
            "another program has written into '%s' meanwhile; run this again when it is done",
            g->m->path);
    return fn(g, err);
}

static bool is_empty(const kiln_gc *g)
{
    return g->n_blobs == 0 && kiln_gc_units(g, NULL).dropped == 0 &&
           kiln_gc_layers(g, NULL).dropped == 0 && kiln_gc_runs(g, NULL).dropped == 0;
}

/* What foreign keys would have refused. */
static kiln_status prove(kiln_gc *g, kiln_error *err)
{
    kiln_gc *again = NULL;
    kiln_status st = plan_gc(g->m, true, &again, err);
    if (st == KILN_OK && g->keeps_runs) kiln_gc_keep_runs(again);
    if (st == KILN_OK && !is_empty(again))
        st = kiln_fail(err, KILN_E_BUG, "'%s' still holds data that should have been dropped",
                       g->m->path);
    kiln_gc_free(again);
    return st;
}

/* SQLite's zeros over what is deleted would be as many bytes as that, through the WAL; vacuum, or
 * what comes next, writes over it.
 */
static kiln_status set_up_drop(kiln_gc *g, drop_fn *fn, kiln_error *err)
{
    return kiln_sql(g->m,
                    fn == drop_blobs ? "PRAGMA foreign_keys = OFF; PRAGMA secure_delete = OFF"
                                     : "PRAGMA foreign_keys = ON; PRAGMA secure_delete = OFF",
                    err);
}

kiln_status kiln_gc_step(kiln_gc *g, bool *more, kiln_error *err)
{
    drop_fn *fn = next_drop(g);
    *more = false;
    if (!fn) return KILN_OK;
    KILN_TRY(set_up_drop(g, fn, err));
    kiln_status st = kiln_manifest_begin(g->m, err);
    if (st == KILN_OK) st = kiln_group_end(g->m, true, drop_if_unchanged(g, fn, err), err);
    if (st == KILN_OK && !next_drop(g)) st = prove(g, err);
    const kiln_status back = kiln_sql(g->m, "PRAGMA foreign_keys = ON", st == KILN_OK ? err : NULL);
    *more = st == KILN_OK && next_drop(g) != NULL;
    return st == KILN_OK ? back : st;
}
