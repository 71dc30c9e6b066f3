/* part_gather -- puts what a manifest lacks of a part's units into it.
 *
 * Problem. A part has up to some gigabytes, a unit too, and none of its bytes may be trusted: each
 * blob is unpacked and hashed before it is stored. And a gather can be killed at any point.
 *
 * Order. Blobs go first, in batches of KILN_PART_BATCH_BYTES, of which a transaction has several; a
 * unit's row goes in the batch of its last blob or a later one. A kill leaves at worst blobs that
 * no unit names yet: gathering again finds them, and kiln-gc drops those that nobody comes for.
 * Nothing is remembered about how far a gather came: the manifest says which units it has.
 *
 * Threads (part_pipeline.c). While one batch is stored, the next are read and checked, so whoever
 * reads cannot ask the manifest anything. Which units it lacks is asked before the first batch.
 * Which blobs it lacks is asked when they are stored: the part leaves out most of those that it
 * had, and each blob of the part is read once, however many units name it. A unit is stored if the
 * manifest has all of its blobs then, wherever they came from, with the sizes that the unit says;
 * so a damaged blob, which is not stored, refuses all units that need it and no other.
 *
 * Numbers. A unit gets a new unit.id in the manifest; its outputs are written under that. Blobs are
 * named by hash, so nothing else of the part's own numbering is used. */
#include "schema/part_gather.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
    PAGE_BYTES = 65536,
    /* of a part's file for each blob: a row, an entry of the index of hashes, at least a frame.
     * Bounds blob.id */
    ID_BYTES = 32,
    WORTH_BYTES = 4 << 20, /* of a part for which threads are begun */
};

static const char *stage_of(const kiln_part_gathering *g) { return g->p->info.stage; }

kiln_status kiln_gather_of_manifest(kiln_part_gathering *g, kiln_status st)
{
    if (st != KILN_OK) g->m_failed = true;
    return st;
}

static bool blames_part(kiln_status st) { return st == KILN_E_IO || st == KILN_E_INPUT; }

kiln_status kiln_gather_refuse(kiln_part_gathering *g, kiln_status st, const kiln_error *why,
                               kiln_error *err)
{
    if (!blames_part(st)) {
        if (err) *err = *why;
        return st;
    }
    if (g->refusal == KILN_OK) {
        g->refusal = st;
        g->why = *why;
    }
    return KILN_OK;
}

/* ---- reading: what the part says ------------------------------------------------------------- */
static kiln_status read_unit_row(kiln_query *q, const kiln_part_gathering *g, kiln_part_unit *u,
                                 kiln_error *err)
{
    char stage[sizeof g->p->info.stage];
    const kiln_hash key = kiln_column_hash(q);
    kiln_column_text(q, stage, sizeof stage);
    kiln_column_text(q, u->name, sizeof u->name);
    u->result.counters = kiln_column_text_dup(q);
    u->wall_ns = kiln_column_i64(q);
    const bool is_object = kiln_column_bool(q);
    KILN_TRY(kiln_query_check(q, err));
    if (!kiln_hash_equal(key, u->key))
        return kiln_fail(err, KILN_E_IO, "unit '%s' has another key than its index says", u->name);
    if (strcmp(stage, stage_of(g)) != 0)
        return kiln_fail(err, KILN_E_INPUT,
                         "unit '%s' belongs to stage '%s', but is in a part of stage '%s'", u->name,
                         stage, stage_of(g));
    if (u->wall_ns < 0)
        return kiln_fail(err, KILN_E_INPUT, "unit '%s' took a negative time", u->name);
    if (is_object) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "the counters of unit '%s' are no JSON object", u->name);
}

static kiln_status read_unit(const kiln_part_gathering *g, int64_t id, kiln_part_unit *u,
                             kiln_error *err)
{
    kiln_query q;
    bool row;
    KILN_TRY(kiln_query_open(g->p->m, &q,
                             "SELECT key, stage, name, counters, wall_ns,"
                             " CASE WHEN json_valid(counters) THEN json_type(counters) = 'object' "
                             "ELSE 0 END FROM unit WHERE id = ?",
                             err));
    kiln_bind_i64(&q, id);
    kiln_status st = kiln_query_step(&q, &row, err);
    if (st == KILN_OK)
        st =
            kiln_row_take(g->p->m, &q,
                          row ? read_unit_row(&q, g, u, err)
                              : kiln_fail(err, KILN_E_IO, "a unit that its index names is missing"),
                          err);
    kiln_query_close(&q);
    return st == KILN_OK ? kiln_unit_read_outputs(g->p->m, id, &u->result, err) : st;
}

