/* check -- kiln_manifest_verify: SQLite's own structure, every row (check_rows.c), every blob
 * against its hash, every reference and count, then what the blobs hold (check_layers.c,
 * check_tables.c).
 *
 * What can be said in SQL is a row of `rules`: a query whose rows are the sentences of what is
 * wrong. What is asked of a row whenever it is read (row_check.h) is not said here again: rows are
 * read by the same functions, which tell the list of problems instead of ending at the first.
 *
 * One thread reports, so that sentences and their order are the same however many threads there
 * are. The others sweep before (check_sweep.c): they find out what is sound, and the one thread
 * leaves that out. In a sound manifest little is left to it. */
#include "schema/check.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In place of rule 0, where no blob is to be read: SQLite's check goes through all pages of a
 * table, those of blobs' bytes too. What a row of blob says about itself is asked by the second. */
static const char *const quick_rules[] = {
    "SELECT 'SQLite: ' || found.integrity_check FROM sqlite_schema AS one JOIN "
    "pragma_integrity_check(one.name) AS found"
    " WHERE one.type = 'table' AND one.name <> 'blob' AND found.integrity_check <> 'ok' LIMIT 20",
    "SELECT 'blob ' || lower(hex(hash)) || ' is damaged: its sizes are no sizes of a blob' FROM "
    "blob"
    " WHERE elem NOT IN (1, 2, 4, 8) OR raw_bytes NOT BETWEEN 0 AND 67108864 OR raw_bytes % elem "
    "<> 0 OR length(packed) = 0"
    " OR length(hash) <> 16",
    "SELECT 'blob ' || lower(hex(hash)) || ' is not found by its hash' FROM blob WHERE id NOT IN"
    " (SELECT other.id FROM blob AS other WHERE other.hash = blob.hash)",
};

static const char *const rules[] = {
    "SELECT 'SQLite: ' || integrity_check FROM pragma_integrity_check(20) WHERE integrity_check <> "
    "'ok'",
    "SELECT 'a row of ' || \"table\" || ' refers to a row of ' || parent || ' that is missing' "
    "FROM pragma_foreign_key_check LIMIT "
    "20",
    "SELECT 'unit ''' || unit.name || ''', output ''' || o.name || ''' claims another size than "
    "its blob has'"
    " FROM unit_output o JOIN unit ON unit.id = o.unit JOIN blob ON blob.hash = o.hash"
    /* elem may differ: equal bytes of other elements (two arrays without any, or all zeros) are one
     * blob */
    " WHERE o.raw_bytes <> blob.raw_bytes",
    "SELECT 'the counters of unit ''' || name || ''' are not JSON' FROM unit WHERE NOT "
    "json_valid(counters)",
    "SELECT 'the counters or parameters of run ' || id || ' are not JSON' FROM run WHERE NOT "
    "(json_valid(counters) AND"
    " json_valid(parameters))",
    "SELECT 'there is no scene, though the stage ' || name || ' says that it finished; import the "
    "scene again' FROM stage"
    " WHERE NOT EXISTS (SELECT 1 FROM scene) LIMIT 1",
    "SELECT 'chunk ''' || chunk || ''', plane ''' || name || ''' has ' || n || ' bytes in its "
    "segments, not ' || raw_bytes FROM"
    " (SELECT chunk.name AS chunk, plane.name, plane.raw_bytes, coalesce(sum(blob.raw_bytes), 0) "
    "AS n FROM plane"
    " JOIN chunk ON chunk.id = plane.chunk LEFT JOIN plane_segment s ON s.plane = plane.id LEFT "
    "JOIN blob ON blob.hash = s.hash"
    " GROUP BY plane.id) WHERE n <> raw_bytes",
    "SELECT 'stage ' || stage || ' names layer ''' || role || ''', which does not exist' FROM "
    "stage_output"
    " WHERE layer IS NULL AND role IN (NULL"
#define LAYER(kind, ...) ", '" #kind "'"
#include "schema/layers.def"
    ")",
    "SELECT 'stage ' || stage || ' names layer ''' || role || ''' by another digest or kind' FROM "
    "stage_output o"
    " JOIN layer ON layer.id = o.layer WHERE o.digest <> layer.digest OR o.role <> layer.kind",
    kiln_lost_outputs_sql,
    /* units of other options are kept beside the one of which the layer was made */
    "SELECT 'unit ''' || u.name || ''' keeps another ' || plane.name || ' than the layer has; "
    "kiln-lod --force computes it again'"
    " FROM stage_output so JOIN chunk ON chunk.layer = so.layer JOIN plane ON plane.chunk = "
    "chunk.id"
    " JOIN plane_segment s ON s.plane = plane.id AND s.segment = 0"
    " JOIN unit u ON u.stage = so.stage AND u.name = 'visibility of ' || chunk.name"
    " JOIN unit_output o ON o.unit = u.id AND o.name = plane.name AND o.segment = 0"
    " WHERE so.role = 'visibility' GROUP BY plane.id HAVING max(o.hash = s.hash) = 0",
    "SELECT 'the tile table of camera ''' || camera || ''': an array claims another size than its "
    "blob has' FROM tile_segment s"
    " JOIN tile_table t ON t.id = s.tile_table JOIN blob ON blob.hash = s.hash WHERE s.raw_bytes "
    "<> blob.raw_bytes",
    /* a scene that lost a camera leaves these stale, not damaged, until their stage runs again */
    "SELECT 'a tile table names camera ''' || camera || ''', which does not exist' FROM tile_table"
    " WHERE camera NOT IN (SELECT name FROM camera) AND EXISTS (SELECT 1 FROM stage WHERE name = "
    "'tiles' AND state = 'fresh')",
    "SELECT 'an image names camera ''' || camera || ''', which does not exist' FROM image"
    " WHERE camera NOT IN (SELECT name FROM camera) AND EXISTS (SELECT 1 FROM stage WHERE name = "
    "'render' AND state = 'fresh')",
};

