/* The order in which units go out, and the rules of retry: data alone, no process. */
#include "stages/engine/parent/schedule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static kiln_slots slots;

static kiln_schedule *make(const kiln_schedule_item *items, uint64_t n, unsigned n_slots,
                           bool one_device)
{
    kiln_schedule *s;
    slots = (kiln_slots){.n = n_slots, .one_device = one_device};
    assert_int_equal(kiln_schedule_new(items, n, &slots, &s, NULL), KILN_OK);
    assert_int_equal(kiln_schedule_waiting(s), n);
    return s;
}

/* The next item for this slot when it idles; -1: none. */
static int next(kiln_schedule *s, unsigned slot)
{
    uint64_t item;
    return kiln_schedule_next(s, slot, true, &item) ? (int)item : -1;
}

static int prefetch(kiln_schedule *s, unsigned slot)
{
    uint64_t item;
    return kiln_schedule_next(s, slot, false, &item) ? (int)item : -1;
}

/* ---- order ----------------------------------------------------------------------------------- */
static void bigger_cost_goes_first_and_equal_ones_in_order(void **state)
{
    (void)state;
    static const kiln_schedule_item items[] = {{1, 0}, {5, 0}, {3, 0}, {5, 0}, {0, 0}};
    static const int order[] = {1, 3, 2, 0, 4, -1};
    kiln_schedule *s = make(items, 5, 1, true);
    for (int i = 0; i < 6; i++) assert_int_equal(next(s, 0), order[i]);
    assert_int_equal(kiln_schedule_waiting(s), 0);
    kiln_schedule_free(s);
}

static void no_items_are_a_schedule_too(void **state)
{
    (void)state;
    kiln_schedule *s = make(NULL, 0, 2, true);
    assert_int_equal(next(s, 0), -1);
    kiln_schedule_free(s);
}

static void a_group_counts_whole_and_stays_with_one_slot_in_its_order(void **state)
{
    (void)state;
    /* group 7 is 1 + 2 + 3 = 6, more than the single 5; its units are not neighbours in the list */
    static const kiln_schedule_item items[] = {{1, 7}, {5, 0}, {2, 7}, {4, 9}, {3, 7}};
    kiln_schedule *s = make(items, 5, 2, true);
    assert_int_equal(next(s, 0), 0);
    assert_int_equal(next(s, 1), 1);
    assert_int_equal(next(s, 1), 3);
    assert_int_equal(next(s, 0), 2);
    assert_int_equal(next(s, 0), 4);
    assert_int_equal(next(s, 0), -1);
    kiln_schedule_free(s);
}

static void who_idles_takes_the_far_end_of_the_fullest_group(void **state)
{
    (void)state;
    static const kiln_schedule_item items[] = {{9, 1}, {9, 1}, {9, 1}, {9, 1},
                                               {8, 2}, {8, 2}, {8, 2}};
    kiln_schedule *s = make(items, 7, 3, true);
    assert_int_equal(next(s, 0), 0);
    assert_int_equal(next(s, 1), 4);
    assert_int_equal(prefetch(s, 2), -1); /* it does not idle yet: others keep what they share */
    assert_int_equal(next(s, 2), 3);
    assert_int_equal(next(s, 2), 2); /* 18 against 16 were left, now 9 are */
    assert_int_equal(next(s, 2), 6);
    assert_int_equal(next(s, 0), 1);
    assert_int_equal(next(s, 0), 5);
    assert_int_equal(next(s, 1), -1);
    kiln_schedule_free(s);
}

static void what_a_closed_slot_held_is_free(void **state)
{
    (void)state;
    static const kiln_schedule_item items[] = {{9, 1}, {9, 1}, {9, 1}, {1, 0}};
    kiln_schedule *s = make(items, 4, 2, false);
    assert_int_equal(next(s, 0), 0);
    slots.closed[0] = true;
    assert_int_equal(next(s, 0), -1);
    assert_int_equal(prefetch(s, 1), 1);
    assert_int_equal(prefetch(s, 1), 2);
    assert_int_equal(prefetch(s, 1), 3);
    kiln_schedule_free(s);
}

