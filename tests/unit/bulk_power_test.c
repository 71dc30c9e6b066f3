/* bulk_power_test -- bulk data is written once (schema/direct.c): power failures lose nothing that
 * was told.
 *
 * starts first */
#include "tests/unit/bulk_fixture.h"

/* ---- power failures -------------------------------------------------------------------------- */
enum { POWER_BATCHES = 24, SECTOR = 512 };
typedef struct {
    unsigned char *data;
    size_t size, capacity;
} image;

static void image_resize(image *i, size_t size)
{
    if (size > i->capacity) {
        i->data = realloc(i->data, 2 * size);
        if (!i->data) abort();
        i->capacity = 2 * size;
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
        if (how == 1 || next_random(x) % 2)
            image_write(i, c, from, c->n - from < SECTOR ? c->n - from : SECTOR);
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

/* Small and large batches and checkpoints by turns; *told: calls of the disk when the writer was
 * told of each batch. */
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
        if (i % 6 == 4)
            assert_int_equal(
                sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL),
                SQLITE_OK);
    }
    assert_int_equal(kiln_bulk_state(m)->commits, POWER_BATCHES - (POWER_BATCHES + 1) / 5);
    disk.on = false;
    kiln_manifest_close(m);
}

/* The disk keeps what was synced, and of the rest what it likes, in sectors. POWER=n: more failures
 * (120). */
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
            fail_msg("round %u, call %zu of %zu: %lld blobs, told of %lld", round, end, disk.n,
                     (long long)blobs, (long long)least);
        m = open_manifest(crashed, KILN_OPEN_WRITE); /* and it can go on */
        OK(store_batch(m, (batch){100, 2, 700000}, &err));
        kiln_manifest_close(m);
        if (round % 8 == 0) assert_holds(crashed, blobs + 2);
    }
    for (size_t i = 0; i < disk.n; i++) free(disk.calls[i].data);
    free(disk.calls);
    for (int file = 0; file < 2; file++) free(base[file].data), free(now[file].data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(power_failures_lose_nothing_that_was_told, make_scratch,
                                        remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
