/* The rule of --devices auto: when a GPU is worth being opened. */
#include "stages/engine/devices/work.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void what_ends_before_a_gpu_is_open_is_the_cpus(void **state)
{
    (void)state;
    assert_int_equal(unsetenv("KILN_GPU_MS"), 0);
    assert_false(kiln_work_pays(0.39, 1, false));
    assert_true(kiln_work_pays(0.41, 1, false));
    assert_false(kiln_work_pays(16 * 0.39, 16, false));
    assert_true(kiln_work_pays(16 * 0.41, 16, false));
    assert_true(kiln_work_pays(0.41, 0, false)); /* 0 threads are counted as one */
    assert_true(kiln_work_pays(1e300, 1024, false));
}

static void an_open_gpu_takes_less(void **state)
{
    (void)state;
    assert_int_equal(unsetenv("KILN_GPU_MS"), 0);
    assert_false(kiln_work_pays(16 * 0.04, 16, true));
    assert_true(kiln_work_pays(16 * 0.06, 16, true));
    assert_true(kiln_work_gpu_s(true) < kiln_work_gpu_s(false));
}

static void a_test_may_say_what_opening_takes(void **state)
{
    (void)state;
    assert_int_equal(setenv("KILN_GPU_MS", "0", 1), 0);
    assert_true(kiln_work_pays(1e-9, 1024, false));
    assert_int_equal(setenv("KILN_GPU_MS", "2000", 1), 0);
    assert_false(kiln_work_pays(1.9, 1, false));
    assert_false(kiln_work_pays(0.04, 1, true));
    assert_true(kiln_work_pays(0.06, 1, true));
    assert_int_equal(unsetenv("KILN_GPU_MS"), 0);
}

/* The chair of shared/scenes (29,989 Gaussians, 21 pictures of 400 x 400 with photos) takes 1.4 s
 * of one thread to draw, and 24 pictures of 800 x 800 of it 4 s: on 16 threads the CPU has ended
 * before a GPU is there. 6 million and 12 of 1920 x 1080 are a GPU's. */
static void small_scenes_are_the_cpus_and_large_ones_are_not(void **state)
{
    (void)state;
    assert_int_equal(unsetenv("KILN_GPU_MS"), 0);
    const kiln_work_scene chair = {.rows = 29989, .cameras = 24, .pixels = 24.0 * 800 * 800},
                          large = {.rows = 6e6, .cameras = 12, .pixels = 12.0 * 1920 * 1080},
                          none = {.rows = 29989};
    assert_true(24 * kiln_work_picture(29989, 640000, 320000, true) > 4);
    assert_false(kiln_work_pays(24 * kiln_work_picture(29989, 640000, 320000, true) +
                                    16 * kiln_work_decode(29989),
                                16, false));
    assert_false(kiln_work_pays(kiln_work_later(&chair), 16, false));
    assert_true(kiln_work_pays(kiln_work_later(&chair), 2, false));
    assert_true(kiln_work_pays(kiln_work_later(&large), 16, false));
    assert_true(kiln_work_pays(kiln_work_later(&large), 128, false));
    assert_true(kiln_work_later(&none) == 0);
}

/* What a stage has measured for itself is never above the estimate. */
static void estimates_are_on_the_safe_side(void **state)
{
    (void)state;
    assert_true(kiln_work_knn(400000) > 0.17);
    assert_true(kiln_work_tiles(400000, 3) > 1.1);
    assert_true(kiln_work_tiles(29989, 21) > 0.33);
    assert_true(21 * kiln_work_picture(29989, 160000, 78528, true) > 0.9);
    assert_true(3 * kiln_work_picture(250000, 1920 * 1080, 2950207, false) > 2.1);
    assert_true(kiln_work_chunk(50e6) > 228);
    assert_true(kiln_work_import(50e6) > 69);
    assert_true(kiln_work_prune(50e6, 24) > kiln_work_prune(50e6, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_ends_before_a_gpu_is_open_is_the_cpus),
        cmocka_unit_test(an_open_gpu_takes_less),
        cmocka_unit_test(a_test_may_say_what_opening_takes),
        cmocka_unit_test(small_scenes_are_the_cpus_and_large_ones_are_not),
        cmocka_unit_test(estimates_are_on_the_safe_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