static void items_behind_the_limit_wait(void **state)
{
    (void)state;
    static const kiln_schedule_item items[] = {{1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}};
    kiln_schedule *s = make(items, 5, 2, true);
    kiln_schedule_limit(s, 2);
    assert_int_equal(next(s, 1), 0);
    assert_int_equal(prefetch(s, 0), 1);
    assert_int_equal(next(s, 0), -1);
    assert_int_equal(prefetch(s, 1), -1);
    assert_int_equal(kiln_schedule_waiting(s), 3);
    kiln_schedule_return(s, 0); /* what came back goes out although nothing else does */
    assert_int_equal(next(s, 0), 0);
    assert_int_equal(next(s, 0), -1);
    kiln_schedule_limit(s, 4);
    for (int i = 2; i < 4; i++) assert_int_equal(next(s, i % 2), i);
    assert_int_equal(next(s, 0), -1);
    kiln_schedule_limit(s, 9);
    assert_int_equal(next(s, 0), 4);
    assert_int_equal(kiln_schedule_waiting(s), 0);
    kiln_schedule_free(s);
}

static void what_was_not_begun_goes_back_unharmed_and_out_first(void **state)
{
    (void)state;
    static const kiln_schedule_item items[] = {{3, 0}, {2, 0}, {1, 0}};
    kiln_schedule *s = make(items, 3, 2, true);
    assert_int_equal(next(s, 0), 0);
    assert_int_equal(prefetch(s, 0), 1);
    kiln_schedule_return(s, 1);
    assert_int_equal(kiln_schedule_waiting(s), 2);
    assert_int_equal(next(s, 1), 1);
    assert_int_equal(kiln_schedule_trial(s, 1)->attempts, 0);
    kiln_schedule_free(s);
}

/* ---- retry ----------------------------------------------------------------------------------- */
static const kiln_schedule_item one[] = {{1, 0}};

static void a_unit_fails_twice_on_a_device_then_on_another_then_for_good(void **state)
{
    (void)state;
    kiln_schedule *s = make(one, 1, 3, false);
    assert_int_equal(next(s, 1), 0);
    assert_true(kiln_schedule_fail(s, 0, 1));
    assert_int_equal(next(s, 0), -1); /* the same device first */
    assert_int_equal(next(s, 1), 0);
    assert_true(kiln_schedule_fail(s, 0, 1));
    assert_int_equal(next(s, 1), -1);
    assert_int_equal(next(s, 2), 0);
    assert_false(kiln_schedule_fail(s, 0, 2));
    assert_true(kiln_schedule_trial(s, 0)->elsewhere);
    assert_int_equal(kiln_schedule_waiting(s), 0);
    kiln_schedule_free(s);
}

static void a_single_gpu_has_two_tries_the_cpu_three(void **state)
{
    (void)state;
    kiln_schedule *s = make(one, 1, 1, false);
    assert_int_equal(next(s, 0), 0);
    assert_true(kiln_schedule_fail(s, 0, 0));
    assert_int_equal(next(s, 0), 0);
    assert_false(kiln_schedule_fail(s, 0, 0));
    kiln_schedule_free(s);
    s = make(one, 1, 1, true);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(next(s, 0), 0);
        assert_int_equal(kiln_schedule_fail(s, 0, 0), i < 2);
    }
    kiln_schedule_free(s);
    s = make(one, 1, 2, true); /* in another worker process where there is one */
    (void)next(s, 0), (void)kiln_schedule_fail(s, 0, 0), (void)next(s, 0),
        (void)kiln_schedule_fail(s, 0, 0);
    assert_int_equal(next(s, 0), -1);
    assert_int_equal(next(s, 1), 0);
    kiln_schedule_free(s);
}

static void a_retry_is_not_bound_to_a_device_that_is_retired(void **state)
{
    (void)state;
    kiln_schedule *s = make(one, 1, 2, false);
    uint64_t item;
    (void)next(s, 0);
    assert_true(kiln_schedule_fail(s, 0, 0));
    slots.closed[0] = true;
    assert_false(kiln_schedule_stranded(s, &item));
    assert_int_equal(next(s, 1), 0);
    kiln_schedule_free(s);
}

