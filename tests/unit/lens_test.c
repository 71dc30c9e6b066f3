/* lens_test -- what lenses show where: trigonometry, golden points of every COLMAP model, Jacobians, the inverse at the corners,
 * where a picture folds back, the pinhole as COLMAP chooses it, and the warp. */
#include "kernels/lens/lens_math.h"
#include "kernels/undistort/undistort.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- trigonometry --------------------------------------------------------------------------------------------------------- */
static double ulps(double got, long double want)
{
    int e;
    (void)frexp((double)want, &e);
    return (double)(fabsl((long double)got - want) / ldexpl(1.0L, e - 53));
}

static void trigonometry_keeps_its_errors(void **state)
{
    enum { N = 400000 };
    double of_atan = 0, of_sin = 0, of_tan = 0, far = 0;
    (void)state;
    for (int i = 1; i < N; i++) {
        const double part = (double)i / N, wide = exp(40 * (part - 0.5)), angle = part * KILN_PI / 4, steep = 1.5 * part,
                     far_angle = 200 * (part - 0.5);
        of_atan = fmax(of_atan, ulps(kiln_atan(wide), atanl((long double)wide)));
        of_atan = fmax(of_atan, ulps(kiln_atan(-2 * part), atanl((long double)(-2 * part))));
        of_sin = fmax(of_sin, ulps(kiln_sin(angle), sinl((long double)angle)));
        of_sin = fmax(of_sin, ulps(kiln_cos(-angle), cosl((long double)angle)));
        of_tan = fmax(of_tan, ulps(kiln_tan(steep), tanl((long double)steep)));
        far = fmax(far, fabs(kiln_sin(far_angle) - (double)sinl((long double)far_angle)));
        far = fmax(far, fabs(kiln_cos(far_angle) - (double)cosl((long double)far_angle)));
    }
    print_message("atan %.3f, sin and cos %.3f, tan %.3f ulp; sin and cos afar %.3g\n", of_atan, of_sin, of_tan, far);
    assert_true(of_atan <= 2 && of_sin <= 1.2 && of_tan <= 3 && far <= 3e-16);
    assert_true(kiln_atan(0) == 0 && kiln_sin(0) == 0 && kiln_cos(0) == 1);
    assert_true(kiln_atan(INFINITY) == KILN_PI / 2 && kiln_atan(-INFINITY) == -KILN_PI / 2);
    assert_true(isnan(kiln_atan((double)NAN)) && isnan(kiln_sin(INFINITY)) && isnan(kiln_cos((double)NAN)));
}

/* ---- lenses --------------------------------------------------------------------------------------------------------------- */
static kiln_lens lens_of(int model, const double *params, uint32_t width, uint32_t height)
{
    kiln_lens l;
    kiln_error err = {0};
    if (kiln_lens_init(&l, model, params, width, height, &err) != KILN_OK) fail_msg("%s", err.msg);
    return l;
}

static void golden_points_of_every_model(void **state)
{
    json_error_t e;
    json_t *rows = json_load_file("tests/data/lens/projections.json", 0, &e), *row, *point;
    size_t i, k;
    double worst = 0;
    (void)state;
    assert_non_null(rows);
    assert_int_equal(json_array_size(rows), 18);
    json_array_foreach(rows, i, row)
    {
        double params[16] = {0}, pixel[2], j[4];
        for (k = 0; k < json_array_size(json_object_get(row, "params")); k++)
            params[k] = json_number_value(json_array_get(json_object_get(row, "params"), k));
        const kiln_lens l = lens_of((int)json_integer_value(json_object_get(row, "id")), params, 64, 48);
        json_array_foreach(json_object_get(row, "camera_points"), k, point)
        {
            const json_t *truth = json_array_get(json_object_get(row, "pixels"), k);
            const double z = json_number_value(json_array_get(point, 2));
            assert_true(kiln_lens_bend(&l, json_number_value(json_array_get(point, 0)) / z,
                                       json_number_value(json_array_get(point, 1)) / z, pixel, j));
            for (size_t c = 0; c < 2; c++) {
                const double off = fabs(pixel[c] - json_number_value(json_array_get(truth, c)));
                worst = fmax(worst, off);
                if (!(off <= 1e-9)) fail_msg("%s, point %zu: off by %g", json_string_value(json_object_get(row, "model")), k, off);
            }
        }
    }
    print_message("off by %.3g pixels at most\n", worst);
    json_decref(rows);
}

