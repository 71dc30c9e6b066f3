/* The partition in files against the operation spatial_order in memory: any cloud, any number of
 * runs, the same bytes. */
#include "stages/spatial/row_places.h"

#include "base/file.h"
#include "base/memory.h"
#include "tests/unit/manifest_fixture.h"

#include <sys/resource.h>
#include <signal.h>

enum { BLOCK = 500, BLOCKS = 40, ROWS = BLOCK * BLOCKS - 123 };

static uint32_t seed = 12345;
static double random_unit(void) /* Numerical Recipes' quick generator */
{
    seed = seed * 1664525u + 1013904223u;
    return (double)(seed >> 8) / (double)(1 << 24);
}

typedef enum { UNIFORM, CLUSTERED, IDENTICAL, OUTLIER, SORTED, CLOUDS } cloud;

static void make_cloud(cloud kind, uint64_t n, float *means) /* [3][n] */
{
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t c = 0; c < 3; c++) {
            double v = random_unit() * 2 - 1;
            if (kind == CLUSTERED) v = (double)(i % 3) * 0.25 + v * (i % 5 ? 1e-5 : 1e-1);
            if (kind == IDENTICAL) v = 0.123;
            if (kind == OUTLIER) v = i == n / 2 ? 1e7 : 1e-7 * v;
            if (kind == SORTED) v = (double)i / (double)n - 0.5;
            means[c * n + i] = (float)v;
        }
}

/* ---- a layer of n rows in blocks of BLOCK, the last one shorter, an empty one among them ----- */
static kiln_layer *put_layer(kiln_manifest *m, const float *means, uint64_t n)
{
    kiln_error err = {0};
    enum { MOST = BLOCKS + 2 };
    static kiln_chunk chunks[MOST];
    static kiln_plane planes[MOST];
    static kiln_hash hashes[MOST];
    static float block[3 * BLOCK];
    kiln_layer l = {.kind = "source", .count = n, .chunks = chunks}, *out;
    OK(kiln_manifest_begin(m, &err));
    for (uint64_t first = 0; l.n_chunks == 0 || first < n;) {
        const uint32_t i = l.n_chunks++;
        const uint64_t count = i == 1 ? 0 : n - first < BLOCK ? n - first : BLOCK;
        for (uint64_t c = 0; c < 3; c++)
            memcpy(block + c * count, means + c * n + first, count * sizeof *block);
        hashes[i] = put_bytes(m, block, count * 3 * sizeof *block, 4);
        planes[i] = (kiln_plane){.name = "means",
                                 .type = KILN_TYPE_F32,
                                 .components = 3,
                                 .data = array_of(&hashes[i], count * 3 * sizeof *block)};
        chunks[i] = (kiln_chunk){.count = count, .n_planes = 1, .planes = &planes[i]};
        snprintf(chunks[i].name, sizeof chunks[i].name, "%08u", i);
        first += count;
    }
    OK(kiln_layer_put(m, &l, &err));
    OK(kiln_manifest_commit(m, &err));
    OK(kiln_layer_get_digest(m, "source", l.digest, &out, &err));
    return out;
}

typedef struct {
    char folder[600];
    kiln_manifest *m, *readers[2];
    kiln_runner *runner;
    float *means;
    kiln_layer *layer;
    kiln_spatial_args args;
} bench;

static void bench_init(void **state, bench *b, cloud kind, uint64_t n)
{
    kiln_error err = {0};
    char path[600], command[1400];
    memset(b, 0, sizeof *b);
    snprintf(command, sizeof command, "rm -rf '%s/'* && mkdir '%s'", (char *)*state,
             in_scratch(state, "parts", b->folder));
    assert_int_equal(system(command), 0);
    b->m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    const kiln_runner_options o = {.device = KILN_RUNNER_CPU, .threads = 2};
    OK(kiln_runner_new(&o, &b->runner, &err));
    OK(KILN_ALLOC(&b->means, 3 * n, "means", &err));
    make_cloud(kind, n, b->means);
    b->layer = put_layer(b->m, b->means, n);
    for (int i = 0; i < 2; i++) b->readers[i] = open_manifest(path, KILN_OPEN_READ);
    b->args = (kiln_spatial_args){.runner = b->runner,
                                  .manifest = b->m,
                                  .layer = b->layer,
                                  .centre = {0.125, 0, 0},
                                  .half = 1,
                                  .folder = b->folder,
                                  .with_means = true,
                                  .ram = kiln_spatial_least_ram(b->layer)};
}

static void bench_release(bench *b)
{
    kiln_layer_free(b->layer);
    free(b->means);
    kiln_runner_free(b->runner);
    for (int i = 0; i < 2; i++) kiln_manifest_close(b->readers[i]);
    kiln_manifest_close(b->m);
}

