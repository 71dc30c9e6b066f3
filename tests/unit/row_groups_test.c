/* row_groups: an order has each row once; rows far away get groups of their own; a weight decides
 * which way a cut goes. */
#include "stages/formats/row_groups.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 5000 };
static float x[MOST], y[MOST], z[MOST];
static uint32_t order[MOST];
static const double alike[3] = {1, 1, 1};

static float random_float(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / 16777216.0f;
}

static void make_rows(uint64_t n, float wide, float high, float deep)
{
    uint32_t state = 5;
    for (uint64_t i = 0; i < n; i++) {
        x[i] = wide * (random_float(&state) - 0.5f);
        y[i] = high * (random_float(&state) - 0.5f);
        z[i] = deep * (random_float(&state) - 0.5f);
    }
}

static void group(uint64_t n, const double weights[3])
{
    static uint8_t seen[MOST];
    const float *const means[3] = {x, y, z};
    kiln_error err = {0};
    memset(order, 0xff, sizeof order);
    memset(seen, 0, sizeof seen);
    if (kiln_row_groups(means, n, weights, order, &err) != KILN_OK) fail_msg("%s", err.msg);
    for (uint64_t i = 0; i < n; i++) {
        assert_true(order[i] < n && !seen[order[i]]);
        seen[order[i]] = 1;
    }
}

static double extent(const float *v, const uint32_t *rows, uint64_t n)
{
    float lo = v[rows[0]], hi = lo;
    for (uint64_t i = 0; i < n; i++) lo = fminf(lo, v[rows[i]]), hi = fmaxf(hi, v[rows[i]]);
    return (double)hi - (double)lo;
}

static void every_number_of_rows_is_ordered(void **state)
{
    static const uint64_t counts[] = {1, 2, 255, 256, 257, 511, 512, 513, 4097, MOST};
    (void)state;
    make_rows(MOST, 1, 1, 1);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) group(counts[i], alike);
}

/* 16 groups of a cube: cut in two four times, a group has a sixteenth of it or little more. */
static void groups_are_small(void **state)
{
    double volume = 0;
    (void)state;
    make_rows(16 * KILN_ROW_GROUP, 1, 1, 1);
    group(16 * KILN_ROW_GROUP, alike);
    for (uint64_t g = 0; g < 16; g++) {
        const uint32_t *rows = order + g * KILN_ROW_GROUP;
        volume += extent(x, rows, KILN_ROW_GROUP) * extent(y, rows, KILN_ROW_GROUP) *
                  extent(z, rows, KILN_ROW_GROUP);
    }
    assert_true(volume < 1.0);
}

/* 300 rows far away, one in ten: two groups can hold them; halving by count would put them to
 * others in more. */
static void rows_far_away_are_by_themselves(void **state)
{
    unsigned wide = 0;
    (void)state;
    make_rows(3000, 1, 1, 1);
    for (int i = 0; i < 3000; i += 10) x[i] = 1000.0f + x[i];
    group(3000, alike);
    for (uint64_t at = 0; at < 3000; at += KILN_ROW_GROUP) {
        const uint64_t n = 3000 - at < KILN_ROW_GROUP ? 3000 - at : KILN_ROW_GROUP;
        wide += extent(x, order + at, n) > 2;
    }
    assert_true(wide <= 1); /* the one in which the last of them and others meet */
}

static void weights_choose_the_axis(void **state)
{
    static const double y_twice[3] = {1, 2, 1};
    const uint64_t half = KILN_ROW_GROUP;
    (void)state;
    make_rows(2 * half, 1.0f, 0.8f, 0.1f);
    group(2 * half, alike);
    assert_true(extent(x, order, half) < 0.6 && extent(y, order, half) > 0.7);
    group(2 * half, y_twice);
    assert_true(extent(x, order, half) > 0.9 && extent(y, order, half) < 0.5);
}

static void equal_rows_stay_as_they_are(void **state)
{
    (void)state;
    for (int i = 0; i < 2000; i++) x[i] = i % 2 ? 0.0f : -0.0f, y[i] = 3, z[i] = -1;
    group(2000, alike);
    for (uint32_t i = 0; i < 2000; i++) assert_int_equal(order[i], i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_rows_is_ordered),
        cmocka_unit_test(groups_are_small),
        cmocka_unit_test(rows_far_away_are_by_themselves),
        cmocka_unit_test(weights_choose_the_axis),
        cmocka_unit_test(equal_rows_stay_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