/* Weak lenses and strong ones, of 640 x 480 pixels. */
static const struct {
    int model;
    double params[16];
} lenses[] = {
    {0, {500, 320, 240}},
    {1, {500, 510, 310, 250}},
    {2, {500, 320, 240, -0.05}},
    {2, {500, 320, 240, 0.6}},
    {3, {500, 320, 240, -0.25, 0.08}},
    {4, {500, 505, 322, 238, -0.28, 0.09, 0.002, -0.003}},
    {4, {300, 305, 322, 238, -0.08, 0.01, 0.01, -0.02}},
    {5, {260, 262, 320, 240, 0.02, -0.01, 0.003, -0.0005}},
    {5, {290, 290, 320, 240, -0.03, 0.004, -0.001, 0.0001}},
    {6, {500, 505, 322, 238, 0.1, 0.02, 0.001, -0.002, 0.005, 0.12, 0.01, 0.002}},
    {6, {300, 305, 322, 238, 8.5, 4.2, 0.0002, -0.0001, 0.2, 8.9, 6.9, 1.2}},
    {7, {280, 285, 320, 240, 0.93}},
    {7, {230, 235, 320, 240, 0.8}},
    {8, {300, 320, 240, -0.02}},
    {9, {300, 320, 240, 0.05, -0.01}},
    {10, {300, 301, 320, 240, 0.02, -0.01, 0.001, -0.002, 0.003, -0.0005, 0.0007, -0.0009}},
    {11, {300, 301, 320, 240, 0.02, -0.01, 0.003, -5e-4, 2e-4, -1e-4, 0.001, -0.002, 7e-4, -9e-4, 3e-4, 4e-4}},
    {12, {400, 320, 240, -0.4}},
    {13, {400, 405, 320, 240, 0.1}},
    {14, {280, 320, 240}},
    {15, {280, 284, 318, 244}},
    {16, {290, 292, 320, 240, 0.62, 1.1}},
    {17, {640, 480}},
};
enum { N_LENSES = sizeof lenses / sizeof *lenses, WIDTH = 640, HEIGHT = 480 };

/* The Jacobian against differences of the function. */
static void jacobians_are_derivatives(void **state)
{
    (void)state;
    for (int i = 0; i < N_LENSES; i++) {
        const kiln_lens l = lens_of(lenses[i].model, lenses[i].params, WIDTH, HEIGHT);
        for (int k = 0; k < 100; k++) {
            const double x = k == 0   ? 0
                             : k == 1 ? 0.002
                                      : 0.6 * cos(k) * k / 100,
                         y = k == 0 ? 0 : 0.45 * sin(3 * k) * k / 100, h = 1e-6;
            double at[2], j[4], before[2], behind[2], unused[4];
            assert_true(kiln_lens_bend(&l, x, y, at, j));
            for (int axis = 0; axis < 2; axis++) {
                assert_true(kiln_lens_bend(&l, x - h * !axis, y - h * axis, before, unused));
                assert_true(kiln_lens_bend(&l, x + h * !axis, y + h * axis, behind, unused));
                for (int c = 0; c < 2; c++) {
                    const double slope = (behind[c] - before[c]) / (2 * h);
                    if (!(fabs(slope - j[2 * c + axis]) <= 2e-5 * 500))
                        fail_msg("model %d at %g, %g: d%c/d%c is %.9g, not %.9g", lenses[i].model, x, y, "uv"[c], "xy"[axis], slope,
                                 j[2 * c + axis]);
                }
            }
        }
    }
}

/* Newton's method finds the ray of each corner, border and inner pixel, and the ray leads back to 1e-9 pixels. Not for a panorama,
 * most of whose pixels are beside or behind the camera. */
static void rays_of_corners_are_found(void **state)
{
    enum { STEP = 40 };
    (void)state;
    for (int i = 0; i < N_LENSES; i++) {
        const kiln_lens l = lens_of(lenses[i].model, lenses[i].params, WIDTH, HEIGHT);
        const bool panorama = lenses[i].model == 17;
        for (int y = 0; y <= HEIGHT; y += STEP)
            for (int x = 0; x <= WIDTH; x += STEP) {
                const double pixel[2] = {x, y};
                double ray[2], back[2], j[4];
                const bool ahead = !panorama || (x > WIDTH / 4 && x < WIDTH * 3 / 4 && y > 0 && y < HEIGHT);
                if (kiln_lens_ray(&l, pixel, ray) != ahead) fail_msg("lens %d (model %d): %d, %d", i, lenses[i].model, x, y);
                if (!ahead) continue;
                assert_true(kiln_lens_bend(&l, ray[0], ray[1], back, j));
                if (!(hypot(back[0] - x, back[1] - y) <= 1e-9))
                    fail_msg("lens %d (model %d): %d, %d comes back as %.12g, %.12g", i, lenses[i].model, x, y, back[0], back[1]);
            }
    }
}

/* k = -0.9 folds at 3 k r^2 = -1. Behind that a ray comes back into the photo; it does not count, and no pixel beyond has a ray. */
static void folds_are_found(void **state)
{
    const double params[] = {500, 320, 240, -0.9}, edge = sqrt(1 / 2.7), outside[] = {320 + 500 * edge * 0.68, 240};
    const double inside[] = {320 + 500 * edge * 0.66, 240};
    double ray[2];
    const kiln_lens l = lens_of(2, params, WIDTH, HEIGHT), straight = lens_of(1, lenses[1].params, WIDTH, HEIGHT);
    (void)state;
    assert_true(fabs(l.limit - edge) < 1e-12);
    assert_true(kiln_lens_ray(&l, inside, ray) && ray[0] < edge);
    assert_false(kiln_lens_ray(&l, outside, ray));
    assert_true(straight.limit == 1e4);
    kiln_error err = {0};
    kiln_lens none;
    assert_int_equal(kiln_lens_init(&none, 18, params, 1, 1, &err), KILN_E_INPUT);
    assert_int_equal(kiln_lens_init(&none, -1, params, 1, 1, &err), KILN_E_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trigonometry_keeps_its_errors),
        cmocka_unit_test(golden_points_of_every_model),
        cmocka_unit_test(jacobians_are_derivatives),
        cmocka_unit_test(rays_of_corners_are_found),
        cmocka_unit_test(folds_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
