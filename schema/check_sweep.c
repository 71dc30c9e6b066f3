/* check_sweep -- finds out with several threads what of a manifest is sound.
 *
 * Problem. One thread takes a minute for a manifest of 20 GB: SQLite's own check goes through every
 * page. Every blob is unpacked and hashed. The content of planes and tile tables is compared with
 * what their rows claim. Damage must be reported in one order, whatever the number of threads. The
 * message about a broken b-tree depends on how the tree is read.
 *
 * Layout. Everything that kiln_manifest_verify does is cut into tasks: a rule, the rows, a tile
 * table, a blob with the planes that it is. A thread that does a task says whether it found
 * anything, not what. The caller's thread then goes through everything in its order and leaves out
 * what is sound (check.c). So one thread makes all sentences, and a sound manifest is read once. A
 * blob is unpacked once for its hash and for all planes of all layers that are this blob; the
 * caller's thread would unpack it for each.
 *
 * Why this is safe. All connections read the same state: begin_together begins their transactions
 * between two looks at data_version, which differ if another process has committed in between.
 * Threads find blobs by their ids; that this is the same as going through the table or the index of
 * hashes follows from SQLite's own check, which is a task, too. If that finds anything, or if lists
 * cannot be read without a complaint, nothing counts as sound, and the caller's thread checks
 * everything.
 *
 * Memory. A thread holds its connection and three blobs: packed, shuffled, raw. A tile table needs
 * whole arrays: it is begun when what is left of the cap has room for it. A table that is too large
 * for that is left to the caller's thread. */
#include "schema/check.h"

#include "base/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS_MAX = 1024, TRIES = 50, LOOK_MS = 50 };
#define MIB ((uint64_t)1 << 20)
#define CONNECTION_RAM (6 * MIB) /* SQLite's page cache (open.c) and what belongs to it */
#define CALLER_RAM (32 * MIB)    /* the caller's connection, lists of rows */

typedef enum { TASK_RULE, TASK_ROWS, TASK_TABLE, TASK_BLOB } task_kind;
typedef struct {
    task_kind kind;
    uint64_t at; /* which rule, table or blob */
} task;

/* Where a blob of this hash stands among the rows. */
typedef struct {
    kiln_hash hash;
    uint64_t blob;
} hash_place;

typedef struct sweep sweep;
typedef struct {
    sweep *sweep;
    pthread_t thread;
    kiln_manifest *m;
    sqlite3_blob *packed; /* open on the row that was read last; NULL: none */
    kiln_scratch bytes, shuffled, raw;
    kiln_check check;
    bool started;
} sweeper;

struct sweep {
    /* Set before threads start, then only read. */
    kiln_manifest *m;
    hash_place *hashes; /* in the order of hashes */
    kiln_plane_list planes;
    /* [n_blobs + 1]: places[first_place[b] .. first_place[b + 1]) are blob b's, after they are
     * sorted */
    uint64_t *first_place;
    bool *of_table; /* [n_blobs]: an array of a tile table, which is read with the table */
    kiln_tile_table *tables;
    kiln_check_drawn drawn;
    sweeper *sweepers;
    unsigned n_sweepers;
    uint64_t all_bytes;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* a task is finished, or a thread ends */
    /* Guarded by lock; planes are not: each is of one task. */
    kiln_sound *sound;
    unsigned next_rule, running;
    uint32_t next_table;
    /* table_ram: what tables that are begun may take more */
    uint64_t next_blob, done_bytes, table_ram;
    bool rows_taken;
};

void kiln_sound_free(kiln_sound *s)
{
    if (!s) return;
    free(s->blobs);
    free(s->planes);
    free(s->tables);
    free(s);
}

/* ---- lists ----------------------------------------------------------------------------------- */
static int compare_hashes(const void *a, const void *b)
{
    return memcmp(((const hash_place *)a)->hash.bytes, ((const hash_place *)b)->hash.bytes,
                  sizeof(kiln_hash));
}

static const hash_place *find_hash(const sweep *s, kiln_hash hash)
{
    const hash_place key = {.hash = hash};
    return bsearch(&key, s->hashes, s->sound->n_blobs, sizeof key, compare_hashes);
}

