/* sort_test -- the radix sort is the stable sort, whatever the keys, the size and the threads; the
 * drawing order made with it is by (bits of depth, source row). */
#include "kernels/ops.h"
#include "kernels/sort/sort.h"
#include "stages/generate/inputs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    uint64_t key;
    uint32_t value;
} pair;

static int by_key_then_value(const void *a, const void *b)
{
    const pair *p = a, *q = b;
    if (p->key != q->key) return p->key < q->key ? -1 : 1;
    return p->value < q->value ? -1 : p->value > q->value;
}

/* Values count up, so that a stable sort is the sort by (key, value). */
static void check(uint64_t n, uint64_t mask, unsigned threads)
{
    uint64_t *keys = calloc(n + 1, sizeof *keys);
    uint32_t *values = calloc(n + 1, sizeof *values);
    pair *want = calloc(n + 1, sizeof *want);
    void *work = malloc(kiln_sort_bytes(n, threads) + 1);
    assert_true(keys && values && want && work);
    for (uint64_t i = 0; i < n; i++) {
        keys[i] = want[i].key = kg_at(kg_stream(n, 31), i) & mask;
        values[i] = want[i].value = (uint32_t)i;
    }
    qsort(want, n, sizeof *want, by_key_then_value);
    kiln_sort_pairs(n, keys, values, threads, work);
    for (uint64_t i = 0; i < n; i++) {
        assert_true(keys[i] == want[i].key);
        assert_int_equal(values[i], want[i].value);
    }
    free(work);
    free(want);
    free(values);
    free(keys);
}

static void equals_a_stable_comparison_sort(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0,   1,   2,     63,    64,    65,    255,
                                     256, 257, 16383, 16384, 50021, 100000};
    static const uint64_t masks[] = {
        UINT64_MAX, 0, 0xff, 0xff00000000000000ull, 0x0f00f0000f00f00full, 1};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t m = 0; m < sizeof masks / sizeof *masks; m++)
            for (unsigned threads = 1; threads < 9; threads += 7)
                check(sizes[s], masks[m], threads);
}

/* By the bits from `from` on; those below count up. */
static void check_words(uint64_t n, uint64_t mask, unsigned from, unsigned threads)
{
    uint64_t *words = calloc(n + 1, sizeof *words), *spare = calloc(n + 1, sizeof *spare);
    pair *want = calloc(n + 1, sizeof *want);
    void *work = malloc(kiln_sort_words_bytes(n, threads) + 1);
    assert_true(words && spare && want && work);
    for (uint64_t i = 0; i < n; i++) {
        want[i].key = (kg_at(kg_stream(n, 37), i) & mask) >> from << from;
        want[i].value = (uint32_t)i;
        words[i] = want[i].key | i;
    }
    qsort(want, n, sizeof *want, by_key_then_value);
    const uint64_t *const sorted = kiln_sort_words(n, words, spare, from, threads, work);
    for (uint64_t i = 0; i < n; i++) assert_true(sorted[i] == (want[i].key | want[i].value));
    free(work);
    free(want);
    free(spare);
    free(words);
}

static void words_are_sorted_by_their_upper_bits(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {0, 1, 2, 3, 33, 2047, 2048, 50021};
    static const uint64_t masks[] = {
        UINT64_MAX, 0, 0xff00000000000000ull, 0x00000f0f00000000ull, 1ull << 32, 1ull << 63};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t m = 0; m < sizeof masks / sizeof *masks; m++)
            for (unsigned threads = 1; threads < 9; threads += 7) {
                check_words(sizes[s], masks[m], 32, threads);
                check_words(sizes[s], masks[m], 17, threads);
            }
}

/* Of so many depths, so that runs of equal ones are short or long. */
static void check_drawing_order(uint32_t n_depths, bool rows_ascend)
{
    enum { N = 70000 };
    static float depths[N];
    static uint32_t rows[N], order[N];
    kiln_error err;
    size_t bytes = 0;
    for (uint32_t i = 0; i < N; i++) {
        depths[i] = 0.25f + (float)(kg_at(9, i) % n_depths) * 0.37f;
        rows[i] = rows_ascend ? i : (i * 7919u) % N; /* a permutation */
    }
    const kiln_exec x = {.device = -1, .threads = 3};
    const kiln_depth_order_args a = {.n = N, .depths = depths, .source_rows = rows, .order = order};
    assert_int_equal(kiln_ops_cpu()->depth_order(&x, &a, NULL, &bytes, &err), KILN_OK);
    void *work = malloc(bytes);
    assert_non_null(work);
    assert_int_equal(kiln_ops_cpu()->depth_order(&x, &a, work, &bytes, &err), KILN_OK);
    for (uint32_t i = 1; i < N; i++) {
        const uint32_t p = order[i - 1], q = order[i];
        assert_true(depths[p] < depths[q] || (depths[p] == depths[q] && rows[p] < rows[q]));
    }
    free(work);
}

static void drawing_order_is_by_depth_then_source_row(void **state)
{
    (void)state;
    static const uint32_t n_depths[] = {1, 3, 1000, 20000, 60000};
    for (size_t i = 0; i < sizeof n_depths / sizeof *n_depths; i++) {
        check_drawing_order(n_depths[i], false);
        check_drawing_order(n_depths[i], true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_a_stable_comparison_sort),
        cmocka_unit_test(words_are_sorted_by_their_upper_bits),
        cmocka_unit_test(drawing_order_is_by_depth_then_source_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
