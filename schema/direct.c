/* direct -- new pages go to their place in the database file; what else a transaction changes goes
 * through the log.
 *
 * Problem. In WAL mode SQLite writes every page twice: into the log, and at a checkpoint into the
 * file. Most pages of a bake are new: they hold gigabytes of blobs, and no earlier state of the
 * database has them. Nobody would be disturbed if they were written once, in their place. A
 * rollback journal would do that, but readers would be blocked while it commits, and the mode
 * cannot be changed while they read.
 *
 * Idea. A page is NEW in a transaction if three things hold: it lies behind the end of the database
 * as of the last commit, it lies behind the end of the file, and it has no frame in the log. No
 * state of the database that a reader may still look at takes such a page from the file: a state's
 * pages are in the log or in the file, and the file ends before it. So a new page is written in its
 * place, which nobody looks at; the file is synced; then the pages that existed before (page 1, the
 * right-most leaves, pages of indexes: some 10 to 30) are appended to the log with the new size of
 * the database, as every commit in WAL mode is. To all other connections, SQLite's own code in any
 * program, that is an ordinary commit: a page without a frame is read from the file, where it is.
 *
 * How. The connection's SQLite is made to believe that it works with a rollback journal: bytes 18
 * and 19 of page 1, which say WAL, are shown to it as 1 and written as 2. Its journal is in memory,
 * and serves only to roll back while the process lives. This VFS sits between it and SQLite's
 * "unix":
 *
 *   lock    Every transaction takes the locks of a WAL writer and of a WAL checkpoint (wal.h) and
 *           reads the index of the log; one that writes begins the log anew where it can. Readers
 *           take neither lock, so they are never blocked. "unix" is asked for the SHARED lock once
 *           and keeps it, as a connection in WAL mode does.
 *   read    A page that this transaction changed comes from memory, else from its last frame in the
 *           log, else from the file.
 *   write   A new page goes to its place, with its neighbours and behind the caller's back
 *           (write_behind.h), any other into memory (`kept`). Whatever reads, syncs or cuts the
 *           file waits for that first.
 *   sync    The file is synced if it has new pages.
 *   commit  (SQLITE_FCNTL_COMMIT_PHASETWO, after the sync) What is kept is appended to the log and
 *           shown (kiln_wal_commit).
 *   unlock  What is kept is dropped, and the locks are given back.
 *
 * What holds at every instant, and why a kill or a power failure does no harm:
 *   1. Bytes of the file that some state needs are never written here. Only checkpoints do that, by
 *      SQLite's rules.
 *   2. New pages are on the disk before the log says that they exist. If the process ends before,
 *      they are garbage behind the end of the database, which nobody reads. SQLite cuts it off when
 *      a checkpoint has written back the whole log; the next transaction here waits for that (rule
 *      5).
 *   3. A commit that is whole in the log is visible, or is found by whoever looks next (wal.c),
 *      before anything else is done with the file. Otherwise its pages could be overwritten or cut
 *      off, and a later recovery would find it without them.
 *   4. No checkpoint runs while there are new pages that are not committed: it would cut them off,
 *      because SQLite truncates the file to the committed size. The lock of checkpoints keeps those
 *      of other connections away.
 *   5. If the file is longer than the database (garbage of rule 2, or a VACUUM that no checkpoint
 *      has written back yet), old states may need the bytes there. The rest of the file is then cut
 *      off if no reader can need it. Otherwise the transaction is refused and goes through SQLite.
 *      A writer's open asks for that at once (bulk.c), before SQLite can take garbage for pages
 *      (find_end).
 *   6. The new state is one frame of the log (the last one, with the size): it is there or not,
 *      with all of its pages.
 *
 * A failure of any call ends the transaction with SQLite's code for it. Up to the commit nothing is
 * visible. If the last sync of the log fails, the commit is reported as failed. Its state is
 * visible and complete, but perhaps not on the disk. */
#include "schema/direct.h"

#include "base/endian.h"

#include "schema/wal.h"
#include "schema/write_behind.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* in page 1 (sqlite.org/fileformat2.html 1.3): what is needed to write and to read */
    VERSIONS_AT = 18,
    CHANGES_AT = 24, /* 16 bytes that SQLite compares to know whether its cache is still right */
    CHANGES_BYTES = 16,
    SIZE_AT = 28,  /* of the database in pages */
    VALID_AT = 92, /* equal to the 4 bytes at CHANGES_AT if the size is right */
    HEADER_END = 100,
    VERSION_ROLLBACK = 1,
    VERSION_WAL = 2,
};