/* Ids must increase: a loop in a damaged b-tree ends at its first repetition. */
static kiln_status read_blob_rows(kiln_manifest *m, kiln_buffer *rows, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_blob_row last = {.id = INT64_MIN};
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(m, &q, "SELECT id, hash, elem, raw_bytes FROM blob ORDER BY id", err));
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        kiln_blob_row b = {.id = kiln_column_i64(&q)};
        b.hash = kiln_column_hash(&q);
        b.elem = kiln_column_u32(&q);
        b.raw_bytes = kiln_column_u64(&q);
        KILN_GO(kiln_query_check(&q, err));
        if (b.id <= last.id || b.raw_bytes > KILN_BLOB_MAX)
            KILN_GO(kiln_fail(err, KILN_E_IO, "no row of a blob"));
        last = b;
        KILN_GO(kiln_buffer_put(rows, &b, sizeof b, err));
    }
done:
    kiln_query_close(&q);
    return st;
}

static kiln_status list_blobs(sweep *s, kiln_error *err)
{
    kiln_buffer rows = {0};
    const kiln_status st = read_blob_rows(s->m, &rows, err);
    s->sound->blobs = (kiln_blob_row *)(void *)rows.data;
    s->sound->n_blobs = rows.size / sizeof(kiln_blob_row);
    KILN_TRY(st);
    KILN_TRY(KILN_ALLOC(&s->hashes, s->sound->n_blobs, "hashes", err));
    for (uint64_t i = 0; i < s->sound->n_blobs; i++)
        s->hashes[i] = (hash_place){s->sound->blobs[i].hash, i};
    qsort(s->hashes, s->sound->n_blobs, sizeof *s->hashes, compare_hashes);
    return KILN_OK;
}

/* The blob that a plane is; n_blobs: none, so that it is left to the caller's thread. */
static uint64_t blob_of(const sweep *s, const kiln_plane *p)
{
    const hash_place *at = p->data.n_segments == 1 ? find_hash(s, p->data.segments[0]) : NULL;
    return at && s->sound->blobs[at->blob].raw_bytes == p->data.raw_bytes ? at->blob
                                                                          : s->sound->n_blobs;
}

/* Sorts the places of planes by their blobs. */
static kiln_status list_planes(sweep *s, kiln_error *err)
{
    kiln_check c = {.m = s->m};
    kiln_plane_place *sorted;
    const uint64_t n_blobs = s->sound->n_blobs;
    KILN_TRY(kiln_check_list_planes(&c, &s->planes, err));
    s->sound->n_planes = s->planes.n_planes;
    KILN_TRY(KILN_ALLOC(&s->sound->planes, s->planes.n_planes, "planes", err));
    KILN_TRY(KILN_ALLOC(&s->first_place, n_blobs + 2, "places of planes", err));
    KILN_TRY(KILN_ALLOC(&sorted, s->planes.n_places, "places of planes", err));
    for (uint64_t i = 0; i < s->planes.n_places; i++)
        s->first_place[blob_of(s, s->planes.places[i].plane) + 1]++;
    for (uint64_t b = 0; b <= n_blobs; b++) s->first_place[b + 1] += s->first_place[b];
    for (uint64_t i = s->planes.n_places; i-- > 0;) {
        const uint64_t b = blob_of(s, s->planes.places[i].plane);
        /* counted down from the end, which is put back below */
        sorted[--s->first_place[b + 1]] = s->planes.places[i];
    }
    memmove(s->first_place, s->first_place + 1, (n_blobs + 1) * sizeof *s->first_place);
    s->first_place[n_blobs + 1] = s->planes.n_places;
    free(s->planes.places);
    s->planes.places = sorted;
    return KILN_OK;
}

/* An empty array is not read, whatever its segment. */
static void mark_of_table(void *context, const kiln_array *a)
{
    const sweep *s = context;
    for (uint32_t i = 0; a->raw_bytes > 0 && i < a->n_segments; i++) {
        const hash_place *at = find_hash(s, a->segments[i]);
        if (at) s->of_table[at->blob] = true;
    }
}

static kiln_status list_tables(sweep *s, kiln_error *err)
{
    kiln_check c = {.m = s->m};
    KILN_TRY(kiln_check_drawn_get(&c, &s->drawn, err));
    if (c.problems) return kiln_fail(err, KILN_E_IO, "no layer is drawn");
    KILN_TRY(kiln_tile_tables_get(s->m, true, &s->tables, &s->sound->n_tables, err));
    KILN_TRY(KILN_ALLOC(&s->sound->tables, s->sound->n_tables, "tile tables", err));
    KILN_TRY(KILN_ALLOC(&s->of_table, s->sound->n_blobs, "blobs of tables", err));
    for (uint32_t i = 0; i < s->sound->n_tables; i++)
        kiln_check_table_arrays(&s->tables[i], mark_of_table, s);
    return KILN_OK;
}

