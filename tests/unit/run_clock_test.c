/* run_clock: the union of runs, without the pauses between them. */
#include "stages/survey/run_clock.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static kiln_run_clock clock_of(const int64_t (*runs)[2], uint32_t n)
{
    kiln_run_clock c;
    kiln_error err = {0};
    assert_int_equal(kiln_run_clock_begin(&c, n, &err), KILN_OK);
    for (uint32_t i = 0; i < n; i++) kiln_run_clock_add(&c, runs[i][0], runs[i][1]);
    kiln_run_clock_end(&c);
    return c;
}

#define S INT64_C(1000000000)

static void runs_that_overlap_are_counted_once(void **state)
{
    const int64_t runs[][2] = {
        {10 * S, 13 * S}, {1 * S, 3 * S}, {2 * S, 5 * S}, {11 * S, 12 * S}, {5 * S, 6 * S}};
    kiln_run_clock c = clock_of(runs, 5);
    (void)state;
    assert_int_equal(c.n, 2);
    assert_true(fabs(kiln_run_clock_seconds(&c) - 8) <= 1e-9);
    assert_true(fabs(kiln_run_clock_at(&c, 0) - 0) <= 1e-9);
    assert_true(fabs(kiln_run_clock_at(&c, 4 * S) - 3) <= 1e-9);
    assert_true(fabs(kiln_run_clock_at(&c, 8 * S) - 5) <= 1e-9); /* within the pause */
    assert_true(fabs(kiln_run_clock_at(&c, 10 * S) - 5) <= 1e-9);
    assert_true(fabs(kiln_run_clock_at(&c, 12 * S) - 7) <= 1e-9);
    assert_true(fabs(kiln_run_clock_at(&c, 99 * S) - 8) <= 1e-9);
    kiln_run_clock_release(&c);
}

static void times_of_a_stranger_may_be_any(void **state)
{
    const int64_t runs[][2] = {{INT64_MAX, 0}, {0, INT64_MAX}, {5, 5}};
    kiln_run_clock c = clock_of(runs, 3), none = clock_of(runs, 0), backwards = clock_of(runs, 1);
    (void)state;
    assert_int_equal(c.n, 1);
    assert_true(fabs(kiln_run_clock_seconds(&c) - 9223372036.854775807) <= 1);
    assert_true(fabs(kiln_run_clock_seconds(&none) - 0) <= 0);
    assert_true(fabs(kiln_run_clock_seconds(&backwards) - 0) <= 0);
    assert_true(fabs(kiln_run_clock_at(&backwards, S) - 0) <= 0);
    kiln_run_clock_release(&c);
    kiln_run_clock_release(&none);
    kiln_run_clock_release(&backwards);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_that_overlap_are_counted_once),
        cmocka_unit_test(times_of_a_stranger_may_be_any),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
