/* part_gather -- puts what a manifest lacks of a part's units into it.
 *
 * Problem. A part has up to some gigabytes, a unit too, and none of its bytes may be trusted: each blob is unpacked and hashed
 * before it is stored. And a gather can be killed at any point.
 *
 * Order. Blobs go first, in batches of KILN_PART_BATCH_BYTES; a unit's row goes in the batch of its last blob or a later one. A
 * kill leaves at worst blobs that no unit names yet: gathering again finds them, and kiln-gc drops those that nobody comes for.
 * Nothing is remembered about how far a gather came: the manifest says which units it has.
 *
 * Numbers. A unit gets a new unit.id in the manifest; its outputs are written under that. Blobs are named by hash, so nothing else
 * of the part's own numbering is used. */
#include "base/memory.h"
#include "schema/part_internal.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH_UNITS = 1024,
    BATCH_BLOBS = 8192,
    QUARANTINE_ROWS = 64, /* that are in memory at a time */
    RUNS_MOST = 1000,     /* of a part; a task writes one */
    THREADS_MOST = 64,
    WORTH_BYTES = 1 << 20, /* raw bytes for which a thread is begun */
};

typedef struct {
    kiln_hash key;
    char name[160];
    kiln_unit_result result;
    int64_t wall_ns;
} pending_unit;

typedef struct {
    kiln_manifest *m;
    kiln_part *p;
    const kiln_hash *wanted; /* NULL: all */
    uint64_t n_wanted;
    kiln_hash *sorted; /* wanted, for questions; NULL: not made yet */
    kiln_part_report *report;
    kiln_blob blobs[BATCH_BLOBS]; /* of the batch; they own their packed bytes. Those of the unit that is being read are not checked
                                     yet */
    uint32_t n_blobs;
    uint64_t bytes; /* of the batch */
    pending_unit units[BATCH_UNITS];
    uint32_t n_units;
    kiln_blob *absent; /* n_absent blobs without bytes: what kiln_unit_store takes for those that are stored */
    uint32_t n_absent;
    void *raw, *shuffled; /* room bytes each: one blob unpacked */
    uint64_t room;
    kiln_status refusal; /* of the first unit that was refused */
    kiln_error why;
    bool m_failed;
} gather;

static const char *stage_of(const gather *g) { return g->p->info.stage; }

/* ---- the batch --------------------------------------------------------------------------------------------------- */
static void drop_blobs(gather *g, uint32_t from)
{
    while (g->n_blobs > from) {
        kiln_blob *b = &g->blobs[--g->n_blobs];
        g->bytes -= b->packed_bytes;
        free(b->packed);
        *b = (kiln_blob){0};
    }
}

static void drop_units(gather *g)
{
    while (g->n_units > 0) kiln_unit_result_release(&g->units[--g->n_units].result);
}

static kiln_status store(kiln_manifest *to, void *context, kiln_error *err)
{
    const gather *g = context;
    for (uint32_t i = 0; i < g->n_blobs; i++) KILN_TRY(kiln_manifest_put_blob(to, &g->blobs[i], err));
    for (uint32_t i = 0; i < g->n_units; i++) {
        const pending_unit *u = &g->units[i];
        KILN_TRY(kiln_unit_store(to, u->key, stage_of(g), u->name, &u->result, g->absent, u->wall_ns, err));
    }
    return KILN_OK;
}

static kiln_status flush(gather *g, kiln_error *err)
{
    if (g->n_blobs == 0 && g->n_units == 0) return KILN_OK;
    const kiln_status st = kiln_bulk_store(g->m, g->bytes, store, g, err);
    if (st == KILN_OK) {
        g->report->inserted += g->n_units;
        g->report->blobs += g->n_blobs;
        for (uint32_t i = 0; i < g->n_blobs; i++) g->report->bytes += g->blobs[i].packed_bytes;
    } else
        g->m_failed = true;
    drop_blobs(g, 0);
    drop_units(g);
    g->bytes = 0;
    return st;
}

static kiln_status of_manifest(gather *g, kiln_status st)
{
    if (st != KILN_OK) g->m_failed = true;
    return st;
}

