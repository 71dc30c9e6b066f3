/* open -- a connection to a manifest: who may open what, how it is configured, transactions, and
 * how it ends.
 *
 * A file that is not ours is never given to SQLite for writing before its header says that it may
 * be: opening a foreign database could replay its journal. A manifest is made in one transaction,
 * so that a crash leaves an empty database, which the next CREATE fills; any error of an open that
 * made the file removes it again. */
#include "base/endian.h"
#include "base/file.h"
#include "base/minmax.h"
#include "schema/claim.h"
#include "schema/manifest_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BUSY_MS = 10000,
    CLOSE_BUSY_MS = 200,    /* a reader in mid-query must not keep a finished stage from ending */
    CHECKPOINT_PAGES = 256, /* 16 MiB of WAL; schema/DESIGN.md, Constants */
    HEADER_BYTES = 100,     /* of an SQLite file */
};

/* In KiB, as SQLite takes them. A larger cache is no faster, because blobs pass through it once.
 * Changes beyond the cache go into the WAL early. */
#define READER_CACHE "-4096"
#define WRITER_CACHE "-8192"

static const char *const companions[] = {"-wal", "-shm", "-journal", ".lock"};

static bool is_file(const char *path, const struct stat *f)
{
    struct stat s;
    return stat(path, &s) == 0 && s.st_dev == f->st_dev && s.st_ino == f->st_ino;
}

/* Folder of a path, as a file that can be compared. */
static bool stat_folder(const char *path, struct stat *f)
{
    char folder[KILN_PATH_MAX];
    const size_t n = (size_t)(kiln_path_base(path) - path);
    if (n >= sizeof folder) return false;
    memcpy(folder, path, n);
    folder[n] = '\0';
    return stat(n ? folder : ".", f) == 0;
}

/* By name, too: what is not there yet would be taken for the manifest's when it is. */
static bool has_name(const char *path, const char *name)
{
    struct stat f, s;
    return strcmp(kiln_path_base(path), kiln_path_base(name)) == 0 && stat_folder(path, &f) &&
           stat_folder(name, &s) && f.st_dev == s.st_dev && f.st_ino == s.st_ino;
}

bool kiln_manifest_owns(const char *manifest, const char *path)
{
    struct stat f;
    char name[KILN_PATH_MAX];
    char *real = realpath(manifest, NULL);
    const char *at = real ? real : manifest;
    const bool there = stat(path, &f) == 0;
    bool owns = there && is_file(at, &f);
    for (size_t i = 0; i <= sizeof companions / sizeof *companions && !owns; i++) {
        const char *suffix = i < sizeof companions / sizeof *companions ? companions[i] : ".claim";
        if (snprintf(name, sizeof name, "%s%s", at, suffix) >= (int)sizeof name) continue;
        owns = (there && is_file(name, &f)) || has_name(path, name);
    }
    free(real);
    return owns;
}

/* ---- before SQLite --------------------------------------------------------------------------- */
/* Reads the head of the file. *whole false: it is shorter. By SQLite's hands, which before the
 * first statement open this file and none beside it: closing a descriptor of ours would drop the
 * locks that other connections of this process have on it (fcntl(2)), and a writer that closes and
 * finds no lock takes itself for the last one and writes over what they read. */
static kiln_status read_file_head(const char *path, unsigned char head[HEADER_BYTES], bool *whole,
                                  kiln_error *err)
{
    sqlite3 *db = NULL;
    sqlite3_file *file = NULL;
    int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READONLY, NULL);
    const int why = rc == SQLITE_CANTOPEN ? sqlite3_system_errno(db) : 0;
    if (rc == SQLITE_OK) rc = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (rc == SQLITE_OK) rc = file->pMethods->xRead(file, head, HEADER_BYTES, 0);
    (void)sqlite3_close(db); /* accepts NULL; has no statements */
    *whole = rc == SQLITE_OK;
    if (rc == SQLITE_OK || rc == SQLITE_IOERR_SHORT_READ) return KILN_OK;
    if (why) return kiln_fail(err, KILN_E_IO, "cannot open '%s': %s", path, strerror(why));
    return kiln_fail(err, (rc & 0xff) == SQLITE_NOMEM ? KILN_E_NOMEM : KILN_E_IO,
                     "cannot read '%s': %s", path, sqlite3_errstr(rc));
}

