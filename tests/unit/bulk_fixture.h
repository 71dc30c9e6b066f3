/* bulk_fixture -- what the tests of schema/direct.c share: calls that fail, batches, what SQLite's
 * own code sees of them, and readers in other processes. Every check opens the file with a plain
 * connection, or has one in another process. Blobs are made from their number, so that a check
 * makes them again. */
#ifndef KILN_TESTS_BULK_FIXTURE_H
#define KILN_TESTS_BULK_FIXTURE_H

#include "tests/unit/manifest_fixture.h"

#include "base/checked.h"
#include "schema/direct.h"
#include "schema/manifest_internal.h"
#include "schema/wal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { MIB = 1 << 20, PAGE = 65536 };

/* ---- calls that fail: this program's functions stand before libc's, for SQLite too ----------- */
enum { FRAME_HEADER = 24 };
static struct {
    uint64_t calls, nth;                                    /* the nth call fails, 0: none */
    bool for_ever;                                          /* and all after it */
    enum { WRITES_NOTHING, WRITES_HALF, WRITES_ALL } wrote; /* what a write that fails has done */
    /* the same for writes of the head of a frame alone */
    uint64_t heads, nth_head;
    enum { FAILS, DIES_BEFORE, DIES_AFTER } at_head;
    /* d, D: the database file was written, synced; w, W: the log; each once for a row of such
     * calls */
    char order[64];
} injected;

static inline bool fails(void)
{
    injected.calls++;
    return injected.nth &&
           (injected.calls == injected.nth || (injected.for_ever && injected.calls > injected.nth));
}

/* What a power failure may lose: every write, sync and truncation of the database file (0) and of
 * the log (1). */
typedef struct {
    enum { WRITE, SYNC, CUT } kind;
    int file;
    off64_t at; /* CUT: the size */
    size_t n;
    unsigned char *data;
} disk_call;
static struct {
    bool on;
    disk_call *calls;
    size_t n;
} disk;

static inline int file_of(int fd)
{
    char link[64], name[600];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, name, sizeof name - 1);
    if (length < 4) return -1;
    name[length] = '\0';
    return strcmp(name + length - 4, "-wal") == 0  ? 1
           : strcmp(name + length - 3, ".db") == 0 ? 0
                                                   : -1;
}

static inline void record(int kind, int fd, const void *data, size_t n, off64_t at)
{
    const int file = disk.on ? file_of(fd) : -1;
    if (file < 0) return;
    if (disk.n % 1024 == 0) disk.calls = realloc(disk.calls, (disk.n + 1024) * sizeof *disk.calls);
    if (!disk.calls) abort();
    disk_call *c = &disk.calls[disk.n++];
    *c = (disk_call){.kind = kind, .file = file, .at = at, .n = n, .data = n ? malloc(n) : NULL};
    if (n) memcpy(c->data, data, n);
}

static inline void note(int fd, char wrote)
{
    const size_t n = strlen(injected.order);
    const int file = file_of(fd);
    if (file < 0 || n + 2 > sizeof injected.order) return;
    const char c = (char)(file == 1 ? wrote == 'd' ? 'w' : 'W' : wrote);
    if (n == 0 || injected.order[n - 1] != c) injected.order[n] = c, injected.order[n + 1] = '\0';
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at)
{
    bool fail = fails();
    note(fd, 'd');
    record(WRITE, fd, data, n, at);
    if (n == FRAME_HEADER && ++injected.heads == injected.nth_head) {
        if (injected.at_head == DIES_AFTER) (void)syscall(SYS_pwrite64, fd, data, n, at);
        if (injected.at_head != FAILS) (void)kill(getpid(), SIGKILL);
        fail = true;
    }
    if (!fail) return syscall(SYS_pwrite64, fd, data, n, at);
    if (injected.wrote != WRITES_NOTHING)
        (void)syscall(SYS_pwrite64, fd, data, injected.wrote == WRITES_HALF ? n / 2 : n, at);
    return errno = injected.wrote == WRITES_NOTHING ? ENOSPC : EIO, -1;
}
ssize_t pwrite(int fd, const void *data, size_t n, off_t at) { return pwrite64(fd, data, n, at); }