/* Reads what the row of a blob says. *id 0: the part has none of that hash. */
static kiln_status read_blob_row(const kiln_part_gathering *g, const kiln_unit_output *o,
                                 kiln_blob *b, int64_t *id, kiln_error *err)
{
    char hex[33];
    kiln_query q;
    bool row;
    *id = 0;
    *b = (kiln_blob){.hash = o->hash};
    KILN_TRY(
        kiln_query_open(g->p->m, &q, "SELECT id, elem, raw_bytes FROM blob WHERE hash = ?", err));
    kiln_bind_hash(&q, o->hash);
    kiln_status st = kiln_query_step(&q, &row, err);
    if (st == KILN_OK && row) {
        *id = kiln_column_i64(&q);
        b->elem = kiln_column_u32(&q);
        b->raw_bytes = kiln_column_u64(&q);
        st = kiln_query_check(&q, err);
        if (st == KILN_OK && b->raw_bytes != o->raw_bytes)
            st = kiln_fail(err, KILN_E_INPUT,
                           "output '%s' of a unit claims %" PRIu64
                           " bytes, but its blob %s has %" PRIu64,
                           o->name, o->raw_bytes, kiln_hash_hex(o->hash, hex), b->raw_bytes);
        if (st == KILN_OK && (*id < 1 || (uint64_t)*id > g->n_ids))
            st = kiln_fail(err, KILN_E_INPUT,
                           "blob %s has the number %" PRId64 ", which SplatKiln never gives it",
                           kiln_hash_hex(o->hash, hex), *id);
        st = kiln_row_take(g->p->m, &q, st, err);
    }
    kiln_query_close(&q);
    return st;
}

static kiln_status open_packed(kiln_part_gathering *g, int64_t id, size_t *bytes, kiln_error *err)
{
    kiln_manifest *m = g->p->m;
    m->other_steps = 0; /* a look-up has a fresh count */
    const int rc = g->packed
                       ? sqlite3_blob_reopen(g->packed, id)
                       : sqlite3_blob_open(m->db, "main", "blob", "packed", id, 0, &g->packed);
    if (rc == SQLITE_OK) {
        *bytes = (size_t)sqlite3_blob_bytes(g->packed);
        return KILN_OK;
    }
    (void)sqlite3_blob_close(g->packed); /* of no more use; accepts NULL */
    g->packed = NULL;
    return kiln_sqlite_fail(m, rc, "read", err);
}

/* Puts the blob into the batch unless the part lacks it or it was there before. *full: it goes into
 * the next one. SQLite writes into the batch's own memory. */
static kiln_status take_blob(kiln_part_gathering *g, kiln_part_batch *batch,
                             const kiln_unit_output *o, bool *full, kiln_error *err)
{
    kiln_blob b;
    int64_t id;
    char hex[33];
    unsigned char *packed;
    *full = false;
    KILN_TRY(read_blob_row(g, o, &b, &id, err));
    if (id == 0 || g->met[id / 8] >> id % 8 & 1) return KILN_OK;
    KILN_TRY(open_packed(g, id, &b.packed_bytes, err));
    if (b.packed_bytes > ZSTD_COMPRESSBOUND(b.raw_bytes)) /* kiln_part_ram counts by raw_bytes */
        return kiln_fail(err, KILN_E_INPUT,
                         "blob %s of %" PRIu64
                         " bytes is packed into %zu, which SplatKiln never does",
                         kiln_hash_hex(b.hash, hex), b.raw_bytes, b.packed_bytes);
    *full = !kiln_part_batch_fits(batch, b.packed_bytes);
    if (*full) return KILN_OK;
    KILN_TRY(kiln_part_batch_blob(batch, &b, &packed, err));
    const int rc = sqlite3_blob_read(g->packed, packed, (int)b.packed_bytes, 0);
    if (rc != SQLITE_OK) {
        kiln_part_batch_take_back(batch);
        return kiln_sqlite_fail(g->p->m, rc, "read", err);
    }
    g->met[id / 8] |= (unsigned char)(1u << id % 8);
    return KILN_OK;
}

