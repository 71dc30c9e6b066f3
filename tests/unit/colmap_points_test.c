/* colmap_points -- points3D.bin and points3D.txt: the same points from both, damage told, blocks
 * found. */
#include "import_source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef struct {
    kiln_buffer b;
} file;

static void put(file *f, const void *p, size_t n)
{
    assert_int_equal(kiln_buffer_put(&f->b, p, n, NULL), KILN_OK);
}

static void put_point(file *f, uint64_t id, double x, uint64_t track)
{
    const double yz[2] = {2, 3}, error = 0.5;
    const uint8_t rgb[3] = {255, 51, 0};
    put(f, &id, 8);
    put(f, &x, 8);
    put(f, yz, 16);
    put(f, rgb, 3);
    put(f, &error, 8);
    put(f, &track, 8);
    put(f, NULL, track * 8);
}

static kiln_status read_it(file *f, import_source *s, kiln_error *err)
{
    const char *path = import_source_file("points3D.bin", f->b.data, f->b.size);
    kiln_status st = import_source_read(path, s, err);
    unlink(path);
    kiln_buffer_release(&f->b);
    return st;
}

static void binary_and_text_hold_the_same_points(void **state)
{
    import_source a, b;
    (void)state;
    assert_int_equal(import_source_read("tests/data/colmap/golden.bin", &a, NULL), KILN_OK);
    assert_int_equal(import_source_read("tests/data/colmap/golden.txt", &b, NULL), KILN_OK);
    assert_int_equal(a.n, 40);
    assert_int_equal(b.n, 40);
    assert_memory_equal(a.rows, b.rows, a.n * a.floats * sizeof(float));
    assert_memory_equal(a.extras, b.extras, a.n * a.scan.info.n_extras * sizeof(double));
    assert_true(a.scan.info.wide && a.scan.keep[0]); /* its doubles are no float32 values */
    import_source_free(&a);
    import_source_free(&b);
}

static void damage_is_told_apart(void **state)
{
    static const struct {
        const char *file, *because;
    } cases[] = {{"point_twice", "occurs twice"},
                 {"track_huge", "track length"},
                 {"cut", "shorter than its track length"}};
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        char path[128];
        import_source s;
        kiln_error err = {0};
        snprintf(path, sizeof path, "tests/data/colmap/%s/points3D.bin", cases[k].file);
        assert_int_equal(import_source_read(path, &s, &err), KILN_E_INPUT);
        if (!strstr(err.msg, cases[k].because)) fail_msg("%s", err.msg);
        import_source_free(&s);
    }
}

/* Records of odd lengths, some longer than what is left of the reader's window or than the window,
 * over two block borders. */
static void blocks_begin_where_the_scan_found_them(void **state)
{
    enum { N = 2 * KILN_BLOCK_ROWS + 5 };
    file f = {{0}};
    import_source s;
    kiln_error err = {0};
    uint64_t n = N;
    (void)state;
    put(&f, &n, 8);
    for (uint64_t i = 0; i < N; i++)
        put_point(&f, i * 3, (double)i,
                  i % 7 == 0      ? 5
                  : i % 1000 == 1 ? 10000
                  : i == 1003     ? 200000
                                  : 0);
    if (read_it(&f, &s, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_int_equal(s.n, N);
    for (uint64_t i = 0; i < N; i++) {
        assert_true(s.rows[i * 6] == (float)s.source_row[i]);
        assert_true(s.extras[i * 5 + 3] == (double)s.source_row[i] * 3);
    }
    assert_true(s.rows[3] == 1 && s.rows[4] == 51 / 255.0f && s.rows[5] == 0);
    import_source_free(&s);
}

static void points_that_are_not_finite_are_dropped_and_a_tail_is_noted(void **state)
{
    file f = {{0}};
    import_source s;
    kiln_error err = {0};
    uint64_t n = 3;
    (void)state;
    put(&f, &n, 8);
    put_point(&f, 1, 1, 2);
    put_point(&f, 2, 0.0 / 0.0, 2);
    put_point(&f, 3, 3, 2);
    put(&f, "tail", 4);
    if (read_it(&f, &s, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.counts.dropped[KILN_DROP_POSITION], 1);
    assert_non_null(strstr(s.scan.info.notes, "ignored"));
    import_source_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(binary_and_text_hold_the_same_points),
        cmocka_unit_test(damage_is_told_apart),
        cmocka_unit_test(blocks_begin_where_the_scan_found_them),
        cmocka_unit_test(points_that_are_not_finite_are_dropped_and_a_tail_is_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
