/* A bake that a program of schema version 1 has made (tests/data/manifest): it is read as it is,
 * the first writer makes it one of the version of today in one transaction, and no failure or kill
 * on the way leaves anything between. */
#include "levels_fixture.h"
#include "version_1.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <zlib.h>

#define STORED "tests/data/manifest/version-1"
enum { BAKE_MAX = 4 << 20 };

/* ---- calls that fail: this program's functions stand before libc's, for SQLite too ----------- */
static struct {
    uint64_t calls, nth; /* the nth call that changes or syncs a file fails; 0: none */
    bool dies;           /* by SIGKILL in its place */
} injected;

static bool fails(void)
{
    if (++injected.calls != injected.nth) return false;
    if (injected.dies) (void)kill(getpid(), SIGKILL);
    return true;
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at)
{
    return fails() ? (errno = ENOSPC, -1) : syscall(SYS_pwrite64, fd, data, n, at);
}
ssize_t pwrite(int fd, const void *data, size_t n, off_t at) { return pwrite64(fd, data, n, at); }
int fdatasync(int fd) { return fails() ? (errno = EIO, -1) : (int)syscall(SYS_fdatasync, fd); }
int fsync(int fd) { return fails() ? (errno = EIO, -1) : (int)syscall(SYS_fsync, fd); }
int ftruncate64(int fd, off64_t n)
{
    return fails() ? (errno = EIO, -1) : (int)syscall(SYS_ftruncate, fd, n);
}
int ftruncate(int fd, off_t n) { return ftruncate64(fd, n); }

/* ---- a writer that comes between two reads of another connection ----------------------------- */
/* the manifest that a writer opens before the next list of tables is read */
static const char *written_between;

