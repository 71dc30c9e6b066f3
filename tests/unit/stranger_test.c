/* stranger: a manifest that somebody else made to do harm. Each row of the tables is what a hostile file can hold, written by a
 * connection of its own without any check, and the sentence that whoever opens or reads it must give. */
#include "manifest_fixture.h"

#include "schema/manifest_internal.h"

#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

/* A connection that checks nothing: writable_schema, no CHECKs, no foreign keys, no STRICT where a table says otherwise. */
static void mutate(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *text = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "PRAGMA writable_schema = ON; PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF;"
                                  "PRAGMA recursive_triggers = ON",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &text) != SQLITE_OK) fail_msg("%s: %s", sql, text);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static const char *fixture_file(void **state, const char *name, char path[600])
{
    kiln_manifest *m = open_manifest(in_scratch(state, name, path), KILN_OPEN_CREATE);
    fixture_fill(m, false);
    kiln_manifest_close(m);
    return path;
}

static bool exists(const char *path)
{
    struct stat s;
    return lstat(path, &s) == 0;
}

/* ---- the list of tables ------------------------------------------------------------------------------------------ */
static const struct {
    const char *sql, *says;
} schemas[] = {
    {"CREATE TRIGGER t AFTER UPDATE ON stage BEGIN DELETE FROM camera; END", "its trigger 't' differs"},
    {"CREATE TABLE own (a)", "its table 'own' differs"},
    {"CREATE VIEW own AS SELECT 1", "its view 'own' differs"},
    {"CREATE INDEX own ON camera (width)", "its index 'own' differs"},
    {"CREATE UNIQUE INDEX own ON unit (stage)", "its index 'own' differs"}, /* our inserts would break it */
    {"CREATE VIRTUAL TABLE own USING fts5(a)", "'own' differs"},
    {"DROP TABLE quarantine; CREATE VIEW quarantine AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT"
     " zeroblob(16) AS key, 'knn' AS stage, 'u' AS name, 1 AS attempts, 'cpu' AS device, 'r' AS reason, n AS failed_ns FROM r",
     "its view 'quarantine' differs"},
    {"DROP TABLE run", "'run' is missing"},
    {"DROP VIEW digest_line", "'digest_line' is missing"},
    {"DROP INDEX stage_output_layer", "'stage_output_layer' is missing"},
    {"UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (width >= 0)', '') WHERE name = 'photo'", "its table 'photo' differs"},
    {"UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')') WHERE name = 'layer'", "its table 'layer' differs"},
    {"UPDATE sqlite_schema SET sql = replace(sql, 'ON DELETE CASCADE', '') WHERE name = 'chunk'", "its table 'chunk' differs"},
    {"UPDATE sqlite_schema SET sql = 'CREATE TABLE camera (' WHERE name = 'camera'", "cannot read its list of tables"},
    {"UPDATE sqlite_schema SET sql = 'CREATE TABLE camera (a)' WHERE name = 'camera'", "amera"},
    {"UPDATE sqlite_schema SET rootpage = 100000 WHERE name = 'camera'", "cannot read its list of tables"},
    {"UPDATE sqlite_schema SET name = 'Camera' WHERE name = 'camera'", "amera"},
    {"DELETE FROM sqlite_schema WHERE name = 'sqlite_autoindex_blob_1'", "'sqlite_autoindex_blob_1' is missing"},
    {"DELETE FROM sqlite_schema", "is missing"},
    {"INSERT INTO sqlite_schema VALUES ('table', 'sqlite_stat1', 'sqlite_stat1', 2, 'CREATE TABLE sqlite_stat1(tbl,idx,stat,a)')",
     "its table 'sqlite_stat1' differs"},
    {"CREATE TABLE s (a INTEGER PRIMARY KEY AUTOINCREMENT); DROP TABLE s", "its table 'sqlite_sequence' differs"},
    {"PRAGMA user_version = 0", "there is no schema version 0"},
    {"PRAGMA user_version = -1", "there is no schema version -1"},
    {"PRAGMA user_version = 2", "has schema version 2"},
    {"PRAGMA application_id = 5", "another program"},
};

static void a_manifest_with_other_tables_is_refused_by_every_mode(void **state)
{
    char path[600], name[32];
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        snprintf(name, sizeof name, "s%zu.db", i);
        mutate(fixture_file(state, name, path), schemas[i].sql);
        for (int mode = KILN_OPEN_READ; mode <= KILN_OPEN_CREATE; mode++) {
            kiln_error err = {0};
            kiln_manifest *m = NULL;
            if (kiln_manifest_open(path, (kiln_open_mode)mode, "test", false, &m, &err) != KILN_E_INPUT)
                fail_msg("opened by mode %d: %s (%s)", mode, schemas[i].sql, err.msg);
            assert_null(m);
            if (!strstr(err.msg, schemas[i].says)) fail_msg("%s\nnot said: %s\nbut: %s", schemas[i].sql, schemas[i].says, err.msg);
            assert_says(&err, path);
        }
        assert_true(exists(path));
    }
}