/* Looks at the file's own header. Offsets 60 and 68: user_version, application_id
 * (sqlite.org/fileformat2.html 1.3). An id of 0 may be a manifest whose making was cut:
 * check_tables decides. */
static kiln_status check_header(const char *path, kiln_error *err)
{
    unsigned char head[HEADER_BYTES];
    bool whole;
    KILN_TRY(read_file_head(path, head, &whole, err));
    if (!whole || memcmp(head, "SQLite format 3", 16) != 0)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is not a manifest: it is not an SQLite file; a manifest is what "
                         "kiln-import writes",
                         path);
    const uint32_t id = kiln_get_u32_be(head + 68);
    if (id == KILN_APPLICATION_ID || id == 0) return KILN_OK;
    return kiln_fail(
        err, KILN_E_INPUT,
        "'%s' is not a manifest: it is an SQLite file of another program (application_id 0x%08x)",
        path, id);
}

/* Refuses a directory, and names the manifest in it: of a bake's folder, or of the scene that was
 * baked. */
static kiln_status refuse_directory(const char *path, kiln_error *err)
{
    static const char *const places[] = {"manifest.db", "bake/manifest.db"};
    const size_t n = strlen(path);
    const char *slash = n && path[n - 1] == '/' ? "" : "/";
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char in[KILN_PATH_MAX];
        const int length = snprintf(in, sizeof in, "%s%s%s", path, slash, places[i]);
        if (length > 0 && (size_t)length < sizeof in && access(in, F_OK) == 0)
            return kiln_fail(err, KILN_E_INPUT,
                             "'%s' is a directory; a manifest is a file, did you mean '%s'?", path,
                             in);
    }
    return kiln_fail(err, KILN_E_INPUT, "'%s' is a directory; a manifest is a file", path);
}

/* *exists: with content. An empty file counts as missing. */
static kiln_status check_file(const char *path, kiln_open_mode mode, bool *exists, kiln_error *err)
{
    struct stat s;
    *exists = false;
    if (stat(path, &s) != 0) {
        if (errno == ENOENT && mode == KILN_OPEN_CREATE) return KILN_OK;
        return kiln_fail(err, KILN_E_INPUT, "cannot open manifest '%s': %s%s", path,
                         strerror(errno), errno == ENOENT ? "; kiln-import makes one" : "");
    }
    if (S_ISDIR(s.st_mode)) return refuse_directory(path, err);
    if (!S_ISREG(s.st_mode))
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is not a regular file, so it cannot be a manifest", path);
    if (s.st_size == 0 && mode == KILN_OPEN_CREATE) return KILN_OK;
    if (s.st_size == 0)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is not a manifest: it is empty; kiln-import makes one", path);
    *exists = true;
    KILN_TRY(kiln_guard_files(path, err));
    return check_header(path, err);
}

static kiln_status make_folder(kiln_manifest *m, kiln_error *err)
{
    char folder[4096];
    KILN_TRY(kiln_folder_of(m->path, folder, err));
    if (kiln_is_dir(folder)) return KILN_OK;
    KILN_TRY(kiln_make_parents(m->path, err));
    m->made_folder = true;
    return KILN_OK;
}

/* ---- SQLite ---------------------------------------------------------------------------------- */
static int note_wal(void *context, sqlite3 *db, const char *schema, int pages)
{
    (void)db, (void)schema;
    ((kiln_manifest *)context)->wal_pages = pages;
    return SQLITE_OK;
}

/* Read-only media: SQLite needs its -shm file to read a WAL database, unless it knows that no
 * process can change it. */
static kiln_status is_immutable(const char *path, bool *immutable, kiln_error *err)
{
    char folder[4096], wal[4096 + 8];
    struct stat s;
    *immutable = false;
    KILN_TRY(kiln_folder_of(path, folder, err));
    if (access(folder, W_OK) == 0) return KILN_OK;
    snprintf(wal, sizeof wal, "%.4095s-wal", path);
    *immutable = stat(wal, &s) != 0 || s.st_size == 0;
    return KILN_OK;
}

/* A frozen manifest is the file alone. What a log holds would be missed, and SQLite would write it
 * back. */
