/* Bulk data is written once (schema/direct.c). What counts is what SQLite's own code sees: every check here opens the file with a
 * plain connection, or has one in another process. Blobs are made from their number, so that a check makes them again.
 *
 * starts first
 * KILLS=n: more rounds of the kill test (40). SEED=n: other instants. */
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

/* ---- calls that fail: this program's functions stand before libc's, for SQLite too -------------------------------------- */
enum { FRAME_HEADER = 24 };
static struct {
    uint64_t calls, nth;                                    /* the nth call fails, 0: none */
    bool for_ever;                                          /* and all after it */
    enum { WRITES_NOTHING, WRITES_HALF, WRITES_ALL } wrote; /* what a write that fails has done */
    uint64_t heads, nth_head;                               /* the same for writes of the head of a frame alone */
    enum { FAILS, DIES_BEFORE, DIES_AFTER } at_head;
    char order[64]; /* d, D: the database file was written, synced; w, W: the log; each once for a row of such calls */
} injected;

static bool fails(void)
{
    injected.calls++;
    return injected.nth && (injected.calls == injected.nth || (injected.for_ever && injected.calls > injected.nth));
}

/* What a power failure may lose: every write, sync and truncation of the database file (0) and of the log (1). */
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

static int file_of(int fd)
{
    char link[64], name[600];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, name, sizeof name - 1);
    if (length < 4) return -1;
    name[length] = '\0';
    return strcmp(name + length - 4, "-wal") == 0 ? 1 : strcmp(name + length - 3, ".db") == 0 ? 0 : -1;
}

static void record(int kind, int fd, const void *data, size_t n, off64_t at)
{
    const int file = disk.on ? file_of(fd) : -1;
    if (file < 0) return;
    if (disk.n % 1024 == 0) disk.calls = realloc(disk.calls, (disk.n + 1024) * sizeof *disk.calls);
    if (!disk.calls) abort();
    disk_call *c = &disk.calls[disk.n++];
    *c = (disk_call){.kind = kind, .file = file, .at = at, .n = n, .data = n ? malloc(n) : NULL};
    if (n) memcpy(c->data, data, n);
}

static void note(int fd, char wrote)
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
    if (injected.wrote != WRITES_NOTHING) (void)syscall(SYS_pwrite64, fd, data, injected.wrote == WRITES_HALF ? n / 2 : n, at);
    return errno = injected.wrote == WRITES_NOTHING ? ENOSPC : EIO, -1;
}
ssize_t pwrite(int fd, const void *data, size_t n, off_t at) { return pwrite64(fd, data, n, at); }

static int synced(int fd, long number)
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

/* ---- batches ------------------------------------------------------------------------------------------------------------ */
typedef struct {
    uint32_t number, n_blobs;
    size_t blob_bytes;
} batch;

static void fill(unsigned char *to, size_t n, uint32_t number, uint32_t blob)
{
    uint64_t x = ((uint64_t)number << 20 | blob) * UINT64_C(0x9E3779B97F4A7C15) + 1;
    for (size_t i = 0; i < n; i++) {
        if (i % 8 == 0) x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        to[i] = (unsigned char)(x >> 8 * (i % 8));
    }
}

/* A hash by which a check finds out what the blob has to hold: batch, blob, size; scattered, as hashes are. */
static kiln_hash hash_of(const batch *b, uint32_t blob)
{
    kiln_hash h;
    const uint32_t words[4] = {(b->number * 2654435761u) ^ (blob * 40503u), b->number, blob, (uint32_t)b->blob_bytes};
    memcpy(h.bytes, words, sizeof words);
    return h;
}

static kiln_status store(kiln_manifest *to, void *context, kiln_error *err)
{
    const batch *b = context;
    unsigned char *data = malloc(b->blob_bytes + 1);
    kiln_status st = data ? KILN_OK : KILN_E_NOMEM;
    for (uint32_t i = 0; i < b->n_blobs && st == KILN_OK; i++) {
        char name[32];
        kiln_blob blob = {
            .hash = hash_of(b, i), .raw_bytes = b->blob_bytes, .elem = 1, .packed_bytes = b->blob_bytes, .packed = data};
        kiln_unit_output output = {.name = "data", .hash = blob.hash, .raw_bytes = b->blob_bytes, .elem = 1};
        const kiln_unit_result result = {.n = 1, .outputs = &output};
        snprintf(name, sizeof name, "%u/%u", b->number, i);
        fill(data, b->blob_bytes, b->number, i);
        st = kiln_unit_store(to, blob.hash, "test", name, &result, &blob, 1, err);
    }
    free(data);
    return st;
}

enum { THREADS = 4 }; /* enough for a thread that writes behind */
static unsigned threads = THREADS;

static kiln_status store_by(kiln_manifest *m, uint64_t bytes, kiln_bulk_store_fn *how, void *context, kiln_error *err)
{
    if (m->threads != threads) kiln_bulk_use_threads(m, threads);
    return kiln_bulk_store(m, bytes, how, context, err);
}

/* Stores it as one that is large enough for the second connection, whatever its size. */
static kiln_status store_batch(kiln_manifest *m, batch b, kiln_error *err)
{
    const uint64_t bytes = b.n_blobs * (uint64_t)b.blob_bytes;
    return store_by(m, bytes < MIB ? MIB : bytes, store, &b, err);
}

/* ---- what SQLite sees --------------------------------------------------------------------------------------------------- */
static sqlite3 *plain(const char *path)
{
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) fail_msg("%s: %s", path, sqlite3_errmsg(db));
    return db;
}

static int64_t ask(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *s = NULL;
    const int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK ? sqlite3_step(s) : sqlite3_errcode(db);
    const int64_t v = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : -1;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) print_error("%s: %s\n", sql, sqlite3_errmsg(db));
    sqlite3_finalize(s);
    return v;
}

