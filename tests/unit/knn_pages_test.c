/* The partition's pages: what is read is what was written, or an error, whichever byte of whichever
 * file is another. */
#include "stages/knn/pages.h"

#include "base/file.h"
#include "tests/unit/manifest_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N = 1000, PAGE = 64 };

static float means[N][3];
static uint32_t rows[N];
static uint64_t codes[N];

static void put(const char *folder, const char *name, const void *data, size_t bytes)
{
    kiln_error err = {0};
    kiln_scratch_file f;
    OK(kiln_scratch_create(folder, name, bytes, &f, &err));
    OK(kiln_scratch_write(&f, 0, data, bytes, &err));
    OK(kiln_scratch_finish(&f, &err));
}

/* A partition of N places in a new folder, with its records. */
static uint64_t make(void **state, const char *name, char folder[600])
{
    kiln_error err = {0};
    uint64_t sum, again;
    assert_int_equal(mkdir(in_scratch(state, name, folder), 0777), 0);
    for (uint32_t i = 0; i < N; i++) {
        rows[i] = (i * 617u) % N;
        for (uint32_t k = 0; k < 3; k++) means[i][k] = (float)((i * 31u + k * 7u) % 97u) - 40.5f;
    }
    put(folder, "rows", rows, sizeof rows);
    put(folder, "codes", codes, sizeof codes);
    put(folder, "means", means, sizeof means);
    OK(kiln_knn_pages_make(folder, N, PAGE, &sum, &err));
    OK(kiln_knn_pages_make(folder, N, PAGE, &again, &err)); /* which reads them */
    assert_true(sum == again);
    return sum;
}

/* Reads all of it in steps of whole pages. */
static kiln_status read_all(const char *folder, uint64_t sum, bool *damaged, kiln_error *err)
{
    enum { STEP = 3 * PAGE };
    kiln_knn_pages p;
    float xyz[STEP][3];
    uint32_t some[STEP];
    kiln_status st = kiln_knn_pages_open(folder, N, PAGE, sum, &p, err);
    for (uint64_t first = 0; st == KILN_OK && first < N; first += STEP) {
        const uint64_t n = N - first < STEP ? N - first : STEP;
        st = kiln_knn_pages_means(&p, first, n, xyz[0], err);
        if (st == KILN_OK) assert_memory_equal(xyz, means[first], n * sizeof *xyz);
        if (st == KILN_OK) st = kiln_knn_pages_rows(&p, first, n, some, err);
        if (st == KILN_OK) assert_memory_equal(some, rows + first, n * sizeof *some);
    }
    *damaged = p.damaged;
    kiln_knn_pages_close(&p);
    return st;
}

static void flip(const char *folder, const char *name, off_t at)
{
    char path[700];
    unsigned char byte;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 16;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    assert_int_equal(close(fd), 0);
}

static void every_byte_counts(void **state)
{
    static const struct {
        const char *name;
        off_t bytes;
    } files[] = {{"means", sizeof means},
                 {"rows", sizeof rows},
                 {"pages-64", (N + PAGE - 1) / PAGE * KILN_KNN_PAGE_BYTES}};
    char folder[600];
    kiln_error err = {0};
    bool damaged;
    const uint64_t sum = make(state, "bytes", folder);
    OK(read_all(folder, sum, &damaged, &err));
    assert_false(damaged);
    for (size_t f = 0; f < sizeof files / sizeof *files; f++)
        for (off_t at = 0; at < files[f].bytes; at += 1 + files[f].bytes / 71) {
            flip(folder, files[f].name, at);
            assert_int_equal(read_all(folder, sum, &damaged, &err), KILN_E_IO);
            assert_true(damaged);
            assert_says(&err, files[f].name);
            flip(folder, files[f].name, at);
        }
    OK(read_all(folder, sum, &damaged, &err));
    assert_int_equal(read_all(folder, sum + 1, &damaged, &err), KILN_E_IO); /* another plan's */
}

static void what_is_gone_is_said(void **state)
{
    char folder[600], path[700];
    kiln_error err = {0};
    bool damaged;
    const uint64_t sum = make(state, "gone", folder);
    snprintf(path, sizeof path, "%s/pages-64", folder);
    assert_int_equal(truncate(path, 40), 0);
    assert_int_equal(read_all(folder, sum, &damaged, &err), KILN_E_IO);
    kiln_knn_pages_remove(folder, PAGE);
    assert_false(kiln_spatial_is_complete(folder, N, true));
    assert_int_equal(read_all(folder, sum, &damaged, &err), KILN_E_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_byte_counts, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(what_is_gone_is_said, make_scratch, remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