kiln_status kiln_refuse_log(const char *path, kiln_error *err)
{
    char real[PATH_MAX], wal[PATH_MAX + 8];
    struct stat s;
    if (!realpath(path, real))
        return kiln_fail(err, KILN_E_IO, "cannot find where '%s' is: %s", path, strerror(errno));
    snprintf(wal, sizeof wal, "%s-wal", real);
    if (stat(wal, &s) != 0 || s.st_size == 0) return KILN_OK;
    return kiln_fail(err, KILN_E_BUSY,
                     "'%s' holds changes that are not in the manifest yet: a program that writes "
                     "or reads it has not ended, or was "
                     "killed; wait until it has ended, or run the --plan of the planned stage to "
                     "bring the changes in",
                     wal);
}

/* file:PATH?immutable=1 with what URIs reserve written as %XX. */
static kiln_status immutable_uri(const char *path, kiln_buffer *uri, kiln_error *err)
{
    KILN_TRY(kiln_buffer_printf(uri, err, path[0] == '/' ? "file://" : "file:"));
    for (const char *p = path; *p; p++) {
        bool plain = *p > 32 && *p < 127 && !strchr("%?#", *p);
        KILN_TRY(kiln_buffer_printf(uri, err, plain ? "%c" : "%%%02X", (unsigned char)*p));
    }
    return kiln_buffer_printf(uri, err, "?immutable=1");
}

static kiln_status connect(kiln_manifest *m, kiln_error *err)
{
    kiln_buffer uri = {0};
    const char *name = m->file;
    /* Readers too: the last one to close may then remove -wal and -shm, and clear what a killed
     * writer left. SQLite falls back to read-only by itself where it must; query_only keeps our own
     * statements from writing. */
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE | (m->writer ? SQLITE_OPEN_CREATE : 0);
    bool immutable = m->frozen;
    kiln_status st = KILN_OK;
    if (m->is_part)
        immutable = !m->writer;
    else if (!m->writer && !m->frozen)
        KILN_GO(is_immutable(m->file, &immutable, err));
    if (immutable) {
        KILN_GO(immutable_uri(m->file, &uri, err));
        name = (const char *)uri.data;
        flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
    }
    int rc = sqlite3_open_v2(name, &m->db, flags, NULL);
    if (rc != SQLITE_OK) {
        st = kiln_sqlite_fail(m, rc, "open", err);
        goto done;
    }
    (void)sqlite3_extended_result_codes(m->db, 1); /* fails only without a connection */
    (void)sqlite3_busy_timeout(m->db, BUSY_MS);    /* likewise */
    (void)sqlite3_wal_hook(m->db, note_wal, m);    /* and no automatic checkpoint: commit decides */
    KILN_GO(kiln_guard_connection(m, err));
    KILN_GO(kiln_sql(m, "PRAGMA cache_size = " READER_CACHE, err));
    /* outputs of a part name blobs of its manifest, too */
    if (!m->is_part) KILN_GO(kiln_sql(m, "PRAGMA foreign_keys = ON", err));
    if (!m->writer) KILN_GO(kiln_sql(m, "PRAGMA query_only = ON", err));
done:
    kiln_buffer_release(&uri);
    return st;
}

static kiln_status initialise(kiln_manifest *m, kiln_error *err)
{
    /* the cache's size again: SQLite turned it into a number of pages of the old size, which would
     * now hold 256 MiB */
    KILN_TRY(kiln_sql(m,
                      "PRAGMA page_size = 65536; PRAGMA journal_mode = WAL; PRAGMA synchronous = "
                      "FULL; PRAGMA cache_size = " WRITER_CACHE,
                      err));
    KILN_TRY(kiln_manifest_begin(m, err));
    KILN_TRY(kiln_sql(m, kiln_manifest_sql, err));
    KILN_TRY(kiln_manifest_commit(m, err));
    m->version = KILN_SCHEMA_VERSION;
    /* so that the header of the file itself says what it is, for check_header */
    int rc = sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    return rc == SQLITE_OK || rc == SQLITE_BUSY ? KILN_OK : kiln_sqlite_fail(m, rc, "write", err);
}

/* Is what SQLite sees a manifest of a version that we know, with the tables of that version?
 * *empty: no tables at all, which only a writer may fill. */
