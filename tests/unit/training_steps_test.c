/* training_steps_test -- which names are steps of one training. */
#include "stages/import/dataset/training_steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void names_of_trainers_have_steps(void **state)
{
    static const struct {
        const char *path, *pattern;
        uint64_t step;
    } rows[] = {
        {"splat_30000.ply", "splat_#.ply", 30000}, /* LichtFeld */
        {"export_00030000.ply", "export_#.ply", 30000},
        {"ply/point_cloud_29999.ply", "ply/point_cloud_#.ply", 29999}, /* gsplat */
        {"ckpts/point_cloud_29999_rank0.ply", "ckpts/point_cloud_#_rank0.ply", 29999},
        {"step-000029999.splat", "step-#.splat", 29999},
        {"7000.ply", "#.ply", 7000},
        {"splat.30000.compressed.ply", "splat.#.compressed.ply", 30000},
        {"out/iteration_7000/point_cloud.ply", "out/iteration_#/point_cloud.ply", 7000}, /* INRIA */
        {"runs/2024-05-01_120000/splat_2_9.ply", "runs/#-#-#_#/splat_2_#.ply", 9},
        {"a2/b_3.ply", "a#/b_#.ply", 3},
    };
    kiln_step s;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kiln_step_of(rows[i].path, &s);
        assert_string_equal(s.pattern, rows[i].pattern);
        assert_true(s.has_step);
        assert_int_equal(s.step, rows[i].step);
    }
}

static void other_numbers_are_no_steps(void **state)
{
    static const char *const names[] = {
        "lod0.ply", "scan3d.ply", "part1.ply", "splat.ply",    "a_1234567890123456789.ply",
        "",         "x/",         "v2b_x.ply", "step_x/a.ply", "x.2ply"};
    kiln_step s;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        kiln_step_of(names[i], &s);
        assert_false(s.has_step);
        assert_string_equal(s.pattern, names[i]);
    }
    kiln_step_of("run_3/splat.ply", &s);
    assert_false(s.has_step);
    assert_string_equal(s.pattern, "run_#/splat.ply");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_of_trainers_have_steps),
                                       cmocka_unit_test(other_numbers_are_no_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