static void begin_unit(kiln_part_gathering *g)
{
    const uint64_t at = g->due[g->next++];
    g->unit = (kiln_part_unit){.key = g->p->keys[at]};
    g->unit_why = (kiln_error){0};
    g->output = 0;
    g->is_open = true;
    g->unit.fault = read_unit(g, g->p->ids[at], &g->unit, &g->unit_why);
}

static void end_unit(kiln_part_gathering *g, kiln_part_batch *b)
{
    kiln_part_unit *u = &g->unit;
    if (u->fault != KILN_OK && !b->fault.status) b->fault = g->unit_why;
    b->row_bytes += sizeof *u + (u->result.counters ? strlen(u->result.counters) : 0) +
                    u->result.n * sizeof *u->result.outputs;
    b->units[b->n_units++] = *u;
    g->is_open = false;
}

/* kiln_part_stages.read */
static kiln_status read_batch(void *context, kiln_part_batch *b, kiln_error *err)
{
    kiln_part_gathering *g = context;
    bool full = false;
    b->fault = (kiln_error){0};
    while (b->n_units < KILN_PART_BATCH_UNITS && b->row_bytes < KILN_PART_BATCH_BYTES) {
        if (!g->is_open && g->next == g->n_due) return KILN_OK;
        if (!g->is_open) begin_unit(g);
        kiln_part_unit *u = &g->unit;
        for (; u->fault == KILN_OK && g->output < u->result.n; g->output++) {
            u->fault = take_blob(g, b, &u->result.outputs[g->output], &full, &g->unit_why);
            b->is_full = full;
            if (full) return KILN_OK;
        }
        if (u->fault != KILN_OK && !blames_part(u->fault)) {
            if (err) *err = g->unit_why;
            return u->fault;
        }
        end_unit(g, b);
    }
    return KILN_OK;
}

/* ---- storing --------------------------------------------------------------------------------- */
/* Has the manifest the blob of this output? *raw_bytes: as it says. */
static kiln_status look_for_blob(kiln_manifest *m, kiln_hash hash, bool *has, uint64_t *raw_bytes,
                                 kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(m, &q, "SELECT raw_bytes FROM blob WHERE hash = ?", err));
    kiln_bind_hash(&q, hash);
    kiln_status st = kiln_query_step(&q, has, err);
    if (st == KILN_OK && *has) *raw_bytes = kiln_column_u64(&q);
    if (st == KILN_OK) st = kiln_row_take(m, &q, kiln_query_check(&q, err), err);
    kiln_query_close(&q);
    return st;
}

/* *fault: why the unit cannot be stored, KILN_OK: it can. */
static kiln_status look_at_outputs(const kiln_part_gathering *g, kiln_manifest *to,
                                   const kiln_part_batch *b, const kiln_part_unit *u,
                                   kiln_status *fault, kiln_error *why, kiln_error *err)
{
    char hex[33];
    *fault = u->fault;
    if (u->fault != KILN_OK) *why = b->fault;
    for (uint32_t i = 0; *fault == KILN_OK && i < u->result.n; i++) {
        const kiln_unit_output *o = &u->result.outputs[i];
        uint64_t raw_bytes = 0;
        bool has;
        KILN_TRY(look_for_blob(to, o->hash, &has, &raw_bytes, err));
        if (!has && to->base) KILN_TRY(look_for_blob(to->base, o->hash, &has, &raw_bytes, err));
        if (has && raw_bytes == o->raw_bytes) continue;
        if (has)
            *fault = kiln_fail(why, KILN_E_INPUT,
                               "output '%s' of a unit claims %" PRIu64
                               " bytes, but its blob has %" PRIu64,
                               o->name, o->raw_bytes, raw_bytes);
        else if (g->damage.status != KILN_OK && kiln_hash_equal(g->damaged, o->hash))
            *fault = kiln_fail(why, g->damage.status, "%s", g->damage.msg);
        else
            *fault = kiln_fail(
                why, KILN_E_IO,
                "blob %s of output '%s' is neither in the part nor in the manifest, or is damaged",
                kiln_hash_hex(o->hash, hex), o->name);
        *fault = kiln_row_take(g->p->m, NULL, *fault, why);
    }
    return KILN_OK;
}