static void a_unit_that_no_open_device_may_take_is_stranded(void **state)
{
    (void)state;
    kiln_schedule *s = make(one, 1, 2, false);
    uint64_t item = 5;
    (void)next(s, 0);
    assert_true(kiln_schedule_fail(s, 0, 0));
    (void)next(s, 0);
    assert_true(kiln_schedule_fail(s, 0, 0)); /* waits for device 1 */
    assert_false(kiln_schedule_stranded(s, &item));
    slots.closed[1] = true;
    assert_true(kiln_schedule_stranded(s, &item));
    assert_int_equal(item, 0);
    assert_int_equal(kiln_schedule_waiting(s), 0);
    kiln_schedule_free(s);
}

static void a_slot_is_needed_for_what_the_others_may_not_take(void **state)
{
    (void)state;
    const bool only_0[KILN_SLOTS_MAX] = {true}, only_1[KILN_SLOTS_MAX] = {false, true};
    kiln_schedule *s = make(one, 1, 2, false);
    (void)next(s, 0);
    assert_false(kiln_schedule_needs(s, 1, only_0));
    assert_true(kiln_schedule_fail(s, 0, 0)); /* bound to slot 0 */
    assert_true(kiln_schedule_needs(s, 0, only_1));
    assert_false(kiln_schedule_needs(s, 1, only_0));
    (void)next(s, 0);
    assert_true(kiln_schedule_fail(s, 0, 0)); /* any but slot 0 */
    assert_true(kiln_schedule_needs(s, 1, only_0));
    kiln_schedule_free(s);
}

/* ---- strikes --------------------------------------------------------------------------------- */
static void three_different_units_strike_a_device_out(void **state)
{
    (void)state;
    kiln_strikes s = {0};
    const kiln_hash a = kiln_hash_of("a", 1), b = kiln_hash_of("b", 1), c = kiln_hash_of("c", 1);
    assert_false(kiln_strikes_add(&s, a));
    assert_false(kiln_strikes_add(&s, a));
    assert_false(kiln_strikes_add(&s, b));
    kiln_strikes_withdraw(&s, a);
    kiln_strikes_withdraw(&s, c); /* never added */
    assert_false(kiln_strikes_add(&s, c));
    assert_true(kiln_strikes_add(&s, a));
    assert_true(kiln_strikes_add(&s, a));
}

static void only_failures_of_process_and_device_are_contained(void **state)
{
    (void)state;
    assert_true(kiln_failure_is_contained(KILN_E_DEVICE));
    assert_true(kiln_failure_is_contained(KILN_E_NOMEM));
    assert_true(kiln_failure_is_contained(KILN_E_BUG));
    assert_false(kiln_failure_is_contained(KILN_E_INPUT));
    assert_false(kiln_failure_is_contained(KILN_E_IO));
    assert_false(kiln_failure_is_contained(KILN_E_CAP));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bigger_cost_goes_first_and_equal_ones_in_order),
        cmocka_unit_test(no_items_are_a_schedule_too),
        cmocka_unit_test(a_group_counts_whole_and_stays_with_one_slot_in_its_order),
        cmocka_unit_test(who_idles_takes_the_far_end_of_the_fullest_group),
        cmocka_unit_test(what_a_closed_slot_held_is_free),
        cmocka_unit_test(items_behind_the_limit_wait),
        cmocka_unit_test(what_was_not_begun_goes_back_unharmed_and_out_first),
        cmocka_unit_test(a_unit_fails_twice_on_a_device_then_on_another_then_for_good),
        cmocka_unit_test(a_single_gpu_has_two_tries_the_cpu_three),
        cmocka_unit_test(a_retry_is_not_bound_to_a_device_that_is_retired),
        cmocka_unit_test(a_unit_that_no_open_device_may_take_is_stranded),
        cmocka_unit_test(a_slot_is_needed_for_what_the_others_may_not_take),
        cmocka_unit_test(three_different_units_strike_a_device_out),
        cmocka_unit_test(only_failures_of_process_and_device_are_contained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
