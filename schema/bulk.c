/* bulk -- stores batches of blobs through a second connection of the writer, which writes new pages
 * once (direct.c).
 *
 * The second connection is opened for the first batch and closed with the manifest. Three kinds of
 * batches go through the first connection, as everything else does. Small ones, because the second
 * sync of a direct commit costs more than writing twice. Those of a file with many free pages
 * (kiln-gc): these are old pages, which go through the log in any case. And those whose transaction
 * cannot begin here: the first connection meets the same obstacle and names it, or is not hindered
 * by it. */
#include "base/log.h"
#include "base/memory.h"
#include "schema/direct.h"
#include "schema/manifest_internal.h"
#include "schema/wal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LEAST_BYTES = 1 << 20, /* tests/bench/RESULTS.md, insert_bench */
    /* free pages of the file: they are old pages, of which a transaction keeps
     * KILN_DIRECT_KEPT_MOST in memory */
    FREE_MOST = 32,
    BUSY_MS = 10000,
    /* with fewer, workers would wait for the thread that writes pages (insert_bench) */
    BEHIND_THREADS = 4,
};
/* KiB. New pages pass through once, and are written while they are in the processor's cache;
 * DESIGN.md */
#define CACHE "-1024"

struct kiln_bulk {
    kiln_manifest *second; /* NULL: closed; no other is opened */
    /* of the file, by which new pages are written; -1: none. Closed last (direct.h) */
    int fd;
};

static kiln_status set_up_bulk(kiln_manifest *s, kiln_error *err)
{
    int64_t page = 0;
    const int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE;
    const int rc = sqlite3_open_v2(s->file, &s->db, flags, KILN_DIRECT_VFS);
    if (rc != SQLITE_OK) return kiln_sqlite_fail(s, rc, "open", err);
    (void)sqlite3_extended_result_codes(s->db, 1); /* fails only without a connection */
    (void)sqlite3_busy_timeout(s->db, BUSY_MS);    /* likewise */
    KILN_TRY(kiln_guard_connection(s, err));
    KILN_TRY(kiln_query_number(s, "PRAGMA page_size", &page, err));
    if (page != 65536 || !kiln_direct_state_of(s->db))
        return kiln_fail(err, KILN_E_INPUT, "pages of %lld bytes", (long long)page);
    return kiln_sql(s,
                    "PRAGMA foreign_keys = ON; PRAGMA journal_mode = MEMORY; PRAGMA synchronous = "
                    "FULL; PRAGMA cache_size = " CACHE,
                    err);
}

static bool give_file(kiln_manifest *m)
{
    return kiln_direct_write_by(m->bulk->second->db, m->bulk->fd, m->threads >= BEHIND_THREADS,
                                m->passes);
}