static void what_sqlite_itself_changes_in_a_file_is_accepted(void **state)
{
    static const char *const changes[] = {
        "VACUUM",
        "ANALYZE",
        "ANALYZE; VACUUM",
        "REINDEX",
        "PRAGMA journal_mode = DELETE; PRAGMA page_size = 4096; VACUUM", /* other page numbers for everything */
        "PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = FULL; VACUUM",
    };
    char path[600], name[32];
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        kiln_error err = {0};
        uint64_t bytes;
        snprintf(name, sizeof name, "v%zu.db", i);
        mutate(fixture_file(state, name, path), changes[i]);
        for (int mode = KILN_OPEN_READ; mode <= KILN_OPEN_CREATE; mode++) {
            kiln_manifest *m = open_manifest(path, (kiln_open_mode)mode);
            OK(kiln_manifest_verify(m, NULL, NULL, &bytes, &err));
            kiln_manifest_close(m);
        }
    }
}

/* ---- the connection ---------------------------------------------------------------------------------------------- */
static int setting(sqlite3 *db, int option)
{
    int value = -1;
    assert_int_equal(sqlite3_db_config(db, option, -1, &value), SQLITE_OK);
    return value;
}

static void every_connection_is_guarded(void **state)
{
    char path[600];
    fixture_file(state, "m.db", path);
    for (int mode = KILN_OPEN_READ; mode <= KILN_OPEN_CREATE; mode++) {
        kiln_manifest *m = open_manifest(path, (kiln_open_mode)mode);
        sqlite3 *db = kiln_manifest_sqlite(m);
        assert_int_equal(setting(db, SQLITE_DBCONFIG_DEFENSIVE), 1);
        assert_int_equal(setting(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA), 0);
        assert_int_equal(setting(db, SQLITE_DBCONFIG_ENABLE_TRIGGER), 0);
        assert_int_equal(setting(db, SQLITE_DBCONFIG_ENABLE_VIEW), 0);
        assert_int_equal(setting(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION), 0);
        assert_int_equal(setting(db, SQLITE_DBCONFIG_DQS_DML), 0);
        assert_true(sqlite3_limit(db, SQLITE_LIMIT_LENGTH, -1) < 100 << 20);
        assert_int_equal(number_of(m, "PRAGMA cell_size_check"), 1);
        assert_int_equal(number_of(m, "PRAGMA mmap_size"), 0);
        assert_int_not_equal(sqlite3_exec(db, "UPDATE sqlite_schema SET sql = ''", NULL, NULL, NULL), SQLITE_OK);
        kiln_manifest_close(m);
    }
}

/* As a loop in a b-tree would: more rows than the file can hold. */
static void a_query_without_end_ends_with_a_sentence(void **state)
{
    char path[600];
    int64_t n;
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(fixture_file(state, "m.db", path), KILN_OPEN_READ);
    assert_int_equal(
        kiln_query_number(m, "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT sum(n) FROM r", &n, &err),
        KILN_E_IO);
    assert_says(&err, "more steps");
    kiln_query q;
    bool row = true;
    uint64_t rows = 0;
    OK(kiln_query_open(m, &q, "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r", &err));
    while (kiln_query_step(&q, &row, &err) == KILN_OK) assert_true(row && ++rows < 1000000000); /* counted over all rows */
    assert_says(&err, "more steps");
    kiln_query_close(&q);
    OK(kiln_query_number(m, "SELECT 1", &n, &err)); /* the next one has its own count */
    kiln_manifest_close(m);
}