typedef struct {
    sqlite3_file base;  /* must be first */
    sqlite3_file *file; /* of "unix" */
    kiln_wal wal;
    int level; /* SQLITE_LOCK_... that SQLite believes to have */
    bool shared;
    kiln_wal_header seen; /* the state that SQLite's cache is of */
    bool others_wrote;    /* since then */
    uint32_t n_pages;     /* of the database in the last commit */
    uint32_t end;         /* pages of the database and of the new ones */
    bool unsynced;        /* new pages were written since the last sync */
    kiln_behind *behind;  /* writes them; NULL: nothing can be written yet */
    /* the first n_kept are of this transaction; the others' memory waits for reuse */
    kiln_wal_page kept[KILN_DIRECT_KEPT_MOST];
    uint32_t n_kept;
    kiln_direct_state state;
} direct_file;

static direct_file *of(sqlite3_file *f) { return (direct_file *)f; }

/* ---- pages ----------------------------------------------------------------------------------- */
static kiln_wal_page *find_kept_page(direct_file *f, uint32_t page)
{
    for (uint32_t i = 0; i < f->n_kept; i++)
        if (f->kept[i].page == page) return &f->kept[i];
    return NULL;
}

/* Reads within one page, as the file has it in this transaction. */
static int read_page(direct_file *f, void *out, int n, uint32_t page, int offset)
{
    int rc = SQLITE_OK;
    const kiln_wal_page *kept = find_kept_page(f, page);
    if (kept) return memcpy(out, kept->data + offset, (size_t)n), SQLITE_OK;
    const uint32_t frame = kiln_wal_find(&f->wal, page, &rc);
    if (rc != SQLITE_OK) return rc;
    if (frame) return kiln_wal_read(&f->wal, frame, out, n, offset);
    if (page > f->n_pages && f->unsynced) rc = kiln_behind_wait(f->behind);
    if (rc != SQLITE_OK) return rc;
    return f->file->pMethods->xRead(f->file, out, n,
                                    (sqlite3_int64)(page - 1) * KILN_WAL_PAGE + offset);
}

/* Changes what was read of page 1 into what SQLite is to see. */
static void show_header(const direct_file *f, unsigned char *data, int n, sqlite3_int64 at)
{
    if (at == 0 && n > VERSIONS_AT + 1 && data[VERSIONS_AT] == VERSION_WAL &&
        data[VERSIONS_AT + 1] == VERSION_WAL)
        memset(data + VERSIONS_AT, VERSION_ROLLBACK, 2);
    /* Commits through the log do not always change these bytes. This change makes SQLite drop its
     * cache. */
    if (at == CHANGES_AT && n == CHANGES_BYTES && f->others_wrote) data[0] ^= 0xff;
}

static int direct_read(sqlite3_file *file, void *out, int n, sqlite3_int64 at)
{
    direct_file *f = of(file);
    const int offset = (int)(at % KILN_WAL_PAGE);
    int rc;
    if (!f->wal.locked) /* when it is opened: the head, for the size of pages */
        rc = f->file->pMethods->xRead(f->file, out, n, at);
    else if (offset + n > KILN_WAL_PAGE)
        return SQLITE_IOERR_READ; /* pages of another size, which set_up_bulk refuses */
    else
        rc = read_page(f, out, n, (uint32_t)(at / KILN_WAL_PAGE) + 1, offset);
    if (rc == SQLITE_OK) show_header(f, out, n, at);
    return rc;
}

static int keep(direct_file *f, uint32_t page, const void *data)
{
    kiln_wal_page *k = find_kept_page(f, page);
    if (!k) {
        if (f->n_kept == KILN_DIRECT_KEPT_MOST) return f->state.too_many = true, SQLITE_FULL;
        k = &f->kept[f->n_kept];
        if (!k->data && !(k->data = malloc(KILN_WAL_PAGE))) return SQLITE_NOMEM;
        k->page = page;
        f->n_kept++;
    }
    memcpy(k->data, data, KILN_WAL_PAGE);
    if (page == 1) memset(k->data + VERSIONS_AT, VERSION_WAL, 2);
    return SQLITE_OK;
}

static int direct_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 at)
{
    direct_file *f = of(file);
    const uint32_t page = (uint32_t)(at / KILN_WAL_PAGE) + 1;
    int rc = SQLITE_OK;
    if (f->level < SQLITE_LOCK_RESERVED || n != KILN_WAL_PAGE || at % KILN_WAL_PAGE || !f->behind)
        return SQLITE_IOERR_WRITE;
    if (page <= f->n_pages || kiln_wal_find(&f->wal, page, &rc)) return keep(f, page, data);
    if (rc != SQLITE_OK) return rc;
    f->unsynced = true;
    rc = kiln_behind_write(f->behind, data, (size_t)n, at);
    if (rc != SQLITE_OK) return rc;
    if (page > f->end) f->end = page;
    f->state.pages++;
    return SQLITE_OK;
}

