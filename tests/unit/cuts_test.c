/* cuts_test -- slabs of keys (kernels/draw/cuts.h): every key is in one slab, slabs follow each
 * other and hold what they say, no more than there is room for, and there are not many more of them
 * than there must be. */
#include "kernels/draw/cuts.h"
#include "stages/generate/inputs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 20000 };

static uint64_t key_of(float depth, uint32_t row)
{
    uint32_t bits;
    memcpy(&bits, &depth, sizeof bits);
    return (uint64_t)bits << 32 | row;
}

typedef struct {
    unsigned looks;
    uint64_t slabs;
} outcome;

static outcome cut(const uint64_t *keys, uint64_t n, uint64_t capacity)
{
    kiln_cuts c;
    kiln_error err = {0};
    outcome o = {0};
    kiln_slab slab;
    uint64_t at = 0, seen = 0, end = 0;
    assert_int_equal(kiln_cuts_begin(&c, capacity, &err), KILN_OK);
    for (bool more = true; more; o.looks++) {
        for (uint64_t i = 0; i < n; i++)
            if (o.looks == 0 || kiln_cuts_asks_for(&c, keys[i], keys[i]))
                kiln_cuts_add(&c, keys[i]);
        assert_int_equal(kiln_cuts_settle(&c, &more, &err), KILN_OK);
    }
    for (; kiln_cuts_next(&c, &at, &slab); o.slabs++) {
        uint64_t count = 0;
        assert_true(slab.from >= end && slab.from < slab.to);
        for (uint64_t i = 0; i < n; i++) count += keys[i] >= slab.from && keys[i] < slab.to;
        assert_int_equal(count, slab.count);
        assert_in_range(count, 1, capacity);
        end = slab.to;
        seen += count;
    }
    assert_int_equal(seen, n);
    kiln_cuts_release(&c);
    return o;
}

static void keys_of_many_depths_are_cut_at_the_first_look(void **state)
{
    static uint64_t keys[N];
    kg_rng r = {kg_stream(1, 1), 0};
    (void)state;
    for (uint32_t i = 0; i < N; i++) keys[i] = key_of((float)(0.2 + 50 * kg_u(&r)), i);
    const outcome whole = cut(keys, N, N), tenth = cut(keys, N, N / 10);
    assert_int_equal(whole.slabs, 1);
    assert_int_equal(whole.looks, 1);
    assert_in_range(tenth.slabs, 10, 11);
    assert_int_equal(tenth.looks, 1);
}

/* A flat wall, and one depth for all. */
static void keys_that_lie_together_are_looked_at_again(void **state)
{
    static uint64_t keys[N];
    kg_rng r = {kg_stream(2, 1), 0};
    (void)state;
    for (uint32_t i = 0; i < N; i++)
        keys[i] = key_of(i % 2 ? 4.0f + 1e-6f * (float)(i % 5) : (float)(1 + 20 * kg_u(&r)), i);
    const outcome wall = cut(keys, N, N / 7);
    assert_in_range(wall.slabs, 7, 14);
    assert_true(wall.looks > 1);
    for (uint32_t i = 0; i < N; i++) keys[i] = key_of(4.0f, i);
    const outcome flat = cut(keys, N, N / 7);
    assert_in_range(flat.slabs, 7, 14);
    assert_int_equal(cut(keys, 600, 1).slabs, 600);
}

/* More ranges are too full than are divided at one look. */
static void many_small_slabs_take_some_looks(void **state)
{
    static uint64_t keys[N];
    kg_rng r = {kg_stream(3, 1), 0};
    (void)state;
    for (uint32_t i = 0; i < N; i++) keys[i] = key_of((float)(0.2 + 50 * kg_u(&r)), i);
    const outcome o = cut(keys, N, 3);
    assert_in_range(o.slabs, N / 3, N);
    assert_in_range(o.looks, 2, 20);
}

static void no_key_no_slab(void **state)
{
    (void)state;
    assert_int_equal(cut(NULL, 0, 5).slabs, 0);
}

/* They cannot be told apart, so they stay together. */
static void equal_keys_stay_together(void **state)
{
    kiln_cuts c;
    kiln_error err = {0};
    kiln_slab slab;
    uint64_t at = 0;
    (void)state;
    assert_int_equal(kiln_cuts_begin(&c, 2, &err), KILN_OK);
    for (bool more = true; more;) {
        for (unsigned i = 0; i < 9; i++) kiln_cuts_add(&c, key_of(i < 7 ? 1.5f : 2.5f, 3));
        assert_int_equal(kiln_cuts_settle(&c, &more, &err), KILN_OK);
    }
    assert_true(kiln_cuts_next(&c, &at, &slab));
    assert_int_equal(slab.count, 7);
    assert_true(kiln_cuts_next(&c, &at, &slab));
    assert_int_equal(slab.count, 2);
    assert_false(kiln_cuts_next(&c, &at, &slab));
    kiln_cuts_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_many_depths_are_cut_at_the_first_look),
        cmocka_unit_test(keys_that_lie_together_are_looked_at_again),
        cmocka_unit_test(many_small_slabs_take_some_looks),
        cmocka_unit_test(no_key_no_slab),
        cmocka_unit_test(equal_keys_stay_together),
    };
    return cmocka_run_group_tests_name("cuts", tests, NULL, NULL);
}