/* Returns the number of blobs if each one holds what it must, else -1 with a line on stderr. Any process may call it. */
static int64_t read_all(sqlite3 *db)
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
        if (sqlite3_column_bytes(s, 1) != (int)words[3] || (words[3] && memcmp(packed, want, words[3]) != 0)) {
            print_error("blob %u of batch %u is wrong\n", words[2], words[1]);
            n = INT32_MIN;
        }
        n++;
    }
    if (rc != SQLITE_DONE) print_error("reading: %s\n", sqlite3_errmsg(db));
    sqlite3_finalize(s);
    return rc == SQLITE_DONE && n >= 0 ? n : -1;
}

static bool is_sound(sqlite3 *db)
{
    sqlite3_stmt *s = NULL;
    bool sound = sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW &&
                 strcmp((const char *)sqlite3_column_text(s, 0), "ok") == 0;
    if (!sound) print_error("integrity_check: %s\n", s ? (const char *)sqlite3_column_text(s, 0) : sqlite3_errmsg(db));
    sqlite3_finalize(s);
    return sound && ask(db, "SELECT count(*) FROM pragma_foreign_key_check") == 0;
}

static void assert_holds(const char *path, int64_t n_blobs)
{
    sqlite3 *db = plain(path);
    assert_int_equal(ask(db, "SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'wal'"), 1);
    assert_true(is_sound(db));
    assert_int_equal(read_all(db), n_blobs);
    assert_int_equal(ask(db, "SELECT count(*) FROM unit_output"), n_blobs);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void copy_file(const char *from, const char *to)
{
    char command[2600];
    snprintf(command, sizeof command, "cp --sparse=always '%s' '%s'", from, to);
    assert_int_equal(system(command), 0);
}

/* What a recovery makes of file and log as they are: of a copy without the shared memory. */
static void assert_recovers(void **state, const char *path, int64_t n_blobs)
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

static off_t size_of(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 ? s.st_size : -1;
}

static off_t wal_size(const char *path)
{
    char wal[700];
    snprintf(wal, sizeof wal, "%s-wal", path);
    return size_of(wal);
}

/* ---- tests -------------------------------------------------------------------------------------------------------------- */
static void each_batch_is_an_ordinary_commit(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    /* sizes: less than a page, one page and a little, some pages, many blobs, more than the cache, more than a trunk of the log */
    static const batch batches[] = {{0, 1, 100},     {1, 1, PAGE + 1}, {2, 3, 5 * PAGE}, {3, 300, 4000}, {4, 2, 7 * MIB},
                                    {5, 20, 600000}, {6, 1, 0},        {7, 40, 300000},  {8, 5, 2 * MIB}};
    int64_t n = 0;
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        OK(store_batch(m, batches[i], &err));
        n += batches[i].n_blobs;
        assert_holds(path, n);
        assert_recovers(state, path, n);
        assert_int_equal(number_of(m, "SELECT count(*) FROM blob"), n); /* the first connection sees it, too */
        const kiln_direct_state *s = kiln_bulk_state(m);
        assert_non_null(s);
        assert_int_equal(s->commits, i + 1);
    }
    const kiln_direct_state *s = kiln_bulk_state(m);
    assert_true(s->pages * PAGE > 45 * (uint64_t)MIB); /* nearly all of it in its place */
    assert_true(s->logged < 100);
    assert_true(wal_size(path) < 17 * MIB);
    OK(store_batch(m, batches[4], &err)); /* what is there already */
    kiln_manifest_close(m);
    assert_holds(path, n);
    assert_int_equal(wal_size(path), -1);
    m = open_manifest(path, KILN_OPEN_WRITE);
    OK(store_batch(m, (batch){9, 2, MIB}, &err));
    kiln_manifest_close(m);
    assert_holds(path, n + 2);
}

/* Both connections by turns: each has to see what the other has done. */
static void connections_take_turns(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    int64_t n = 0;
    for (uint32_t i = 0; i < 60; i++) {
        batch b = {i, 1 + i % 3, 40000 + 30000 * (i % 7)};
        if (i % 2)
            OK(store_batch(m, b, &err));
        else
            OK(kiln_bulk_store(m, 0, store, &b, &err)); /* no room for a second connection */
        n += b.n_blobs;
        if (i % 20 == 7)
            assert_int_equal(sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL), SQLITE_OK);
        if (i % 10 == 9) assert_holds(path, n);
        assert_int_equal(number_of(m, "SELECT count(*) FROM unit"), n);
    }
    assert_int_equal(kiln_bulk_state(m)->commits, 30);
    kiln_manifest_close(m);
    assert_holds(path, n);
}

/* ---- readers in other processes ----------------------------------------------------------------------------------------- */
typedef struct {
    pid_t pid;
    int to, from;
} process;

static process begin_process(int (*body)(const char *path, int in, int out), const char *path)
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

static void wait_byte(int fd)
{
    char c;
    while (read(fd, &c, 1) < 0 && errno == EINTR) continue;
}

static void send_byte(int fd)
{
    char c = 1;
    if (write(fd, &c, 1) != 1) _exit(9);
}

static void end_process(process *p)
{
    int status;
    close(p->to), close(p->from);
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Holds the state of its first look while the parent commits, and the newest at the end. */
static int old_state_reader(const char *path, int in, int out)
{
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) return 1;
    if (sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK || read_all(db) != 4) return 2;
    for (int round = 0; round < 3; round++) {
        send_byte(out);
        wait_byte(in);
        if (read_all(db) != 4 || !is_sound(db)) return 3;
    }
    if (sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK || read_all(db) != 4 + 60 || !is_sound(db)) return 4;
    return sqlite3_close(db) == SQLITE_OK ? 0 : 5;
}