_Static_assert(sizeof rules / sizeof *rules <= KILN_CHECK_RULES_MAX,
               "more rules than kiln_sound has room for");

void kiln_check_problem(kiln_check *c, const char *fmt, ...)
{
    char sentence[1200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, ap);
    va_end(ap);
    if (c->problems++ == 0) snprintf(c->first, sizeof c->first, "%.599s", sentence);
    if (c->report) c->report(c->context, sentence);
}

kiln_status kiln_check_take(kiln_check *c, kiln_status st, const kiln_error *err)
{
    /* SQLite calls some damage "out of memory" (a record that says 2 GiB); by then integrity_check,
     * which comes first, has complained */
    const bool of_file = st == KILN_E_NOMEM && c->problems > 0;
    if (st != KILN_E_IO && st != KILN_E_INPUT && st != KILN_E_STALE && st != KILN_E_BUG && !of_file)
        return st;
    kiln_check_problem(c, "%s", err->msg);
    return KILN_OK;
}

void kiln_check_hear(void *check, const char *sentence)
{
    kiln_check_problem(check, "%s", sentence);
}

kiln_status kiln_scratch_want(kiln_scratch *s, uint64_t bytes, kiln_error *err)
{
    if (bytes <= s->capacity && s->data) return KILN_OK;
    free(s->data);
    s->data = NULL;
    s->capacity = 0;
    KILN_TRY(kiln_alloc(&s->data, bytes, 1, "what is being checked", err));
    s->capacity = bytes;
    return KILN_OK;
}

static kiln_status run_rule(kiln_check *c, const char *sql, kiln_error *err)
{
    kiln_query q;
    bool row;
    char sentence[1200];
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(c->m, &q, sql, err));
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        kiln_column_text(&q, sentence, sizeof sentence);
        KILN_GO(kiln_query_check(&q, err));
        kiln_check_problem(c, "%s", sentence);
    }
done:
    kiln_query_close(&q);
    return st;
}

unsigned kiln_check_rules(void) { return sizeof rules / sizeof *rules; }
kiln_status kiln_check_rule(kiln_check *c, unsigned rule, kiln_error *err)
{
    return run_rule(c, rules[rule], err);
}

static kiln_status check_rules(kiln_check *c, kiln_error *err)
{
    for (size_t i = 0; c->quick && i < sizeof quick_rules / sizeof *quick_rules; i++)
        KILN_TRY(kiln_check_take(c, run_rule(c, quick_rules[i], err), err));
    for (unsigned i = c->quick ? 1 : 0; i < kiln_check_rules(); i++)
        if (!c->sound || !c->sound->rules[i])
            KILN_TRY(kiln_check_take(c, kiln_check_rule(c, i, err), err));
    return KILN_OK;
}

