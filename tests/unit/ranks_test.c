/* ranks_test -- two counting passes give exactly the element that sorting gives. */
#include "kernels/ops.h"
#include "stages/generate/inputs.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int by_value(const void *a, const void *b)
{
    const float p = *(const float *)a, q = *(const float *)b;
    return (p > q) - (p < q);
}

static void count(const float *values, uint64_t n, uint32_t pass, uint32_t high, uint64_t *counts)
{
    kiln_error err;
    size_t bytes = 0;
    const kiln_exec x = {.device = -1, .threads = 2};
    memset(counts, 0, KILN_RANK_BINS * sizeof *counts);
    for (uint64_t at = 0; at < n; at += 1000) { /* in pieces, as blocks come */
        const kiln_ranks_args a = {.n = n - at < 1000 ? n - at : 1000,
                                   .values = values + at,
                                   .pass = pass,
                                   .high = high,
                                   .counts = counts};
        assert_int_equal(kiln_ops_cpu()->ranks(&x, &a, counts, &bytes, &err), KILN_OK);
    }
}

static float value_at(const float *values, uint64_t n, uint64_t rank)
{
    uint64_t *counts = calloc(KILN_RANK_BINS, sizeof *counts);
    assert_non_null(counts);
    count(values, n, 0, 0, counts);
    const uint32_t high = kiln_rank_pick(counts, &rank);
    count(values, n, 1, high, counts);
    const uint32_t low = kiln_rank_pick(counts, &rank);
    free(counts);
    return kiln_rank_value(high << 16 | low);
}

static void ranks_are_those_of_sorting(void **state)
{
    (void)state;
    enum { N = 12345 };
    static float values[N], sorted[N];
    for (uint64_t i = 0; i < N; i++) {
        const double u = (double)(int64_t)kg_at(3, i) / 9223372036854775808.0;
        values[i] = i % 5 == 0 ? 0.5f : i % 7 == 0 ? (float)(u * 1e30) : (float)(u * 1e-3);
    }
    values[17] = -FLT_MAX;
    values[18] = FLT_MAX;
    values[19] = -FLT_TRUE_MIN;
    memcpy(sorted, values, sizeof sorted);
    qsort(sorted, N, sizeof *sorted, by_value);
    static const uint64_t ranks[] = {0, 1, 2, 123, N / 2, N - 124, N - 2, N - 1};
    for (size_t r = 0; r < sizeof ranks / sizeof *ranks; r++)
        assert_true(value_at(values, N, ranks[r]) == sorted[ranks[r]]);
}

static void keys_order_as_values_do(void **state)
{
    (void)state;
    static const float up[] = {-FLT_MAX, -1.0f,        -FLT_MIN, -FLT_TRUE_MIN, -0.0f,
                               0.0f,     FLT_TRUE_MIN, FLT_MIN,  1.0f,          FLT_MAX};
    for (size_t i = 0; i < sizeof up / sizeof *up; i++) {
        const float back = kiln_rank_value(kiln_rank_key(up[i]));
        assert_memory_equal(&back, &up[i], sizeof back);
        if (i > 0) assert_true(kiln_rank_key(up[i - 1]) < kiln_rank_key(up[i]));
    }
}

static void the_nearest_rank_is_that_of_sorted_elements(void **state)
{
    (void)state;
    static const struct {
        uint64_t n, thousandths, rank;
    } cases[] = {
        {1, 1, 0},        {1, 999, 0}, {1000, 1, 0}, {1001, 1, 1}, {1000, 999, 998},
        {1001, 999, 999}, {7, 500, 3}, {8, 500, 3},  {0, 500, 0},  {UINT32_MAX, 1, 4294967}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(kiln_rank_nearest(cases[i].n, cases[i].thousandths), cases[i].rank);
}

static void a_rank_beyond_the_end_is_the_last_bin(void **state)
{
    (void)state;
    uint64_t *counts = calloc(KILN_RANK_BINS, sizeof *counts), rank = 5;
    assert_non_null(counts);
    counts[7] = 2;
    assert_int_equal(kiln_rank_pick(counts, &rank), KILN_RANK_BINS - 1);
    rank = 1;
    assert_int_equal(kiln_rank_pick(counts, &rank), 7);
    assert_int_equal(rank, 1);
    free(counts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_those_of_sorting),
        cmocka_unit_test(keys_order_as_values_do),
        cmocka_unit_test(the_nearest_rank_is_that_of_sorted_elements),
        cmocka_unit_test(a_rank_beyond_the_end_is_the_last_bin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
