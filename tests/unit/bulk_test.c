/* bulk_test -- bulk data is written once (schema/direct.c): each batch is an ordinary commit,
 * whatever goes through which connection. */
#include "tests/unit/bulk_fixture.h"

#include <sys/statfs.h>

static void each_batch_is_an_ordinary_commit(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    /* sizes: less than a page, one page and a little, some pages, many blobs, more than the cache,
     * more than a trunk of the log */
    static const batch batches[] = {{0, 1, 100},    {1, 1, PAGE + 1}, {2, 3, 5 * PAGE},
                                    {3, 300, 4000}, {4, 2, 7 * MIB},  {5, 20, 600000},
                                    {6, 1, 0},      {7, 40, 300000},  {8, 5, 2 * MIB}};
    int64_t n = 0;
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        OK(store_batch(m, batches[i], &err));
        n += batches[i].n_blobs;
        assert_holds(path, n);
        assert_recovers(state, path, n);
        /* the first connection sees it, too */
        assert_int_equal(number_of(m, "SELECT count(*) FROM blob"), n);
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

/* Pages of the file's first `bytes` that are in the page cache. */
static size_t count_cached(int fd, size_t bytes)
{
    enum { SMALL = 4096 };
    size_t n = 0;
    unsigned char *in = malloc(bytes / SMALL);
    assert_non_null(in);
    void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    assert_int_equal(mincore(map, bytes, in), 0);
    for (size_t i = 0; i < bytes / SMALL; i++) n += in[i] & 1;
    assert_int_equal(munmap(map, bytes), 0);
    free(in);
    return n;
}

static bool is_on_a_disk(const char *path)
{
    enum { TMPFS = 0x01021994 };
    struct statfs fs;
    return statfs(path, &fs) == 0 && (unsigned long)fs.f_type != TMPFS;
}

/* The pages of a batch leave with the next one, those of the last when it is said that others
 * stay. */
static void what_passes_leaves_the_page_cache(void **state)
{
    enum { BATCH = 32 * MIB, ALL = 3 * BATCH / 4096 };
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    if (!is_on_a_disk(path)) {
        kiln_manifest_close(m);
        print_message("memory file systems have no page cache\n");
        skip();
    }
    /* closed behind SQLite, whose locks go with it */
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    for (threads = 1; threads <= THREADS; threads += THREADS - 1) {
        const uint32_t first = 10 * threads;
        for (uint32_t i = 0; i < 3; i++) OK(store_batch(m, (batch){first + i, 4, BATCH / 4}, &err));
        assert_true(count_cached(fd, 3 * BATCH) > ALL / 2);
        kiln_bulk_pass(m, true);
        for (uint32_t i = 3; i < 6; i++) OK(store_batch(m, (batch){first + i, 4, BATCH / 4}, &err));
        kiln_bulk_pass(m, false);
        const size_t bytes = (size_t)size_of(path), before = count_cached(fd, bytes - 3 * BATCH);
        assert_true(count_cached(fd, bytes) - before < ALL / 8);
        OK(store_batch(m, (batch){first + 6, 4, BATCH / 4}, &err));
        assert_true(count_cached(fd, bytes + BATCH / 2) > ALL / 8);
    }
    threads = THREADS;
    kiln_manifest_close(m);
    close(fd);
    assert_holds(path, 2 * 7 * 4);
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
            assert_int_equal(
                sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL),
                SQLITE_OK);
        if (i % 10 == 9) assert_holds(path, n);
        assert_int_equal(number_of(m, "SELECT count(*) FROM unit"), n);
    }
    assert_int_equal(kiln_bulk_state(m)->commits, 30);
    kiln_manifest_close(m);
    assert_holds(path, n);
}

/* ---- what goes through the first connection -------------------------------------------------- */
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
    run_sql(m, "DELETE FROM unit WHERE name = '1/0'; DELETE FROM blob WHERE hash NOT IN (SELECT "
               "hash FROM unit_output)");
    assert_int_equal(number_of(m, "PRAGMA freelist_count"), 5);
    /* takes the free pages through memory and the log */
    OK(store_batch(m, (batch){2, 1, 8 * PAGE}, &err));
    assert_int_equal(kiln_bulk_state(m)->commits, commits + 1);
    assert_int_equal(number_of(m, "PRAGMA freelist_count"), 0);
    assert_holds(path, 5);
    run_sql(m, "DELETE FROM unit WHERE name LIKE '0/%'; DELETE FROM blob WHERE hash NOT IN (SELECT "
               "hash FROM unit_output)");
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
    run_sql(m, "WITH RECURSIVE i (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM i WHERE x < 3000) "
               "INSERT INTO unit"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_batch_is_an_ordinary_commit, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(what_passes_leaves_the_page_cache, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(connections_take_turns, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(old_pages_are_used_again, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(too_many_changes_go_through_the_log, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(a_rollback_leaves_no_garbage, make_scratch, remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