/* ---- what the part says ------------------------------------------------------------------------------------------ */
/* Keeps why a unit is left out, and goes on. What is no fault of the part ends the gather. */
static kiln_status refuse(gather *g, kiln_status st, const kiln_error *why, kiln_error *err)
{
    if (st != KILN_E_IO && st != KILN_E_INPUT) {
        if (err) *err = *why;
        return st;
    }
    if (g->refusal == KILN_OK) {
        g->refusal = st;
        g->why = *why;
    }
    return KILN_OK;
}

static kiln_status read_unit_row(kiln_query *q, const gather *g, pending_unit *u, kiln_error *err)
{
    char stage[sizeof g->p->info.stage];
    const kiln_hash key = kiln_column_hash(q);
    kiln_column_text(q, stage, sizeof stage);
    kiln_column_text(q, u->name, sizeof u->name);
    u->result.counters = kiln_column_text_dup(q);
    u->wall_ns = kiln_column_i64(q);
    const bool is_object = kiln_column_bool(q);
    KILN_TRY(kiln_query_check(q, err));
    if (!kiln_hash_equal(key, u->key)) return kiln_fail(err, KILN_E_IO, "unit '%s' has another key than its index says", u->name);
    if (strcmp(stage, stage_of(g)) != 0)
        return kiln_fail(err, KILN_E_INPUT, "unit '%s' is of stage '%s', in a part of stage '%s'", u->name, stage, stage_of(g));
    if (u->wall_ns < 0) return kiln_fail(err, KILN_E_INPUT, "unit '%s' took a negative time", u->name);
    if (is_object) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "the counters of unit '%s' are no JSON object", u->name);
}

static kiln_status read_unit(const gather *g, int64_t id, pending_unit *u, kiln_error *err)
{
    kiln_query q;
    bool row;
    KILN_TRY(
        kiln_query_open(g->p->m, &q,
                        "SELECT key, stage, name, counters, wall_ns,"
                        " CASE WHEN json_valid(counters) THEN json_type(counters) = 'object' ELSE 0 END FROM unit WHERE id = ?",
                        err));
    kiln_bind_i64(&q, id);
    kiln_status st = kiln_query_step(&q, &row, err);
    if (st == KILN_OK)
        st = kiln_row_take(g->p->m, &q,
                           row ? read_unit_row(&q, g, u, err) : kiln_fail(err, KILN_E_IO, "a unit is gone that its index names"),
                           err);
    kiln_query_close(&q);
    return st == KILN_OK ? kiln_unit_read_outputs(g->p->m, id, &u->result, err) : st;
}

static kiln_status want_scratch(gather *g, uint64_t bytes, kiln_error *err)
{
    if (bytes <= g->room && g->raw) return KILN_OK;
    free(g->raw);
    free(g->shuffled);
    g->raw = g->shuffled = NULL;
    g->room = bytes;
    KILN_TRY(kiln_alloc_unset(&g->raw, bytes, 1, "a blob", err));
    return kiln_alloc_unset(&g->shuffled, bytes, 1, "a blob", err);
}

/* Reads a blob of the part into *b, which is empty; b->packed is the caller's. */
static kiln_status read_blob(kiln_query *q, const kiln_unit_output *o, kiln_blob *b, kiln_error *err)
{
    char hex[33];
    b->hash = o->hash;
    b->elem = kiln_column_u32(q);
    b->raw_bytes = kiln_column_u64(q);
    const void *packed = kiln_column_bytes(q, &b->packed_bytes);
    KILN_TRY(kiln_query_check(q, err));
    if (b->raw_bytes != o->raw_bytes)
        return kiln_fail(err, KILN_E_INPUT, "output '%s' of a unit says %" PRIu64 " bytes, its blob %s has %" PRIu64, o->name,
                         o->raw_bytes, kiln_hash_hex(o->hash, hex), b->raw_bytes);
    KILN_TRY(kiln_alloc_unset((void **)&b->packed, b->packed_bytes, 1, "a blob", err));
    if (b->packed_bytes) memcpy(b->packed, packed, b->packed_bytes);
    return KILN_OK;
}

