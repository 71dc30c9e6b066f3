/* bulk_commit_test -- bulk data is written once (schema/direct.c): the instant of the commit, and
 * the order in which the disk gets it. */
#include "tests/unit/bulk_fixture.h"

/* ---- the instant of the commit --------------------------------------------------------------- */
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
    assert_true(what == FAILS ? WIFEXITED(status) && WEXITSTATUS(status) == 0
                              : WIFSIGNALED(status));
    close(writer.to), close(writer.from);
}

/* A checkpoint by another process, which lives on, cuts off what the last commit does not have. So
 * that process and a recovery of the log must take the same commit for the last one. */
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
        assert_int_equal(
            sqlite3_wal_checkpoint_v2(witness, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL),
            SQLITE_OK);
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

/* A checkpoint by another connection in the middle of a batch would cut its pages off. Reading goes
 * on. */
static kiln_status store_and_check_point(kiln_manifest *to, void *context, kiln_error *err)
{
    check_inside *c = context;
    KILN_TRY(store(to, &c->b, err));
    sqlite3 *db = plain(c->path);
    assert_int_equal(read_all(db), 1);
    assert_int_equal(sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL),
                     SQLITE_BUSY);
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
    /* new pages are safe before the log names them, the log before the end */
    assert_string_equal(injected.order, "dDwW");
    assert_int_equal(sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL),
                     SQLITE_OK);
    injected.order[0] = '\0';
    OK(store_batch(m, (batch){2, 3, 3 * MIB}, &err));
    assert_string_equal(injected.order, "wWdDwW"); /* the log begins anew */
    injected.order[0] = '\0';
    OK(store_batch(m, (batch){3, 1, 100}, &err));
    assert_string_equal(injected.order, "wW"); /* no new page, or one: see below */
    kiln_manifest_close(m);
    assert_holds(path, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_commit_is_there_or_not_for_all, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(others_neither_check_point_nor_write_meanwhile,
                                        make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(the_disk_gets_it_in_order, make_scratch, remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