/* No write of a new page is open any more, and the thread that did them is gone. */
static int end_writes(direct_file *f) { return f->behind ? kiln_behind_end(f->behind) : SQLITE_OK; }

/* A rollback cuts off the new pages, which a full disk needs: nobody else's are there (rule 5). If
 * that fails, they are garbage as after a kill; nor does a write matter that failed. A transaction
 * that makes the database smaller is not for this connection. */
static int direct_truncate(sqlite3_file *file, sqlite3_int64 bytes)
{
    direct_file *f = of(file);
    if (!f->wal.locked || bytes < (sqlite3_int64)f->n_pages * KILN_WAL_PAGE)
        return SQLITE_IOERR_TRUNCATE;
    const int rc = end_writes(f);
    if (f->end > f->n_pages) (void)f->file->pMethods->xTruncate(f->file, bytes);
    f->end = (uint32_t)(bytes / KILN_WAL_PAGE);
    if (f->end == f->n_pages) return f->unsynced = false, SQLITE_OK;
    return rc;
}

static int direct_size(sqlite3_file *file, sqlite3_int64 *bytes)
{
    direct_file *f = of(file);
    if (!f->wal.locked) return f->file->pMethods->xFileSize(f->file, bytes);
    *bytes = (sqlite3_int64)f->end * KILN_WAL_PAGE;
    return SQLITE_OK;
}

/* ---- transactions ---------------------------------------------------------------------------- */
/* Reads how large the database is: the index says it of the last commit in the log, page 1 of every
 * commit. Where the log has no commit, SQLite asks the file; if it writes then, garbage behind the
 * end becomes part of the database as the log has it, not as page 1 has it. Such a database is left
 * to SQLite. */
static int find_end(direct_file *f)
{
    unsigned char head[HEADER_END];
    const int rc = read_page(f, head, sizeof head, 1, 0);
    if (rc != SQLITE_OK) return rc;
    f->n_pages = kiln_get_u32_be(head + SIZE_AT);
    if (f->n_pages == 0 || memcmp(head + CHANGES_AT, head + VALID_AT, 4) != 0)
        return SQLITE_PROTOCOL;
    return f->wal.header.n_pages == 0 || f->wal.header.n_pages == f->n_pages ? SQLITE_OK
                                                                             : SQLITE_PROTOCOL;
}

/* Rule 5. */
static int cut_garbage(direct_file *f)
{
    sqlite3_int64 bytes;
    bool alone = false; /* nobody needs what is behind the end */
    int rc = f->file->pMethods->xFileSize(f->file, &bytes);
    f->state.garbage = false;
    if (rc != SQLITE_OK || bytes <= (sqlite3_int64)f->n_pages * KILN_WAL_PAGE) return rc;
    /* no commit since the index was made: every reader has the state of the file */
    if (f->wal.header.n_pages == 0)
        alone = true;
    else if (kiln_wal_is_backfilled(&f->wal))
        rc = kiln_wal_has_no_readers(&f->wal, &alone);
    if (rc != SQLITE_OK) return rc;
    if (alone)
        return f->file->pMethods->xTruncate(f->file, (sqlite3_int64)f->n_pages * KILN_WAL_PAGE);
    f->state.garbage = true;
    return SQLITE_PROTOCOL;
}

static int begin_transaction(direct_file *f)
{
    int rc = kiln_wal_lock(&f->wal);
    if (rc != SQLITE_OK) return rc;
    f->n_kept = 0;
    rc = find_end(f);
    if (rc != SQLITE_OK) return kiln_wal_unlock(&f->wal), rc;
    f->end = f->n_pages;
    f->unsynced = f->state.too_many = false;
    f->others_wrote = memcmp(&f->seen, &f->wal.header, sizeof f->seen) != 0;
    return SQLITE_OK;
}

static int by_page(const void *a, const void *b)
{
    const uint32_t x = ((const kiln_wal_page *)a)->page, y = ((const kiln_wal_page *)b)->page;
    return (x > y) - (x < y);
}

static int sync_new_pages(direct_file *f, int flags)
{
    if (!f->unsynced) return SQLITE_OK;
    int rc = end_writes(f);
    if (rc == SQLITE_OK) rc = f->file->pMethods->xSync(f->file, flags);
    if (rc == SQLITE_OK) f->unsynced = false;
    return rc;
}