static kiln_status check_tables(kiln_manifest *m, bool *empty, kiln_error *err)
{
    int64_t id, version, tables = 0;
    *empty = false;
    KILN_TRY(kiln_query_number(m, "PRAGMA application_id", &id, err));
    KILN_TRY(kiln_query_number(m, "PRAGMA user_version", &version, err));
    if (id == 0 && m->writer)
        KILN_TRY(kiln_query_number(m, "SELECT 1 FROM sqlite_schema LIMIT 1", &tables, err));
    *empty = id == 0 && m->writer && tables == 0;
    if (*empty) return KILN_OK;
    if (id != KILN_APPLICATION_ID)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is not a manifest: it is an SQLite file of another program",
                         m->path);
    if (version > KILN_SCHEMA_VERSION)
        return kiln_fail(err, KILN_E_INPUT,
                         "manifest '%s' has schema version %lld, this program knows up to %d; use "
                         "the SplatKiln that wrote it, or a newer one",
                         m->path, (long long)version, KILN_SCHEMA_VERSION);
    if (version < 1)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is not a sound manifest: there is no schema version %lld", m->path,
                         (long long)version);
    m->version = (uint32_t)version;
    return kiln_guard_schema(m, err);
}

/* In one state: a writer may upgrade the file between two reads. A writer has the lock. */
static kiln_status check_state(kiln_manifest *m, bool *empty, kiln_error *err)
{
    if (m->writer) return check_tables(m, empty, err);
    *empty = false;
    KILN_TRY(kiln_manifest_begin(m, err));
    const kiln_status st = check_tables(m, empty, err);
    kiln_manifest_rollback(m); /* nothing was written */
    return st;
}

static kiln_status set_up_manifest(kiln_manifest *m, kiln_open_mode mode, kiln_error *err)
{
    bool empty = true;
    KILN_TRY(connect(m, err));
    if (!m->created) KILN_TRY(check_state(m, &empty, err));
    if (!empty && !m->writer) return KILN_OK;
    if (!empty) {
        KILN_TRY(kiln_sql(m,
                          "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size "
                          "= " WRITER_CACHE,
                          err));
        kiln_bulk_cut_garbage(m);
        return kiln_guard_upgrade(m, err);
    }
    if (mode != KILN_OPEN_CREATE)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is not a manifest: it is empty; kiln-import makes one", m->path);
    m->created = true;
    return initialise(m, err);
}

/* ---- the end --------------------------------------------------------------------------------- */
static void remove_files(const char *path)
{
    char name[4096 + 64];
    (void)unlink(path); /* what cannot be removed stays; the failure cannot be reported any more */
    for (size_t i = 0; i < sizeof companions / sizeof *companions; i++) {
        snprintf(name, sizeof name, "%.4095s%s", path, companions[i]);
        (void)unlink(name);
    }
}

static bool is_copy(const kiln_manifest *m) { return m->file && strcmp(m->file, m->path) != 0; }

/* A folder that this open made stays when something is in it: rmdir removes empty ones only. */
static void remove_empty_folder(const kiln_manifest *m)
{
    char folder[4096];
    if (m->made_folder && kiln_folder_of(m->path, folder, NULL) == KILN_OK) (void)rmdir(folder);
}

void kiln_disconnect(kiln_manifest *m)
{
    for (uint32_t i = 0; i < m->n_statements; i++)
        (void)sqlite3_finalize(m->statements[i].statement);
    m->n_statements = 0;
    (void)sqlite3_close(m->db); /* accepts NULL; cannot be busy, all statements are finalized */
    m->db = NULL;
}

static void let_go(kiln_manifest *m, bool discard)
{
    kiln_bulk_close(m);
    if (m->db && m->writer) kiln_manifest_rollback(m);
    if (m->db && m->writer && !m->is_part && !discard && !is_copy(m)) kiln_checkpoint_if_free(m);
    kiln_disconnect(m);
    kiln_bulk_release(m);
    if (discard) remove_files(m->path);
    /* else it is of the one that has the lock */
    if (is_copy(m) && m->lock.fd >= 0) remove_files(m->file);
    kiln_lock_release(&m->lock);
    remove_empty_folder(m);
    kiln_unpacker_free(m->unpacker);
    free(m->path);
    free(m->file);
    free(m);
}

static kiln_status set_paths(kiln_manifest *m, const char *path, const char *file, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&m->path, strlen(path) + 1, "a path", err));
    strcpy(m->path, path);
    KILN_TRY(KILN_ALLOC(&m->file, strlen(file) + 1, "a path", err));
    strcpy(m->file, file);
    return KILN_OK;
}

/* A rollback journal keeps only pages that were there before, and what is written here is new; the
 * file is of no use to anybody before it is whole. So the journal is in memory, no commit is
 * synced, and each page is written about once. */
