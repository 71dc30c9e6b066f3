/* stranger: a manifest that somebody else made to do harm. Each row of the tables is what a hostile
 * file can hold, written by a connection of its own without any check, and the sentence that
 * whoever opens or reads it must give. */
#include "manifest_fixture.h"

#include "schema/manifest_internal.h"

#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

/* A connection that checks nothing: writable_schema, no CHECKs, no foreign keys, no STRICT where a
 * table says otherwise. */
static void mutate(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *text = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "PRAGMA writable_schema = ON; PRAGMA ignore_check_constraints = "
                                  "ON; PRAGMA foreign_keys = OFF;"
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

static void write_bytes(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static void copy_file(const char *from, const char *to)
{
    static char data[4 << 20];
    FILE *f = fopen(from, "rb");
    assert_non_null(f);
    size_t n = fread(data, 1, sizeof data, f);
    assert_int_equal(fclose(f), 0);
    assert_true(n < sizeof data);
    write_bytes(to, data, n);
}

/* ---- the list of tables ---------------------------------------------------------------------- */
static const struct {
    const char *sql, *says;
} schemas[] = {
    {"CREATE TRIGGER t AFTER UPDATE ON stage BEGIN DELETE FROM camera; END",
     "its trigger 't' differs"},
    {"CREATE TABLE own (a)", "its table 'own' differs"},
    {"CREATE VIEW own AS SELECT 1", "its view 'own' differs"},
    {"CREATE INDEX own ON camera (width)", "its index 'own' differs"},
    /* our inserts would break it */
    {"CREATE UNIQUE INDEX own ON unit (stage)", "its index 'own' differs"},
    {"CREATE VIRTUAL TABLE own USING fts5(a)", "'own' differs"},
    {"DROP TABLE quarantine; CREATE VIEW quarantine AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL "
     "SELECT n + 1 FROM r) SELECT"
     " zeroblob(16) AS key, 'knn' AS stage, 'u' AS name, 1 AS attempts, 'cpu' AS device, 'r' AS "
     "reason, n AS failed_ns FROM r",
     "its view 'quarantine' differs"},
    {"DROP TABLE run", "'run' is missing"},
    {"DROP VIEW digest_line", "'digest_line' is missing"},
    {"DROP INDEX stage_output_layer", "'stage_output_layer' is missing"},
    {"UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (width >= 0)', '') WHERE name = 'photo'",
     "its table 'photo' differs"},
    {"UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (width >= 0)', '') WHERE name = "
     "'photo_mask'",
     "its table 'photo_mask' differs"},
    {"UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (length(baked) = 16)', '') WHERE name = "
     "'level_origin'",
     "its table 'level_origin' differs"},
    {"UPDATE sqlite_schema SET sql = replace(sql, 'ON DELETE CASCADE', '') WHERE name = "
     "'level_error'",
     "its table 'level_error' differs"},
    {"DROP TABLE level_error; CREATE VIEW level_error AS SELECT 1 AS chunk",
     "its view 'level_error' differs"},
    {"CREATE INDEX own ON level_origin (baked)", "its index 'own' differs"},
    {"DROP TABLE photo_mask; CREATE VIEW photo_mask AS SELECT 1 AS camera",
     "its view 'photo_mask' differs"},
    {"UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')') WHERE name = 'layer'",
     "its table 'layer' differs"},
    {"UPDATE sqlite_schema SET sql = replace(sql, 'ON DELETE CASCADE', '') WHERE name = 'chunk'",
     "its table 'chunk' differs"},
    {"UPDATE sqlite_schema SET sql = 'CREATE TABLE camera (' WHERE name = 'camera'",
     "cannot read its list of tables"},
    {"UPDATE sqlite_schema SET sql = 'CREATE TABLE camera (a)' WHERE name = 'camera'", "amera"},
    {"UPDATE sqlite_schema SET rootpage = 100000 WHERE name = 'camera'",
     "cannot read its list of tables"},
    {"UPDATE sqlite_schema SET name = 'Camera' WHERE name = 'camera'", "amera"},
    {"DELETE FROM sqlite_schema WHERE name = 'sqlite_autoindex_blob_1'",
     "'sqlite_autoindex_blob_1' is missing"},
    {"DELETE FROM sqlite_schema", "is missing"},
    {"INSERT INTO sqlite_schema VALUES ('table', 'sqlite_stat1', 'sqlite_stat1', 2, 'CREATE TABLE "
     "sqlite_stat1(tbl,idx,stat,a)')",
     "its table 'sqlite_stat1' differs"},
    {"CREATE TABLE s (a INTEGER PRIMARY KEY AUTOINCREMENT); DROP TABLE s",
     "its table 'sqlite_sequence' differs"},
    {"PRAGMA user_version = 0", "there is no schema version 0"},
    {"PRAGMA user_version = -1", "there is no schema version -1"},
    {"PRAGMA user_version = 3", "has schema version 3"},
    {"PRAGMA application_id = 5", "another program"},
};

static void a_manifest_with_other_tables_is_refused_by_every_mode(void **state)
{
    char whole[600], path[600];
    fixture_file(state, "whole.db", whole);
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        copy_file(whole, in_scratch(state, "m.db", path));
        mutate(path, schemas[i].sql);
        for (int mode = KILN_OPEN_READ; mode <= KILN_OPEN_CREATE; mode++) {
            kiln_error err = {0};
            kiln_manifest *m = NULL;
            if (kiln_manifest_open(path, (kiln_open_mode)mode, "test", false, &m, &err) !=
                KILN_E_INPUT)
                fail_msg("opened by mode %d: %s (%s)", mode, schemas[i].sql, err.msg);
            assert_null(m);
            if (!strstr(err.msg, schemas[i].says))
                fail_msg("%s\nnot said: %s\nbut: %s", schemas[i].sql, schemas[i].says, err.msg);
            assert_says(&err, path);
        }
        assert_int_equal(unlink(path), 0);
    }
}

static void what_sqlite_itself_changes_in_a_file_is_accepted(void **state)
{
    static const char *const changes[] = {
        "VACUUM",
        "ANALYZE",
        "ANALYZE; VACUUM",
        "REINDEX",
        /* other page numbers for everything */
        "PRAGMA journal_mode = DELETE; PRAGMA page_size = 4096; VACUUM",
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

/* ---- the connection -------------------------------------------------------------------------- */
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
        assert_int_not_equal(
            sqlite3_exec(db, "UPDATE sqlite_schema SET sql = ''", NULL, NULL, NULL), SQLITE_OK);
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
        kiln_query_number(
            m,
            "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT sum(n) FROM r",
            &n, &err),
        KILN_E_IO);
    assert_says(&err, "more steps");
    kiln_query q;
    bool row = true;
    uint64_t rows = 0;
    OK(kiln_query_open(
        m, &q, "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
        &err));
    /* counted over all rows */
    while (kiln_query_step(&q, &row, &err) == KILN_OK) assert_true(row && ++rows < 1000000000);
    assert_says(&err, "more steps");
    kiln_query_close(&q);
    OK(kiln_query_number(m, "SELECT 1", &n, &err)); /* the next one has its own count */
    kiln_manifest_close(m);
}

/* ---- the files beside it --------------------------------------------------------------------- */
static void open_is_refused(const char *path, const char *says)
{
    for (int mode = KILN_OPEN_READ; mode <= KILN_OPEN_CREATE; mode++) {
        kiln_error err = {0};
        kiln_manifest *m = NULL;
        assert_int_equal(kiln_manifest_open(path, (kiln_open_mode)mode, "test", false, &m, &err),
                         KILN_E_INPUT);
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
        open_is_refused(path, "is not a regular file");
        assert_int_equal(unlink(other), 0);
        assert_int_equal(mkfifo(other, 0600), 0);
        open_is_refused(path, "is not a regular file");
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
    assert_int_equal(kiln_manifest_open(path, KILN_OPEN_WRITE, "test", false, &m, &err),
                     KILN_E_INPUT);
    assert_says(&err, "is a link");
    assert_int_equal(stat(target, &s), 0);
    assert_int_equal(s.st_size, 4);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(mkfifo(other, 0600), 0);
    assert_int_equal(kiln_manifest_open(path, KILN_OPEN_WRITE, "test", false, &m, &err),
                     KILN_E_INPUT);
    assert_says(&err, "not a regular file");
}

static void put_be32(unsigned char *p, size_t v)
{
    for (int i = 0; i < 4; i++) p[i] = (unsigned char)(v >> (24 - 8 * i));
}

/* A hot journal without pages that names another file: SQLite would delete that file once it has
 * played the journal back. */
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
    /* pages of the database, sector size, page size */
    put_be32(journal + 16, (size_t)s.st_size / 65536);
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

/* Random bytes, a cut WAL, a WAL of another database: whatever comes of it is a manifest or a
 * sentence, and no hang. */
static void hostile_wals_end_with_a_sentence(void **state)
{
    char path[600], wal[700], other[600], other_wal[700];
    static unsigned char data[2 << 20];
    uint32_t seed = 12345;
    sqlite3 *db = NULL;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)((seed = seed * 1664525 + 1013904223) >> 24);
    fixture_file(state, "m.db", path);
    snprintf(wal, sizeof wal, "%s-wal", path);
    /* never valid: ignored, the manifest is as it was */
    for (size_t bytes = 0; bytes < sizeof data; bytes = bytes * 3 + 1) {
        write_bytes(wal, data, bytes);
        kiln_manifest_close(open_manifest(path, KILN_OPEN_READ));
    }
    /* a WAL whose page 1 belongs to another schema */
    in_scratch(state, "other.db", other);
    snprintf(other_wal, sizeof other_wal, "%s-wal", other);
    assert_int_equal(sqlite3_open(other, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(db,
                     "PRAGMA page_size = 65536; PRAGMA journal_mode = WAL; PRAGMA "
                     "wal_autocheckpoint = 0; PRAGMA "
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

/* ---- rows ------------------------------------------------------------------------------------ */
/* A fixture with a row of everything. */
static void full_fixture(const char *path)
{
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(path, KILN_OPEN_CREATE);
    kiln_source_file file = {.path = "/photos/view 1.png", .role = "photo", .size = 5};
    kiln_quarantine_row failed = {
        .key = {{7}}, .stage = "chunk", .name = "chunk /0", .device = "cpu", .reason = "died"};
    kiln_run_row run = {.stage = "chunk",
                        .program = (char *)(uintptr_t) "kiln-chunk 1",
                        .start_ns = 1,
                        .stop_ns = 2};
    kiln_unit_output outputs[2] = {{.name = "a", .raw_bytes = 4, .elem = 4},
                                   {.name = "b", .raw_bytes = 4, .elem = 4}};
    kiln_unit_result result = {.n = 2, .outputs = outputs};
    kiln_blob blobs[2] = {{.packed = NULL}};
    fixture_fill(m, false);
    OK(kiln_manifest_begin(m, &err));
    outputs[0].hash = outputs[1].hash = put_bytes(m, "1234", 4, 4);
    OK(kiln_unit_store(m, &(kiln_unit_done){kiln_hash_of("unit", 4), "chunk", "u", 1}, &result,
                       blobs, &err));
    OK(kiln_sources_put(m, &file, 1, &err));
    OK(kiln_parameter_put(m, "chunk", "max", "100", &err));
    OK(kiln_quarantine_put(m, &failed, &err));
    OK(kiln_run_row_put(m, &run, &err));
    OK(kiln_manifest_commit(m, &err));
    kiln_manifest_close(m);
}

static kiln_status read_planes(kiln_manifest *m, const kiln_layer *l, kiln_error *err)
{
    static float data[64];
    for (uint32_t i = 0; i < l->n_chunks; i++)
        for (uint32_t p = 0; p < l->chunks[i].n_planes; p++) {
            const kiln_plane *plane = &l->chunks[i].planes[p];
            assert_true(plane->data.raw_bytes <= sizeof data);
            KILN_TRY(
                kiln_plane_read(m, &l->chunks[i], plane->name, data, plane->data.raw_bytes, err));
        }
    return KILN_OK;
}

/* Whatever stages read, until something is refused. */
static kiln_status read_everything(kiln_manifest *m, kiln_error *err)
{
    kiln_scene *scene = calloc(1, sizeof *scene);
    kiln_source_file *files = NULL;
    kiln_camera *cameras = NULL;
    kiln_image *images = NULL;
    kiln_layer *layer = NULL;
    kiln_tile_table *tables = NULL, *table = NULL;
    kiln_stage_row stage;
    kiln_parameter *parameters = NULL;
    kiln_quarantine_row *failed = NULL;
    kiln_run_row run = {0};
    kiln_unit_result unit = {0};
    kiln_hash digest;
    uint32_t n, n_tables = 0, n_parameters = 0;
    bool found;
    kiln_status st;
    assert_non_null(scene);
    KILN_GO(kiln_scene_get(m, scene, err));
    KILN_GO(kiln_sources_get(m, &files, &n, err));
    KILN_GO(kiln_cameras_get(m, &cameras, &n, err));
    KILN_GO(kiln_images_get(m, &images, &n, err));
    KILN_GO(kiln_layer_get(m, "baked", &layer, err));
    KILN_GO(read_planes(m, layer, err));
    KILN_GO(kiln_tile_tables_get(m, true, &tables, &n_tables, err));
    KILN_GO(kiln_tile_table_get(m, "view 1", "inria", false, 0.2, &table, err));
    KILN_GO(kiln_stage_get(m, "chunk", &stage, err));
    KILN_GO(kiln_stage_output_get(m, "chunk", "baked", &digest, err));
    KILN_GO(kiln_parameters_get(m, "chunk", &parameters, &n_parameters, err));
    KILN_GO(kiln_quarantine_get(m, "chunk", &failed, &n, err));
    KILN_GO(kiln_run_row_last(m, "chunk", &found, &run, err));
    KILN_GO(kiln_unit_find(m, kiln_hash_of("unit", 4), &found, &unit, err));
done:
    kiln_unit_result_release(&unit);
    kiln_run_row_release(&run);
    free(failed);
    kiln_parameters_free(parameters, n_parameters);
    kiln_tile_tables_free(table, table != NULL);
    kiln_tile_tables_free(tables, n_tables);
    kiln_layer_free(layer);
    free(images);
    free(cameras);
    free(files);
    free(scene);
    return st;
}

static void add_sentence(void *context, const char *sentence)
{
    char *text = context;
    size_t used = strlen(text);
    snprintf(text + used, 8192 - used, "%s\n", sentence);
}

/* Reading refuses the file with this sentence, and kiln_manifest_verify lists it. */
static void is_refused(const char *path, const char *what, const char *says)
{
    static char text[8192];
    kiln_error err = {0};
    uint64_t bytes;
    kiln_manifest *m = open_manifest(path, KILN_OPEN_READ);
    kiln_status st = read_everything(m, &err);
    if (st != KILN_E_INPUT && st != KILN_E_IO)
        fail_msg("%s\nis read: %s %s", what, kiln_status_name(st), err.msg);
    if (!strstr(err.msg, says)) fail_msg("%s\nnot said: %s\nbut: %s", what, says, err.msg);
    assert_says(&err, path);
    text[0] = '\0';
    if (kiln_manifest_verify(m, add_sentence, text, &bytes, &err) != KILN_E_IO)
        fail_msg("%s\nis verified", what);
    if (!strstr(text, says)) fail_msg("%s\nnot listed: %s\nbut:\n%s", what, says, text);
    kiln_manifest_close(m);
}

static const struct {
    const char *sql, *says;
} rows[] = {
    {"UPDATE camera SET name = '../../ESCAPED/evil'", "leaves its folder by '..'"},
    {"UPDATE camera SET name = '/etc/evil'", "absolute path"},
    {"UPDATE camera SET name = 'a' || char(27) || 'b'", "control byte"},
    {"UPDATE camera SET name = 'a' || char(0) || 'b'", "NUL byte"},
    {"UPDATE camera SET name = ''", "it is empty"},
    {"UPDATE camera SET width = 0, height = 0", "camera 'view 1' has no pixels: 0 x 0"},
    {"UPDATE camera SET width = 4294967295", "larger than allowed"},
    {"UPDATE camera SET r00 = 2", "is not a rotation"},
    {"UPDATE camera SET r00 = -1", "is not a rotation"},
    {"UPDATE camera SET r00 = 9e999", "pose of camera 'view 1' is not finite"},
    {"UPDATE camera SET t2 = -9e999", "pose of camera 'view 1' is not finite"},
    {"UPDATE camera SET fx = 0", "focal length"},
    {"UPDATE camera SET fy = 1e300", "focal length"},
    {"UPDATE camera SET cx = 9e999", "principal point"},
    {"UPDATE camera SET params = zeroblob(136)", "136 bytes of parameters"},
    {"UPDATE camera SET params = x'000000000000f07f'", "lens parameter"},
    {"UPDATE camera SET model = 'P' || char(10)", "lens model"},
    {"UPDATE camera SET split = 'both'", "split 'both'"},
    {"UPDATE camera SET distorted = 7", "neither 0 nor 1"},
    {"UPDATE photo SET path = 'relative.png'", "not an absolute path"},
    {"UPDATE photo_mask SET path = 'relative.png'",
     "the mask of camera 'view 1' is not an absolute path"},
    {"DELETE FROM photo", "has a mask but no photo"},
    {"UPDATE photo_mask SET camera = 'other'", "a mask names camera 'other', which does not exist"},
    {"UPDATE photo_mask SET width = -1", "column 'width'"},
    {"UPDATE scene SET kind = 'other'", "unknown kind: 'other'"},
    {"UPDATE scene SET id = 2", "another number than 1"},
    {"UPDATE scene SET rows_dropped = 9", "lost 9 rows of 4"},
    {"UPDATE scene SET rows_read = -1", "a count is negative"},
    {"UPDATE scene SET sh_degree = 9", "degree 9"},
    {"UPDATE scene SET origin_y = 9e999", "origin is not finite"},
    {"UPDATE scene SET root_x = 0, root_y = 0, root_z = 0, root_half = 3", "not a power of two"},
    {"UPDATE scene SET root_x = 0, root_y = 0, root_z = 0, root_half = -2", "not a power of two"},
    {"UPDATE scene SET background_r = 0.5, background_g = 7, background_b = 0",
     "not between 0 and 1"},
    {"UPDATE scene SET notes = '{'", "not a JSON object"},
    {"UPDATE scene SET transforms = '{}'", "not a JSON array"},
    {"UPDATE source_file SET path = 'x'", "not an absolute path"},
    {"UPDATE source_file SET hash = x'00'", "a hash does not have 16 bytes"},
    {"UPDATE image SET path = '../../evil.png'", "leaves its folder"},
    {"UPDATE image SET path = '/etc/evil.png'", "absolute path"},
    {"UPDATE image SET format = 'exe'", "unknown format: 'exe'"},
    {"UPDATE image SET device_kind = 'tpu'", "unknown kind of device: 'tpu'"},
    {"UPDATE image SET width = 0", "has no pixels"},
    {"UPDATE image SET near_m = -1", "near plane at -1"},
    {"UPDATE image SET background_g = 2", "background of 2"},
    {"UPDATE image SET ssim = 9e999", "metrics that are not finite"},
    {"UPDATE layer SET kind = 'Baked'", "'Baked'"},
    {"UPDATE layer SET count = 5", "claims 5 rows, but its chunks have 4"},
    {"UPDATE layer SET sh_degree = 4", "has no plane 'shN'"},
    {"UPDATE layer SET sh_degree = 9", "degree 9"},
    {"UPDATE layer SET sh_degree = 3; UPDATE plane SET name = 'shN' WHERE name = 'extra/a b'",
     "'shN' is f32 x 1, but it must be f32 x 45"},
    {"UPDATE plane SET name = 'shN' WHERE name = 'extra/a b'",
     "'shN' is f32 x 1, but it must be f32 x 0"},
    {"UPDATE plane SET components = 1, raw_bytes = raw_bytes / 3 WHERE name = 'log_scales'",
     "plane 'log_scales' is f32 x 1, but it must be f32 x 3"},
    {"UPDATE plane SET type = 'f64', components = 1 WHERE name = 'log_scales'",
     "plane 'log_scales' is f64 x 1"},
    {"UPDATE plane SET components = 1000000000 WHERE name = 'extra/a b'", "f32 x 1000000000"},
    {"UPDATE plane SET name = 'extra/' WHERE name = 'extra/a b'", "neither known nor extra/NAME"},
    {"UPDATE plane SET name = 'extra/a' || char(10) WHERE name = 'extra/a b'",
     "neither known nor extra/NAME"},
    {"UPDATE plane SET name = 'extra/c' WHERE name = 'extra/a b' AND chunk = 2",
     "chunk '/1' has other planes than chunk '/0'"},
    {"UPDATE plane SET type = 'i32' WHERE name = 'extra/a b' AND chunk = 2",
     "chunk '/1' has other planes than chunk '/0'"},
    {"DELETE FROM plane WHERE name = 'quats'", "has no plane 'quats'"},
    {"DELETE FROM plane WHERE name = 'means'", "has no plane 'means'"},
    {"UPDATE plane SET raw_bytes = 1 << 40 WHERE name = 'sh0'", "bytes for 3 rows"},
    {"UPDATE plane_segment SET segment = 1 WHERE plane = 1",
     "segment 1 occurs twice or is out of order"},
    {"UPDATE chunk SET count = 70000, box_min_x = 0 WHERE ordinal = 0",
     "70000 rows; at most 65536"},
    {"UPDATE chunk SET count = 2 WHERE ordinal = 0", "bytes for 2 rows"},
    {"UPDATE chunk SET ordinal = 5 WHERE ordinal = 1",
     "chunk '/1' is number 5, but number 1 must follow"},
    {"UPDATE chunk SET name = 'a b' WHERE ordinal = 1", "a chunk whose name is invalid"},
    {"UPDATE chunk SET parent = char(27) WHERE ordinal = 1", "a chunk whose name is invalid"},
    {"UPDATE chunk SET level = 3", "level 3"},
    {"UPDATE chunk SET hilbert_lo = 1000 WHERE ordinal = 0", "Hilbert codes"},
    {"UPDATE chunk SET box_min_z = 1000 WHERE ordinal = 0", "its box is 1000.."},
    {"UPDATE chunk SET reach_max_x = 9e999 WHERE ordinal = 0", "its reach is"},
    {"UPDATE chunk SET max_log_scale = 9e999", "not finite"},
    {"UPDATE tile_table SET camera = '../x'", "leaves its folder"},
    {"UPDATE tile_table SET near_m = 0", "near plane is at 0"},
    {"UPDATE tile_table SET width = 0, tiles_x = 0", "do not cover 0 x 30 pixels"},
    {"UPDATE tile_table SET tiles_y = 3", "2 x 3 tiles do not cover"},
    {"UPDATE tile_table SET visible = 1 << 40", "visible Gaussians, more than 2^32 - 2"},
    {"UPDATE tile_table SET visible = 5", "array 'visible_slot' has 16 bytes, but 5 elements"},
    {"UPDATE tile_table SET pairs = 7", "it claims 7 pairs, but its bands have 6"},
    {"UPDATE tile_band SET pairs = 100 WHERE band = 0", "claim 100 pairs"},
    {"UPDATE tile_band SET row1 = 4000000000 WHERE band = 1", "but row 1 must follow"},
    {"UPDATE tile_band SET row0 = 0 WHERE band = 1", "but row 1 must follow"},
    {"UPDATE tile_band SET band = 7 WHERE band = 1", "has band 7 where band 1 belongs"},
    {"DELETE FROM tile_band WHERE band = 1; DELETE FROM tile_segment WHERE band = 1",
     "bands end at tile row 1 of 2"},
    {"UPDATE tile_segment SET raw_bytes = 4 WHERE name = 'tile_bytes'",
     "array 'tile_bytes' has 4 bytes, but 2 elements"},
    {"UPDATE tile_segment SET raw_bytes = 1 WHERE name = 'rank_delta'",
     "'rank_delta' has 1 bytes for 3 pairs"},
    {"UPDATE tile_segment SET raw_bytes = 1 << 50 WHERE name = 'chunks'", "too large"},
    {"UPDATE tile_segment SET name = 'odd' WHERE name = 'chunks'", "has an array 'odd' in band -1"},
    {"UPDATE tile_segment SET segment = 3 WHERE name = 'chunks'",
     "segment 3 occurs twice, is out of order or is too large"},
    {"UPDATE stage SET state = 'odd' WHERE name = 'chunk'", "unknown state: 'odd'"},
    {"UPDATE stage SET version = -1 WHERE name = 'chunk'", "a count is negative"},
    {"UPDATE run SET counters = '{'", "not JSON"},
    {"UPDATE run SET start_ns = -9223372036854775807 - 1", "before 1970"},
    {"UPDATE unit_output SET elem = 3 WHERE name = 'a'", "elements of 3 bytes"},
    {"UPDATE unit_output SET raw_bytes = 1 << 40 WHERE name = 'a'", "a blob has at most"},
    {"UPDATE unit_output SET name = '' WHERE name = 'a'", "has no name"},
    {"UPDATE unit_output SET segment = -1 WHERE name = 'a'", "a count is negative"},
    {"UPDATE quarantine SET attempts = -1", "a count is negative"},
    {"UPDATE blob SET raw_bytes = 1 << 62", "is damaged"},
    {"UPDATE blob SET packed = x'28b52ffd'", "is damaged"},
    {"UPDATE blob SET elem = 16", "element size"},
};

static void every_row_is_checked_where_it_is_read(void **state)
{
    char whole[600], path[600];
    full_fixture(in_scratch(state, "whole.db", whole));
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(whole, KILN_OPEN_READ);
    OK(read_everything(m, &err)); /* as it is, it is read */
    kiln_manifest_close(m);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        copy_file(whole, in_scratch(state, "m.db", path));
        mutate(path, rows[i].sql);
        is_refused(path, rows[i].sql, rows[i].says);
        assert_int_equal(unlink(path), 0);
    }
}

/* Types that STRICT would refuse, were it asked. */
static void a_column_of_another_type_is_named(void **state)
{
    static const char *const columns[] = {"camera.height", "scene.name", "image.camera",
                                          "chunk.count",   "plane.type", "layer.digest"};
    char whole[600], path[600], sql[600];
    full_fixture(in_scratch(state, "whole.db", whole));
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        char table[32], column[32], says[64];
        assert_int_equal(sscanf(columns[i], "%31[^.].%31s", table, column), 2);
        copy_file(whole, in_scratch(state, "m.db", path));
        snprintf(sql, sizeof sql,
                 "UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')') WHERE name = '%s'",
                 table);
        mutate(path, sql);
        snprintf(sql, sizeof sql,
                 "UPDATE %s SET %s = CASE typeof(%s) WHEN 'blob' THEN 'text' ELSE x'6f6464' END",
                 table, column, column);
        mutate(path, sql);
        snprintf(sql, sizeof sql,
                 "UPDATE sqlite_schema SET sql = replace(sql, char(10) || ')', char(10) || ') "
                 "STRICT') WHERE name = '%s'",
                 table);
        mutate(path, sql);
        snprintf(says, sizeof says, "column '%s' of a row", column);
        is_refused(path, columns[i], says);
        assert_int_equal(unlink(path), 0);
    }
}

/* Right hashes over wrong values. */
static void planes_hold_finite_numbers(void **state)
{
    static const struct {
        const char *plane;
        uint32_t at, bits; /* of an element of the first chunk, which has 3 rows */
        const char *says;
    } values[] = {
        {"means", 4, 0x7fc00000, "plane 'means' holds nan at element 4"},
        {"means", 0, 0xff800000, "plane 'means' holds -inf at element 0"},
        {"log_scales", 8, 0x7f800000, "plane 'log_scales' holds inf at element 8"},
        {"log_scales", 8, 0x42b20000, "a log scale above 88"}, /* 89 */
        {"quats", 0, 0x80000000, "a rotation of zero"},        /* its other components are 0 */
        {"opacity_logits", 2, 0x7f800001, "plane 'opacity_logits' holds nan"},
        {"sh0", 8, 0x7f800000, "plane 'sh0' holds inf"},
        {"source_row", 1, 0xffffffff, "a source row above 2^32 - 2"},
    };
    char path[600], hex[33], sql[400];
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        kiln_error err = {0};
        kiln_layer *l;
        static uint32_t data[64];
        full_fixture(in_scratch(state, "m.db", path));
        kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
        OK(kiln_layer_get(m, "baked", &l, &err));
        const kiln_plane *p = kiln_chunk_plane(&l->chunks[0], values[i].plane);
        OK(kiln_plane_read(m, &l->chunks[0], values[i].plane, data, p->data.raw_bytes, &err));
        data[values[i].at] = values[i].bits;
        kiln_hash hash = put_bytes(m, data, p->data.raw_bytes, 4);
        kiln_layer_free(l);
        kiln_manifest_close(m);
        snprintf(sql, sizeof sql,
                 "UPDATE plane_segment SET hash = x'%s' WHERE plane = (SELECT id FROM plane WHERE "
                 "name = '%s' AND chunk = 1)",
                 kiln_hash_hex(hash, hex), values[i].plane);
        mutate(path, sql);
        is_refused(path, values[i].says, values[i].says);
        assert_int_equal(unlink(path), 0);
    }
}

/* UNIQUE holds only where its index is whole: here the second camera's name is written over in the
 * table's own pages. */
static void a_camera_that_is_there_twice_is_refused(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    kiln_camera cameras[2] = {fixture_camera("view_aaaa"), fixture_camera("view_bbbb")}, *got;
    uint32_t n;
    fixture_fill(m, false);
    OK(kiln_cameras_put(m, cameras, 2, &err));
    kiln_manifest_close(m);
    static char data[4 << 20];
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    size_t bytes = fread(data, 1, sizeof data, f);
    for (size_t i = 0; i + 9 <= bytes; i++)
        if (memcmp(data + i, "view_bbbb", 9) == 0) memcpy(data + i, "view_aaaa", 9);
    rewind(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
    m = open_manifest(path, KILN_OPEN_READ);
    assert_int_equal(kiln_cameras_get(m, &got, &n, &err), KILN_E_INPUT);
    assert_says(&err, "occurs twice");
    kiln_manifest_close(m);
}

/* One row at fault does not hide the next. */
static void verify_lists_every_row_at_fault(void **state)
{
    static const char *const says[] = {"camera 'view 1' has no pixels", "unknown format: 'exe'",
                                       "unknown kind: 'other'",         "level 3",
                                       "do not cover 0 x 30",           "elements of 3 bytes"};
    static char text[8192];
    char path[600];
    uint64_t bytes;
    kiln_error err = {0};
    full_fixture(in_scratch(state, "m.db", path));
    mutate(path, "UPDATE camera SET width = 0; UPDATE image SET format = 'exe'; UPDATE scene SET "
                 "kind = 'other'; UPDATE chunk SET level"
                 " = 3; UPDATE tile_table SET width = 0; UPDATE unit_output SET elem = 3");
    kiln_manifest *m = open_manifest(path, KILN_OPEN_READ);
    text[0] = '\0';
    assert_int_equal(kiln_manifest_verify(m, add_sentence, text, &bytes, &err), KILN_E_IO);
    for (size_t i = 0; i < sizeof says / sizeof *says; i++)
        if (!strstr(text, says[i])) fail_msg("not listed: %s\nbut:\n%s", says[i], text);
    kiln_manifest_close(m);
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
        TEST(every_row_is_checked_where_it_is_read),
        TEST(a_column_of_another_type_is_named),
        TEST(planes_hold_finite_numbers),
        TEST(a_camera_that_is_there_twice_is_refused),
        TEST(verify_lists_every_row_at_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