static kiln_status store_unit(kiln_part_gathering *g, kiln_manifest *to, const kiln_part_batch *b,
                              const kiln_part_unit *u, kiln_error *err)
{
    kiln_status fault;
    kiln_error why = {0};
    KILN_TRY(look_at_outputs(g, to, b, u, &fault, &why, err));
    if (fault == KILN_OK) {
        g->stored.inserted++;
        const kiln_unit_done unit = {
            .key = u->key, .stage = stage_of(g), .name = u->name, .wall_ns = u->wall_ns};
        return kiln_unit_store(to, &unit, &u->result, g->absent, err);
    }
    g->stored.refused++;
    if (g->refused != KILN_OK) return KILN_OK;
    kiln_note(&why, "unit '%.100s'", u->name);
    g->refused = fault;
    g->refused_why = why;
    return KILN_OK;
}

static kiln_status want_absent(kiln_part_gathering *g, const kiln_part_batch *b, kiln_error *err)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n_units; i++)
        if (b->units[i].result.n > n) n = b->units[i].result.n;
    if (n <= g->n_absent) return KILN_OK;
    free(g->absent);
    g->n_absent = 0;
    KILN_TRY(KILN_ALLOC(&g->absent, n, "a unit's outputs", err));
    g->n_absent = n;
    return KILN_OK;
}

static kiln_status store_batch(kiln_part_gathering *g, kiln_manifest *to, const kiln_part_batch *b,
                               kiln_error *err)
{
    if (g->refusal == KILN_OK && g->damage.status == KILN_OK && b->first_damaged < b->n_blobs) {
        g->damage = b->damage;
        g->damaged = b->blobs[b->first_damaged].blob.hash;
    }
    KILN_TRY(want_absent(g, b, err));
    for (uint32_t i = 0; i < b->n_blobs; i++) {
        const int before = sqlite3_total_changes(to->db);
        if (b->blobs[i].damaged) continue;
        KILN_TRY(kiln_manifest_put_blob(to, &b->blobs[i].blob, err));
        if (sqlite3_total_changes(to->db) == before) continue; /* was there */
        g->stored.blobs++;
        g->stored.bytes += b->blobs[i].blob.packed_bytes;
    }
    for (uint32_t i = 0; i < b->n_units; i++) KILN_TRY(store_unit(g, to, b, &b->units[i], err));
    return KILN_OK;
}

/* kiln_bulk_store_fn: may be called again for the same group. */
static kiln_status store_rows(kiln_manifest *to, void *context, kiln_error *err)
{
    kiln_part_gathering *g = context;
    const kiln_part_batch *b;
    g->stored = (kiln_part_report){0};
    g->refused = KILN_OK;
    for (uint32_t i = 0; (b = kiln_part_group_batch(g->group, i)) != NULL; i++)
        KILN_TRY(store_batch(g, to, b, err));
    return KILN_OK;
}

/* kiln_part_stages.store */
static kiln_status store_group(void *context, kiln_part_group *group, kiln_error *err)
{
    kiln_part_gathering *g = context;
    const kiln_part_batch *first = kiln_part_group_batch(group, 0);
    if (!first) return KILN_OK; /* the gather is at its end, by a failure */
    /* at least, about */
    const uint64_t bytes =
        first->used + first->row_bytes + (first->is_full ? KILN_PART_BATCH_BYTES : 0);
    g->group = group;
    KILN_TRY(kiln_gather_of_manifest(g, kiln_bulk_store(g->m, bytes, store_rows, g, err)));
    g->report->inserted += g->stored.inserted;
    g->report->refused += g->stored.refused;
    g->report->blobs += g->stored.blobs;
    g->report->bytes += g->stored.bytes;
    return g->refused == KILN_OK ? KILN_OK
                                 : kiln_gather_refuse(g, g->refused, &g->refused_why, err);
}

/* ---- units ----------------------------------------------------------------------------------- */
static kiln_status want_unit(kiln_part_gathering *g, uint64_t place, kiln_error *err)
{
    bool stored;
    KILN_TRY(
        kiln_gather_of_manifest(g, kiln_unit_is_stored(g->m, g->p->keys[place], &stored, err)));
    if (stored)
        g->report->present++;
    else
        g->due[g->n_due++] = place;
    return KILN_OK;
}