static kiln_status open_second(kiln_manifest *m, kiln_error *err)
{
    struct kiln_bulk *b = m->bulk;
    KILN_TRY(KILN_ALLOC(&b->second, 1, "a connection", err));
    b->second->lock.fd = -1;
    b->second->writer = true;
    KILN_TRY(KILN_ALLOC(&b->second->path, strlen(m->path) + 1, "a path", err));
    strcpy(b->second->path, m->path);
    KILN_TRY(KILN_ALLOC(&b->second->file, strlen(m->file) + 1, "a path", err));
    strcpy(b->second->file, m->file);
    KILN_TRY(set_up_bulk(b->second, err));
    /* Opened by SQLite's name of the file, which has no links. */
    b->fd = open(sqlite3_db_filename(b->second->db, "main"), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (b->fd < 0 || !give_file(m))
        return kiln_fail(err, KILN_E_IO, "cannot open '%s' a second time", m->path);
    return KILN_OK;
}

void kiln_bulk_close(kiln_manifest *m)
{
    if (!m->bulk || !m->bulk->second) return;
    kiln_disconnect(m->bulk->second); /* rolls back what is open */
    free(m->bulk->second->path);
    free(m->bulk->second->file);
    free(m->bulk->second);
    m->bulk->second = NULL;
}

void kiln_bulk_release(kiln_manifest *m)
{
    if (!m->bulk) return;
    /* what was written through it is synced, or belongs to no commit */
    if (m->bulk->fd >= 0) (void)close(m->bulk->fd);
    free(m->bulk);
    m->bulk = NULL;
}

const kiln_direct_state *kiln_bulk_state(const kiln_manifest *m)
{
    return m->bulk && m->bulk->second ? kiln_direct_state_of(m->bulk->second->db) : NULL;
}

/* Returns the second connection, or NULL if there is none. */
static kiln_manifest *second_of(kiln_manifest *m)
{
    if (m->bulk) return m->bulk->second;
    if (kiln_direct_register() != SQLITE_OK ||
        KILN_ALLOC(&m->bulk, 1, "a connection", NULL) != KILN_OK)
        return NULL;
    m->bulk->fd = -1;
    kiln_error why;
    if (open_second(m, &why) != KILN_OK) {
        kiln_chat("new pages are written twice, through the log: %s", why.msg);
        kiln_bulk_close(m);
    }
    return m->bulk->second;
}

/* Begins a transaction of the second connection; false: the first one is to store the batch. */
static bool begin_second(kiln_manifest *s)
{
    int64_t n_free = 0;
    if (kiln_sql(s, "BEGIN IMMEDIATE", NULL) != KILN_OK) return false;
    if (kiln_query_number(s, "PRAGMA freelist_count", &n_free, NULL) == KILN_OK &&
        n_free <= FREE_MOST)
        return true;
    kiln_manifest_rollback(s);
    return false;
}

void kiln_bulk_cut_garbage(kiln_manifest *m)
{
    int64_t n_pages;
    struct stat s;
    if (kiln_query_number(m, "PRAGMA page_count", &n_pages, NULL) != KILN_OK ||
        stat(m->file, &s) != 0)
        return;
    if (s.st_size <= n_pages * KILN_WAL_PAGE) return;
    kiln_manifest *const second = second_of(m);
    if (second && begin_second(second)) kiln_manifest_rollback(second);
}

/* If *done is false, nothing is stored, and the first connection is to store the batch. */
static kiln_status store_direct(kiln_manifest *m, kiln_manifest *s, kiln_bulk_store_fn *store,
                                void *context, bool *done, kiln_error *err)
{
    const kiln_direct_state *state = kiln_direct_state_of(s->db);
    *done = begin_second(s);
    /* left by a transaction that was cut short: a checkpoint cuts it off */
    if (!*done && state->garbage) {
        (void)sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        *done = begin_second(s);
    }
    if (!*done) return KILN_OK;
    const uint64_t commits = state->commits;
    const int changes = sqlite3_total_changes(s->db);
    kiln_status st = store(s, context, err);
    if (st == KILN_OK) st = kiln_sql(s, "COMMIT", err);
    if (st == KILN_OK && sqlite3_total_changes(s->db) != changes && state->commits == commits)
        st = kiln_fail(err, KILN_E_BUG, "SQLite %s did not say that it commits",
                       sqlite3_libversion());
    if (st == KILN_OK) {
        m->wal_pages = (int)state->log_frames;
        return kiln_checkpoint_if_long(m, err);
    }
    *done = !state->too_many;
    /* This rolls back. Either the run ends with this failure, or the next batch would change too
     * many pages as well. */
    kiln_bulk_close(m);
    return *done ? st : KILN_OK;
}

void kiln_bulk_use_threads(kiln_manifest *m, unsigned threads)
{
    m->threads = threads;
    /* it was opened to cut garbage off; as it is it writes, too */
    if (m->bulk && m->bulk->second) (void)give_file(m);
}

void kiln_bulk_pass(kiln_manifest *m, bool on)
{
    m->passes = on;
    if (m->bulk && m->bulk->second) (void)give_file(m);
}

kiln_status kiln_bulk_store(kiln_manifest *m, uint64_t bytes, kiln_bulk_store_fn *store,
                            void *context, kiln_error *err)
{
    bool done = false;
    /* a part has no log */
    kiln_manifest *const second = bytes >= LEAST_BYTES && !m->is_part ? second_of(m) : NULL;
    if (second) KILN_TRY(store_direct(m, second, store, context, &done, err));
    if (done) return KILN_OK;
    KILN_TRY(kiln_manifest_begin(m, err));
    kiln_status st = store(m, context, err);
    if (st == KILN_OK) st = kiln_manifest_commit(m, err);
    if (st != KILN_OK) kiln_manifest_rollback(m);
    return st;
}