static void readers_keep_their_state(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    OK(store_batch(m, (batch){0, 4, 300000}, &err));
    process reader = begin_process(old_state_reader, path);
    uint32_t number = 1;
    for (int round = 0; round < 3; round++) {
        wait_byte(reader.from);
        for (int i = 0; i < 20; i++) {
            OK(store_batch(m, (batch){number++, 1, MIB}, &err));
            if (i % 7 == 3) (void)sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL); /* in part */
        }
        send_byte(reader.to);
    }
    end_process(&reader);
    assert_int_equal(kiln_bulk_state(m)->commits, 61);
    kiln_manifest_close(m);
    assert_holds(path, 64);
}

/* Reads until the parent closes the pipe. It never waits for a lock, and never sees less than before nor half a batch. */
static int looping_reader(const char *path, int in, int out)
{
    sqlite3 *db = NULL;
    int64_t before = 0;
    (void)fcntl(in, F_SETFL, O_NONBLOCK);
    for (unsigned round = 0;; round++) {
        char c;
        if (round % 16 == 0) { /* another connection, which has to map the index anew */
            if (sqlite3_close(db) != SQLITE_OK || sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) return 1;
        }
        sqlite3_stmt *s = NULL;
        if (sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) return 2;
        const int64_t n = ask(db, "SELECT count(*) FROM blob");
        if (n < before || n % 2) return 3;
        before = n;
        int rc = sqlite3_prepare_v2(db, "SELECT hash, packed FROM blob ORDER BY id DESC LIMIT 3", -1, &s, NULL);
        while (rc == SQLITE_OK || rc == SQLITE_ROW) {
            static unsigned char want[8 * MIB];
            rc = sqlite3_step(s);
            if (rc != SQLITE_ROW) break;
            uint32_t words[4];
            memcpy(words, sqlite3_column_blob(s, 0), sizeof words);
            fill(want, words[3], words[1], words[2]);
            if (memcmp(sqlite3_column_blob(s, 1), want, words[3]) != 0) return 4;
        }
        sqlite3_finalize(s);
        if (rc != SQLITE_DONE || ask(db, "SELECT count(*) FROM blob") != n) return 5;
        if (sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK) return 6;
        if (round == 0) send_byte(out);
        if (read(in, &c, 1) == 0) return round > 20 ? 0 : 7;
    }
}

static void readers_are_never_blocked(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    process reader = begin_process(looping_reader, path);
    wait_byte(reader.from);
    for (uint32_t i = 0; i < 200; i++) OK(store_batch(m, (batch){i, 2, 150000}, &err));
    end_process(&reader);
    assert_int_equal(kiln_bulk_state(m)->commits, 200);
    kiln_manifest_close(m);
    assert_holds(path, 400);
}

/* ---- a log that grows --------------------------------------------------------------------------------------------------- */
static int waiting_reader(const char *path, int in, int out)
{
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) return 1;
    if (sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK || ask(db, "SELECT count(*) FROM blob") != 1) return 2;
    send_byte(out);
    wait_byte(in);
    return ask(db, "SELECT count(*) FROM blob") == 1 && is_sound(db) && sqlite3_close(db) == SQLITE_OK ? 0 : 3;
}

/* The index's first region has 4,062 frames: they go on in a second one, and the log restarts when the reader has left. */
static void the_index_grows(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    OK(store_batch(m, (batch){0, 1, 100}, &err));
    process reader = begin_process(waiting_reader, path);
    wait_byte(reader.from);
    int64_t n = 1;
    uint32_t i = 1;
    for (; kiln_bulk_state(m)->log_frames < 4300; i++, n++) OK(store_batch(m, (batch){i, 1, 100}, &err));
    assert_true(i < 4300);
    assert_holds(path, n);
    assert_recovers(state, path, n);
    send_byte(reader.to);
    end_process(&reader);
    OK(store_batch(m, (batch){i++, 1, 100}, &err)); /* its checkpoint takes all */
    OK(store_batch(m, (batch){i++, 1, 100}, &err)); /* and this one begins the log anew */
    assert_true(kiln_bulk_state(m)->log_frames < 30);
    assert_holds(path, n + 2);
    assert_recovers(state, path, n + 2);
    kiln_manifest_close(m);
    assert_holds(path, n + 2);
}

/* ---- what goes through the first connection ------------------------------------------------------------------------------- */
static kiln_status change_many(kiln_manifest *to, void *context, kiln_error *err)
{
    ++*(int *)context;
    return kiln_sql(to, "UPDATE unit SET wall_ns = wall_ns + 1 WHERE true", err);
}

static void old_pages_are_used_again(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    OK(store_batch(m, (batch){0, 4, 10 * PAGE}, &err));
    OK(store_batch(m, (batch){1, 1, 5 * PAGE}, &err));
    const uint64_t commits = kiln_bulk_state(m)->commits;
    run_sql(m, "DELETE FROM unit WHERE name = '1/0'; DELETE FROM blob WHERE hash NOT IN (SELECT hash FROM unit_output)");
    assert_int_equal(number_of(m, "PRAGMA freelist_count"), 5);
    OK(store_batch(m, (batch){2, 1, 8 * PAGE}, &err)); /* takes the free pages through memory and the log */
    assert_int_equal(kiln_bulk_state(m)->commits, commits + 1);
    assert_int_equal(number_of(m, "PRAGMA freelist_count"), 0);
    assert_holds(path, 5);
    run_sql(m, "DELETE FROM unit WHERE name LIKE '0/%'; DELETE FROM blob WHERE hash NOT IN (SELECT hash FROM unit_output)");
    assert_int_equal(number_of(m, "PRAGMA freelist_count"), 40);
    OK(store_batch(m, (batch){3, 3, 10 * PAGE}, &err)); /* too many for memory */
    assert_int_equal(kiln_bulk_state(m)->commits, commits + 1);
    assert_holds(path, 4);
    kiln_manifest_close(m);
    assert_holds(path, 4);
}

