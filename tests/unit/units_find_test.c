/* units_find: many units are found as one by one is, whether the table is read through or each is
 * looked up. */
#include "schema/units_find.h"
#include "tests/unit/manifest_fixture.h"

enum { UNITS = 600, WANTED = 500, FEW = 3 };

static kiln_hash key_of(uint64_t i) { return kiln_hash_of(&i, sizeof i); }

/* Unit i of the manifest: its counters and its one output tell it from all others. */
static void store(kiln_manifest *m, uint64_t i)
{
    kiln_error err = {0};
    char counters[32];
    kiln_blob blob;
    (void)snprintf(counters, sizeof counters, "{\"i\":%llu}", (unsigned long long)i);
    OK(kiln_blob_pack(&i, sizeof i, 8, &blob, &err));
    kiln_unit_output output = {
        .name = "number", .hash = blob.hash, .raw_bytes = sizeof i, .elem = 8};
    const kiln_unit_result r = {.n = 1, .outputs = &output, .counters = counters};
    OK(kiln_unit_store(m, &(kiln_unit_done){key_of(i), "tiles", "unit", 1}, &r, &blob, &err));
    free(blob.packed);
}

static kiln_manifest *with_units(void **state, const char *name)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m;
    OK(kiln_manifest_open(in_scratch(state, name, path), KILN_OPEN_CREATE, "test", false, &m,
                          &err));
    OK(kiln_manifest_begin(m, &err));
    for (uint64_t i = 0; i < UNITS; i++) store(m, i);
    OK(kiln_manifest_commit(m, &err));
    return m;
}

typedef struct {
    kiln_manifest *m;
    const uint64_t *wanted;
    unsigned times[WANTED], n;
    kiln_status answer;
} finding;

static kiln_status take(void *context, uint64_t i, int64_t unit, const char *counters,
                        kiln_error *err)
{
    finding *f = context;
    char right[32];
    kiln_unit_result r;
    uint64_t *number, bytes;
    (void)snprintf(right, sizeof right, "{\"i\":%llu}", (unsigned long long)f->wanted[i]);
    assert_string_equal(counters, right);
    KILN_TRY(kiln_unit_outputs_of(f->m, unit, counters, &r, err));
    assert_string_equal(r.counters, right);
    assert_int_equal(kiln_unit_result_read(f->m, &r, "number", (void **)&number, &bytes, err),
                     KILN_OK);
    assert_true(bytes == sizeof *number && *number == f->wanted[i]);
    free(number);
    kiln_unit_result_release(&r);
    f->times[i]++;
    f->n++;
    return f->answer;
}

static kiln_status find(kiln_manifest *m, const uint64_t *wanted, uint64_t n, kiln_status answer,
                        finding *f, kiln_error *err)
{
    kiln_hash keys[WANTED];
    for (uint64_t i = 0; i < n; i++) keys[i] = key_of(wanted[i]);
    *f = (finding){.m = m, .wanted = wanted, .answer = answer};
    assert_int_equal(kiln_manifest_begin(m, err), KILN_OK);
    const kiln_status st = kiln_units_find(m, keys, n, take, f, err);
    kiln_manifest_rollback(m);
    return st;
}

/* Each number is that of a unit, or UNITS and more, of none; every tenth is one that was there
 * before. */
static void fill(uint64_t wanted[WANTED])
{
    for (uint64_t i = 0; i < WANTED; i++)
        wanted[i] = i % 10 == 9 ? wanted[i - 5] : (i * 7 + 100) % (UNITS + 50);
}

static void all_that_are_there_are_found_once(void **state)
{
    kiln_error err = {0};
    uint64_t wanted[WANTED];
    finding f;
    kiln_manifest *m = with_units(state, "many.db");
    fill(wanted);
    for (uint64_t n = FEW; n <= WANTED; n += WANTED - FEW) { /* looked up, and read through */
        OK(find(m, wanted, n, KILN_OK, &f, &err));
        for (uint64_t i = 0; i < n; i++) assert_int_equal(f.times[i], wanted[i] < UNITS);
    }
    OK(find(m, wanted, 0, KILN_OK, &f, &err));
    OK(kiln_unit_forget(m, key_of(wanted[0]), &err));
    OK(find(m, wanted, WANTED, KILN_OK, &f, &err));
    for (uint64_t i = 0; i < WANTED; i++)
        assert_int_equal(f.times[i], wanted[i] < UNITS && wanted[i] != wanted[0]);
    kiln_manifest_close(m);
}

static void what_the_caller_says_ends_it(void **state)
{
    kiln_error err = {0};
    uint64_t wanted[WANTED];
    finding f;
    kiln_manifest *m = with_units(state, "ends.db");
    fill(wanted);
    for (uint64_t n = FEW; n <= WANTED; n += WANTED - FEW) {
        assert_int_equal(find(m, wanted, n, KILN_E_IO, &f, &err), KILN_E_IO);
        assert_int_equal(f.n, 1);
    }
    kiln_manifest_close(m);
}

static void run_on(sqlite3 *db, const char *sql)
{
    char *text = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &text) != SQLITE_OK) fail_msg("%s: %s", sql, text);
}

/* Runs a statement while the table takes anything. */
static void damage(const char *path, const char *sql)
{
    for (int i = 0; i < 3; i++) {
        char text[400];
        sqlite3 *db;
        (void)snprintf(text, sizeof text,
                       "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = substr(sql, 1, "
                       "length(sql) - %d) || '%s'"
                       " WHERE name = 'unit'",
                       i == 0 ? 7 : 0, i == 0 ? "" : " STRICT");
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        run_on(db, "PRAGMA ignore_check_constraints = 1");
        run_on(db, i == 1 ? sql : text);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
    }
}

/* A row that nobody asks for may be damaged; one that is asked for is refused, as by
 * kiln_unit_find. */
static void damage_counts_where_it_is_asked_for(void **state)
{
    kiln_error err = {0};
    uint64_t wanted[WANTED];
    finding f;
    bool found;
    kiln_unit_result r;
    kiln_manifest *m = with_units(state, "damaged.db");
    fill(wanted);
    char path[600];
    (void)snprintf(path, sizeof path, "%s", kiln_manifest_path(m));
    kiln_manifest_close(m);
    damage(path, "UPDATE unit SET key = 'no key', counters = 5 WHERE id = 1");
    m = open_manifest(path, KILN_OPEN_WRITE);
    OK(find(m, wanted, WANTED, KILN_OK, &f, &err));
    for (uint64_t i = 0; i < WANTED; i++)
        assert_int_equal(f.times[i], wanted[i] > 0 && wanted[i] < UNITS);
    kiln_manifest_close(m);

    damage(path, "UPDATE unit SET counters = x'00' WHERE id = 102");
    m = open_manifest(path, KILN_OPEN_WRITE);
    assert_int_equal(kiln_unit_find(m, key_of(101), &found, &r, &err), KILN_E_IO);
    wanted[1] = 101;
    assert_int_equal(find(m, wanted, WANTED, KILN_OK, &f, &err), KILN_E_IO);
    assert_says(&err, "column 'counters' of a row of 'unit'");
    kiln_manifest_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_are_there_are_found_once),
        cmocka_unit_test(what_the_caller_says_ends_it),
        cmocka_unit_test(damage_counts_where_it_is_asked_for),
    };
    return cmocka_run_group_tests_name("units_find", tests, make_scratch, remove_scratch);
}
