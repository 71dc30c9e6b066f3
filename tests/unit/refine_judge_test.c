/* refine_judge_test -- which refined levels are kept, by made-up comparisons. */
#include "stages/lod/refine_judge.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LEFT_OUT = 8 };

/* Eight sights with an error of 1 each, in both surroundings. */
static kiln_refine_off_by merged(void)
{
    kiln_refine_off_by m = {.sum = {LEFT_OUT, LEFT_OUT}, .n = LEFT_OUT};
    for (int around = 0; around < 2; around++)
        for (uint32_t i = 0; i < LEFT_OUT; i++) m.of[around][i] = 1;
    return m;
}

static void set_error(kiln_refine_off_by *m, int around, uint32_t sight, double error)
{
    m->sum[around] += error - m->of[around][sight];
    m->of[around][sight] = error;
}

static kiln_refine_off_by all_at(double error)
{
    kiln_refine_off_by m = merged();
    for (int around = 0; around < 2; around++)
        for (uint32_t i = 0; i < LEFT_OUT; i++) set_error(&m, around, i, error);
    return m;
}

static void a_gain_in_all_sights_is_kept(void **state)
{
    (void)state;
    const kiln_refine_off_by before = merged(), after = all_at(0.5);
    assert_true(kiln_refine_is_better(&after, &before));
}

static void too_small_a_gain_is_not_kept(void **state)
{
    (void)state;
    const kiln_refine_off_by before = merged(), little = all_at(1 - KILN_REFINE_LEAST_GAIN + 0.001),
                             none = all_at(1), enough = all_at(1 - KILN_REFINE_LEAST_GAIN - 0.001);
    assert_false(kiln_refine_is_better(&none, &before));
    assert_false(kiln_refine_is_better(&little, &before));
    assert_true(kiln_refine_is_better(&enough, &before));
}

/* However much the others gain, in whichever surroundings, and wherever the sight stands in the
 * list. */
static void a_sight_that_loses_rejects_the_level(void **state)
{
    (void)state;
    const kiln_refine_off_by before = merged();
    for (int around = 0; around < 2; around++)
        for (uint32_t i = 0; i < LEFT_OUT; i++) {
            kiln_refine_off_by after = all_at(0.9);
            set_error(&after, around, i, 1.01);
            assert_true(kiln_refine_is_better(&after, &before));
            set_error(&after, around, i, 1.06); /* 0.25 dB */
            assert_false(kiln_refine_is_better(&after, &before));
        }
}

/* A sight that was nearly right is judged by its own error, not by that of the others; what no
 * picture shows is no loss. */
static void a_sight_that_was_right_stays_right(void **state)
{
    (void)state;
    for (int around = 0; around < 2; around++) {
        kiln_refine_off_by before = merged(), after = all_at(0.8);
        for (int both = 0; both < 2; both++) {
            set_error(&before, both, 3, 3e-5); /* 50 dB */
            set_error(&after, both, 3, 3e-5);
        }
        assert_true(kiln_refine_is_better(&after, &before));
        set_error(&after, around, 3, 3.2e-5); /* 0.3 dB */
        assert_false(kiln_refine_is_better(&after, &before));
        set_error(&before, around, 3, 0);
        assert_false(kiln_refine_is_better(&after, &before));
        /* 85 dB */
        for (uint32_t i = 0; i < LEFT_OUT; i++) set_error(&after, around, i, i == 3 ? 1e-8 : 0.1);
        assert_true(kiln_refine_is_better(&after, &before));
    }
}

/* Of sights that gain unlike, a view that is none of them may lose though none of these does. */
static void sights_that_differ_leave_room_for_others(void **state)
{
    (void)state;
    const kiln_refine_off_by before = merged();
    for (int around = 0; around < 2; around++) {
        kiln_refine_off_by after = all_at(0.6);
        set_error(&after, around, 5, 0.9); /* half as far beyond it from the mean: 1.03 */
        assert_true(kiln_refine_is_better(&after, &before));
        for (uint32_t i = 0; i < LEFT_OUT; i++) set_error(&after, around, i, i == 5 ? 1 : 0.6);
        assert_false(kiln_refine_is_better(&after, &before)); /* 1.18 */
    }
}

/* A change that makes up for faults of the neighbours alone. */
static void a_gain_in_one_surrounding_alone_is_not_kept(void **state)
{
    (void)state;
    const kiln_refine_off_by before = merged();
    for (int around = 0; around < 2; around++) {
        kiln_refine_off_by after = all_at(0.5);
        for (uint32_t i = 0; i < LEFT_OUT; i++) set_error(&after, around, i, 1);
        assert_false(kiln_refine_is_better(&after, &before));
    }
}

static void nothing_measured_keeps_nothing(void **state)
{
    (void)state;
    const kiln_refine_off_by before = {.n = 0}, after = {.n = 0};
    assert_false(kiln_refine_is_better(&after, &before));
    const kiln_refine_off_by some = merged(), lost = all_at(NAN);
    assert_false(kiln_refine_is_better(&lost, &some));
}

/* Sight by sight in the order of measuring, a level that is better is never given up, and one that
 * is worse in a sight or in the sum is given up there. */
static void a_lost_level_is_given_up_at_once(void **state)
{
    (void)state;
    const kiln_refine_off_by before = merged();
    for (uint32_t bad = 0; bad <= LEFT_OUT; bad++) { /* LEFT_OUT: none */
        kiln_refine_off_by after = all_at(0.9), partly = {.sum = {0}};
        if (bad < LEFT_OUT) set_error(&after, 1, bad, 1.06);
        for (uint32_t i = 0; i < LEFT_OUT; i++)
            for (int around = 0; around < 2; around++) {
                set_error(&partly, around, i, after.of[around][i]);
                assert_int_equal(kiln_refine_is_lost(&partly, &before, around, i),
                                 i == bad && around == 1);
            }
    }
    kiln_refine_off_by same = {.sum = {0}};
    for (uint32_t i = 0; i < LEFT_OUT; i++) {
        set_error(&same, 0, i, 1);
        /* all of the error is there */
        assert_int_equal(kiln_refine_is_lost(&same, &before, 0, i), i == LEFT_OUT - 1);
    }
    kiln_refine_off_by nothing = {.sum = {0}};
    set_error(&nothing, 0, 0, NAN);
    assert_true(kiln_refine_is_lost(&nothing, &before, 0, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gain_in_all_sights_is_kept),
        cmocka_unit_test(a_lost_level_is_given_up_at_once),
        cmocka_unit_test(too_small_a_gain_is_not_kept),
        cmocka_unit_test(a_sight_that_loses_rejects_the_level),
        cmocka_unit_test(a_sight_that_was_right_stays_right),
        cmocka_unit_test(sights_that_differ_leave_room_for_others),
        cmocka_unit_test(a_gain_in_one_surrounding_alone_is_not_kept),
        cmocka_unit_test(nothing_measured_keeps_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