static void too_many_changes_go_through_the_log(void **state)
{
    char path[600];
    kiln_error err = {0};
    int calls = 0;
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    run_sql(m, "WITH RECURSIVE i (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM i WHERE x < 3000) INSERT INTO unit"
               " SELECT x, randomblob(16), 'test', hex(randomblob(2000)), '{}', 1, 1 FROM i");
    assert_true(number_of(m, "PRAGMA page_count") > 2 * KILN_DIRECT_KEPT_MOST / 2 + 40);
    OK(kiln_bulk_store(m, MIB, change_many, &calls, &err));
    assert_int_equal(calls, 2);
    assert_null(kiln_bulk_state(m)); /* and is not tried again */
    assert_int_equal(number_of(m, "SELECT count(*) FROM unit WHERE wall_ns = 2"), 3000);
    OK(store_batch(m, (batch){0, 1, MIB}, &err));
    kiln_manifest_close(m);
    assert_holds(path, 1);
}

static kiln_status store_in_vain(kiln_manifest *to, void *context, kiln_error *err)
{
    KILN_TRY(store(to, context, err));
    return kiln_fail(err, KILN_E_INPUT, "in vain");
}

/* A disk that is full needs the room. */
static void a_rollback_leaves_no_garbage(void **state)
{
    char path[600];
    kiln_error err = {0};
    batch b = {1, 3, 8 * MIB};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    OK(store_batch(m, (batch){0, 1, MIB}, &err));
    const off_t before = size_of(path);
    injected.order[0] = '\0';
    assert_int_equal(kiln_bulk_store(m, MIB, store_in_vain, &b, &err), KILN_E_INPUT);
    assert_string_equal(injected.order, "d");
    assert_int_equal(size_of(path), before);
    assert_holds(path, 1);
    kiln_manifest_close(m);
}

/* The database has become smaller, and a reader still needs what is behind its end now. */
static int vacuum_reader(const char *path, int in, int out)
{
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) return 1;
    if (sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK || ask(db, "SELECT count(*) FROM blob") != 6) return 2;
    send_byte(out);
    wait_byte(in);
    return read_all(db) == 6 && is_sound(db) && sqlite3_close(db) == SQLITE_OK ? 0 : 3;
}

static void a_smaller_database_leaves_old_readers_alone(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    OK(store_batch(m, (batch){0, 6, 2 * MIB}, &err));
    assert_int_equal(sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL), SQLITE_OK);
    const off_t large = size_of(path);
    process reader = begin_process(vacuum_reader, path);
    wait_byte(reader.from);
    run_sql(m, "DELETE FROM unit WHERE name <> '0/0'; DELETE FROM blob WHERE hash NOT IN (SELECT hash FROM unit_output)");
    run_sql(m, "VACUUM");
    const uint64_t commits = kiln_bulk_state(m)->commits;
    for (uint32_t i = 1; i < 4; i++) OK(store_batch(m, (batch){i, 1, 3 * MIB}, &err));
    assert_int_equal(kiln_bulk_state(m)->commits, commits); /* SQLite stored them */
    assert_int_equal(size_of(path), large);
    send_byte(reader.to);
    end_process(&reader);
    assert_holds(path, 4);
    OK(store_batch(m, (batch){6, 1, 3 * MIB}, &err));
    OK(store_batch(m, (batch){7, 1, 3 * MIB}, &err));
    assert_true(kiln_bulk_state(m)->commits > commits);
    assert_holds(path, 6);
    kiln_manifest_close(m);
    assert_holds(path, 6);
}

/* ---- kills -------------------------------------------------------------------------------------------------------------- */
enum { KILL_BLOBS = 3 };
static _Atomic uint32_t *progress; /* batches that the writer was told are stored; shared */

static int killed_writer(const char *path, int in, int out)
{
    kiln_error err = {0};
    kiln_manifest *m;
    (void)in;
    if (kiln_manifest_open(path, KILN_OPEN_WRITE, "test", false, &m, &err) != KILN_OK) return print_error("%s\n", err.msg), 1;
    send_byte(out);
    for (uint32_t i = atomic_load(progress);; i++) {
        const batch b = {i, KILL_BLOBS, 200000 + 60000 * (i % 5)};
        if (store_batch(m, b, &err) != KILN_OK) return print_error("%s\n", err.msg), 2;
        if (!kiln_bulk_state(m) || kiln_bulk_state(m)->commits == 0) return print_error("not by the second connection\n"), 3;
        atomic_store(progress, i + 1);
    }
}

