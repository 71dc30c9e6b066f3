/* spatial_order_test -- the curve is one, its codes nest as an octree does, and the order is a
 * stable sort by code. */
#include "kernels/ops.h"
#include "kernels/spatial_order/spatial_order_math.h"
#include "stages/generate/inputs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TOP = 1 << KILN_HILBERT_BITS };

static void table_is_its_own_inverse(void **state)
{
    (void)state;
    for (uint32_t s = 0; s < KILN_HILBERT_STATES; s++) {
        for (uint32_t digit = 0; digit < 8; digit++) {
            const uint32_t child = kiln_hilbert_child(s, digit);
            assert_true(child >> 3 < KILN_HILBERT_STATES);
            assert_int_equal(kiln_hilbert_digit(s, child & 7u), (child & ~7u) | digit);
        }
    }
}

static void cell_to_code_and_back(void **state)
{
    (void)state;
    kg_rng r = {kg_stream(1, 30), 0};
    for (int i = 0; i < 200000; i++) {
        const uint64_t v = kg_next(&r);
        uint32_t cell[3], back[3];
        const uint64_t code = v >> 1;
        kiln_hilbert_cell(code, cell);
        assert_true(cell[0] < TOP && cell[1] < TOP && cell[2] < TOP);
        assert_true(kiln_hilbert_code(cell) == code);
        for (int a = 0; a < 3; a++) cell[a] = (uint32_t)(kg_next(&r) >> 43);
        kiln_hilbert_cell(kiln_hilbert_code(cell), back);
        assert_memory_equal(cell, back, sizeof cell);
    }
}

static void neighbours_on_the_curve_share_a_face(void **state)
{
    (void)state;
    static const uint64_t starts[] = {0, 0x0123456789abcdefull, (1ull << 62) - 50000,
                                      0x7fffffffffffffffull - 100000};
    for (int s = 0; s < 4; s++) {
        uint32_t at[3], next[3];
        kiln_hilbert_cell(starts[s], at);
        for (uint64_t i = 1; i < 100000; i++) {
            uint32_t steps = 0;
            kiln_hilbert_cell(starts[s] + i, next);
            for (int a = 0; a < 3; a++)
                steps += next[a] > at[a] ? next[a] - at[a] : at[a] - next[a];
            assert_int_equal(steps, 1);
            memcpy(at, next, sizeof at);
        }
    }
}

/* All codes with the same first 3 L bits are in one octree cell of level L, which no other prefix
 * shares. */
static void prefixes_are_octree_cells(void **state)
{
    (void)state;
    kg_rng r = {kg_stream(2, 30), 0};
    for (int level = 1; level <= KILN_HILBERT_BITS; level++) {
        const int below = KILN_HILBERT_BITS - level;
        for (int i = 0; i < 2000; i++) {
            const uint64_t prefix = kg_next(&r) >> 1 >> (3 * below),
                           mask = (1ull << (3 * below)) - 1;
            uint32_t a[3], b[3], other[3];
            kiln_hilbert_cell(prefix << (3 * below) | (kg_next(&r) & mask), a);
            kiln_hilbert_cell(prefix << (3 * below) | (kg_next(&r) & mask), b);
            kiln_hilbert_cell((prefix ^ 1) << (3 * below) | (kg_next(&r) & mask), other);
            int same = 1;
            for (int c = 0; c < 3; c++) {
                assert_int_equal(a[c] >> below, b[c] >> below);
                same &= a[c] >> below == other[c] >> below;
            }
            assert_false(same);
        }
    }
}

typedef struct {
    uint64_t n;
    float *means;
    uint32_t *order;
    uint64_t *codes;
} ordered;

static ordered order_points(const kiln_ops *ops, uint64_t n, const float *means, unsigned threads)
{
    kiln_error err;
    size_t bytes = 0;
    ordered o = {
        .n = n, .order = calloc(n + 1, sizeof *o.order), .codes = calloc(n + 1, sizeof *o.codes)};
    assert_true(o.order && o.codes);
    const kiln_exec x = {.device = -1, .threads = threads};
    const kiln_spatial_order_args a = {.n = n,
                                       .means = means,
                                       .centre = {0.5, 0.5, 0.5},
                                       .half = 0.5,
                                       .order = o.order,
                                       .codes = o.codes};
    assert_int_equal(ops->spatial_order(&x, &a, NULL, &bytes, &err), KILN_OK);
    void *work = malloc(bytes + 1);
    assert_non_null(work);
    assert_int_equal(ops->spatial_order(&x, &a, work, &bytes, &err), KILN_OK);
    free(work);
    return o;
}

