/* knn's selection: the k smallest in front, every record once, both builds the same. */
#include "base/isa.h"
#include "kernels/knn/knn_select.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 5000 };

typedef void select_fn(knn_record *r, uint64_t n, uint64_t k, int axis);
typedef float value_fn(uint32_t i, uint32_t n);

static float random_value(uint32_t i, uint32_t n)
{
    (void)n;
    return (float)(int32_t)(i * 2654435761u) * 0x1p-20f; /* Knuth's multiplicative hash */
}
static float rising(uint32_t i, uint32_t n) { return (float)i / (float)n; }
static float falling(uint32_t i, uint32_t n) { return -rising(i, n); }
static float equal(uint32_t i, uint32_t n)
{
    (void)i;
    (void)n;
    return 7.0f;
}
static float two_places(uint32_t i, uint32_t n) { return random_value(i, n) > 0.0f ? 1.0f : -1.0f; }
static float mostly_equal(uint32_t i, uint32_t n) { return i % 10 ? 0.0f : random_value(i, n); }
static float outlier(uint32_t i, uint32_t n) { return i == n / 3 ? 1e30f : random_value(i, n); }
static float some_nan(uint32_t i, uint32_t n) { return i % 3 ? random_value(i, n) : NAN; }

static void fill(knn_record *r, uint32_t n, int axis, value_fn *value)
{
    for (uint32_t i = 0; i < n; i++) {
        r[i] = (knn_record){{0, 0, 0, 0}};
        r[i].at[axis] = value(i, n);
        memcpy(&r[i].at[3], &i, sizeof i);
    }
}

static void check_every_record_once(const knn_record *r, uint32_t n)
{
    static uint8_t seen[N];
    memset(seen, 0, sizeof seen);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t row;
        memcpy(&row, &r[i].at[3], sizeof row);
        assert_true(row < n);
        assert_int_equal(seen[row]++, 0);
    }
}

static void check_order(const knn_record *r, uint32_t n, uint32_t k, int axis)
{
    float left = r[0].at[axis], right = r[k].at[axis];
    for (uint32_t i = 0; i < k; i++) left = fmaxf(left, r[i].at[axis]);
    for (uint32_t i = k; i < n; i++) right = fminf(right, r[i].at[axis]);
    assert_true(left <= right);
}

static void check(select_fn *select, value_fn *value, bool has_order)
{
    static knn_record r[N];
    static const uint32_t sizes[] = {2, 8, 9, 16, 31, 63, 64, 65, 100, 1000, 1025, N};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        const uint32_t n = sizes[s], ranks[] = {1, n / 2, n - 1, n > 8 ? 8 : 1};
        for (size_t j = 0; j < sizeof ranks / sizeof *ranks; j++) {
            const int axis = (int)(j % 3);
            fill(r, n, axis, value);
            select(r, n, ranks[j], axis);
            check_every_record_once(r, n);
            if (has_order) check_order(r, n, ranks[j], axis);
        }
    }
}

static void check_all(select_fn *select)
{
    value_fn *const clouds[] = {random_value, rising,       falling, equal,
                                two_places,   mostly_equal, outlier};
    for (size_t i = 0; i < sizeof clouds / sizeof *clouds; i++) check(select, clouds[i], true);
    check(select, some_nan, false);
}

static void the_smallest_come_first(void **state)
{
    (void)state;
    check_all(kiln_knn_select_cpu);
}

#ifdef __x86_64__
select_fn kiln_knn_select_cpu_avx2;

static void the_smallest_come_first_with_avx2(void **state)
{
    (void)state;
    if (!kiln_isa_avx2()) skip();
    check_all(kiln_knn_select_cpu_avx2);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_come_first),
#ifdef __x86_64__
        cmocka_unit_test(the_smallest_come_first_with_avx2),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