/* What is not to be read by a blob's own task: its tables do. */
static bool is_left_to_tables(const sweep *s, uint64_t blob)
{
    return s->of_table[blob] && s->first_place[blob] == s->first_place[blob + 1];
}

static void add_array_bytes(void *context, const kiln_array *a)
{
    *(uint64_t *)context += a->raw_bytes;
}

static uint64_t table_bytes(const kiln_tile_table *t)
{
    uint64_t bytes = 0;
    kiln_check_table_arrays(t, add_array_bytes, &bytes);
    return bytes;
}

/* False: something is wrong with the rows, which the caller's thread has to say. */
static bool list_everything(sweep *s)
{
    kiln_error err = {0};
    const bool listed = list_blobs(s, &err) == KILN_OK && list_planes(s, &err) == KILN_OK &&
                        list_tables(s, &err) == KILN_OK;
    if (!listed) return false;
    for (uint64_t i = 0; i < s->sound->n_blobs; i++)
        if (!is_left_to_tables(s, i)) s->all_bytes += s->sound->blobs[i].raw_bytes;
    for (uint32_t i = 0; i < s->sound->n_tables; i++) s->all_bytes += table_bytes(&s->tables[i]);
    return true;
}

/* ---- tasks ----------------------------------------------------------------------------------- */
static kiln_status read_packed(sweeper *w, const kiln_blob_row *row, size_t *bytes, kiln_error *err)
{
    int rc = SQLITE_OK;
    if (w->packed)
        rc = sqlite3_blob_reopen(w->packed, row->id);
    else
        rc = sqlite3_blob_open(w->m->db, "main", "blob", "packed", row->id, 0, &w->packed);
    if (rc == SQLITE_OK) {
        *bytes = (size_t)sqlite3_blob_bytes(w->packed);
        KILN_TRY(kiln_scratch_want(&w->bytes, *bytes, err));
        rc = sqlite3_blob_read(w->packed, w->bytes.data, (int)*bytes, 0);
    }
    if (rc == SQLITE_OK) return KILN_OK;
    (void)sqlite3_blob_close(w->packed); /* of no more use; accepts NULL */
    w->packed = NULL;
    return kiln_sqlite_fail(w->m, rc, "read", err);
}

/* KILN_OK: its hash is right, whatever its planes are like. */
static kiln_status do_blob(sweeper *w, uint64_t at, kiln_error *err)
{
    const sweep *s = w->sweep;
    const kiln_blob_row *row = &s->sound->blobs[at];
    kiln_blob b = {.hash = row->hash, .raw_bytes = row->raw_bytes, .elem = row->elem};
    KILN_TRY(read_packed(w, row, &b.packed_bytes, err));
    b.packed = w->bytes.data;
    KILN_TRY(kiln_scratch_want(&w->raw, b.raw_bytes, err));
    if (b.elem != 1) KILN_TRY(kiln_scratch_want(&w->shuffled, b.raw_bytes, err));
    KILN_TRY(kiln_blob_unpack_with(&b, w->shuffled.data, w->raw.data, err));
    for (uint64_t i = s->first_place[at]; i < s->first_place[at + 1]; i++) {
        const kiln_plane_place *p = &s->planes.places[i];
        w->check.problems = 0;
        s->sound->planes[p->number] =
            kiln_check_values(&w->check, p, w->raw.data, err) == KILN_OK && w->check.problems == 0;
    }
    return KILN_OK;
}

static void mark_blobs_sound(void *context, const kiln_array *a)
{
    const sweep *s = context;
    for (uint32_t i = 0; a->raw_bytes > 0 && i < a->n_segments; i++) {
        const hash_place *at = find_hash(s, a->segments[i]);
        if (at) s->sound->blobs[at->blob].sound = true;
    }
}

static void finish_task(sweep *s, const task *t, bool sound)
{
    switch (t->kind) {
    case TASK_RULE:
        s->sound->rules[t->at] = sound;
        break;
    case TASK_ROWS:
        s->sound->rows = sound;
        break;
    case TASK_BLOB:
        s->sound->blobs[t->at].sound = s->sound->blobs[t->at].sound || sound;
        s->done_bytes += s->sound->blobs[t->at].raw_bytes;
        break;
    case TASK_TABLE:
        s->sound->tables[t->at] = sound;
        if (sound) kiln_check_table_arrays(&s->tables[t->at], mark_blobs_sound, s);
        s->table_ram += kiln_check_table_ram(&s->tables[t->at]);
        s->done_bytes += table_bytes(&s->tables[t->at]);
        break;
    }
    (void)pthread_cond_broadcast(&s->changed); /* cannot fail */
}