static int commit(direct_file *f)
{
    bool visible;
    if (f->n_kept == 0) return SQLITE_OK;
    const kiln_wal_page *first = find_kept_page(f, 1);
    const uint32_t n_pages = first ? kiln_get_u32_be(first->data + SIZE_AT) : 0;
    /* SQLite counts each commit in page 1 */
    if (n_pages < f->end) return SQLITE_IOERR_WRITE;
    /* has happened (direct_sync), unless SQLite's order changes */
    const int rc_sync = sync_new_pages(f, SQLITE_SYNC_NORMAL);
    if (rc_sync != SQLITE_OK) return rc_sync;
    qsort(f->kept, f->n_kept, sizeof *f->kept, by_page);
    const int rc = kiln_wal_commit(&f->wal, f->kept, f->n_kept, n_pages, &visible);
    if (visible) {
        f->state.commits++;
        f->state.logged += f->n_kept;
        f->state.log_frames = f->wal.header.last_frame;
        if (f->behind)
            kiln_behind_synced(f->behind, (sqlite3_int64)f->n_pages * KILN_WAL_PAGE,
                               (sqlite3_int64)n_pages * KILN_WAL_PAGE);
        f->n_pages = f->end = n_pages;
        f->n_kept = 0;
    }
    return rc;
}

static int direct_sync(sqlite3_file *file, int flags) { return sync_new_pages(of(file), flags); }

static int direct_lock(sqlite3_file *file, int level)
{
    direct_file *f = of(file);
    if (level <= f->level) return SQLITE_OK;
    if (!f->shared) {
        const int rc = f->file->pMethods->xLock(f->file, SQLITE_LOCK_SHARED);
        if (rc != SQLITE_OK) return rc;
        f->shared = true;
    }
    int rc = SQLITE_OK;
    if (f->level == SQLITE_LOCK_NONE) rc = begin_transaction(f);
    if (rc == SQLITE_OK && f->level == SQLITE_LOCK_NONE) f->level = SQLITE_LOCK_SHARED;
    if (rc == SQLITE_OK && f->level < SQLITE_LOCK_RESERVED && level >= SQLITE_LOCK_RESERVED) {
        rc = cut_garbage(f);
        if (rc == SQLITE_OK) rc = kiln_wal_prepare(&f->wal);
    }
    if (rc == SQLITE_OK) f->level = level;
    return rc;
}

static int direct_unlock(sqlite3_file *file, int level)
{
    direct_file *f = of(file);
    if (level >= f->level) return SQLITE_OK;
    f->level = level;
    f->n_kept = 0;
    (void)end_writes(f); /* of a transaction that is over: if it was committed there are none */
    if (level == SQLITE_LOCK_NONE) {
        f->seen = f->wal.header;
        kiln_wal_unlock(&f->wal);
    }
    return SQLITE_OK;
}

/* SQLite asks this only if it finds a journal, which vfs_access hides. */
static int direct_check_reserved(sqlite3_file *file, int *reserved)
{
    (void)file;
    *reserved = 0;
    return SQLITE_OK;
}

static int direct_control(sqlite3_file *file, int op, void *argument)
{
    direct_file *f = of(file);
    switch (op) {
    case SQLITE_FCNTL_COMMIT_PHASETWO:
        return commit(f);
    case SQLITE_FCNTL_HAS_MOVED: /* the file has another name now: SQLite refuses to write */
        return f->file->pMethods->xFileControl(f->file, op, argument);
    default:
        return SQLITE_NOTFOUND;
    }
}

static int direct_sector(sqlite3_file *file)
{
    return of(file)->file->pMethods->xSectorSize(of(file)->file);
}

/* Says that the device promises nothing: SQLite must not choose another way of writing because of a
 * promise. */
static int direct_characteristics(sqlite3_file *file)
{
    (void)file;
    return 0;
}

static int direct_close(sqlite3_file *file)
{
    direct_file *f = of(file);
    kiln_behind_free(f->behind); /* before the locks go */
    kiln_wal_close(&f->wal);
    for (uint32_t i = 0; i < KILN_DIRECT_KEPT_MOST; i++) free(f->kept[i].data);
    const int rc = f->file->pMethods ? f->file->pMethods->xClose(f->file) : SQLITE_OK;
    free(f->file);
    return rc;
}

