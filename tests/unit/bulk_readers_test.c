/* bulk_readers_test -- bulk data is written once (schema/direct.c): readers in other processes keep
 * their state and are never blocked. */
#include "tests/unit/bulk_fixture.h"

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
    if (sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK || read_all(db) != 4 + 60 ||
        !is_sound(db))
        return 4;
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
            /* in part */
            if (i % 7 == 3)
                (void)sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        }
        send_byte(reader.to);
    }
    end_process(&reader);
    assert_int_equal(kiln_bulk_state(m)->commits, 61);
    kiln_manifest_close(m);
    assert_holds(path, 64);
}

/* Reads until the parent closes the pipe. It never waits for a lock, and never sees less than
 * before nor half a batch. */
static int looping_reader(const char *path, int in, int out)
{
    sqlite3 *db = NULL;
    int64_t before = 0;
    (void)fcntl(in, F_SETFL, O_NONBLOCK);
    for (unsigned round = 0;; round++) {
        char c;
        if (round % 16 == 0) { /* another connection, which has to map the index anew */
            if (sqlite3_close(db) != SQLITE_OK ||
                sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
                return 1;
        }
        sqlite3_stmt *s = NULL;
        if (sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) return 2;
        const int64_t n = ask(db, "SELECT count(*) FROM blob");
        if (n < before || n % 2) return 3;
        before = n;
        int rc = sqlite3_prepare_v2(db, "SELECT hash, packed FROM blob ORDER BY id DESC LIMIT 3",
                                    -1, &s, NULL);
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

/* ---- a log that grows ------------------------------------------------------------------------ */
static int waiting_reader(const char *path, int in, int out)
{
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) return 1;
    if (sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK ||
        ask(db, "SELECT count(*) FROM blob") != 1)
        return 2;
    send_byte(out);
    wait_byte(in);
    return ask(db, "SELECT count(*) FROM blob") == 1 && is_sound(db) &&
                   sqlite3_close(db) == SQLITE_OK
               ? 0
               : 3;
}

/* The index's first region has 4,062 frames: they go on in a second one, and the log restarts when
 * the reader has left. */
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
    for (; kiln_bulk_state(m)->log_frames < 4300; i++, n++)
        OK(store_batch(m, (batch){i, 1, 100}, &err));
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

/* The database has become smaller, and a reader still needs what is behind its end now. */
static int vacuum_reader(const char *path, int in, int out)
{
    sqlite3 *db = NULL;
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) return 1;
    if (sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK ||
        ask(db, "SELECT count(*) FROM blob") != 6)
        return 2;
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
    assert_int_equal(sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL),
                     SQLITE_OK);
    const off_t large = size_of(path);
    process reader = begin_process(vacuum_reader, path);
    wait_byte(reader.from);
    run_sql(m, "DELETE FROM unit WHERE name <> '0/0'; DELETE FROM blob WHERE hash NOT IN (SELECT "
               "hash FROM unit_output)");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(readers_keep_their_state, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(readers_are_never_blocked, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(the_index_grows, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(a_smaller_database_leaves_old_readers_alone, make_scratch,
                                        remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