static void ordered_free(ordered *o)
{
    free(o->order);
    free(o->codes);
}

/* Points on a grid of 16^3, so that many share a cell; some outside the cube. */
static float *grid_points(uint64_t n)
{
    float *means = calloc(3 * n + 1, sizeof *means);
    assert_non_null(means);
    for (uint64_t i = 0; i < n; i++) {
        float p[3];
        kg_uniform_point(4, i, p);
        for (uint64_t a = 0; a < 3; a++) means[a * n + i] = (float)(int)(p[a] * 16) / 16;
    }
    if (n > 10) {
        means[3] = -5.0f;
        means[n + 4] = 1e30f;
        means[2 * n + 5] = 1.0f;
    }
    return means;
}

static void order_is_by_code_then_row(void **state)
{
    (void)state;
    /* 64: where the radix sort starts */
    static const uint64_t sizes[] = {0, 1, 2, 63, 64, 65, 66, 1000, 65536, 100003};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const uint64_t n = sizes[s];
        float *means = grid_points(n);
        ordered o = order_points(kiln_ops_cpu_baseline(), n, means, 1);
        for (uint64_t i = 0; i < n; i++) {
            uint32_t cell[3];
            for (uint64_t a = 0; a < 3; a++)
                cell[a] = kiln_hilbert_coordinate(means[a * n + o.order[i]], 0.0, TOP);
            assert_true(kiln_hilbert_code(cell) == o.codes[i]);
            if (i > 0)
                assert_true(o.codes[i - 1] < o.codes[i] ||
                            (o.codes[i - 1] == o.codes[i] && o.order[i - 1] < o.order[i]));
        }
        for (unsigned threads = 2; threads < 9; threads += 3) {
            ordered p = order_points(kiln_ops_cpu(), n, means, threads);
            assert_memory_equal(o.order, p.order, n * sizeof *o.order);
            assert_memory_equal(o.codes, p.codes, n * sizeof *o.codes);
            ordered_free(&p);
        }
        ordered_free(&o);
        free(means);
    }
}

static void outside_the_cube_takes_the_border_cell(void **state)
{
    (void)state;
    assert_int_equal(kiln_hilbert_coordinate(-1e30f, 0.0, TOP), 0);
    assert_int_equal(kiln_hilbert_coordinate(-0.0f, 0.0, TOP), 0);
    assert_int_equal(kiln_hilbert_coordinate(1e30f, 0.0, TOP), TOP - 1);
    assert_int_equal(kiln_hilbert_coordinate(1.0f, 0.0, TOP), TOP - 1);
    assert_int_equal(kiln_hilbert_coordinate(0.5f, 0.0, TOP), TOP / 2);
    assert_int_equal(kiln_hilbert_coordinate(0x1.fffffep-2f, 0.0, TOP), TOP / 2 - 1);
}

static void too_many_rows_are_refused(void **state)
{
    (void)state;
    kiln_error err;
    size_t bytes = 0;
    const kiln_exec x = {.device = -1, .threads = 1};
    kiln_spatial_order_args a = {.n = UINT32_MAX, .half = 1};
    assert_int_equal(kiln_ops_cpu()->spatial_order(&x, &a, NULL, &bytes, &err), KILN_E_INPUT);
    a.n = 100;
    bytes = 1;
    assert_int_equal(kiln_ops_cpu()->spatial_order(&x, &a, &a, &bytes, &err), KILN_E_CAP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_its_own_inverse),
        cmocka_unit_test(cell_to_code_and_back),
        cmocka_unit_test(neighbours_on_the_curve_share_a_face),
        cmocka_unit_test(prefixes_are_octree_cells),
        cmocka_unit_test(order_is_by_code_then_row),
        cmocka_unit_test(outside_the_cube_takes_the_border_cell),
        cmocka_unit_test(too_many_rows_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