/* Half of the rounds have another connection open all the time, which keeps the index in memory: no recovery then. */
static void kills_leave_whole_batches(void **state)
{
    char path[600];
    const char *rounds = getenv("KILLS"), *seed = getenv("SEED");
    const unsigned n = rounds ? (unsigned)atoi(rounds) : 40;
    unsigned x = seed ? (unsigned)atoi(seed) : 1;
    progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(progress != MAP_FAILED);
    uint64_t stored = 0;
    for (unsigned round = 0; round < n; round++) {
        if (round % 10 == 0) {
            in_scratch(state, "m.db", path);
            char command[700];
            snprintf(command, sizeof command, "rm -f '%s'*", path);
            assert_int_equal(system(command), 0);
            kiln_manifest_close(open_manifest(path, KILN_OPEN_CREATE));
            atomic_store(progress, 0);
        }
        sqlite3 *witness = round % 2 ? plain(path) : NULL;
        if (witness) assert_true(ask(witness, "SELECT count(*) FROM blob") >= 0);
        const uint32_t before = atomic_load(progress);
        process writer = begin_process(killed_writer, path);
        wait_byte(writer.from);
        x = x * 1103515245u + 12345u;
        while (atomic_load(progress) < before + (x >> 8) % 3) (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        (void)nanosleep(&(struct timespec){.tv_nsec = (long)((x >> 12) % 20000) * 1000}, NULL);
        assert_int_equal(kill(writer.pid, SIGKILL), 0);
        int status;
        assert_int_equal(waitpid(writer.pid, &status, 0), writer.pid);
        assert_true(WIFSIGNALED(status));
        close(writer.to), close(writer.from);
        const uint32_t told = atomic_load(progress);
        stored += told - before;
        /* what was told is there, and perhaps the batch that was under way; nothing in part */
        if (round % 4 == 1)
            assert_int_equal(sqlite3_wal_checkpoint_v2(witness, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL), SQLITE_OK);
        sqlite3 *db = plain(path);
        assert_true(is_sound(db));
        const int64_t blobs = read_all(db);
        if (blobs != told * (int64_t)KILL_BLOBS && blobs != (told + 1) * (int64_t)KILL_BLOBS)
            fail_msg("round %u: %lld blobs after %u batches of %d", round, (long long)blobs, told, KILL_BLOBS);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        if (witness) assert_int_equal(sqlite3_close(witness), SQLITE_OK);
        atomic_store(progress, (uint32_t)(blobs / KILL_BLOBS));
    }
    print_message("%u kills in %llu batches\n", n, (unsigned long long)stored);
    assert_true(stored >= n / 2);
}

/* ---- garbage -------------------------------------------------------------------------------------------------------------- */
static size_t garbage_bytes;

/* Stores the batch, of which much is more than the cache holds, and ends before the commit. */
static kiln_status store_and_die(kiln_manifest *to, void *context, kiln_error *err)
{
    KILN_TRY(store(to, context, err));
    (void)kill(getpid(), SIGKILL);
    return KILN_E_BUG;
}

static int dying_writer(const char *path, int in, int out)
{
    kiln_error err = {0};
    kiln_manifest *m;
    batch b = {9, 1, garbage_bytes};
    (void)in;
    if (kiln_manifest_open(path, KILN_OPEN_WRITE, "test", false, &m, &err) != KILN_OK) return 1;
    if (store_batch(m, (batch){1, 1, MIB}, &err) != KILN_OK) return 2;
    if (sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) != SQLITE_OK) return 3;
    send_byte(out);
    return kiln_bulk_store(m, MIB, store_and_die, &b, &err) == KILN_OK ? 4 : 5;
}