static kiln_status initialise_part(kiln_manifest *m, kiln_error *err)
{
    int fd;
    remove_files(m->path);
    KILN_TRY(kiln_file_create(m->path, &fd, err));
    (void)close(fd); /* nothing was written; SQLite has no connection to it yet */
    m->created = true;
    KILN_TRY(connect(m, err));
    KILN_TRY(kiln_sql(
        m,
        "PRAGMA page_size = 65536; PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY;"
        " PRAGMA synchronous = OFF; PRAGMA cache_size = " WRITER_CACHE,
        err));
    KILN_TRY(kiln_manifest_begin(m, err));
    KILN_TRY(kiln_guard_make_part(m, err));
    return kiln_manifest_commit(m, err);
}

static kiln_status check_part(kiln_manifest *m, kiln_error *err)
{
    int64_t id, version;
    KILN_TRY(connect(m, err));
    KILN_TRY(kiln_query_number(m, "PRAGMA application_id", &id, err));
    KILN_TRY(kiln_query_number(m, "PRAGMA user_version", &version, err));
    if (id != KILN_PART_APPLICATION_ID)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is not a part: it is an SQLite file of another program", m->path);
    if (version != KILN_PART_VERSION)
        return kiln_fail(
            err, KILN_E_INPUT,
            "part '%s' has version %lld, this program knows %d; use one SplatKiln on all hosts",
            m->path, (long long)version, KILN_PART_VERSION);
    m->version = KILN_PART_VERSION;
    return kiln_guard_schema(m, err);
}

kiln_status kiln_part_connect(const char *path, bool create, bool *unreadable, kiln_manifest **out,
                              kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_manifest *m = NULL;
    *out = NULL;
    if (strlen(path) >= 4096)
        return kiln_fail(err, KILN_E_INPUT, "part path '%.200s...' is longer than 4095 bytes",
                         path);
    KILN_TRY(KILN_ALLOC(&m, 1, "a part", err));
    m->lock.fd = -1;
    m->is_part = true;
    m->writer = create;
    KILN_GO(set_paths(m, path, path, err));
    KILN_GO(create ? initialise_part(m, err) : check_part(m, err));
    *out = m;
    return KILN_OK;
done:
    if (unreadable) *unreadable = m->unreadable;
    let_go(m, m->created);
    return st;
}

/* A claim keeps out every writer, except one that works on a copy of its own (remote.c) or was told
 * that no other machine uses the file. So a reader on a network file system may read as parts
 * do. */
static kiln_status read_claimed(kiln_manifest *m, kiln_error *err)
{
    bool remote;
    KILN_TRY(kiln_manifest_is_remote(m->path, &remote, err));
    m->frozen = remote && kiln_claim_stands(m->path);
    return KILN_OK;
}

static kiln_status take_lock(kiln_manifest *m, kiln_open_mode mode, const char *stage, bool *exists,
                             kiln_error *err)
{
    KILN_TRY(kiln_lock_take(m->path, stage, &m->lock, err));
    /* under the lock: a claim comes and goes under it */
    if (mode != KILN_OPEN_CLAIMED) KILN_TRY(kiln_claim_refuse(m->path, err));
    /* again: it may have been made or discarded before we had the lock */
    KILN_TRY(check_file(m->path, mode, exists, err));
    if (is_copy(m)) KILN_TRY(kiln_copy_fetch(m, *exists, err));
    m->created = !*exists;
    return KILN_OK;
}

kiln_status kiln_manifest_open_file(const char *path, const char *file, kiln_open_mode mode,
                                    const char *stage, bool allow_network, kiln_manifest **out,
                                    kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_manifest *m = NULL;
    bool exists = false;
    *out = NULL;
    if (strlen(path) >= 4096)
        return kiln_fail(err, KILN_E_INPUT, "manifest path '%.200s...' is longer than 4095 bytes",
                         path);
    KILN_TRY(check_file(path, mode, &exists, err));
    KILN_TRY(KILN_ALLOC(&m, 1, "a manifest", err));
    m->lock.fd = -1;
    m->writer = mode != KILN_OPEN_READ && mode != KILN_OPEN_FROZEN;
    m->frozen = mode == KILN_OPEN_FROZEN;
    m->copy_changes = -1;
    KILN_GO(set_paths(m, path, file ? file : path, err));
    if (mode == KILN_OPEN_CREATE) KILN_GO(make_folder(m, err));
    if (!allow_network && mode == KILN_OPEN_READ) KILN_GO(read_claimed(m, err));
    if (!allow_network && !m->frozen) KILN_GO(kiln_refuse_network(m->file, err));
    if (m->frozen) {
        KILN_GO(kiln_lock_look(path, err));
        KILN_GO(kiln_refuse_log(path, err));
    }
    if (m->writer) KILN_GO(take_lock(m, mode, stage, &exists, err));
    KILN_GO(set_up_manifest(m, mode, err));
    *out = m;
    return KILN_OK;
done:
    let_go(m, m->created);
    return st;
}

