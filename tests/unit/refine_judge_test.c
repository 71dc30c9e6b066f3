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
    const kiln_refine_off_by before = merged(), little = all_at(1 - KILN_REFINE_LEAST_GAIN + 0.001), none = all_at(1),
                             enough = all_at(1 - KILN_REFINE_LEAST_GAIN - 0.001);
    assert_false(kiln_refine_is_better(&none, &before));
    assert_false(kiln_refine_is_better(&little, &before));
    assert_true(kiln_refine_is_better(&enough, &before));
}

/* However much the others gain, in whichever surroundings, and wherever the sight stands in the list. */
static void a_sight_that_loses_rejects_the_level(void **state)
{
    (void)state;
    const kiln_refine_off_by before = merged();
    for (int around = 0; around < 2; around++)
        for (uint32_t i = 0; i < LEFT_OUT; i++) {
            kiln_refine_off_by after = all_at(0.01);
            set_error(&after, around, i, 1.01);
            assert_true(kiln_refine_is_better(&after, &before));
            set_error(&after, around, i, 1.12); /* 0.5 dB */
            assert_false(kiln_refine_is_better(&after, &before));
        }
}

/* A sight that was nearly right may be off by what does not show beside the others. */
static void a_sight_that_was_right_may_lose_a_little(void **state)
{
    (void)state;
    kiln_refine_off_by before = merged(), after = all_at(0.5);
    set_error(&before, 0, 3, 1e-6);
    set_error(&before, 1, 3, 1e-6);
    set_error(&after, 0, 3, 0.01);
    set_error(&after, 1, 3, 0.01);
    assert_true(kiln_refine_is_better(&after, &before));
    set_error(&after, 1, 3, 0.1);
    assert_false(kiln_refine_is_better(&after, &before));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gain_in_all_sights_is_kept),
        cmocka_unit_test(too_small_a_gain_is_not_kept),
        cmocka_unit_test(a_sight_that_loses_rejects_the_level),
        cmocka_unit_test(a_sight_that_was_right_may_lose_a_little),
        cmocka_unit_test(a_gain_in_one_surrounding_alone_is_not_kept),
        cmocka_unit_test(nothing_measured_keeps_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