/* Leaves a file with garbage behind the end. Returns what is open on it, if a reader is to be there when it is opened again. */
static sqlite3 *leave_garbage(const char *path, size_t bytes, bool reader)
{
    kiln_error err = {0};
    int status;
    kiln_manifest *m = open_manifest(path, KILN_OPEN_CREATE);
    OK(store_batch(m, (batch){0, 1, MIB}, &err));
    kiln_manifest_close(m);
    garbage_bytes = bytes;
    process writer = begin_process(dying_writer, path);
    wait_byte(writer.from);
    assert_int_equal(waitpid(writer.pid, &status, 0), writer.pid);
    assert_true(WIFSIGNALED(status));
    close(writer.to), close(writer.from);
    sqlite3 *db = plain(path);
    assert_true(size_of(path) > ask(db, "PRAGMA page_count") * PAGE);
    if (reader) {
        assert_int_equal(sqlite3_exec(db, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(read_all(db), 2);
        return db;
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return NULL;
}

/* The log begins anew before the pages are written, so that a recovery of it finds no commit that would say how large the database
 * is, and SQLite asks the file instead: its next commit would make the garbage part of the database. */
static void a_writer_cuts_garbage_off_first(void **state)
{
    for (int i = 0; i < 4; i++) {
        char path[600], name[32];
        kiln_error err = {0};
        batch small = {2, 1, 100};
        snprintf(name, sizeof name, "%d.db", i);
        sqlite3 *reader = leave_garbage(in_scratch(state, name, path), (size_t)(i < 2 ? 5 : 8) * MIB, i % 2);
        kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
        assert_int_equal(size_of(path), number_of(m, "PRAGMA page_count") * PAGE);
        OK(kiln_bulk_store(m, 0, store, &small, &err)); /* through the log */
        for (uint32_t k = 3; k < 6; k++) OK(store_batch(m, (batch){k, 1, MIB}, &err));
        assert_int_equal(kiln_bulk_state(m)->commits, 3);
        if (reader) assert_int_equal(read_all(reader), 2);
        assert_int_equal(sqlite3_close(reader), SQLITE_OK);
        kiln_manifest_close(m);
        assert_holds(path, 2 + 1 + 3);
    }
}

/* Another program has been quicker. */
static void garbage_in_the_database_is_left_to_sqlite(void **state)
{
    for (int i = 0; i < 2; i++) {
        char path[600], name[32];
        kiln_error err = {0};
        snprintf(name, sizeof name, "%d.db", i);
        (void)leave_garbage(in_scratch(state, name, path), (size_t)(i ? 5 : 8) * MIB, false);
        sqlite3 *other = plain(path);
        assert_int_equal(sqlite3_exec(other, "UPDATE unit SET wall_ns = 2", NULL, NULL, NULL), SQLITE_OK);
        kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
        for (uint32_t k = 3; k < 6; k++) OK(store_batch(m, (batch){k, 1, MIB}, &err));
        assert_null(kiln_bulk_state(m));
        assert_int_equal(sqlite3_close(other), SQLITE_OK);
        kiln_manifest_close(m);
        assert_holds(path, 2 + 3);
        m = open_manifest(path, KILN_OPEN_WRITE); /* the log is gone, and with it what it says of the size */
        assert_int_equal(size_of(path), number_of(m, "PRAGMA page_count") * PAGE);
        OK(store_batch(m, (batch){6, 1, MIB}, &err));
        assert_int_equal(kiln_bulk_state(m)->commits, 1);
        kiln_manifest_close(m);
        assert_holds(path, 2 + 4);
    }
}

/* What a writer leaves that is killed as it begins the log anew, after the headers of the index and before what is behind them. */
static void empty_the_index(const char *path)
{
    char shm[700];
    kiln_wal_header h;
    snprintf(shm, sizeof shm, "%s-shm", path);
    const int fd = open(shm, O_RDWR);
    assert_int_equal(pread(fd, &h, sizeof h, 0), sizeof h);
    assert_true(h.last_frame > 0);
    h.last_frame = 0;
    h.salt[3]++;
    h.sum[0] = h.sum[1] = 0;
    uint32_t words[sizeof h / 4];
    memcpy(words, &h, sizeof h);
    for (size_t i = 0; i < offsetof(kiln_wal_header, sum) / 4; i += 2) {
        h.sum[0] += words[i] + h.sum[1];
        h.sum[1] += words[i + 1] + h.sum[0];
    }
    unsigned char *at = mmap(NULL, 2 * sizeof h, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(at != MAP_FAILED);
    memcpy(at, &h, sizeof h);
    memcpy(at + sizeof h, &h, sizeof h);
    assert_int_equal(munmap(at, 2 * sizeof h), 0);
    /* the descriptor stays: closing it would drop SQLite's locks */
}

static void a_log_that_was_begun_anew_in_part_is_begun_anew(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    OK(store_batch(m, (batch){0, 2, MIB}, &err));
    assert_int_equal(sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL), SQLITE_OK);
    empty_the_index(path);
    OK(store_batch(m, (batch){1, 2, MIB}, &err));
    assert_int_equal(kiln_bulk_state(m)->commits, 2);
    assert_recovers(state, path, 4);
    kiln_manifest_close(m);
    assert_holds(path, 4);
}

/* ---- the instant of the commit -------------------------------------------------------------------------------------------- */
enum { LATE_BYTES = 6 * MIB }; /* more than the cache: pages are written before the commit */

static int at_head, at_head_wrote;

/* Ends, or fails, in batch 2 at the write that makes the commit exist. */
static int late_writer(const char *path, int in, int out)
{
    kiln_error err = {0};
    kiln_manifest *m;
    (void)in;
    if (kiln_manifest_open(path, KILN_OPEN_WRITE, "test", false, &m, &err) != KILN_OK) return 1;
    if (store_batch(m, (batch){0, 1, LATE_BYTES}, &err) != KILN_OK) return 2;
    const uint64_t logged = kiln_bulk_state(m)->logged;
    if (store_batch(m, (batch){1, 1, LATE_BYTES}, &err) != KILN_OK) return 3;
    injected.heads = 0; /* the same number of frames again, and at the end the first one's head */
    injected.nth_head = kiln_bulk_state(m)->logged - logged + 1;
    injected.at_head = at_head;
    injected.wrote = at_head_wrote;
    if (store_batch(m, (batch){2, 1, LATE_BYTES}, &err) == KILN_OK) return 4;
    send_byte(out);
    _exit(0);
}

static void end_late_writer(const char *path, int what, int wrote)
{
    int status;
    at_head = what, at_head_wrote = wrote;
    process writer = begin_process(late_writer, path);
    wait_byte(writer.from);
    assert_int_equal(waitpid(writer.pid, &status, 0), writer.pid);
    assert_true(what == FAILS ? WIFEXITED(status) && WEXITSTATUS(status) == 0 : WIFSIGNALED(status));
    close(writer.to), close(writer.from);
}

/* A checkpoint by another process, which lives on, cuts off what the last commit does not have. So that process and a recovery of
 * the log must take the same commit for the last one. */
static void a_commit_is_there_or_not_for_all(void **state)
{
    static const struct {
        const char *name;
        int what, wrote;
        int64_t n;
    } ends[] = {{"killed-before", DIES_BEFORE, 0, 2},
                {"killed-after", DIES_AFTER, 0, 3},
                {"failed", FAILS, WRITES_NOTHING, 2},
                {"failed-in-part", FAILS, WRITES_HALF, 2},
                {"failed-but-written", FAILS, WRITES_ALL, 3}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char path[600], name[64];
        kiln_error err = {0};
        snprintf(name, sizeof name, "%s.db", ends[i].name);
        kiln_manifest_close(open_manifest(in_scratch(state, name, path), KILN_OPEN_CREATE));
        sqlite3 *witness = plain(path);
        assert_int_equal(ask(witness, "SELECT count(*) FROM blob"), 0);
        end_late_writer(path, ends[i].what, ends[i].wrote);
        assert_int_equal(sqlite3_wal_checkpoint_v2(witness, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL), SQLITE_OK);
        assert_int_equal(read_all(witness), ends[i].n);
        assert_recovers(state, path, ends[i].n);
        kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
        OK(store_batch(m, (batch){7, 1, LATE_BYTES}, &err));
        assert_non_null(kiln_bulk_state(m));
        assert_recovers(state, path, ends[i].n + 1);
        assert_int_equal(sqlite3_close(witness), SQLITE_OK);
        kiln_manifest_close(m);
        assert_holds(path, ends[i].n + 1);
    }
}

typedef struct {
    const char *path;
    batch b;
    int checked;
} check_inside;

/* A checkpoint by another connection in the middle of a batch would cut its pages off. Reading goes on. */
static kiln_status store_and_check_point(kiln_manifest *to, void *context, kiln_error *err)
{
    check_inside *c = context;
    KILN_TRY(store(to, &c->b, err));
    sqlite3 *db = plain(c->path);
    assert_int_equal(read_all(db), 1);
    assert_int_equal(sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL), SQLITE_BUSY);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_BUSY);
    assert_int_equal(read_all(db), 1);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    c->checked++;
    return KILN_OK;
}

static void others_neither_check_point_nor_write_meanwhile(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    OK(store_batch(m, (batch){0, 1, MIB}, &err));
    check_inside c = {path, {1, 1, LATE_BYTES}, 0};
    OK(kiln_bulk_store(m, MIB, store_and_check_point, &c, &err));
    assert_int_equal(c.checked, 1);
    assert_int_equal(kiln_bulk_state(m)->commits, 2);
    kiln_manifest_close(m);
    assert_holds(path, 2);
}

/* What a power failure would leave cannot be seen here, but the order of writes and syncs can. */
static void the_disk_gets_it_in_order(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    OK(store_batch(m, (batch){0, 1, MIB}, &err));
    injected.order[0] = '\0';
    OK(store_batch(m, (batch){1, 3, 3 * MIB}, &err));
    assert_string_equal(injected.order, "dDwW"); /* new pages are safe before the log names them, the log before the end */
    assert_int_equal(sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL), SQLITE_OK);
    injected.order[0] = '\0';
    OK(store_batch(m, (batch){2, 3, 3 * MIB}, &err));
    assert_string_equal(injected.order, "wWdDwW"); /* the log begins anew */
    injected.order[0] = '\0';
    OK(store_batch(m, (batch){3, 1, 100}, &err));
    assert_string_equal(injected.order, "wW"); /* no new page, or one: see below */
    kiln_manifest_close(m);
    assert_holds(path, 8);
}

