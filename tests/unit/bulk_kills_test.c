/* bulk_kills_test -- bulk data is written once (schema/direct.c): writers that are killed leave
 * whole batches, and others cut their garbage off.
 *
 * starts first
 * KILLS=n: more rounds of the kill test (40). SEED=n: other instants. */
#include "tests/unit/bulk_fixture.h"

/* ---- kills ----------------------------------------------------------------------------------- */
enum { KILL_BLOBS = 3 };
static _Atomic uint32_t *progress; /* batches that the writer was told are stored; shared */

static int killed_writer(const char *path, int in, int out)
{
    kiln_error err = {0};
    kiln_manifest *m;
    (void)in;
    if (kiln_manifest_open(path, KILN_OPEN_WRITE, "test", false, &m, &err) != KILN_OK)
        return print_error("%s\n", err.msg), 1;
    send_byte(out);
    for (uint32_t i = atomic_load(progress);; i++) {
        const batch b = {i, KILL_BLOBS, 200000 + 60000 * (i % 5)};
        if (store_batch(m, b, &err) != KILN_OK) return print_error("%s\n", err.msg), 2;
        if (!kiln_bulk_state(m) || kiln_bulk_state(m)->commits == 0)
            return print_error("not by the second connection\n"), 3;
        atomic_store(progress, i + 1);
    }
}

/* Half of the rounds have another connection open all the time, which keeps the index in memory: no
 * recovery then. */
static void kills_leave_whole_batches(void **state)
{
    char path[600];
    const char *rounds = getenv("KILLS"), *seed = getenv("SEED");
    const unsigned n = rounds ? (unsigned)atoi(rounds) : 40;
    unsigned x = seed ? (unsigned)atoi(seed) : 1;
    progress =
        mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
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
        while (atomic_load(progress) < before + (x >> 8) % 3)
            (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
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
            assert_int_equal(
                sqlite3_wal_checkpoint_v2(witness, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL),
                SQLITE_OK);
        sqlite3 *db = plain(path);
        assert_true(is_sound(db));
        const int64_t blobs = read_all(db);
        if (blobs != told * (int64_t)KILL_BLOBS && blobs != (told + 1) * (int64_t)KILL_BLOBS)
            fail_msg("round %u: %lld blobs after %u batches of %d", round, (long long)blobs, told,
                     KILL_BLOBS);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        if (witness) assert_int_equal(sqlite3_close(witness), SQLITE_OK);
        atomic_store(progress, (uint32_t)(blobs / KILL_BLOBS));
    }
    print_message("%u kills in %llu batches\n", n, (unsigned long long)stored);
    assert_true(stored >= n / 2);
}

/* ---- garbage --------------------------------------------------------------------------------- */
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
    if (sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) != SQLITE_OK)
        return 3;
    send_byte(out);
    return kiln_bulk_store(m, MIB, store_and_die, &b, &err) == KILN_OK ? 4 : 5;
}

/* Leaves a file with garbage behind the end. Returns what is open on it, if a reader is to be there
 * when it is opened again. */
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

/* The log begins anew before the pages are written, so that a recovery of it finds no commit that
 * would say how large the database is, and SQLite asks the file instead: its next commit would make
 * the garbage part of the database. */
static void a_writer_cuts_garbage_off_first(void **state)
{
    for (int i = 0; i < 4; i++) {
        char path[600], name[32];
        kiln_error err = {0};
        batch small = {2, 1, 100};
        snprintf(name, sizeof name, "%d.db", i);
        sqlite3 *reader =
            leave_garbage(in_scratch(state, name, path), (size_t)(i < 2 ? 5 : 8) * MIB, i % 2);
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
        assert_int_equal(sqlite3_exec(other, "UPDATE unit SET wall_ns = 2", NULL, NULL, NULL),
                         SQLITE_OK);
        kiln_manifest *m = open_manifest(path, KILN_OPEN_WRITE);
        for (uint32_t k = 3; k < 6; k++) OK(store_batch(m, (batch){k, 1, MIB}, &err));
        assert_null(kiln_bulk_state(m));
        assert_int_equal(sqlite3_close(other), SQLITE_OK);
        kiln_manifest_close(m);
        assert_holds(path, 2 + 3);
        /* the log is gone, and with it what it says of the size */
        m = open_manifest(path, KILN_OPEN_WRITE);
        assert_int_equal(size_of(path), number_of(m, "PRAGMA page_count") * PAGE);
        OK(store_batch(m, (batch){6, 1, MIB}, &err));
        assert_int_equal(kiln_bulk_state(m)->commits, 1);
        kiln_manifest_close(m);
        assert_holds(path, 2 + 4);
    }
}

/* What a writer leaves that is killed as it begins the log anew, after the headers of the index and
 * before what is behind them. */
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
    assert_int_equal(sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL),
                     SQLITE_OK);
    empty_the_index(path);
    OK(store_batch(m, (batch){1, 2, MIB}, &err));
    assert_int_equal(kiln_bulk_state(m)->commits, 2);
    assert_recovers(state, path, 4);
    kiln_manifest_close(m);
    assert_holds(path, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(kills_leave_whole_batches, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(a_writer_cuts_garbage_off_first, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(garbage_in_the_database_is_left_to_sqlite, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(a_log_that_was_begun_anew_in_part_is_begun_anew,
                                        make_scratch, remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