/* ---- the files beside it ----------------------------------------------------------------------------------------- */
static void write_bytes(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static void open_is_refused(const char *path, const char *says)
{
    for (int mode = KILN_OPEN_READ; mode <= KILN_OPEN_CREATE; mode++) {
        kiln_error err = {0};
        kiln_manifest *m = NULL;
        assert_int_equal(kiln_manifest_open(path, (kiln_open_mode)mode, "test", false, &m, &err), KILN_E_INPUT);
        if (!strstr(err.msg, says)) fail_msg("not said: %s\nbut: %s", says, err.msg);
    }
}

static void companions_that_are_no_files_are_refused(void **state)
{
    static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
    char path[600], other[700], target[600];
    fixture_file(state, "m.db", path);
    write_bytes(in_scratch(state, "precious", target), "keep", 4);
    for (int i = 0; i < 3; i++) {
        snprintf(other, sizeof other, "%s%s", path, suffixes[i]);
        assert_int_equal(symlink("precious", other), 0);
        open_is_refused(path, "is no regular file");
        assert_int_equal(unlink(other), 0);
        assert_int_equal(mkfifo(other, 0600), 0);
        open_is_refused(path, "is no regular file");
        assert_int_equal(unlink(other), 0);
    }
    struct stat s;
    assert_int_equal(stat(target, &s), 0);
    assert_int_equal(s.st_size, 4);
}

static void a_lock_file_that_is_a_link_is_not_written_through(void **state)
{
    char path[600], other[700], target[600];
    kiln_error err = {0};
    kiln_manifest *m = NULL;
    struct stat s;
    fixture_file(state, "m.db", path);
    write_bytes(in_scratch(state, "precious", target), "keep", 4);
    snprintf(other, sizeof other, "%s.lock", path);
    assert_int_equal(symlink("precious", other), 0);
    assert_int_equal(kiln_manifest_open(path, KILN_OPEN_WRITE, "test", false, &m, &err), KILN_E_INPUT);
    assert_says(&err, "is a link");
    assert_int_equal(stat(target, &s), 0);
    assert_int_equal(s.st_size, 4);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(mkfifo(other, 0600), 0);
    assert_int_equal(kiln_manifest_open(path, KILN_OPEN_WRITE, "test", false, &m, &err), KILN_E_INPUT);
    assert_says(&err, "no regular file");
}

static void put_be32(unsigned char *p, size_t v)
{
    for (int i = 0; i < 4; i++) p[i] = (unsigned char)(v >> (24 - 8 * i));
}

/* A hot journal without pages that names another file: SQLite would delete that file once it has played the journal back. */
static void a_journal_cannot_name_a_file_to_delete(void **state)
{
    static const unsigned char magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    static unsigned char journal[66000];
    char path[600], target[600], name[700];
    struct stat s;
    size_t sum = 0;
    fixture_file(state, "m.db", path);
    write_bytes(in_scratch(state, "precious", target), "keep", 4);
    assert_int_equal(stat(path, &s), 0);
    memset(journal, 0, sizeof journal);
    memcpy(journal, magic, 8);
    put_be32(journal + 16, (size_t)s.st_size / 65536); /* pages of the database, sector size, page size */
    put_be32(journal + 20, 512);
    put_be32(journal + 24, 65536);
    size_t at = 512, length = strlen(target);
    put_be32(journal + at, 0x40000000 / 65536 + 1); /* the page that is never in a journal */
    memcpy(journal + at + 4, target, length);
    for (size_t i = 0; i < length; i++) sum += (unsigned char)target[i];
    put_be32(journal + at + 4 + length, length);
    put_be32(journal + at + 8 + length, sum);
    memcpy(journal + at + 12 + length, magic, 8);
    snprintf(name, sizeof name, "%s-journal", path);
    write_bytes(name, journal, at + 20 + length);
    open_is_refused(path, "names another file");
    assert_true(exists(target));
}

/* Random bytes, a cut WAL, a WAL of another database: whatever comes of it is a manifest or a sentence, and no hang. */
static void hostile_wals_end_with_a_sentence(void **state)
{
    char path[600], wal[700], other[600], other_wal[700];
    static unsigned char data[2 << 20];
    uint32_t seed = 12345;
    sqlite3 *db = NULL;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)((seed = seed * 1664525 + 1013904223) >> 24);
    fixture_file(state, "m.db", path);
    snprintf(wal, sizeof wal, "%s-wal", path);
    for (size_t bytes = 0; bytes < sizeof data; bytes = bytes * 3 + 1) { /* never valid: ignored, the manifest is as it was */
        write_bytes(wal, data, bytes);
        kiln_manifest_close(open_manifest(path, KILN_OPEN_READ));
    }
    /* a WAL whose page 1 belongs to another schema */
    in_scratch(state, "other.db", other);
    snprintf(other_wal, sizeof other_wal, "%s-wal", other);
    assert_int_equal(sqlite3_open(other, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "PRAGMA page_size = 65536; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA "
                                  "application_id = 0x4b494c4e; PRAGMA user_version = 1; CREATE TABLE own (a)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    FILE *f = fopen(other_wal, "rb");
    assert_non_null(f);
    size_t n = fread(data, 1, sizeof data, f);
    assert_int_equal(fclose(f), 0);
    assert_true(n > 65536);
    for (size_t cut = 0; cut <= 1; cut++) {
        write_bytes(wal, data, cut ? n - 60000 : n);
        kiln_error err = {0};
        kiln_manifest *m = NULL;
        kiln_status st = kiln_manifest_open(path, KILN_OPEN_READ, "test", false, &m, &err);
        if (cut == 0) assert_int_equal(st, KILN_E_INPUT);
        if (cut == 0) assert_says(&err, "differs");
        assert_true(st == KILN_OK || st == KILN_E_INPUT || st == KILN_E_IO);
        kiln_manifest_close(m);
        (void)unlink(wal);
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)
    const struct CMUnitTest tests[] = {
        TEST(a_manifest_with_other_tables_is_refused_by_every_mode),
        TEST(what_sqlite_itself_changes_in_a_file_is_accepted),
        TEST(every_connection_is_guarded),
        TEST(a_query_without_end_ends_with_a_sentence),
        TEST(companions_that_are_no_files_are_refused),
        TEST(a_lock_file_that_is_a_link_is_not_written_through),
        TEST(a_journal_cannot_name_a_file_to_delete),
        TEST(hostile_wals_end_with_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