/* ---- power failures ------------------------------------------------------------------------------------------------------- */
enum { POWER_BATCHES = 24, SECTOR = 512 };
typedef struct {
    unsigned char *data;
    size_t size, room;
} image;

static void image_resize(image *i, size_t size)
{
    if (size > i->room) {
        i->data = realloc(i->data, 2 * size);
        if (!i->data) abort();
        i->room = 2 * size;
    }
    if (size > i->size) memset(i->data + i->size, 0, size - i->size);
    i->size = size;
}

static void image_write(image *i, const disk_call *c, size_t from, size_t n)
{
    if ((size_t)c->at + from + n > i->size) image_resize(i, (size_t)c->at + from + n);
    memcpy(i->data + c->at + from, c->data + from, n);
}

static unsigned next_random(unsigned *x) { return (*x = *x * 1103515245u + 12345u) >> 12; }

/* A call that no sync follows: done, not done, or, if it writes, done in some sectors. */
static void image_perhaps(image *i, const disk_call *c, unsigned *x)
{
    const unsigned how = next_random(x) % 3;
    if (c->kind == CUT && how) image_resize(i, (size_t)c->at);
    if (c->kind != WRITE || how == 0) return;
    for (size_t from = 0; from < c->n; from += SECTOR)
        if (how == 1 || next_random(x) % 2) image_write(i, c, from, c->n - from < SECTOR ? c->n - from : SECTOR);
}

/* What the disk may have of a file if the power fails before call `end`. */
static void image_make(image *i, const image *base, int file, size_t end, unsigned *x)
{
    size_t synced = 0;
    image_resize(i, 0);
    image_resize(i, base->size);
    if (base->size) memcpy(i->data, base->data, base->size);
    for (size_t k = 0; k < end; k++)
        if (disk.calls[k].file == file && disk.calls[k].kind == SYNC) synced = k;
    for (size_t k = 0; k < end; k++) {
        const disk_call *c = &disk.calls[k];
        if (c->file != file) continue;
        if (k >= synced)
            image_perhaps(i, c, x);
        else if (c->kind == CUT)
            image_resize(i, (size_t)c->at);
        else if (c->kind == WRITE)
            image_write(i, c, 0, c->n);
    }
}

static void image_save(const image *i, const char *path)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(i->data, 1, i->size, f), i->size);
    assert_int_equal(fclose(f), 0);
}

static void image_load(image *i, const char *path)
{
    image_resize(i, (size_t)size_of(path));
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(i->data, 1, i->size, f), i->size);
    assert_int_equal(fclose(f), 0);
}

/* Small and large batches and checkpoints by turns; *told: calls of the disk when the writer was told of each batch. */
static void record_batches(const char *path, size_t told[POWER_BATCHES])
{
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
    disk.on = true;
    for (uint32_t i = 0; i < POWER_BATCHES; i++) {
        batch b = {i + 1, 2, 30000 + 40000 * (i % 4)};
        if (i % 5 == 3)
            OK(kiln_bulk_store(m, 0, store, &b, &err));
        else
            OK(store_batch(m, b, &err));
        told[i] = disk.n;
        if (i % 6 == 4) assert_int_equal(sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL), SQLITE_OK);
    }
    assert_int_equal(kiln_bulk_state(m)->commits, POWER_BATCHES - (POWER_BATCHES + 1) / 5);
    disk.on = false;
    kiln_manifest_close(m);
}

/* The disk keeps what was synced, and of the rest what it likes, in sectors. POWER=n: more failures (120). */
static void power_failures_lose_nothing_that_was_told(void **state)
{
    char path[600], wal[700], crashed[600], crashed_wal[700];
    const char *rounds = getenv("POWER"), *seed = getenv("SEED");
    const unsigned n = rounds ? (unsigned)atoi(rounds) : 120;
    unsigned x = seed ? (unsigned)atoi(seed) : 1;
    kiln_error err = {0};
    size_t told[POWER_BATCHES];
    image base[2] = {{0}}, now[2] = {{0}};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    OK(store_batch(m, (batch){0, 2, 100000}, &err));
    kiln_manifest_close(m);
    snprintf(wal, sizeof wal, "%s-wal", path);
    image_load(&base[0], path);
    record_batches(path, told);
    in_scratch(state, "crashed.db", crashed);
    snprintf(crashed_wal, sizeof crashed_wal, "%s-wal", crashed);
    for (unsigned round = 0; round < n; round++) {
        const size_t end = next_random(&x) % (disk.n + 1);
        int64_t least = 2;
        for (unsigned i = 0; i < POWER_BATCHES && told[i] <= end; i++) least += 2;
        for (int file = 0; file < 2; file++) image_make(&now[file], &base[file], file, end, &x);
        image_save(&now[0], crashed);
        image_save(&now[1], crashed_wal);
        sqlite3 *db = plain(crashed);
        const int64_t blobs = is_sound(db) ? read_all(db) : -1;
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        if (blobs != least && blobs != least + 2)
            fail_msg("round %u, call %zu of %zu: %lld blobs, told of %lld", round, end, disk.n, (long long)blobs, (long long)least);
        m = open_manifest(crashed, KILN_OPEN_WRITE); /* and it can go on */
        OK(store_batch(m, (batch){100, 2, 700000}, &err));
        kiln_manifest_close(m);
        if (round % 8 == 0) assert_holds(crashed, blobs + 2);
    }
    for (size_t i = 0; i < disk.n; i++) free(disk.calls[i].data);
    free(disk.calls);
    for (int file = 0; file < 2; file++) free(base[file].data), free(now[file].data);
}