typedef struct {
    int64_t id;
    uint64_t place;
} numbered;

static int numbered_by_id(const void *a, const void *b)
{
    const int64_t x = ((const numbered *)a)->id, y = ((const numbered *)b)->id;
    return (x > y) - (x < y);
}

static kiln_status list_all(kiln_part_gathering *g, kiln_error *err)
{
    const kiln_part *p = g->p;
    numbered *order = NULL;
    kiln_status st = KILN_ALLOC(&order, p->n, "units in order", err);
    for (uint64_t i = 0; st == KILN_OK && i < p->n; i++) order[i] = (numbered){p->ids[i], i};
    if (st == KILN_OK) qsort(order, p->n, sizeof *order, numbered_by_id);
    for (uint64_t i = 0; st == KILN_OK && i < p->n; i++) st = want_unit(g, order[i].place, err);
    free(order);
    return st;
}

static kiln_status list_wanted(kiln_part_gathering *g, kiln_error *err)
{
    const kiln_part *p = g->p;
    g->report->unwanted = p->n;
    for (uint64_t i = 0; i < g->n_wanted; i++) {
        const uint64_t at = kiln_part_find(p, g->wanted[i]);
        if (at == p->n) continue;
        g->report->unwanted--;
        KILN_TRY(want_unit(g, at, err));
    }
    return KILN_OK;
}

/* Parts of ours number their blobs from 1 on, without gaps. */
static kiln_status count_blobs(kiln_part_gathering *g, uint64_t part_bytes, kiln_error *err)
{
    int64_t last;
    const uint64_t most = part_bytes / ID_BYTES;
    KILN_TRY(kiln_query_number(g->p->m, "SELECT ifnull(max(id), 0) FROM blob", &last, err));
    g->n_ids = last < 0 ? 0 : (uint64_t)last < most ? (uint64_t)last : most;
    return KILN_ALLOC(&g->met, g->n_ids / 8 + 1, "blobs that were read", err);
}

static kiln_status gather_units(kiln_part_gathering *g, kiln_error *err)
{
    kiln_error why = {0};
    int64_t n_pages = 0;
    KILN_TRY(KILN_ALLOC(&g->due, g->p->n, "units", err));
    KILN_TRY(g->wanted ? list_wanted(g, err) : list_all(g, err));
    if (g->n_due == 0) return KILN_OK;
    kiln_status st = kiln_query_number(g->p->m, "PRAGMA page_count", &n_pages, &why);
    const uint64_t bytes = (uint64_t)n_pages * PAGE_BYTES;
    if (st == KILN_OK) st = count_blobs(g, bytes, &why);
    if (st != KILN_OK) {
        g->report->refused += g->n_due;
        return kiln_gather_refuse(g, st, &why, err);
    }
    const kiln_part_stages stages = {.context = g,
                                     .threads = bytes < WORTH_BYTES ? 1 : g->p->threads,
                                     .memory = g->p->keeps,
                                     .read = read_batch,
                                     .store = store_group};
    return kiln_part_pipeline(&stages, err);
}

static void gather_free(kiln_part_gathering *g)
{
    if (g->is_open) kiln_unit_result_release(&g->unit.result);
    (void)sqlite3_blob_close(g->packed); /* was only read; accepts NULL */
    free(g->sorted);
    free(g->absent);
    free(g->met);
    free(g->due);
    free(g);
}

kiln_status kiln_part_gather(kiln_manifest *m, kiln_part *p, const kiln_hash *wanted, uint64_t n,
                             kiln_part_report *report, bool *m_failed, kiln_error *err)
{
    kiln_part_gathering *g = NULL;
    *report = (kiln_part_report){0};
    if (m_failed) *m_failed = false;
    KILN_TRY(KILN_ALLOC(&g, 1, "a gather", err));
    *g = (kiln_part_gathering){.m = m, .p = p, .wanted = wanted, .n_wanted = n, .report = report};
    kiln_status st = gather_units(g, err);
    if (st == KILN_OK) st = kiln_gather_quarantine(g, err);
    if (st == KILN_OK) st = kiln_gather_runs(g, err);
    if (m_failed) *m_failed = g->m_failed;
    if (st == KILN_OK && g->refusal != KILN_OK) {
        st = g->refusal;
        if (err) *err = g->why;
    }
    gather_free(g);
    return st;
}