static bool do_task(sweeper *w, const task *t)
{
    kiln_error err = {0};
    kiln_status st = KILN_OK;
    w->check.problems = w->check.unread = 0;
    switch (t->kind) {
    case TASK_RULE:
        st = kiln_check_rule(&w->check, (unsigned)t->at, &err);
        break;
    case TASK_ROWS:
        st = kiln_check_rows(&w->check, &err);
        break;
    case TASK_TABLE:
        st = kiln_check_table(&w->check, &w->sweep->tables[t->at], &w->sweep->drawn, &err);
        break;
    case TASK_BLOB:
        return do_blob(w, t->at, &err) == KILN_OK;
    }
    return st == KILN_OK && w->check.problems == 0 && w->check.unread == 0;
}

/* ---- threads --------------------------------------------------------------------------------- */
static bool take_rule(sweep *s, task *out)
{
    if (s->next_rule == kiln_check_rules()) return false;
    *out = (task){TASK_RULE, s->next_rule++};
    return true;
}

/* Takes the next table if there is room for it. */
static bool take_table(sweep *s, task *out)
{
    if (s->next_table == s->sound->n_tables) return false;
    const uint64_t ram = kiln_check_table_ram(&s->tables[s->next_table]);
    if (ram > s->table_ram) return false;
    s->table_ram -= ram;
    *out = (task){TASK_TABLE, s->next_table++};
    return true;
}

static bool take_blob(sweep *s, task *out)
{
    while (s->next_blob < s->sound->n_blobs && is_left_to_tables(s, s->next_blob)) s->next_blob++;
    if (s->next_blob == s->sound->n_blobs) return false;
    *out = (task){TASK_BLOB, s->next_blob++};
    return true;
}

/* The longest first: SQLite's own check, which is rule 0, then tables. False: nothing is left for
 * this thread. */
static bool take_task(sweep *s, task *out)
{
    for (;;) {
        if (s->next_rule == 0 && take_rule(s, out)) return true;
        if (take_table(s, out) || take_rule(s, out)) return true;
        if (!s->rows_taken) {
            s->rows_taken = true;
            *out = (task){TASK_ROWS, 0};
            return true;
        }
        if (take_blob(s, out)) return true;
        if (s->next_table == s->sound->n_tables) return false;
        /* no other task gives memory back: this table is left to the caller's thread */
        if (s->running == 0)
            s->next_table++;
        else
            (void)pthread_cond_wait(&s->changed, &s->lock); /* cannot fail */
    }
}

static void *serve_sweep(void *context)
{
    sweeper *w = context;
    sweep *s = w->sweep;
    task t;
    (void)pthread_mutex_lock(&s->lock); /* cannot fail: a plain lock, not held */
    while (take_task(s, &t)) {
        s->running++;
        (void)pthread_mutex_unlock(&s->lock);
        const bool sound = do_task(w, &t);
        (void)pthread_mutex_lock(&s->lock);
        s->running--;
        finish_task(s, &t, sound);
    }
    w->started = false;
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->lock);
    return NULL;
}

static bool any_serves(const sweep *s)
{
    for (unsigned i = 0; i < s->n_sweepers; i++)
        if (s->sweepers[i].started) return true;
    return false;
}

static void tell_progress(sweep *s, const kiln_verify_options *o)
{
    const uint64_t done = s->done_bytes, all = s->all_bytes;
    if (!o->progress) return;
    (void)pthread_mutex_unlock(&s->lock);
    o->progress(o->context, done, all);
    (void)pthread_mutex_lock(&s->lock);
}

/* Waits for the threads and shows how far they are. */
static void run_threads(sweep *s, const kiln_verify_options *o)
{
    bool made[THREADS_MAX] = {false};
    (void)pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < s->n_sweepers; i++)
        made[i] = s->sweepers[i].started =
            pthread_create(&s->sweepers[i].thread, NULL, serve_sweep, &s->sweepers[i]) == 0;
    while (any_serves(s)) {
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until); /* cannot fail */
        until.tv_nsec += LOOK_MS * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        /* late or not, it looks again */
        (void)pthread_cond_timedwait(&s->changed, &s->lock, &until);
        tell_progress(s, o);
    }
    (void)pthread_mutex_unlock(&s->lock);
    for (unsigned i = 0; i < s->n_sweepers; i++) /* cannot fail: made, and joined once */
        if (made[i]) (void)pthread_join(s->sweepers[i].thread, NULL);
}