static kiln_status check_blob(kiln_check *c, kiln_query *q, kiln_scratch *s, kiln_error *err)
{
    kiln_blob b = {0};
    b.hash = kiln_column_hash(q);
    b.elem = kiln_column_u32(q);
    b.raw_bytes = kiln_column_u64(q);
    b.packed = (unsigned char *)kiln_column_bytes(q, &b.packed_bytes); /* read only */
    KILN_TRY(kiln_query_check(q, err));
    /* larger is refused by unpack */
    KILN_TRY(kiln_scratch_want(s, b.raw_bytes <= KILN_BLOB_MAX ? b.raw_bytes : 0, err));
    KILN_TRY(kiln_blob_unpack(&b, s->data, err));
    c->bytes += b.raw_bytes;
    return KILN_OK;
}

/* Adds the bytes of all blobs; false: some are not known to be sound. */
static bool all_blobs_are_sound(kiln_check *c)
{
    uint64_t bytes = 0;
    for (uint64_t i = 0; c->sound && i < c->sound->n_blobs; i++) {
        if (!c->sound->blobs[i].sound) return false;
        bytes += c->sound->blobs[i].raw_bytes;
    }
    c->bytes += c->sound ? bytes : 0;
    return c->sound;
}

static kiln_status check_blobs(kiln_check *c, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_scratch s = {0};
    kiln_status st = KILN_OK;
    if (c->quick || all_blobs_are_sound(c)) return KILN_OK;
    KILN_TRY(kiln_query_open(c->m, &q, "SELECT hash, elem, raw_bytes, packed FROM blob ORDER BY id",
                             err));
    for (uint64_t i = 0;; i++) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        if (c->sound && i < c->sound->n_blobs && c->sound->blobs[i].sound) {
            c->bytes += c->sound->blobs[i].raw_bytes;
            continue;
        }
        KILN_GO(kiln_check_take(c, check_blob(c, &q, &s, err), err));
        q.status = KILN_OK; /* the row that failed is reported; the next one has its own chance */
    }
done:
    free(s.data);
    kiln_query_close(&q);
    return st;
}

static kiln_status check_all(kiln_check *c, kiln_error *err)
{
    KILN_TRY(check_rules(c, err));
    if (!c->sound || !c->sound->rows) KILN_TRY(kiln_check_take(c, kiln_check_rows(c, err), err));
    KILN_TRY(kiln_check_take(c, check_blobs(c, err), err));
    KILN_TRY(kiln_check_take(c, kiln_check_layers(c, err), err));
    return kiln_check_take(c, kiln_check_tables(c, err), err);
}

kiln_status kiln_manifest_verify_with(kiln_manifest *m, const kiln_verify_options *o,
                                      uint64_t *checked_bytes, kiln_error *err)
{
    kiln_error own_error = {0};
    kiln_check c = {.m = m, .report = o->report, .context = o->context, .quick = o->quick};
    kiln_sound *sound = NULL;
    const bool own = sqlite3_get_autocommit(m->db);
    if (!err) err = &own_error; /* problems are read from it */
    *checked_bytes = 0;
    if (own && !o->quick && o->threads > 0) sound = kiln_sweep(m, o);
    /* one state, while a writer goes on */
    if (sqlite3_get_autocommit(m->db)) KILN_TRY(kiln_manifest_begin(m, err));
    c.sound = sound;
    m->listen = kiln_check_hear;
    m->listener = &c;
    const kiln_status st = check_all(&c, err);
    m->listen = NULL;
    kiln_sound_free(sound);
    /* nothing was written, and SQLite ends the transaction by itself over some damage */
    if (own) kiln_manifest_rollback(m);
    KILN_TRY(st);
    *checked_bytes = c.bytes;
    if (c.problems == 0) return KILN_OK;
    if (c.problems == 1)
        return kiln_fail(err, KILN_E_IO, "manifest '%s' is damaged: %s", m->path, c.first);
    return kiln_fail(err, KILN_E_IO, "manifest '%s' is damaged: %s (and %" PRIu64 " more)", m->path,
                     c.first, c.problems - 1);
}

kiln_status kiln_manifest_verify(kiln_manifest *m, kiln_problem_fn *report, void *context,
                                 uint64_t *checked_bytes, kiln_error *err)
{
    const kiln_verify_options o = {.report = report, .context = context};
    return kiln_manifest_verify_with(m, &o, checked_bytes, err);
}
