/* visibility_test -- what kiln-lod makes of shares of pictures, and through which cameras it
 * looks. */
#include "kernels/project/project.h"
#include "stages/lod/visibility.h"
#include "stages/lod/visibility_math.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- steps ----------------------------------------------------------------------------------- */
static void steps_are_the_nearest_in_logarithms(void **state)
{
    (void)state;
    for (int i = 0; i <= 4000; i++) {
        const double v = pow(10, 0.3 - i / 1500.0), clamped = fmin(1, fmax(0.02, v)), area = 3.7;
        const double want = floor(-8 * log10(clamped) + 0.5),
                     at = fabs(-8 * log10(clamped) + 0.5 - want);
        if (at < 1e-6 || at > 1 - 1e-6) continue;
        assert_int_equal(kiln_seen_step(v * area, area), (int)want);
    }
    for (unsigned k = 0; k < KILN_SEEN_STEPS; k++) {
        assert_true(fabs((double)kiln_seen_value(k) / pow(10, -(double)k / 8) - 1) < 1e-7);
        assert_int_equal(kiln_seen_step((double)kiln_seen_value(k), 1), k); /* stored values stay */
    }
}

static void what_no_camera_has_has_the_least(void **state)
{
    (void)state;
    assert_int_equal(kiln_seen_step(0, 0), KILN_SEEN_STEPS - 1);
    assert_int_equal(kiln_seen_step(5, 0), KILN_SEEN_STEPS - 1);
    assert_int_equal(kiln_seen_step(0, 5), KILN_SEEN_STEPS - 1);
}

