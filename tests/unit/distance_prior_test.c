/* distance_prior_test -- when an orbit of our own is no judge of a scene, and what rows weigh
 * then. */
#include "stages/lod/distance_prior.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void what_is_near_the_middle_weighs_more(void **state)
{
    (void)state;
    const kiln_distance_prior p = {.middle = {1, 2, 3}, .radius = 2};
    const double at[] = {1, 2, 3}, within[] = {1, 3.5, 3}, border[] = {3, 2, 3},
                 away[] = {1, 2, 35};
    assert_true(fabs((double)kiln_distance_prior_of(&p, border, 4) - 1) < 1e-6);
    assert_true(kiln_distance_prior_of(&p, at, 4) == kiln_distance_prior_of(&p, border, 4));
    assert_true(kiln_distance_prior_of(&p, within, 4) == kiln_distance_prior_of(&p, border, 4));
    assert_true(fabs((double)kiln_distance_prior_of(&p, away, 4) - pow(4.0 / 1024, 0.75)) < 1e-7);
    assert_true(fabs((double)kiln_distance_prior_of(&p, at, 64) - 8) < 1e-5);
}

static void any_row_has_a_prominence(void **state)
{
    (void)state;
    const kiln_distance_prior p = {.radius = 1};
    const double far_off[] = {3e38, -3e38, 3e38}, at[] = {0, 0, 0};
    for (int i = 0; i < 2; i++) {
        const float p0 = kiln_distance_prior_of(&p, i ? far_off : at, (double)FLT_MIN),
                    p1 = kiln_distance_prior_of(&p, i ? far_off : at, 1e37);
        assert_true(p0 > 0 && p0 <= p1 && p1 < FLT_MAX);
    }
}

static void cameras_of_people_say_what_is_seen(void **state)
{
    (void)state;
    const kiln_scene scene = {.origin = {0, 0, 0}};
    const kiln_layer none = {.count = 0};
    const kiln_camera cameras[2] = {{.synthetic = true}, {.synthetic = false}};
    kiln_distance_prior p = {.radius = 7};
    kiln_error err = {0};
    /* no rows */
    assert_int_equal(kiln_distance_prior_find(NULL, &scene, &none, cameras, 1, &p, &err), KILN_OK);
    assert_true(p.radius == 0);
    const kiln_layer some = {.count = 10};
    p.radius = 7;
    assert_int_equal(kiln_distance_prior_find(NULL, &scene, &some, cameras, 2, &p, &err), KILN_OK);
    assert_true(p.radius == 0);
    p.radius = 7;
    assert_int_equal(kiln_distance_prior_find(NULL, &scene, &some, cameras, 0, &p, &err), KILN_OK);
    assert_true(p.radius == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_near_the_middle_weighs_more),
        cmocka_unit_test(any_row_has_a_prominence),
        cmocka_unit_test(cameras_of_people_say_what_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