static kiln_status take_blob(gather *g, const kiln_unit_output *o, kiln_error *err)
{
    char hex[33];
    kiln_query q;
    kiln_blob b = {0};
    bool row;
    KILN_TRY(kiln_query_open(g->p->m, &q, "SELECT elem, raw_bytes, packed FROM blob WHERE hash = ?", err));
    kiln_bind_hash(&q, o->hash);
    kiln_status st = kiln_query_step(&q, &row, err);
    if (st == KILN_OK && !row)
        st = kiln_fail(err, KILN_E_IO, "blob %s of output '%s' is neither in the part nor in the manifest",
                       kiln_hash_hex(o->hash, hex), o->name);
    if (st == KILN_OK) st = read_blob(&q, o, &b, err);
    kiln_query_close(&q);
    if (st != KILN_OK) {
        free(b.packed);
        return kiln_row_take(g->p->m, NULL, st, err);
    }
    g->blobs[g->n_blobs++] = b;
    g->bytes += b.packed_bytes;
    return KILN_OK;
}

/* ---- checking blobs ---------------------------------------------------------------------------------------------- */
typedef struct {
    const gather *g;
    uint64_t room;            /* of the largest blob */
    atomic_uint_fast32_t at;  /* next blob */
    atomic_uint_fast32_t bad; /* the first one that is damaged; n_blobs: none */
} checking;

static void check_some(checking *c, void *raw, void *shuffled)
{
    for (;;) {
        const uint_fast32_t i = atomic_fetch_add(&c->at, 1);
        if (i >= c->g->n_blobs) return;
        if (kiln_blob_unpack_with(&c->g->blobs[i], shuffled, raw, NULL) == KILN_OK) continue;
        uint_fast32_t bad = atomic_load(&c->bad);
        while (i < bad && !atomic_compare_exchange_weak(&c->bad, &bad, i)) continue;
    }
}

static void *check_in_thread(void *context)
{
    checking *c = context;
    void *raw = NULL, *shuffled = NULL;
    if (kiln_alloc_unset(&raw, c->room, 1, "a blob", NULL) == KILN_OK &&
        kiln_alloc_unset(&shuffled, c->room, 1, "a blob", NULL) == KILN_OK)
        check_some(c, raw, shuffled); /* else the others do it */
    free(raw);
    free(shuffled);
    return NULL;
}

/* Threads for so many blobs: as many as their memory and their work allow. */
static unsigned threads_for(const gather *g, uint32_t n, uint64_t largest, uint64_t all)
{
    const uint64_t fit = largest ? KILN_BLOB_MAX / largest : THREADS_MOST;
    uint64_t threads = g->p->threads < THREADS_MOST ? g->p->threads : THREADS_MOST;
    if (threads > fit) threads = fit;
    if (threads > n) threads = n;
    return threads > 1 && all >= WORTH_BYTES ? (unsigned)threads : 1;
}