/* The files against one operation on all rows. */
static void check_files(const bench *b)
{
    kiln_error err = {0};
    const uint64_t n = b->layer->count;
    uint32_t *order, *rows;
    uint64_t *want, *codes;
    float *means;
    kiln_spatial_file f;
    OK(KILN_ALLOC(&order, n, "order", &err));
    OK(KILN_ALLOC(&rows, n, "rows", &err));
    OK(KILN_ALLOC(&want, n, "codes", &err));
    OK(KILN_ALLOC(&codes, n, "codes", &err));
    OK(KILN_ALLOC(&means, 3 * n, "means", &err));
    kiln_spatial_order_args a = {
        .n = n, .means = b->means, .half = b->args.half, .order = order, .codes = want};
    memcpy(a.centre, b->args.centre, sizeof a.centre);
    if (n) OK(kiln_runner_run(b->runner, KILN_OP_spatial_order, &a, &err));
    OK(kiln_spatial_open(b->folder, n, b->args.with_means, &f, &err));
    const uint64_t half = n / 2; /* in two reads: places count from 0 in the whole file */
    OK(kiln_spatial_rows(&f, 0, half, rows, &err));
    OK(kiln_spatial_rows(&f, half, n - half, rows + half, &err));
    OK(kiln_spatial_codes(&f, 0, half, codes, &err));
    OK(kiln_spatial_codes(&f, half, n - half, codes + half, &err));
    assert_memory_equal(rows, order, n * sizeof *rows);
    assert_memory_equal(codes, want, n * sizeof *codes);
    if (b->args.with_means) {
        OK(kiln_spatial_means(&f, 0, half, means, &err));
        OK(kiln_spatial_means(&f, half, n - half, means + 3 * half, &err));
        for (uint64_t i = 0; i < n; i++)
            for (uint64_t c = 0; c < 3; c++)
                assert_memory_equal(&means[3 * i + c], &b->means[c * n + order[i]], sizeof(float));
    }
    assert_int_equal(kiln_spatial_rows(&f, n, 1, rows, NULL), KILN_E_BUG);
    kiln_spatial_close(&f);
    free(means);
    free(codes);
    free(want);
    free(rows);
    free(order);
}

static unsigned files_in(const char *folder)
{
    char command[700];
    unsigned n = 0;
    snprintf(command, sizeof command, "ls -A '%s' | wc -l", folder);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    assert_int_equal(fscanf(p, "%u", &n), 1);
    assert_int_equal(pclose(p), 0);
    return n;
}

static void every_cloud_and_every_cap_give_the_same_files(void **state)
{
    kiln_error err = {0};
    for (int kind = 0; kind < CLOUDS; kind++)
        for (int with_means = 0; with_means < 2; with_means++) {
            bench b;
            bench_init(state, &b, (cloud)kind, ROWS);
            const uint64_t least = b.args.ram, caps[] = {least, 2 * least, 1 << 30};
            b.args.with_means = with_means;
            for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
                char command[700];
                b.args.ram = caps[i];
                b.args.readers = b.readers;
                /* as many threads more decode */
                b.args.n_readers = ((unsigned)i + (unsigned)kind) % 3;
                /* sort and merge */
                kiln_runner_set_threads(b.runner, 1 + (3 * (unsigned)i + (unsigned)kind) % 5);
                OK(kiln_spatial_partition(&b.args, &err));
                check_files(&b);
                assert_int_equal(files_in(b.folder), with_means ? 3 : 2); /* runs are gone */
                snprintf(command, sizeof command, "rm '%s/'*", b.folder);
                assert_int_equal(system(command), 0);
            }
            bench_release(&b);
        }
}

static void no_row_and_one_row_are_layers_too(void **state)
{
    kiln_error err = {0};
    for (uint64_t n = 0; n < 2; n++) {
        bench b;
        bench_init(state, &b, UNIFORM, n);
        assert_false(kiln_spatial_is_complete(b.folder, n, true));
        OK(kiln_spatial_partition(&b.args, &err));
        assert_true(kiln_spatial_is_complete(b.folder, n, true));
        check_files(&b);
        bench_release(&b);
    }
}

/* The least is the least, the runs are as many as they should be, and more than one of them take
 * the room twice. */
static void needs_are_told_beforehand(void **state)
{
    kiln_error err = {0};
    bench b;
    bench_init(state, &b, UNIFORM, ROWS);
    const uint64_t once = ROWS * 24;
    assert_int_equal(kiln_spatial_scratch_bytes(b.layer, true, 1 << 30), once);
    assert_int_equal(kiln_spatial_scratch_bytes(b.layer, true, b.args.ram), 2 * once);
    assert_int_equal(kiln_spatial_scratch_bytes(b.layer, false, 1 << 30), once / 2);
    b.args.ram = BLOCK * 37;
    assert_int_equal(kiln_spatial_partition(&b.args, &err), KILN_E_CAP);
    assert_non_null(strstr(err.msg, "--ram"));
    assert_int_equal(files_in(b.folder), 0);
    bench_release(&b);
}