static void let_a_writer_in(void)
{
    const char *const path = written_between;
    int status = -1;
    written_between = NULL;
    const pid_t child = fork();
    if (child == 0) {
        kiln_manifest *m = NULL;
        const kiln_status st = kiln_manifest_open(path, KILN_OPEN_WRITE, "test", false, &m, NULL);
        kiln_manifest_close(m);
        _exit(st == KILN_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int sqlite3_prepare_v2(sqlite3 *db, const char *sql, int bytes, sqlite3_stmt **out,
                       const char **rest)
{
    if (written_between && strncmp(sql, "SELECT type, name", 17) == 0) let_a_writer_in();
    return sqlite3_prepare_v3(db, sql, bytes, 0, out, rest);
}

/* ---- the bake -------------------------------------------------------------------------------- */
static unsigned char *bake;
static size_t bake_bytes;

static int load_bake(void **state)
{
    (void)state;
    gzFile f = gzopen(STORED ".db.gz", "rb");
    bake = malloc(BAKE_MAX);
    const int n = f && bake ? gzread(f, bake, BAKE_MAX) : -1;
    if (f) (void)gzclose(f);
    bake_bytes = n > 0 ? (size_t)n : 0;
    return n > 0 && n < BAKE_MAX ? 0 : -1;
}
static int free_bake(void **state)
{
    (void)state;
    free(bake);
    return 0;
}

/* The bake as a file, with nothing beside it. */
static const char *stored_bake(void **state, char path[600])
{
    char wal[700];
    in_scratch(state, "m.db", path);
    snprintf(wal, sizeof wal, "%s-wal", path);
    (void)unlink(wal);
    snprintf(wal, sizeof wal, "%s-shm", path);
    (void)unlink(wal);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bake, 1, bake_bytes, f), bake_bytes);
    assert_int_equal(fclose(f), 0);
    return path;
}

static bool is_as_stored(const char *path)
{
    unsigned char *data = malloc(BAKE_MAX);
    FILE *f = fopen(path, "rb");
    assert_true(f && data);
    const size_t n = fread(data, 1, BAKE_MAX, f);
    assert_int_equal(fclose(f), 0);
    const bool same = n == bake_bytes && memcmp(data, bake, n) == 0;
    free(data);
    return same;
}

typedef struct {
    char text[4096];
    size_t used;
} line_text;

static void add_line(void *context, const char *kind, const char *name, kiln_hash digest)
{
    line_text *t = context;
    char hex[33];
    t->used += (size_t)snprintf(t->text + t->used, sizeof t->text - t->used, "%s %s %s\n", kind,
                                name, kiln_hash_hex(digest, hex));
    assert_true(t->used < sizeof t->text);
}

/* All digests are those that the program of version 1 printed; nothing is wrong with it. */
static void is_the_stored_bake(kiln_manifest *m)
{
    kiln_error err = {0};
    line_text is = {.used = 0};
    char want[4096] = "";
    uint64_t bytes;
    FILE *f = fopen(STORED ".digests", "rb");
    assert_non_null(f);
    assert_true(fread(want, 1, sizeof want - 1, f) > 100);
    assert_int_equal(fclose(f), 0);
    OK(kiln_manifest_digests(m, add_line, &is, &err));
    assert_string_equal(is.text, want);
    OK(kiln_manifest_verify(m, NULL, NULL, &bytes, &err));
}

/* ---- read ------------------------------------------------------------------------------------ */
static void it_is_read_as_it_is(void **state)
{
    static const kiln_open_mode modes[] = {KILN_OPEN_READ, KILN_OPEN_FROZEN};
    char path[600];
    stored_bake(state, path);
    for (int i = 0; i < 2; i++) {
        kiln_error err = {0};
        kiln_layer *baked, *levels;
        kiln_manifest *m = open_manifest(path, modes[i]);
        assert_int_equal(number_of(m, "PRAGMA user_version"), 1);
        is_the_stored_bake(m);
        OK(kiln_layer_get_drawn(m, &baked, &err));
        assert_int_equal(kiln_levels_get(m, baked, &levels, &err), KILN_E_STALE);
        assert_says(&err, "has no levels of detail; run kiln-lod first");
        kiln_layer_free(baked);
        kiln_manifest_close(m);
        assert_true(is_as_stored(path));
    }
}

/* The version and the tables are those of one state. */
static void a_reader_may_open_it_while_it_is_upgraded(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = NULL;
    written_between = stored_bake(state, path);
    OK(kiln_manifest_open(path, KILN_OPEN_READ, "test", false, &m, &err));
    assert_null(written_between);
    /* what it sees from now on */
    assert_int_equal(number_of(m, "PRAGMA user_version"), KILN_SCHEMA_VERSION);
    is_the_stored_bake(m);
    kiln_manifest_close(m);
}

/* ---- the first writer ------------------------------------------------------------------------ */
/* Types, names and texts of all objects, in one hash. */
static kiln_hash schema_of(kiln_manifest *m)
{
    sqlite3_stmt *s;
    kiln_hasher *h = kiln_hasher_new();
    assert_int_equal(sqlite3_prepare_v2(kiln_manifest_sqlite(m),
                                        "SELECT type || ' ' || name || ' ' || tbl_name || ' ' || "
                                        "ifnull(sql, '') FROM sqlite_schema"
                                        " ORDER BY name",
                                        -1, &s, NULL),
                     SQLITE_OK);
    while (sqlite3_step(s) == SQLITE_ROW)
        kiln_hasher_update(h, sqlite3_column_text(s, 0), (size_t)sqlite3_column_bytes(s, 0));
    assert_int_equal(sqlite3_finalize(s), SQLITE_OK);
    return kiln_hasher_end(h);
}

static void is_of_today(void **state, kiln_manifest *m)
{
    char path[600];
    kiln_manifest *fresh = open_manifest(in_scratch(state, "new.db", path), KILN_OPEN_CREATE);
    assert_int_equal(number_of(m, "PRAGMA user_version"), KILN_SCHEMA_VERSION);
    assert_true(kiln_hash_equal(schema_of(m), schema_of(fresh)));
    kiln_manifest_discard(fresh);
}

static void the_first_writer_makes_it_one_of_today(void **state)
{
    static const kiln_open_mode modes[] = {KILN_OPEN_WRITE, KILN_OPEN_CREATE, KILN_OPEN_CLAIMED};
    char path[600];
    for (int i = 0; i < 3; i++) {
        stored_bake(state, path);
        kiln_manifest *m = open_manifest(path, modes[i]);
        assert_false(kiln_manifest_created(m));
        is_of_today(state, m);
        is_the_stored_bake(m);
        kiln_manifest_close(m);
        m = open_manifest(path, KILN_OPEN_READ); /* the guard takes what the writer made */
        is_the_stored_bake(m);
        kiln_manifest_close(m);
    }
    kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE); /* nothing is left to do */
    is_of_today(state, m);
    kiln_manifest_close(m);
}