static inline int synced(int fd, long number)
{
    note(fd, 'D');
    record(SYNC, fd, NULL, 0, 0);
    return fails() ? (errno = EIO, -1) : (int)syscall(number, fd);
}
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }
int fsync(int fd) { return synced(fd, SYS_fsync); }
int ftruncate64(int fd, off64_t n)
{
    record(CUT, fd, NULL, 0, n);
    return fails() ? (errno = EIO, -1) : (int)syscall(SYS_ftruncate, fd, n);
}
int ftruncate(int fd, off_t n) { return ftruncate64(fd, n); }

/* ---- batches --------------------------------------------------------------------------------- */
typedef struct {
    uint32_t number, n_blobs;
    size_t blob_bytes;
} batch;

static inline void fill(unsigned char *to, size_t n, uint32_t number, uint32_t blob)
{
    uint64_t x = ((uint64_t)number << 20 | blob) * UINT64_C(0x9E3779B97F4A7C15) + 1;
    for (size_t i = 0; i < n; i++) {
        if (i % 8 == 0) x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        to[i] = (unsigned char)(x >> 8 * (i % 8));
    }
}

/* A hash by which a check finds out what the blob has to hold: batch, blob, size; scattered, as
 * hashes are. */
static inline kiln_hash hash_of(const batch *b, uint32_t blob)
{
    kiln_hash h;
    const uint32_t words[4] = {(b->number * 2654435761u) ^ (blob * 40503u), b->number, blob,
                               (uint32_t)b->blob_bytes};
    memcpy(h.bytes, words, sizeof words);
    return h;
}

static inline kiln_status store(kiln_manifest *to, void *context, kiln_error *err)
{
    const batch *b = context;
    unsigned char *data = malloc(b->blob_bytes + 1);
    kiln_status st = data ? KILN_OK : KILN_E_NOMEM;
    for (uint32_t i = 0; i < b->n_blobs && st == KILN_OK; i++) {
        char name[32];
        kiln_blob blob = {.hash = hash_of(b, i),
                          .raw_bytes = b->blob_bytes,
                          .elem = 1,
                          .packed_bytes = b->blob_bytes,
                          .packed = data};
        kiln_unit_output output = {
            .name = "data", .hash = blob.hash, .raw_bytes = b->blob_bytes, .elem = 1};
        const kiln_unit_result result = {.n = 1, .outputs = &output};
        snprintf(name, sizeof name, "%u/%u", b->number, i);
        fill(data, b->blob_bytes, b->number, i);
        st =
            kiln_unit_store(to, &(kiln_unit_done){blob.hash, "test", name, 1}, &result, &blob, err);
    }
    free(data);
    return st;
}

enum { THREADS = 4 }; /* enough for a thread that writes behind */
static unsigned threads = THREADS;

static inline kiln_status store_by(kiln_manifest *m, uint64_t bytes, kiln_bulk_store_fn *how,
                                   void *context, kiln_error *err)
{
    if (m->threads != threads) kiln_bulk_use_threads(m, threads);
    return kiln_bulk_store(m, bytes, how, context, err);
}

/* Stores it as one that is large enough for the second connection, whatever its size. */
static inline kiln_status store_batch(kiln_manifest *m, batch b, kiln_error *err)
{
    const uint64_t bytes = b.n_blobs * (uint64_t)b.blob_bytes;
    return store_by(m, bytes < MIB ? MIB : bytes, store, &b, err);
}

/* ---- what SQLite sees ------------------------------------------------------------------------ */
static inline sqlite3 *plain(const char *path)
{
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        fail_msg("%s: %s", path, sqlite3_errmsg(db));
    return db;
}

static inline int64_t ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s = NULL;
    const int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK ? sqlite3_step(s)
                                                                          : sqlite3_errcode(db);
    const int64_t v = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) print_error("%s: %s\n", sql, sqlite3_errmsg(db));
    sqlite3_finalize(s);
    return v;
}