/* The threads block all signals, so that they reach the caller's. */
static unsigned start_threads(checking *c, pthread_t *threads, unsigned n)
{
    sigset_t all, before;
    unsigned started = 0;
    (void)sigfillset(&all);
    if (n == 0 || pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return 0;
    while (started < n && pthread_create(&threads[started], NULL, check_in_thread, c) == 0) started++;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* Checks the blobs of the batch from number `first` on. What is stored later is the copy that is checked here. The sentence is that
 * of the first damaged one, whatever thread came to it. */
static kiln_status check_blobs(gather *g, uint32_t first, kiln_error *err)
{
    pthread_t threads[THREADS_MOST];
    uint64_t all = 0;
    checking c = {.g = g};
    for (uint32_t i = first; i < g->n_blobs; i++) {
        all += g->blobs[i].raw_bytes;
        if (g->blobs[i].raw_bytes > c.room) c.room = g->blobs[i].raw_bytes;
    }
    if (first == g->n_blobs) return KILN_OK;
    KILN_TRY(want_scratch(g, c.room, err));
    atomic_init(&c.at, first);
    atomic_init(&c.bad, g->n_blobs);
    const unsigned n = start_threads(&c, threads, threads_for(g, g->n_blobs - first, c.room, all) - 1);
    check_some(&c, g->raw, g->shuffled);
    for (unsigned i = 0; i < n; i++) (void)pthread_join(threads[i], NULL); /* cannot fail: it was created, and is joined once */
    const uint_fast32_t bad = atomic_load(&c.bad);
    if (bad == g->n_blobs) return KILN_OK;
    kiln_status st = kiln_blob_unpack_with(&g->blobs[bad], g->shuffled, g->raw, err);
    if (st == KILN_OK)
        st = kiln_fail(err, KILN_E_IO, "a blob was damaged when it was read first, and is not now; check this machine's memory");
    return kiln_row_take(g->p->m, NULL, st, err);
}

/* ---- units ------------------------------------------------------------------------------------------------------- */
/* Has the manifest the blob of this output? *raw_bytes: as it says. */
static kiln_status look_for_blob(gather *g, kiln_hash hash, bool *has, uint64_t *raw_bytes, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(g->m, &q, "SELECT raw_bytes FROM blob WHERE hash = ?", err));
    kiln_bind_hash(&q, hash);
    kiln_status st = kiln_query_step(&q, has, err);
    if (st == KILN_OK && *has) *raw_bytes = kiln_column_u64(&q);
    if (st == KILN_OK) st = kiln_row_take(g->m, &q, kiln_query_check(&q, err), err);
    kiln_query_close(&q);
    return st;
}

/* *why: the part's fault. */
static kiln_status gather_output(gather *g, const kiln_unit_output *o, uint32_t *first, kiln_status *fault, kiln_error *why,
                                 kiln_error *err)
{
    bool has;
    uint64_t raw_bytes = 0;
    KILN_TRY(of_manifest(g, look_for_blob(g, o->hash, &has, &raw_bytes, err)));
    if (has && raw_bytes != o->raw_bytes)
        *fault = kiln_row_take(g->p->m, NULL,
                               kiln_fail(why, KILN_E_INPUT, "output '%s' of a unit says %" PRIu64 " bytes, its blob has %" PRIu64,
                                         o->name, o->raw_bytes, raw_bytes),
                               why);
    if (has) return KILN_OK;
    *fault = take_blob(g, o, why);
    if (*fault != KILN_OK || (g->bytes < KILN_PART_BATCH_BYTES && g->n_blobs < BATCH_BLOBS)) return KILN_OK;
    *fault = check_blobs(g, *first, why);
    if (*fault != KILN_OK) return KILN_OK;
    *first = 0;
    return flush(g, err);
}

static kiln_status want_absent(gather *g, uint32_t n, kiln_error *err)
{
    if (n <= g->n_absent) return KILN_OK;
    free(g->absent);
    g->n_absent = 0;
    KILN_TRY(KILN_ALLOC(&g->absent, n, "a unit's outputs", err));
    g->n_absent = n;
    return KILN_OK;
}

static kiln_status gather_unit(gather *g, int64_t id, kiln_hash key, kiln_error *err)
{
    bool stored;
    kiln_error why = {0};
    pending_unit u = {.key = key};
    KILN_TRY(of_manifest(g, kiln_unit_is_stored(g->m, key, &stored, err)));
    g->report->present += stored;
    if (stored) return KILN_OK;
    uint32_t first = g->n_blobs; /* of this unit in the batch */
    kiln_status st = KILN_OK, fault = read_unit(g, id, &u, &why);
    for (uint32_t i = 0; st == KILN_OK && fault == KILN_OK && i < u.result.n; i++)
        st = gather_output(g, &u.result.outputs[i], &first, &fault, &why, err);
    if (st == KILN_OK && fault == KILN_OK) fault = check_blobs(g, first, &why);
    if (st == KILN_OK && fault == KILN_OK) st = want_absent(g, u.result.n, err);
    if (st == KILN_OK && fault == KILN_OK) {
        g->bytes += sizeof u + strlen(u.result.counters) + u.result.n * sizeof *u.result.outputs;
        g->units[g->n_units++] = u;
        return g->n_units < BATCH_UNITS && g->bytes < KILN_PART_BATCH_BYTES ? KILN_OK : flush(g, err);
    }
    kiln_unit_result_release(&u.result);
    drop_blobs(g, first);
    if (st != KILN_OK) return st;
    kiln_note(&why, "unit '%.100s'", u.name);
    g->report->refused++;
    return refuse(g, fault, &why, err);
}

typedef struct {
    int64_t id;
    uint64_t place;
} numbered;

static int by_id(const void *a, const void *b)
{
    const int64_t x = ((const numbered *)a)->id, y = ((const numbered *)b)->id;
    return (x > y) - (x < y);
}

static kiln_status gather_all(gather *g, kiln_error *err)
{
    const kiln_part *p = g->p;
    numbered *order = NULL;
    kiln_status st = KILN_ALLOC(&order, p->n, "units in order", err);
    for (uint64_t i = 0; st == KILN_OK && i < p->n; i++) order[i] = (numbered){p->ids[i], i};
    if (st == KILN_OK) qsort(order, p->n, sizeof *order, by_id);
    for (uint64_t i = 0; st == KILN_OK && i < p->n; i++) st = gather_unit(g, order[i].id, p->keys[order[i].place], err);
    free(order);
    return st;
}

static kiln_status gather_wanted(gather *g, kiln_error *err)
{
    const kiln_part *p = g->p;
    g->report->unwanted = p->n;
    for (uint64_t i = 0; i < g->n_wanted; i++) {
        const uint64_t at = kiln_part_find(p, g->wanted[i]);
        if (at == p->n) continue;
        g->report->unwanted--;
        KILN_TRY(gather_unit(g, p->ids[at], p->keys[at], err));
    }
    return KILN_OK;
}

/* ---- quarantine -------------------------------------------------------------------------------------------------- */
static int by_key(const void *a, const void *b) { return memcmp(a, b, sizeof(kiln_hash)); }

static kiln_status is_wanted(gather *g, kiln_hash key, bool *wanted, kiln_error *err)
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

static kiln_status read_quarantine_row(kiln_query *q, const gather *g, kiln_quarantine_row *row, int64_t *rowid, kiln_error *err)
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
    if (strcmp(row->stage, stage_of(g)) == 0 && row->failed_ns >= 0) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "unit '%s' in quarantine is of another stage, or failed before 1970", row->name);
}