static void levels_can_be_put_to_it(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_layer *baked, *levels;
    kiln_level_tree t;
    uint64_t bytes;
    kiln_manifest *m = open_manifest(stored_bake(state, path), KILN_OPEN_WRITE);
    OK(kiln_layer_get_drawn(m, &baked, &err));
    OK(kiln_manifest_begin(m, &err));
    levels = levels_of(m, baked);
    for (uint32_t i = 0; i < levels->n_chunks; i++) { /* what its planes of zeros have */
        levels->chunks[i].max_log_scale = 0;
        levels->chunks[i].max_opacity_logit = 0;
    }
    OK(kiln_layer_put(m, levels, &err));
    OK(kiln_stage_output_put(m, "lod", "levels", levels->digest, &err));
    OK(kiln_manifest_commit(m, &err));
    kiln_layer_free(levels);
    kiln_manifest_close(m);
    m = open_manifest(path, KILN_OPEN_READ);
    OK(kiln_levels_get(m, baked, &levels, &err));
    OK(kiln_level_tree_make(baked, levels, &t, &err));
    assert_int_equal(t.n_nodes, 6 + 5); /* /6/2/3/4, /6/2/3, /6/2, /6, / */
    OK(kiln_manifest_verify(m, NULL, NULL, &bytes, &err));
    kiln_level_tree_release(&t);
    kiln_layer_free(levels);
    kiln_layer_free(baked);
    kiln_manifest_close(m);
}

/* ---- failures and kills ---------------------------------------------------------------------- */
/* What it says it is, it is, whole. */
static void is_whole(void **state, const char *path, bool *upgraded)
{
    kiln_manifest *m = open_manifest(path, KILN_OPEN_READ);
    is_the_stored_bake(m);
    const int64_t version = number_of(m, "PRAGMA user_version");
    assert_true(version == 1 || version == KILN_SCHEMA_VERSION);
    *upgraded = version != 1;
    kiln_manifest_close(m);
    m = open_manifest(path, KILN_OPEN_WRITE); /* and the next writer goes on */
    is_of_today(state, m);
    kiln_manifest_close(m);
}

static void a_failure_leaves_one_version_or_the_other(void **state)
{
    char path[600];
    unsigned failed = 0;
    for (uint64_t n = 1;; n++) {
        kiln_error err = {0};
        kiln_manifest *m = NULL;
        bool upgraded;
        stored_bake(state, path);
        injected.calls = 0;
        injected.nth = n;
        const kiln_status st = kiln_manifest_open(path, KILN_OPEN_WRITE, "test", false, &m, &err);
        const bool reached = injected.calls >= n;
        kiln_manifest_close(m);
        injected.nth = 0;
        if (!reached) break;
        failed += st != KILN_OK;
        if (st != KILN_OK && st != KILN_E_IO)
            fail_msg("call %llu: %s", (unsigned long long)n, err.msg);
        is_whole(state, path, &upgraded);
        if (st == KILN_OK) assert_true(upgraded);
    }
    assert_true(failed >= 3); /* the log's pages and its sync */
}

