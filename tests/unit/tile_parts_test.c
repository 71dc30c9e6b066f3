/* tile_parts_test -- which rows of a tile are its own, which go into parts, and that what is in one
 * file fits its codes. */
#include "stages/formats/tiles/tile_parts.h"
#include "stages/generate/inputs.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { CORE = 500, MOST = 900 };

static float means[3 * MOST];
static uint8_t part[MOST];
static uint32_t work[2 * MOST];

/* CORE rows within one unit of `middle`, and others in all directions around it. */
static void scatter(uint64_t n, double middle, double far)
{
    kg_rng r = {kg_stream(5, 1), 0};
    for (uint64_t i = 0; i < n; i++) {
        double d[3], length = 0;
        for (int c = 0; c < 3; c++) d[c] = kg_n(&r);
        for (int c = 0; c < 3; c++) length += d[c] * d[c];
        for (uint64_t c = 0; c < 3; c++)
            means[c * n + i] = (float)(middle + d[c] / sqrt(length) * (i < CORE ? 1 : far));
    }
}

/* Rows of a file lie within 24 bits of whole units, and are no longer than `longest` along a
 * side. */
static uint64_t check_file(uint64_t n, uint32_t which, double longest)
{
    uint64_t rows = 0;
    for (uint64_t c = 0; c < 3; c++) {
        double lo = INFINITY, hi = -INFINITY;
        for (uint64_t i = 0; i < n; i++) {
            if (part[i] != which) continue;
            lo = fmin(lo, (double)means[c * n + i]);
            hi = fmax(hi, (double)means[c * n + i]);
            rows += c == 0;
        }
        assert_true(!(hi - lo > longest) && !(hi - lo > 2 * 8388607.0));
    }
    return rows;
}

static void what_is_near_stays(void **state)
{
    (void)state;
    const kiln_tile_core core = {.centre = {100, 100, 100}, .half = 2}, unknown = {.half = 0};
    scatter(600, 100, 3000);
    const float lo[3] = {-2900, -2900, -2900}, hi[3] = {3100, 3100, 3100},
                far[3] = {1e5f, 3100, 3100};
    assert_false(kiln_tile_may_have_parts(&core, lo, hi) ||
                 kiln_tile_may_have_parts(&unknown, lo, hi));
    assert_true(kiln_tile_may_have_parts(&core, lo, far));
    assert_false(kiln_tile_may_have_parts(&unknown, lo, far));
    assert_int_equal(kiln_tile_parts(&core, 0, means, 600, part, work), 0);
    assert_int_equal(check_file(600, 0, 6001), 600);
    assert_int_equal(kiln_tile_parts(&unknown, 0, means, 600, part, work), 0);
    assert_int_equal(check_file(600, 0, 6001), 600);
}

static void what_is_far_has_parts_of_its_own(void **state)
{
    (void)state;
    const kiln_tile_core core = {.centre = {100, 100, 100}, .half = 2};
    const double fars[] = {1e4, 5e8, 1e20};
    for (size_t k = 0; k < 3; k++) {
        scatter(505, 100, fars[k]);
        const uint32_t n = kiln_tile_parts(&core, 0, means, 505, part, work);
        uint64_t rows = check_file(505, 0, 3);
        assert_int_equal(rows, CORE);
        for (uint32_t p = 1; p <= n; p++)
            rows += check_file(505, p, 2.0 * KILN_TILE_REACH * core.half);
        assert_int_equal(rows, 505);
        assert_in_range(n, 2, 5);
        /* a coarser level leaves them to these parts */
        assert_int_equal(kiln_tile_parts(&core, 1, means, 505, part, work), 0);
        assert_int_equal(check_file(505, 0, 3), CORE);
        assert_int_equal(part[504], KILN_TILE_LEFT_OUT);
    }
}

static void parts_are_not_without_end(void **state)
{
    (void)state;
    const kiln_tile_core core = {.centre = {0, 0, 0}, .half = 1};
    uint64_t rows = 0, left_out = 0;
    scatter(MOST, 0, 1e12);
    const uint32_t n = kiln_tile_parts(&core, 0, means, MOST, part, work);
    assert_in_range(n, 100, KILN_TILE_PARTS); /* of as many pieces, those that the codes hold */
    for (uint32_t p = 0; p <= n; p++) rows += check_file(MOST, p, INFINITY);
    for (uint64_t i = 0; i < MOST; i++) left_out += part[i] == KILN_TILE_LEFT_OUT;
    assert_int_equal(rows + left_out, MOST);
    assert_true(rows >= CORE + n && left_out > 0);
}

/* One row in a hundred is a floater: the root cube is theirs. */
static void without_a_core_the_piece_with_most_rows_is_the_tile(void **state)
{
    (void)state;
    const kiln_tile_core all = {.centre = {3e8, 0, 0}, .half = 0x1p29};
    for (uint32_t level = 0; level < 2; level++) {
        scatter(510, 100, 5e8);
        const uint32_t n = kiln_tile_parts(&all, level, means, 510, part, work);
        uint64_t rows = check_file(510, 0, 3);
        assert_int_equal(rows, CORE);
        for (uint32_t p = 1; p <= n; p++) rows += check_file(510, p, INFINITY);
        assert_int_equal(rows, level ? CORE : 510);
        assert_int_equal(n > 0, level == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_near_stays),
        cmocka_unit_test(what_is_far_has_parts_of_its_own),
        cmocka_unit_test(parts_are_not_without_end),
        cmocka_unit_test(without_a_core_the_piece_with_most_rows_is_the_tile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