/* The next rows behind *rowid. */
static kiln_status read_quarantine(const gather *g, kiln_quarantine_row rows[QUARANTINE_ROWS], uint32_t *n, int64_t *rowid,
                                   kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    *n = 0;
    KILN_TRY(kiln_query_open(g->p->m, &q,
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
static kiln_status is_outdated(kiln_manifest *m, const kiln_quarantine_row *row, bool *outdated, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_unit_is_stored(m, row->key, outdated, err));
    if (*outdated) return KILN_OK;
    KILN_TRY(kiln_query_open(m, &q, "SELECT 1 FROM quarantine WHERE key = ? AND failed_ns >= ?", err));
    kiln_bind_hash(&q, row->key);
    kiln_bind_i64(&q, row->failed_ns);
    const kiln_status st = kiln_query_step(&q, outdated, err);
    kiln_query_close(&q);
    return st;
}

static kiln_status put_quarantine(gather *g, const kiln_quarantine_row *rows, uint32_t n, kiln_error *err)
{
    bool own;
    uint64_t put = 0;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_group_begin(g->m, &own, err));
    for (uint32_t i = 0; i < n; i++) {
        bool wanted, outdated;
        KILN_GO(is_wanted(g, rows[i].key, &wanted, err));
        if (!wanted) continue;
        KILN_GO(is_outdated(g->m, &rows[i], &outdated, err));
        if (outdated) continue;
        KILN_GO(kiln_quarantine_put(g->m, &rows[i], err));
        put++;
    }
done:
    st = kiln_group_end(g->m, own, st, err);
    if (st == KILN_OK) g->report->quarantined += put;
    return of_manifest(g, st);
}

static kiln_status gather_quarantine(gather *g, kiln_error *err)
{
    kiln_quarantine_row *rows = NULL;
    int64_t rowid = INT64_MIN;
    uint32_t n = QUARANTINE_ROWS;
    kiln_status st = KILN_ALLOC(&rows, QUARANTINE_ROWS, "rows of the quarantine", err);
    while (st == KILN_OK && n == QUARANTINE_ROWS) {
        kiln_error why = {0};
        const kiln_status fault = read_quarantine(g, rows, &n, &rowid, &why);
        if (fault != KILN_OK) {
            st = refuse(g, fault, &why, err);
            break;
        }
        if (n > 0) st = put_quarantine(g, rows, n, err);
    }
    free(rows);
    return st;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */
static kiln_status is_recorded(kiln_manifest *m, const kiln_run_row *r, bool *recorded, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(
        m, &q, "SELECT 1 FROM run WHERE stage = ? AND start_ns = ? AND stop_ns = ? AND parameters = ? AND counters = ?", err));
    kiln_bind_text(&q, r->stage);
    kiln_bind_i64(&q, r->start_ns);
    kiln_bind_i64(&q, r->stop_ns);
    kiln_bind_text(&q, r->parameters);
    kiln_bind_text(&q, r->counters);
    const kiln_status st = kiln_query_step(&q, recorded, err);
    kiln_query_close(&q);
    return st;
}

static kiln_status put_run(gather *g, const kiln_run_row *r, kiln_error *err)
{
    bool recorded;
    KILN_TRY(is_recorded(g->m, r, &recorded, err));
    if (recorded) return KILN_OK;
    KILN_TRY(kiln_run_row_put(g->m, r, err));
    g->report->runs++;
    return KILN_OK;
}

/* *found false: there is none behind *id. */
static kiln_status next_run(const gather *g, int64_t *id, bool *found, kiln_run_row *r, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(g->p->m, &q,
                             "SELECT id, stage, program, parameters, device, counters, start_ns, stop_ns, exit_code,"
                             " json_valid(counters) AND json_valid(parameters) FROM run WHERE id > ? ORDER BY id",
                             err));
    kiln_bind_i64(&q, *id);
    kiln_status st = kiln_query_step(&q, found, err);
    if (st == KILN_OK && *found) st = kiln_row_take(g->p->m, &q, kiln_run_row_read(&q, r, err), err);
    kiln_query_close(&q);
    *id = r->id;
    if (st == KILN_OK && *found && strcmp(r->stage, stage_of(g)) != 0)
        st = kiln_row_take(g->p->m, NULL,
                           kiln_fail(err, KILN_E_INPUT, "a run is of stage '%s', in a part of stage '%s'", r->stage, stage_of(g)),
                           err);
    return st;
}