/* ---- connections ----------------------------------------------------------------------------- */
/* As many as the cap has room for beside one tile table, which is what is left for tables. */
static unsigned count_threads(sweep *s, const kiln_verify_options *o, uint64_t largest_blob)
{
    const uint64_t each = CONNECTION_RAM + 3 * largest_blob + MIB,
                   cap = o->ram_bytes ? o->ram_bytes : UINT64_MAX;
    unsigned n = o->threads < THREADS_MAX ? o->threads : THREADS_MAX;
    const uint64_t rest = cap > CALLER_RAM ? cap - CALLER_RAM : 0;
    while (n > 1 && n * each > rest) n--;
    s->table_ram = rest > n * each ? rest - n * each : 0;
    return n;
}

static bool open_connections(sweep *s, const kiln_verify_options *o)
{
    int64_t largest;
    kiln_error err = {0};
    int moved = 0;
    if (kiln_query_number(s->m, "SELECT coalesce(max(raw_bytes), 0) FROM blob", &largest, &err) !=
        KILN_OK)
        return false;
    if (largest < 0 || (uint64_t)largest > KILN_BLOB_MAX) return false;
    const unsigned n = count_threads(s, o, (uint64_t)largest);
    if (KILN_ALLOC(&s->sweepers, n, "threads", &err) != KILN_OK) return false;
    for (; s->n_sweepers < n; s->n_sweepers++) {
        sweeper *w = &s->sweepers[s->n_sweepers];
        w->sweep = s;
        const kiln_open_mode mode = s->m->frozen ? KILN_OPEN_FROZEN : KILN_OPEN_READ;
        if (kiln_manifest_open(s->m->path, mode, "verify", true, &w->m, &err) != KILN_OK)
            return false;
        w->check.m = w->m;
        w->m->listen = kiln_check_hear;
        w->m->listener = &w->check;
    }
    /* another file under this name is not what the caller has open */
    return sqlite3_file_control(s->m->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
           !moved;
}

static bool data_version(kiln_manifest *m, int64_t *out)
{
    kiln_error err = {0};
    /* reads: in a transaction it sets its state */
    return kiln_query_number(m, "PRAGMA data_version", out, &err) == KILN_OK;
}

/* Begins the transactions of all connections on one state of the file. */
static bool begin_together(sweep *s)
{
    int64_t before, after, ignored;
    kiln_error err = {0};
    for (int i = 0; i < TRIES; i++) {
        bool begun = data_version(s->m, &before);
        for (unsigned k = 0; k < s->n_sweepers && begun; k++)
            begun = kiln_manifest_begin(s->sweepers[k].m, &err) == KILN_OK &&
                    data_version(s->sweepers[k].m, &ignored);
        if (!begun || kiln_manifest_begin(s->m, &err) != KILN_OK || !data_version(s->m, &after))
            return false;
        if (before == after) return true;
        kiln_manifest_rollback(s->m);
        for (unsigned k = 0; k < s->n_sweepers; k++) kiln_manifest_rollback(s->sweepers[k].m);
    }
    return false;
}

static void sweep_release(sweep *s)
{
    for (unsigned i = 0; s->sweepers && i < s->n_sweepers; i++) {
        sweeper *w = &s->sweepers[i];
        (void)sqlite3_blob_close(w->packed); /* accepts NULL; was only read */
        kiln_manifest_rollback(w->m);
        kiln_manifest_close(w->m);
        free(w->bytes.data);
        free(w->shuffled.data);
        free(w->raw.data);
    }
    free(s->sweepers);
    free(s->hashes);
    kiln_plane_list_release(&s->planes);
    free(s->first_place);
    free(s->of_table);
    if (s->tables) kiln_tile_tables_free(s->tables, s->sound->n_tables);
    kiln_check_drawn_release(&s->drawn);
}

kiln_sound *kiln_sweep(kiln_manifest *m, const kiln_verify_options *o)
{
    sweep s = {.m = m};
    kiln_sound *sound = NULL;
    kiln_error err = {0};
    if (KILN_ALLOC(&sound, 1, "what is sound", &err) != KILN_OK) return NULL;
    s.sound = sound;
    (void)pthread_mutex_init(&s.lock, NULL); /* with NULL they cannot fail on Linux */
    (void)pthread_cond_init(&s.changed, NULL);
    const bool swept = open_connections(&s, o) && begin_together(&s) && list_everything(&s);
    if (swept) run_threads(&s, o);
    sweep_release(&s);
    (void)pthread_cond_destroy(&s.changed);
    (void)pthread_mutex_destroy(&s.lock);
    /* else what was found may be of other rows than the caller's thread reads */
    if (swept && sound->rules[0]) return sound;
    kiln_sound_free(sound);
    return NULL;
}