/* Returns the number of blobs if each one holds what it must, else -1 with a line on stderr. Any
 * process may call it. */
static inline int64_t read_all(sqlite3 *db)
{
    sqlite3_stmt *s = NULL;
    int64_t n = 0;
    static unsigned char want[8 * MIB];
    int rc = sqlite3_prepare_v2(db, "SELECT hash, packed FROM blob ORDER BY id", -1, &s, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(s);
        if (rc != SQLITE_ROW) break;
        uint32_t words[4];
        memcpy(words, sqlite3_column_blob(s, 0), sizeof words);
        fill(want, words[3], words[1], words[2]);
        const void *packed = sqlite3_column_blob(s, 1); /* NULL if there are no bytes */
        if (sqlite3_column_bytes(s, 1) != (int)words[3] ||
            (words[3] && memcmp(packed, want, words[3]) != 0)) {
            print_error("blob %u of batch %u is wrong\n", words[2], words[1]);
            n = INT32_MIN;
        }
        n++;
    }
    if (rc != SQLITE_DONE) print_error("reading: %s\n", sqlite3_errmsg(db));
    sqlite3_finalize(s);
    return rc == SQLITE_DONE && n >= 0 ? n : -1;
}

static inline bool is_sound(sqlite3 *db)
{
    sqlite3_stmt *s = NULL;
    bool sound = sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &s, NULL) == SQLITE_OK &&
                 sqlite3_step(s) == SQLITE_ROW &&
                 strcmp((const char *)sqlite3_column_text(s, 0), "ok") == 0;
    if (!sound)
        print_error("integrity_check: %s\n",
                    s ? (const char *)sqlite3_column_text(s, 0) : sqlite3_errmsg(db));
    sqlite3_finalize(s);
    return sound && ask(db, "SELECT count(*) FROM pragma_foreign_key_check") == 0;
}

static inline void assert_holds(const char *path, int64_t n_blobs)
{
    sqlite3 *db = plain(path);
    assert_int_equal(ask(db, "SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'wal'"),
                     1);
    assert_true(is_sound(db));
    assert_int_equal(read_all(db), n_blobs);
    assert_int_equal(ask(db, "SELECT count(*) FROM unit_output"), n_blobs);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static inline void copy_file(const char *from, const char *to)
{
    char command[2600];
    snprintf(command, sizeof command, "cp --sparse=always '%s' '%s'", from, to);
    assert_int_equal(system(command), 0);
}

/* What a recovery makes of file and log as they are: of a copy without the shared memory. */
static inline void assert_recovers(void **state, const char *path, int64_t n_blobs)
{
    char copy[600], wal[700], copy_wal[700];
    in_scratch(state, "copy.db", copy);
    snprintf(wal, sizeof wal, "%s-wal", path);
    snprintf(copy_wal, sizeof copy_wal, "%s-wal", copy);
    copy_file(path, copy);
    copy_file(wal, copy_wal);
    assert_holds(copy, n_blobs);
    (void)unlink(copy);
    (void)unlink(copy_wal);
}

static inline off_t size_of(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 ? s.st_size : -1;
}

static inline off_t wal_size(const char *path)
{
    char wal[700];
    snprintf(wal, sizeof wal, "%s-wal", path);
    return size_of(wal);
}

/* ---- readers in other processes -------------------------------------------------------------- */
typedef struct {
    pid_t pid;
    int to, from;
} process;

static inline process begin_process(int (*body)(const char *path, int in, int out),
                                    const char *path)
{
    int in[2], out[2];
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        close(in[1]), close(out[0]);
        _exit(body(path, in[0], out[1]));
    }
    close(in[0]), close(out[1]);
    return (process){pid, in[1], out[0]};
}

static inline void wait_byte(int fd)
{
    char c;
    while (read(fd, &c, 1) < 0 && errno == EINTR) continue;
}

static inline void send_byte(int fd)
{
    char c = 1;
    if (write(fd, &c, 1) != 1) _exit(9);
}

static inline void end_process(process *p)
{
    int status;
    close(p->to), close(p->from);
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#endif