/* Version 1: no shared memory and no mapped pages for the connection above. */
static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = direct_close,
    .xRead = direct_read,
    .xWrite = direct_write,
    .xTruncate = direct_truncate,
    .xSync = direct_sync,
    .xFileSize = direct_size,
    .xLock = direct_lock,
    .xUnlock = direct_unlock,
    .xCheckReservedLock = direct_check_reserved,
    .xFileControl = direct_control,
    .xSectorSize = direct_sector,
    .xDeviceCharacteristics = direct_characteristics,
};

/* ---- the VFS --------------------------------------------------------------------------------- */
static sqlite3_vfs *unix_of(sqlite3_vfs *vfs) { return vfs->pAppData; }

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                    int *out_flags)
{
    direct_file *f = of(file);
    file->pMethods = NULL;
    /* journals are in memory; no temporary table is made */
    if (!(flags & SQLITE_OPEN_MAIN_DB)) return SQLITE_CANTOPEN;
    memset(f, 0, sizeof *f);
    f->file = calloc(1, (size_t)unix_of(vfs)->szOsFile);
    if (!f->file) return SQLITE_NOMEM;
    int rc = unix_of(vfs)->xOpen(unix_of(vfs), name, f->file, flags, out_flags);
    if (rc == SQLITE_OK)
        rc = kiln_wal_open(&f->wal, unix_of(vfs), f->file, sqlite3_filename_wal(name));
    if (rc == SQLITE_OK)
        file->pMethods = &methods;
    else
        (void)direct_close(file);
    return rc;
}

/* A file in WAL mode has no journal to play back, and the connection above must not see the log. */
static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    const char *dash = strrchr(name, '-');
    if (dash && (strcmp(dash, "-journal") == 0 || strcmp(dash, "-wal") == 0))
        return *out = 0, SQLITE_OK;
    return unix_of(vfs)->xAccess(unix_of(vfs), name, flags, out);
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    (void)vfs, (void)name, (void)sync;
    return SQLITE_IOERR_DELETE; /* this connection deletes nothing */
}

static int vfs_full_name(sqlite3_vfs *vfs, const char *name, int n, char *out)
{
    return unix_of(vfs)->xFullPathname(unix_of(vfs), name, n, out);
}

static int vfs_randomness(sqlite3_vfs *vfs, int n, char *out)
{
    return unix_of(vfs)->xRandomness(unix_of(vfs), n, out);
}
static int vfs_sleep(sqlite3_vfs *vfs, int us) { return unix_of(vfs)->xSleep(unix_of(vfs), us); }
static int vfs_time(sqlite3_vfs *vfs, double *out)
{
    return unix_of(vfs)->xCurrentTime(unix_of(vfs), out);
}
static int vfs_last_error(sqlite3_vfs *vfs, int n, char *out)
{
    return unix_of(vfs)->xGetLastError(unix_of(vfs), n, out);
}

int kiln_direct_register(void)
{
    static sqlite3_vfs direct = {
        .iVersion = 1,
        .szOsFile = sizeof(direct_file),
        .zName = KILN_DIRECT_VFS,
        .xOpen = vfs_open,
        .xDelete = vfs_delete,
        .xAccess = vfs_access,
        .xFullPathname = vfs_full_name,
        .xRandomness = vfs_randomness,
        .xSleep = vfs_sleep,
        .xCurrentTime = vfs_time,
        .xGetLastError = vfs_last_error,
    };
    if (sqlite3_vfs_find(KILN_DIRECT_VFS)) return SQLITE_OK;
    sqlite3_vfs *const own = sqlite3_vfs_find(NULL);
    if (!own || strcmp(own->zName, "unix") != 0) return SQLITE_NOTFOUND;
    direct.mxPathname = own->mxPathname;
    direct.pAppData = own;
    return sqlite3_vfs_register(&direct, 0);
}

static direct_file *file_of(sqlite3 *db)
{
    sqlite3_file *file = NULL;
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || !file)
        return NULL;
    return file->pMethods == &methods ? of(file) : NULL;
}

const kiln_direct_state *kiln_direct_state_of(sqlite3 *db)
{
    const direct_file *f = file_of(db);
    return f ? &f->state : NULL;
}

bool kiln_direct_write_by(sqlite3 *db, int fd, bool threaded, bool passes)
{
    direct_file *f = file_of(db);
    int moved = 1;
    if (!f ||
        f->file->pMethods->xFileControl(f->file, SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK ||
        moved)
        return false;
    kiln_behind *const behind = kiln_behind_new(fd, threaded, passes);
    if (!behind) return false;
    kiln_behind_free(f->behind);
    f->behind = behind;
    return true;
}