kiln_status kiln_manifest_open(const char *path, kiln_open_mode mode, const char *stage,
                               bool allow_network, kiln_manifest **out, kiln_error *err)
{
    return kiln_manifest_open_file(path, NULL, mode, stage, allow_network, out, err);
}

kiln_status kiln_manifest_recover(const char *path, const char *stage, bool allow_network,
                                  kiln_error *err)
{
    kiln_manifest *m;
    if (kiln_refuse_log(path, NULL) == KILN_OK) return KILN_OK;
    KILN_TRY(kiln_manifest_open(path, KILN_OPEN_CLAIMED, stage, allow_network, &m, err));
    kiln_manifest_close(m);
    return KILN_OK;
}

void kiln_manifest_close(kiln_manifest *m)
{
    if (m) let_go(m, false);
}

void kiln_manifest_discard(kiln_manifest *m)
{
    if (m) let_go(m, m->created);
}

bool kiln_manifest_created(const kiln_manifest *m) { return m->created; }
const char *kiln_manifest_path(const kiln_manifest *m) { return m->path; }

uint64_t kiln_manifest_cache_left(const kiln_manifest *m)
{
    const uint64_t most = (uint64_t)-atoi(WRITER_CACHE) << 10;
    int used = 0, highest;
    if (m && sqlite3_db_status(m->db, SQLITE_DBSTATUS_CACHE_USED, &used, &highest, 0) != SQLITE_OK)
        used = 0;
    return most - kiln_min_u64(most, (uint64_t)used);
}

void *kiln_manifest_sqlite(kiln_manifest *m)
{
    m->other_steps = 0; /* the caller's query has a fresh count */
    return m->db;
}

/* ---- transactions ---------------------------------------------------------------------------- */
kiln_status kiln_manifest_begin(kiln_manifest *m, kiln_error *err)
{
    return kiln_sql(m, m->writer ? "BEGIN IMMEDIATE" : "BEGIN", err);
}

/* The pragma begins the read, too: what it answers is of the state that the transaction sees. */
kiln_status kiln_manifest_begin_read(kiln_manifest *m, int64_t *state, kiln_error *err)
{
    *state = 0;
    KILN_TRY(kiln_sql(m, "BEGIN", err));
    const kiln_status st = kiln_query_number(m, "PRAGMA data_version", state, err);
    if (st != KILN_OK) kiln_manifest_rollback(m);
    return st;
}

kiln_status kiln_manifest_commit(kiln_manifest *m, kiln_error *err)
{
    KILN_TRY(kiln_sql(m, "COMMIT", err));
    return kiln_checkpoint_if_long(m, err);
}

kiln_status kiln_checkpoint_if_long(kiln_manifest *m, kiln_error *err)
{
    if (m->wal_pages < CHECKPOINT_PAGES) return KILN_OK;
    int rc = sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    if (rc != SQLITE_OK && (rc & 0xff) != SQLITE_BUSY) return kiln_sqlite_fail(m, rc, "write", err);
    return KILN_OK;
}

void kiln_checkpoint_if_free(kiln_manifest *m)
{
    (void)sqlite3_busy_timeout(m->db, CLOSE_BUSY_MS);
    /* busy or failed: the log stays */
    (void)sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    (void)sqlite3_busy_timeout(m->db, BUSY_MS);
}

kiln_status kiln_checkpoint_all(kiln_manifest *m, kiln_error *err)
{
    const int rc = sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    return rc == SQLITE_OK ? KILN_OK : kiln_sqlite_fail(m, rc, "write", err);
}

void kiln_manifest_rollback(kiln_manifest *m)
{
    /* SQLite has rolled back by itself after some errors (disk full); a failed rollback leaves
     * nothing visible either. */
    if (!sqlite3_get_autocommit(m->db)) (void)sqlite3_exec(m->db, "ROLLBACK", NULL, NULL, NULL);
}
