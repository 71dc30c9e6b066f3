/* bulk_failures_test -- bulk data is written once (schema/direct.c): calls that fail lose nothing.
 *
 * starts first */
#include "tests/unit/bulk_fixture.h"

/* ---- failures -------------------------------------------------------------------------------- */
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
            st = sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) ==
                         SQLITE_OK
                     ? KILN_OK
                     : KILN_E_IO;
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
        fail_msg("call %llu: %lld blobs, %u batches told", (unsigned long long)nth, (long long)n,
                 told);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    m = open_manifest(path, KILN_OPEN_WRITE);
    for (uint32_t i = 1; i < 5; i++)
        OK(store_batch(m, (batch){i, 2, i == 1 ? 100000 : 150000}, &err));
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
        /* those that write half go on failing */
        while (one_failure(state, i, wrote == WRITES_HALF, wrote)) i++;
        n += i - 1;
    }
    print_message("%llu failures\n", (unsigned long long)n);
    assert_true(n > 40);
}

static void failures_lose_nothing(void **state) { failures_of(state); }

static kiln_status store_and_read(kiln_manifest *to, void *context, kiln_error *err)
{
    KILN_TRY(store(to, context, err));
    return read_all(to->db) == ((const batch *)context)->n_blobs
               ? KILN_OK
               : kiln_fail(err, KILN_E_IO, "not what was written");
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

/* A disk is full from some write on: the batch ends with the sentence of a full disk, and the next
 * one finds nothing of it. */
static void a_failure_behind_is_told(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    OK(store_batch(m, (batch){0, 2, MIB}, &err));
    for (uint64_t nth = 1; nth <= 5; nth += 2) {
        injected.calls = 0, injected.nth = nth, injected.for_ever = true,
        injected.wrote = WRITES_NOTHING;
        assert_int_equal(store_batch(m, (batch){1, 4, 3 * MIB}, &err), KILN_E_IO);
        injected.nth = 0;
        assert_non_null(strstr(err.msg, "are free there; make room"));
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
        cmocka_unit_test_setup_teardown(failures_lose_nothing, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(failures_without_a_thread_lose_nothing, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(pages_are_read_while_they_wait, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(a_failure_behind_is_told, make_scratch, remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