static void an_area_is_that_of_the_covariance(void **state)
{
    (void)state;
    /* covariance [[5, 1], [1, 2]], det 9 */
    const kiln_splat2d s = {.conic = {2.0f / 9, -1.0f / 9, 5.0f / 9}, .opacity = 0.5f};
    assert_true(fabs(kiln_seen_area(&s) - 6.283185307179586 * 3 * 0.5) < 1e-5);
    const kiln_splat2d bad[] = {{.conic = {1, 1, 1}, .opacity = 0.5f},
                                {.conic = {1, 2, 1}, .opacity = 0.5f},
                                {.conic = {NAN, 0, 1}, .opacity = 0.5f},
                                {.conic = {1, 0, 1}, .opacity = NAN}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_true(kiln_seen_area(&bad[i]) == 0);
}

static void what_covers_less_than_its_blur_has_little_area_of_its_own(void **state)
{
    (void)state;
    /* covariances: 0.3 of blur alone, and [[5.3, 1], [1, 2.3]] */
    const kiln_splat2d point = {.conic = {1 / 0.3f, 0, 1 / 0.3f}, .opacity = 1};
    const kiln_splat2d broad = {.conic = {2.3f / 11.19f, -1 / 11.19f, 5.3f / 11.19f},
                                .opacity = 0.5f};
    assert_true(fabs(kiln_seen_bare_area(&point) - 6.283185307179586 * 0.2) < 1e-5);
    assert_true(fabs(kiln_seen_bare_area(&broad) - 6.283185307179586 * 0.5 * sqrt(5.2 * 2.2 - 1)) <
                1e-4);
    const kiln_splat2d bad[] = {{.conic = {1, 1, 1}, .opacity = 0.5f},
                                {.conic = {NAN, 0, 1}, .opacity = 0.5f}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(kiln_seen_bare_area(&bad[i]) == 0);
}

/* Beside erf, for Gaussians in and beside a picture of 400 x 100, along its axes. */
static void what_lies_beyond_the_border_is_left_out(void **state)
{
    (void)state;
    static const float at[][2] = {{200, 50}, {0, 50},      {400, 100},  {-30, 20},
                                  {440, 50}, {200, -1000}, {3e5f, 3e5f}};
    static const float deviations[][2] = {{1, 1}, {30, 8}, {500, 40}, {4000, 4000}, {0.6f, 9000}};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        for (size_t d = 0; d < sizeof deviations / sizeof *deviations; d++) {
            const double sx = (double)deviations[d][0], sy = (double)deviations[d][1],
                         x = (double)at[i][0], y = (double)at[i][1];
            const kiln_splat2d s = {.x = at[i][0],
                                    .y = at[i][1],
                                    .conic = {(float)(1 / sx / sx), 0, (float)(1 / sy / sy)}};
            const double across = 0.5 * (erf((400 - x) / sx / sqrt(2)) - erf(-x / sx / sqrt(2)));
            const double down = 0.5 * (erf((100 - y) / sy / sqrt(2)) - erf(-y / sy / sqrt(2)));
            assert_true(fabs(kiln_seen_inside(&s, 400, 100) - across * down) < 5e-4);
        }
    const kiln_splat2d bad[] = {
        {.conic = {1, 1, 1}}, {.conic = {NAN, 0, 1}}, {.x = NAN, .conic = {1, 0, 1}}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(kiln_seen_inside(&bad[i], 400, 100) == 0);
}

static void prominence_is_what_is_seen_and_could_be(void **state)
{
    (void)state;
    assert_true(kiln_prominence(4, 9, 0) == 6);
    assert_true(kiln_prominence(4, 9, 256 * 7) == 7); /* more of it would be seen from elsewhere */
    assert_true(kiln_prominence(0, 0, 512) == 2);
    for (unsigned k = 0; k < KILN_PROMINENCE_STEPS; k++) {
        const double want = 0.5 * pow(10, k / 8.0), value = (double)kiln_prominence_value(k);
        assert_true(fabs(value / want - 1) < 1e-7);
        assert_int_equal(kiln_prominence_step(value), k); /* stored values stay */
        assert_true(kiln_prominence_is_step((float)value));
        assert_int_equal(kiln_prominence_step(want * 1.15), k);
        assert_int_equal(kiln_prominence_step(want * 1.16),
                         k < KILN_PROMINENCE_STEPS - 1 ? k + 1 : k);
    }
    assert_int_equal(kiln_prominence_step(0), 0);
    assert_int_equal(kiln_prominence_step(1e300), KILN_PROMINENCE_STEPS - 1);
    assert_false(kiln_prominence_is_step(0.6f));
    assert_false(kiln_prominence_is_step(NAN));
}

/* ---- cameras --------------------------------------------------------------------------------- */
enum { CAMERAS = 10 };

/* Focal lengths tell which camera a view is of. */
static kiln_camera *cameras_make(void)
{
    static const char *const names[CAMERAS] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    kiln_camera *c = calloc(CAMERAS, sizeof *c);
    assert_non_null(c);
    for (int i = 0; i < CAMERAS; i++) {
        c[i] = (kiln_camera){.r = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                             .width = 320,
                             .height = 200,
                             .fx = 100 + i,
                             .fy = 50,
                             .cx = 160,
                             .cy = 100};
        c[i].name = names[i];
        (void)snprintf(c[i].split, sizeof c[i].split, "%s", i % 5 == 4 ? "test" : "train");
    }
    return c;
}

static uint32_t choose(const kiln_camera *cameras, uint32_t most, kiln_view_request **views)
{
    static const kiln_scene scene;
    const kiln_visibility_options o = {.view = {.near_text = "profile"}, .views = most};
    uint32_t n = 0;
    kiln_error err = {0};
    assert_int_equal(kiln_visibility_views(&scene, cameras, CAMERAS, &o, views, &n, &err), KILN_OK);
    return n;
}

static void assert_chosen(const kiln_camera *cameras, uint32_t most, const char *want)
{
    kiln_view_request *views;
    char got[CAMERAS + 1] = "";
    const uint32_t n = choose(cameras, most, &views);
    for (uint32_t i = 0; i < n; i++)
        got[i] = (char)('0' + lroundf(views[i].view.fx * 320 / (float)views[i].view.width - 100));
    assert_string_equal(got, want);
    free(views);
}

static void cameras_are_spread_over_those_of_training(void **state)
{
    (void)state;
    kiln_camera *c = cameras_make();
    assert_chosen(c, 32, "01235678");
    assert_chosen(c, 8, "01235678");
    assert_chosen(c, 4, "0257");
    assert_chosen(c, 3, "026");
    assert_chosen(c, 1, "0");
    for (int i = 0; i < CAMERAS; i++) c[i].distorted = true;
    assert_chosen(c, 32, "01235678"); /* as pinholes */
    for (int i = 0; i < CAMERAS; i++) memcpy(c[i].split, "test", sizeof "test");
    assert_chosen(c, 32, "0123456789"); /* all, where there are none of training */
    free(c);
}

static void pictures_have_half_the_size_within_limits(void **state)
{
    kiln_view_request *views;
    (void)state;
    kiln_camera *c = cameras_make();
    c[0].width = 1601;
    c[0].height = 1000;
    c[1].width = 1000;
    c[1].height = 6400;
    c[2].width = 5;
    c[2].height = 1 << 20;
    assert_int_equal(choose(c, 3, &views), 3);
    free(views);
    assert_int_equal(choose(c, 32, &views), 8);
    assert_int_equal(views[0].view.width, 801);
    assert_int_equal(views[0].view.height, 500);
    assert_true(fabsf(views[0].view.fx - 100.0f * 801 / 1601) < 1e-4f &&
                fabsf(views[0].view.fy - 25) < 1e-4f);
    assert_int_equal(views[1].view.width, 250);
    assert_int_equal(views[1].view.height, 1600);
    assert_true(fabsf(views[1].view.cx - 40) < 1e-4f && fabsf(views[1].view.cy - 25) < 1e-4f);
    assert_int_equal(views[2].view.width, 1);
    assert_int_equal(views[3].view.width, 200); /* not half of 320 */
    free(views);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_the_nearest_in_logarithms),
        cmocka_unit_test(what_no_camera_has_has_the_least),
        cmocka_unit_test(what_covers_less_than_its_blur_has_little_area_of_its_own),
        cmocka_unit_test(what_lies_beyond_the_border_is_left_out),
        cmocka_unit_test(prominence_is_what_is_seen_and_could_be),
        cmocka_unit_test(an_area_is_that_of_the_covariance),
        cmocka_unit_test(cameras_are_spread_over_those_of_training),
        cmocka_unit_test(pictures_have_half_the_size_within_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