/* True while the n-th call came. */
static bool kill_at(void **state, uint64_t n, const char *path)
{
    bool upgraded;
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        kiln_manifest *m = NULL;
        injected.calls = 0;
        injected.nth = n;
        injected.dies = true;
        kiln_status st = kiln_manifest_open(path, KILN_OPEN_WRITE, "test", false, &m, NULL);
        kiln_manifest_close(m);
        _exit(st == KILN_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    is_whole(state, path, &upgraded);
    if (WIFSIGNALED(status)) return true;
    assert_int_equal(WEXITSTATUS(status), 0);
    return false;
}

static void a_kill_leaves_one_version_or_the_other(void **state)
{
    char path[600];
    uint64_t n = 1;
    while (kill_at(state, n, stored_bake(state, path))) n++;
    assert_true(n > 5); /* the log, its sync, and the file with its own when it is closed */
}

/* ---- which text belongs to which version ----------------------------------------------------- */
static const struct {
    const char *sql, *says; /* NULL: it is accepted */
} changes[] = {
    {"DROP TABLE photo_mask", NULL},
    {"PRAGMA user_version = 2", "differs from that of schema version 2"}, /* digest_line */
    {"PRAGMA user_version = 3", "has schema version 3, this program knows up to 2"},
    {"CREATE TABLE level_error (chunk)",
     "its table 'level_error' differs from that of schema version 1"},
    {"DROP VIEW digest_line", "its view 'digest_line' is missing"},
    {"DROP VIEW digest_line; CREATE VIEW digest_line AS SELECT 1",
     "its view 'digest_line' differs from that of schema version 1"},
    {"DROP TABLE run", "its table 'run' is missing"},
};

static void only_the_text_of_version_1_is_version_1(void **state)
{
    char path[600];
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        sqlite3 *db = NULL;
        stored_bake(state, path);
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        if (sqlite3_exec(db, changes[i].sql, NULL, NULL, NULL) != SQLITE_OK)
            fail_msg("%s: %s", changes[i].sql, sqlite3_errmsg(db));
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        for (int mode = KILN_OPEN_READ; mode <= KILN_OPEN_CREATE; mode++) {
            kiln_error err = {0};
            kiln_manifest *m = NULL;
            const kiln_status st =
                kiln_manifest_open(path, (kiln_open_mode)mode, "test", false, &m, &err);
            if (st != (changes[i].says ? KILN_E_INPUT : KILN_OK))
                fail_msg("%s: %d %s", changes[i].sql, st, err.msg);
            if (changes[i].says) assert_says(&err, changes[i].says);
            if (st == KILN_OK) is_the_stored_bake(m);
            kiln_manifest_close(m);
        }
    }
}

/* Of version 2 everything must be there, and nothing of version 1 in its place. */
static void only_the_text_of_version_2_is_version_2(void **state)
{
    static const char *const sql[] = {"DROP TABLE level_error", "DROP TABLE level_origin",
                                      "DROP TABLE photo_mask", "PRAGMA user_version = 1"};
    char path[600];
    for (size_t i = 0; i < sizeof sql / sizeof *sql; i++) {
        kiln_error err = {0};
        kiln_manifest *m = open_manifest(in_scratch(state, "new.db", path), KILN_OPEN_CREATE);
        run_sql(m, sql[i]);
        kiln_manifest_close(m);
        assert_int_equal(kiln_manifest_open(path, KILN_OPEN_WRITE, "test", false, &m, &err),
                         KILN_E_INPUT);
        assert_says(&err, i == 3 ? "differs from that of schema version 1" : "is missing");
        assert_int_equal(unlink(path), 0);
    }
}

/* What other tests make of a manifest by make_version_1 has the text of the stored one. */
static void a_manifest_can_be_made_one_of_version_1(void **state)
{
    char path[600], made[600];
    kiln_manifest *m = open_manifest(in_scratch(state, "made.db", made), KILN_OPEN_CREATE);
    make_version_1(m);
    kiln_manifest *stored = open_manifest(stored_bake(state, path), KILN_OPEN_READ);
    assert_true(kiln_hash_equal(schema_of(m), schema_of(stored)));
    kiln_manifest_close(stored);
    kiln_manifest_close(m);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_scratch, remove_scratch)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_read_as_it_is),
        TEST(a_reader_may_open_it_while_it_is_upgraded),
        TEST(the_first_writer_makes_it_one_of_today),
        TEST(levels_can_be_put_to_it),
        TEST(a_failure_leaves_one_version_or_the_other),
        TEST(a_kill_leaves_one_version_or_the_other),
        TEST(only_the_text_of_version_1_is_version_1),
        TEST(only_the_text_of_version_2_is_version_2),
        TEST(a_manifest_can_be_made_one_of_version_1),
    };
    return cmocka_run_group_tests(tests, load_bake, free_bake);
}