static kiln_status gather_runs(gather *g, kiln_error *err)
{
    int64_t id = INT64_MIN;
    for (int n = 0;; n++) {
        kiln_error why = {0};
        kiln_run_row r = {0};
        bool found = false;
        kiln_status fault = next_run(g, &id, &found, &r, &why), st = KILN_OK;
        if (fault == KILN_OK && n == RUNS_MOST)
            fault = kiln_row_take(g->p->m, NULL, kiln_fail(&why, KILN_E_INPUT, "it has more than %d runs", RUNS_MOST), &why);
        if (fault == KILN_OK && found) st = of_manifest(g, put_run(g, &r, err));
        kiln_run_row_release(&r);
        if (fault != KILN_OK) return refuse(g, fault, &why, err);
        if (st != KILN_OK || !found) return st;
    }
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */
static void gather_free(gather *g)
{
    drop_blobs(g, 0);
    drop_units(g);
    free(g->sorted);
    free(g->absent);
    free(g->raw);
    free(g->shuffled);
    free(g);
}

kiln_status kiln_part_gather(kiln_manifest *m, kiln_part *p, const kiln_hash *wanted, uint64_t n, kiln_part_report *report,
                             bool *m_failed, kiln_error *err)
{
    gather *g = NULL;
    *report = (kiln_part_report){0};
    if (m_failed) *m_failed = false;
    KILN_TRY(KILN_ALLOC(&g, 1, "a gather", err));
    g->m = m;
    g->p = p;
    g->wanted = wanted;
    g->n_wanted = n;
    g->report = report;
    kiln_status st = wanted ? gather_wanted(g, err) : gather_all(g, err);
    if (st == KILN_OK) st = flush(g, err);
    if (st == KILN_OK) st = gather_quarantine(g, err);
    if (st == KILN_OK) st = gather_runs(g, err);
    if (m_failed) *m_failed = g->m_failed;
    if (st == KILN_OK && g->refusal != KILN_OK) {
        st = g->refusal;
        if (err) *err = g->why;
    }
    gather_free(g);
    return st;
}
