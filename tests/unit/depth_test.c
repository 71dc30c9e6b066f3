/* Depth in colours: what range they have, and what they look like at its ends. (Files:
 * tests/e2e/depth.t.) */
#include "stages/render/depth.h"

#include "tests/unit/manifest_fixture.h"

#include <math.h>

static void the_range_leaves_a_hundredth_out_at_each_end(void **state)
{
    (void)state;
    enum { N = 2000 };
    float depth[N], near_m, far_m;
    kiln_error err = {0};
    /* the odd numbers, in disorder; half is empty */
    for (int i = 0; i < N; i++) depth[i] = i % 2 ? (float)((i * 7919) % N) : 0.0f;
    depth[1] = 0.001f;
    depth[3] = 1e9f;
    assert_int_equal(kiln_depth_range(depth, N, &near_m, &far_m, &err), KILN_OK);
    assert_true(near_m > 10 && near_m < 30 && far_m > 1970 && far_m < 1990);
    memset(depth, 0, sizeof depth);
    assert_int_equal(kiln_depth_range(depth, N, &near_m, &far_m, &err), KILN_OK);
    assert_true(near_m == 0 && far_m == 0);
    depth[0] = 5;
    assert_int_equal(kiln_depth_range(depth, 1, &near_m, &far_m, &err), KILN_OK);
    assert_true(near_m == 5 && far_m == 5);
    assert_int_equal(kiln_depth_range(depth, 0, &near_m, &far_m, &err), KILN_OK);
    assert_true(near_m == 0);
    float *large = calloc(1000003, sizeof *large);
    assert_non_null(large);
    for (int i = 0; i < 1000003; i++) large[i] = 2;
    assert_int_equal(kiln_depth_range(large, 1000003, &near_m, &far_m, &err), KILN_OK);
    assert_true(near_m == 2 && far_m == 2);
    free(large);
}

static void near_is_red_and_far_is_blue(void **state)
{
    (void)state;
    float near_rgb[3], far_rgb[3], mid[3], rgb[3];
    kiln_depth_colour(2, 2, 10, near_rgb);
    kiln_depth_colour(10, 2, 10, far_rgb);
    /* the middle of 1 / depth is Turbo's green */
    kiln_depth_colour(2 * 2 * 10 / 12.0f, 2, 10, mid);
    assert_true(near_rgb[0] > 0.4f && near_rgb[1] < 0.1f && near_rgb[2] < 0.1f);
    assert_true(far_rgb[2] > far_rgb[1] && far_rgb[2] > 0.6f && far_rgb[0] < 0.4f);
    assert_true(mid[1] > 0.9f && mid[0] < 0.75f && mid[2] < 0.5f);
    kiln_depth_colour(1, 2, 10, rgb); /* beyond the ends: as there */
    assert_memory_equal(rgb, near_rgb, sizeof rgb);
    kiln_depth_colour(1000, 2, 10, rgb);
    assert_memory_equal(rgb, far_rgb, sizeof rgb);
    kiln_depth_colour(0, 2, 10, rgb);
    assert_true(rgb[0] == 0 && rgb[1] == 0 && rgb[2] == 0);
    kiln_depth_colour(3, 0, 0, rgb);
    assert_true(rgb[0] == 0 && rgb[1] == 0 && rgb[2] == 0);
    kiln_depth_colour(5, 5, 5, rgb); /* one depth alone is no end */
    assert_true(rgb[1] > 0.9f);
    for (float d = 2; d < 10; d += 0.01f) {
        kiln_depth_colour(d, 2, 10, rgb);
        for (int c = 0; c < 3; c++) assert_true(rgb[c] >= 0 && rgb[c] <= 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_range_leaves_a_hundredth_out_at_each_end),
        cmocka_unit_test(near_is_red_and_far_is_blue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