/* ---- failures ------------------------------------------------------------------------------------------------------------ */
/* The n-th write, sync or truncation of two batches fails. Returns false if there was none. */
static bool one_failure(void **state, uint64_t nth, bool for_ever, int wrote)
{
    char path[600], base[600];
    kiln_error err = {0};
    in_scratch(state, "f.db", path);
    copy_file(in_scratch(state, "base.db", base), path);
    kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
    OK(store_batch(m, (batch){1, 2, 100000}, &err)); /* opens the second connection */
    assert_int_equal(kiln_bulk_state(m)->commits, 1);
    injected.calls = 0, injected.nth = nth, injected.for_ever = for_ever, injected.wrote = wrote;
    uint32_t told = 2;
    kiln_status st = KILN_OK;
    for (; told < 4 && st == KILN_OK; told += st == KILN_OK) {
        st = store_batch(m, (batch){told, 2, 150000}, &err);
        if (st == KILN_OK && told == 2) /* so that the log restarts */
            st = sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) == SQLITE_OK ? KILN_OK : KILN_E_IO;
    }
    const bool hit = injected.calls >= nth;
    if (hit && st != KILN_OK) assert_int_equal(kiln_exit_code(st), 74);
    if (!hit) assert_int_equal(st, KILN_OK);
    kiln_manifest_close(m); /* its checkpoint meets a lasting failure, too */
    injected.nth = 0;
    sqlite3 *db = plain(path);
    assert_true(is_sound(db));
    const int64_t n = read_all(db); /* a whole number of batches; all that were told */
    if (n % 2 || n < 2 * told || n > 2 * 4)
        fail_msg("call %llu: %lld blobs, %u batches told", (unsigned long long)nth, (long long)n, told);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    m = open_manifest(path, KILN_OPEN_WRITE);
    for (uint32_t i = 1; i < 5; i++) OK(store_batch(m, (batch){i, 2, i == 1 ? 100000 : 150000}, &err));
    kiln_manifest_close(m);
    db = plain(path);
    assert_int_equal(read_all(db), 2 + 8);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return hit;
}

static void failures_of(void **state)
{
    char base[600];
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(in_scratch(state, "base.db", base), KILN_OPEN_CREATE);
    OK(store_batch(m, (batch){0, 2, 100000}, &err));
    kiln_manifest_close(m);
    uint64_t n = 0;
    for (int wrote = WRITES_NOTHING; wrote <= WRITES_ALL; wrote++) {
        uint64_t i = 1;
        while (one_failure(state, i, wrote == WRITES_HALF, wrote)) i++; /* those that write half go on failing */
        n += i - 1;
    }
    print_message("%llu failures\n", (unsigned long long)n);
    assert_true(n > 40);
}

static void failures_lose_nothing(void **state) { failures_of(state); }

static kiln_status store_and_read(kiln_manifest *to, void *context, kiln_error *err)
{
    KILN_TRY(store(to, context, err));
    return read_all(to->db) == ((const batch *)context)->n_blobs ? KILN_OK : kiln_fail(err, KILN_E_IO, "not what was written");
}

static void pages_are_read_while_they_wait(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    batch b = {1, 5, 3 * MIB};
    OK(store_by(m, 15 * MIB, store_and_read, &b, &err));
    assert_int_equal(kiln_bulk_state(m)->commits, 1);
    kiln_manifest_close(m);
    assert_holds(path, 5);
}

/* A disk is full from some write on: the batch ends with the sentence of a full disk, and the next one finds nothing of it. */
static void a_failure_behind_is_told(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    OK(store_batch(m, (batch){0, 2, MIB}, &err));
    for (uint64_t nth = 1; nth <= 5; nth += 2) {
        injected.calls = 0, injected.nth = nth, injected.for_ever = true, injected.wrote = WRITES_NOTHING;
        assert_int_equal(store_batch(m, (batch){1, 4, 3 * MIB}, &err), KILN_E_IO);
        injected.nth = 0;
        assert_non_null(strstr(err.msg, "are free there, make room"));
        assert_holds(path, 2);
        kiln_manifest_close(m); /* a connection whose batch failed is not opened again */
        m = open_manifest(path, KILN_OPEN_WRITE);
    }
    OK(store_batch(m, (batch){1, 4, 3 * MIB}, &err));
    assert_int_equal(kiln_bulk_state(m)->commits, 1);
    kiln_manifest_close(m);
    assert_holds(path, 6);
}

/* As on a machine of few threads. */
static void failures_without_a_thread_lose_nothing(void **state)
{
    threads = 1;
    failures_of(state);
    threads = THREADS;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_batch_is_an_ordinary_commit, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(connections_take_turns, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(readers_keep_their_state, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(readers_are_never_blocked, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(the_index_grows, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(old_pages_are_used_again, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(too_many_changes_go_through_the_log, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(a_rollback_leaves_no_garbage, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(a_smaller_database_leaves_old_readers_alone, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(kills_leave_whole_batches, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(a_writer_cuts_garbage_off_first, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(garbage_in_the_database_is_left_to_sqlite, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(a_log_that_was_begun_anew_in_part_is_begun_anew, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(a_commit_is_there_or_not_for_all, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(others_neither_check_point_nor_write_meanwhile, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(the_disk_gets_it_in_order, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(power_failures_lose_nothing_that_was_told, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(failures_lose_nothing, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(failures_without_a_thread_lose_nothing, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(pages_are_read_while_they_wait, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(a_failure_behind_is_told, make_scratch, remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