static void put_file(const char *folder, const char *name, const void *data, size_t bytes)
{
    kiln_error err = {0};
    kiln_scratch_file f;
    OK(kiln_scratch_create(folder, name, bytes, &f, &err));
    OK(kiln_scratch_write(&f, 0, data, bytes, &err));
    OK(kiln_scratch_finish(&f, &err));
}

/* The places of rows in any order, whatever the memory and the threads; more rows than a window of
 * the least memory has. */
static void places_are_the_order_the_other_way_round(void **state)
{
    enum { MANY = 150000 };
    static uint32_t rows[MANY], places[MANY];
    static uint64_t codes[MANY];
    static const struct {
        uint64_t ram;
        unsigned threads;
    } cases[] = {{0, 1}, {0, 3}, {400000, 1}, {1 << 30, 3}};
    kiln_error err = {0};
    char folder[600], command[700];
    kiln_scratch_file f;
    snprintf(command, sizeof command, "mkdir '%s'", in_scratch(state, "places", folder));
    assert_int_equal(system(command), 0);
    for (uint32_t i = 0; i < MANY; i++) {
        const uint32_t j = (uint32_t)(random_unit() * (i + 1));
        rows[i] = rows[j];
        rows[j] = i;
    }
    put_file(folder, "rows", rows, sizeof rows);
    put_file(folder, "codes", codes, sizeof codes);
    snprintf(command, sizeof command, "rm '%s/places'", folder);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        assert_false(kiln_row_places_are_complete(folder, MANY));
        OK(kiln_row_places_make(folder, MANY, cases[k].ram, cases[k].threads, &err));
        assert_true(kiln_row_places_are_complete(folder, MANY));
        OK(kiln_row_places_open(folder, MANY, &f, &err));
        OK(kiln_row_places_read(&f, 0, 1000, places, &err));
        OK(kiln_row_places_read(&f, 1000, MANY - 1000, places + 1000, &err));
        for (uint32_t i = 0; i < MANY; i++) assert_int_equal(places[rows[i]], i);
        kiln_scratch_drop(&f);
        assert_int_equal(system(command), 0);
    }
    rows[77777] = MANY; /* no such row */
    put_file(folder, "rows", rows, sizeof rows);
    assert_int_equal(kiln_row_places_make(folder, MANY, 1 << 30, 2, &err), KILN_E_IO);
    assert_false(kiln_row_places_are_complete(folder, MANY));
}

/* Whole files are taken as they are; what a kill left behind is not. */
static void what_is_whole_is_not_made_again(void **state)
{
    kiln_error err = {0};
    bench b;
    char path[700];
    kiln_file_info before, after;
    bench_init(state, &b, CLUSTERED, ROWS);
    OK(kiln_spatial_partition(&b.args, &err));
    snprintf(path, sizeof path, "%s/rows", b.folder);
    OK(kiln_file_stat(path, &before, &err));
    OK(kiln_spatial_partition(&b.args, &err));
    OK(kiln_file_stat(path, &after, &err));
    assert_true(before.inode == after.inode && before.mtime_ns == after.mtime_ns);
    assert_int_equal(truncate(path, 100), 0);
    assert_false(kiln_spatial_is_complete(b.folder, ROWS, true));
    snprintf(path, sizeof path, "%s/run-codes.part", b.folder);
    OK(kiln_file_write(path, "left", 4, &err));
    OK(kiln_spatial_partition(&b.args, &err));
    check_files(&b);
    assert_int_equal(files_in(b.folder), 3);
    bench_release(&b);
}

static void a_full_disk_is_told_with_numbers(void **state)
{
    kiln_error err = {0};
    bench b;
    struct rlimit was, small;
    bench_init(state, &b, UNIFORM, ROWS);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    small = (struct rlimit){.rlim_cur = 10000, .rlim_max = was.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const kiln_status st = kiln_spatial_partition(&b.args, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_int_equal(st, KILN_E_IO);
    assert_non_null(strstr(err.msg, "--scratch-dir"));
    assert_non_null(strstr(err.msg, "are free"));
    assert_int_equal(files_in(b.folder), 0);
    OK(kiln_spatial_partition(&b.args, &err)); /* with room again */
    check_files(&b);
    bench_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_cloud_and_every_cap_give_the_same_files, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(no_row_and_one_row_are_layers_too, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(needs_are_told_beforehand, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(places_are_the_order_the_other_way_round, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(what_is_whole_is_not_made_again, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(a_full_disk_is_told_with_numbers, make_scratch,
                                        remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
