/* lens_test -- what lenses show where: trigonometry, golden points of every COLMAP model,
 * Jacobians, the inverse at the corners, where a picture folds back, the pinhole as COLMAP chooses
 * it, and the warp. */
#include "kernels/lens/lens_math.h"
#include "kernels/runner.h"
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

/* ---- trigonometry ---------------------------------------------------------------------------- */
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
        const double part = (double)i / N, wide = exp(40 * (part - 0.5)),
                     angle = part * KILN_PI / 4, steep = 1.5 * part, far_angle = 200 * (part - 0.5);
        of_atan = fmax(of_atan, ulps(kiln_atan(wide), atanl((long double)wide)));
        of_atan = fmax(of_atan, ulps(kiln_atan(-2 * part), atanl((long double)(-2 * part))));
        of_sin = fmax(of_sin, ulps(kiln_sin(angle), sinl((long double)angle)));
        of_sin = fmax(of_sin, ulps(kiln_cos(-angle), cosl((long double)angle)));
        of_tan = fmax(of_tan, ulps(kiln_tan(steep), tanl((long double)steep)));
        far = fmax(far, fabs(kiln_sin(far_angle) - (double)sinl((long double)far_angle)));
        far = fmax(far, fabs(kiln_cos(far_angle) - (double)cosl((long double)far_angle)));
    }
    print_message("atan %.3f, sin and cos %.3f, tan %.3f ulp; sin and cos afar %.3g\n", of_atan,
                  of_sin, of_tan, far);
    assert_true(of_atan <= 2 && of_sin <= 1.2 && of_tan <= 3 && far <= 3e-16);
    assert_true(kiln_atan(0) == 0 && kiln_sin(0) == 0 && kiln_cos(0) == 1);
    assert_true(kiln_atan(INFINITY) == KILN_PI / 2 && kiln_atan(-INFINITY) == -KILN_PI / 2);
    assert_true(isnan(kiln_atan((double)NAN)) && isnan(kiln_sin(INFINITY)) &&
                isnan(kiln_cos((double)NAN)));
}

/* ---- lenses ---------------------------------------------------------------------------------- */
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
        const kiln_lens l =
            lens_of((int)json_integer_value(json_object_get(row, "id")), params, 64, 48);
        json_array_foreach(json_object_get(row, "camera_points"), k, point)
        {
            const json_t *truth = json_array_get(json_object_get(row, "pixels"), k);
            const double z = json_number_value(json_array_get(point, 2));
            assert_true(kiln_lens_bend(&l, json_number_value(json_array_get(point, 0)) / z,
                                       json_number_value(json_array_get(point, 1)) / z, pixel, j));
            for (size_t c = 0; c < 2; c++) {
                const double off = fabs(pixel[c] - json_number_value(json_array_get(truth, c)));
                worst = fmax(worst, off);
                if (!(off <= 1e-9))
                    fail_msg("%s, point %zu: off by %g",
                             json_string_value(json_object_get(row, "model")), k, off);
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
    {11,
     {300, 301, 320, 240, 0.02, -0.01, 0.003, -5e-4, 2e-4, -1e-4, 0.001, -0.002, 7e-4, -9e-4, 3e-4,
      4e-4}},
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
                        fail_msg("model %d at %g, %g: d%c/d%c is %.9g, not %.9g", lenses[i].model,
                                 x, y, "uv"[c], "xy"[axis], slope, j[2 * c + axis]);
                }
            }
        }
    }
}

/* Newton's method finds the ray of each corner, border and inner pixel, and the ray leads back to
 * 1e-9 pixels. Not for a panorama, most of whose pixels are beside or behind the camera. */
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
                const bool ahead =
                    !panorama || (x > WIDTH / 4 && x < WIDTH * 3 / 4 && y > 0 && y < HEIGHT);
                if (kiln_lens_ray(&l, pixel, ray) != ahead)
                    fail_msg("lens %d (model %d): %d, %d", i, lenses[i].model, x, y);
                if (!ahead) continue;
                assert_true(kiln_lens_bend(&l, ray[0], ray[1], back, j));
                if (!(hypot(back[0] - x, back[1] - y) <= 1e-9))
                    fail_msg("lens %d (model %d): %d, %d comes back as %.12g, %.12g", i,
                             lenses[i].model, x, y, back[0], back[1]);
            }
    }
}

/* k = -0.9 folds at 3 k r^2 = -1. Behind that a ray comes back into the photo; it does not count,
 * and no pixel beyond has a ray. */
static void folds_are_found(void **state)
{
    const double params[] = {500, 320, 240, -0.9}, edge = sqrt(1 / 2.7),
                 outside[] = {320 + 500 * edge * 0.68, 240};
    const double inside[] = {320 + 500 * edge * 0.66, 240};
    double ray[2];
    const kiln_lens l = lens_of(2, params, WIDTH, HEIGHT),
                    straight = lens_of(1, lenses[1].params, WIDTH, HEIGHT);
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

/* ---- pinholes -------------------------------------------------------------------------------- */
/* What image_undistorter of COLMAP 3.8 makes of photos of 1000 x 658 pixels, f 2048.0526947241324
 * (and fy 2046.5576468097338), principal point in the middle. */
static const struct {
    int model;
    double blank;
    uint32_t width, height;
    double terms[12];
} of_colmap[] = {
    {2, 0, 1005, 658, {-0.1}},
    {2, 1, 1102, 725, {-0.9}},
    {3, 0, 1010, 660, {-0.2, 0.1}},
    {4, 0, 1004, 659, {-0.1, 0.02, 0.001, -0.001}},
    {4, 0.4, 1241, 776, {-1.8, 1.2, 0.01, -0.02}},
    {5, 0, 1018, 662, {0.02, -0.01, 0.003, -0.0005}},
    {5, 0.5, 1009, 662, {0.2, -0.1, 0.03, -0.005}},
    {6, 0, 998, 657, {0.1, 0.02, 0.001, -0.002, 0.005, 0.12, 0.01, 0.002}},
    {6, 1, 959, 645, {1.1, 0.4, 0.001, -0.002, 0.005, 0.32, 0.01, 0.002}},
    {7, 0, 982, 644, {0.5}},
    {7, 1, 914, 601, {1.2}},
    {8, 0, 1018, 662, {0.02}},
    {8, 1, 1059, 697, {-0.3}},
    {9, 0, 1016, 661, {0.05, -0.01}},
    {10, 0, 1016, 662, {0.02, -0.01, 0.001, -0.002, 0.003, -0.0005, 0.0007, -0.0009}},
    {10, 1, 1030, 674, {0.2, -0.1, 0.01, -0.02, 0.03, -0.005, 0.007, -0.009}},
};

static void pinholes_are_those_of_colmap(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof of_colmap / sizeof *of_colmap; i++) {
        const int model = of_colmap[i].model;
        const bool one = model == 2 || model == 3 || model == 8 || model == 9;
        double params[16] = {2048.0526947241324, 2046.5576468097338, 500, 329};
        if (one) memmove(params + 1, params + 2, 2 * sizeof *params);
        memcpy(params + (one ? 3 : 4), of_colmap[i].terms, sizeof of_colmap[i].terms);
        const kiln_lens l = lens_of(model, params, 1000, 658);
        const kiln_pinhole p = kiln_lens_target(&l, of_colmap[i].blank);
        if (p.width != of_colmap[i].width || p.height != of_colmap[i].height)
            fail_msg("model %d, blank %g: %u x %u, not %u x %u", model, of_colmap[i].blank, p.width,
                     p.height, of_colmap[i].width, of_colmap[i].height);
        assert_true(p.fx == params[0] && p.fy == (one ? params[0] : params[1]));
        assert_true(fabs(p.cx - 500.0 * p.width / 1000) < 1e-9 &&
                    fabs(p.cy - 329.0 * p.height / 658) < 1e-9);
    }
}

/* What has no rays at its borders ends at the limits of the scale; a panorama shows 90 degrees; all
 * of them are pinholes. */
static void pinholes_of_wide_lenses_are_bounded(void **state)
{
    const double round[] = {200, 320, 240}, folded[] = {500, 320, 240, -0.9}, around[] = {640, 320},
                 far[] = {1e9, 320, 240, 0.1};
    (void)state;
    const kiln_lens fisheye = lens_of(14, round, WIDTH, HEIGHT),
                    fold = lens_of(2, folded, WIDTH, HEIGHT);
    const kiln_lens panorama = lens_of(17, around, 640, 320), flat = lens_of(2, far, WIDTH, HEIGHT);
    for (int i = 0; i <= 4; i++) {
        const kiln_pinhole p = kiln_lens_target(&fisheye, i / 4.0),
                           q = kiln_lens_target(&fold, i / 4.0);
        assert_true(p.width >= 128 && p.width <= 1280 && p.height >= 96 && p.height <= 960 &&
                    p.cx > 0 && p.cy > 0);
        assert_true(q.width >= 128 && q.width <= 1280 && q.height >= 96 && q.height <= 960);
    }
    assert_int_equal(kiln_lens_target(&fisheye, 1).width, 1280);
    const kiln_pinhole ahead = kiln_lens_target(&panorama, 0), same = kiln_lens_target(&flat, 0);
    /* 640 / pi */
    assert_true(ahead.width == 203 && ahead.height == 203 && ahead.fx == 101.5 &&
                ahead.cx == 101.5);
    assert_true(same.width >= WIDTH - 2 && same.width <= WIDTH && same.height >= HEIGHT - 2 &&
                same.height <= HEIGHT);
}

/* ---- the warp -------------------------------------------------------------------------------- */
enum { PHOTO_WIDTH = 96, PHOTO_HEIGHT = 64 };

typedef struct {
    float photo[PHOTO_WIDTH * PHOTO_HEIGHT * 3], *out;
    uint8_t photo_mask[PHOTO_WIDTH * PHOTO_HEIGHT], *mask;
    kiln_undistort_args a;
} warp;

/* A photo whose colours are linear in the position: bilinear samples of it are exact to
 * rounding. */
static warp *warp_new(int model, const double *params, double blank, kiln_undistort_filter filter)
{
    warp *w = calloc(1, sizeof *w);
    assert_non_null(w);
    for (int i = 0; i < PHOTO_WIDTH * PHOTO_HEIGHT; i++) {
        w->photo[3 * i] = (float)(i % PHOTO_WIDTH) / PHOTO_WIDTH;
        w->photo[3 * i + 1] = (float)(i / PHOTO_WIDTH) / PHOTO_HEIGHT;
        w->photo[3 * i + 2] = 0.25f;
        w->photo_mask[i] = 1;
    }
    w->a = (kiln_undistort_args){.lens = lens_of(model, params, PHOTO_WIDTH, PHOTO_HEIGHT),
                                 .channels = 3,
                                 .filter = filter,
                                 .photo = w->photo};
    w->a.target = kiln_lens_target(&w->a.lens, blank);
    const size_t pixels = (size_t)w->a.target.width * w->a.target.height;
    w->a.out = w->out = malloc(pixels * 3 * sizeof *w->out);
    w->a.mask = w->mask = malloc(pixels);
    return w;
}

/* Another pinhole than the lens's own. */
static void warp_to(warp *w, double f, uint32_t width, uint32_t height)
{
    w->a.target = (kiln_pinhole){
        .fx = f, .fy = f, .cx = width / 2.0, .cy = height / 2.0, .width = width, .height = height};
    w->a.out = w->out = realloc(w->out, sizeof *w->out * 3 * width * height);
    w->a.mask = w->mask = realloc(w->mask, (size_t)width * height);
}

static void warp_run(warp *w)
{
    static const kiln_runner_options cpu = {.device = KILN_RUNNER_CPU, .threads = 2};
    kiln_runner *r;
    kiln_error err = {0};
    if (kiln_runner_new(&cpu, &r, &err) != KILN_OK ||
        kiln_runner_run(r, KILN_OP_undistort, &w->a, &err) != KILN_OK)
        fail_msg("%s", err.msg);
    kiln_runner_free(r);
}

static void warp_free(warp *w)
{
    free(w->out);
    free(w->mask);
    free(w);
}

static const double barrel[] = {80, 81, 48, 32, -0.12, 0.02, 0.002, -0.003};

/* Each pixel that counts has the colours of the position to which the lens takes its ray. */
static void pixels_come_from_where_the_lens_shows_them(void **state)
{
    (void)state;
    for (int filter = 0; filter < 2; filter++) {
        warp *w = warp_new(4, barrel, 1, (kiln_undistort_filter)filter);
        const kiln_pinhole *p = &w->a.target;
        uint64_t counting = 0;
        double worst = 0;
        warp_run(w);
        for (uint32_t y = 0; y < p->height; y++)
            /* the triangle of the outermost pixels is cut, as FreeImage cuts it */
            for (uint32_t x = 0; x < p->width; x++) {
                const size_t i = (size_t)y * p->width + x;
                double pixel[2], j[4];
                assert_true(w->mask[i] <= 1);
                assert_true(kiln_lens_bend(&w->a.lens, (x + 0.5 - p->cx) / p->fx,
                                           (y + 0.5 - p->cy) / p->fy, pixel, j));
                if (!w->mask[i]) continue;
                const bool border = x == 0 || y == 0 || x + 1 == p->width || y + 1 == p->height;
                counting++;
                assert_true(pixel[0] >= 0.5 - 1 && pixel[0] <= PHOTO_WIDTH + 0.5 &&
                            pixel[1] >= 0.5 - 1 && pixel[1] <= PHOTO_HEIGHT + 0.5);
                if (border) continue;
                worst = fmax(worst, fabs((double)w->out[3 * i] - (pixel[0] - 0.5) / PHOTO_WIDTH));
                worst =
                    fmax(worst, fabs((double)w->out[3 * i + 1] - (pixel[1] - 0.5) / PHOTO_HEIGHT));
                assert_true(fabs((double)w->out[3 * i + 2] - 0.25) < 1e-6);
            }
        print_message("filter %d: %u x %u, %llu pixels count, off by %.2g of a pixel\n", filter,
                      p->width, p->height, (unsigned long long)counting, worst * PHOTO_WIDTH);
        /* Lanczos keeps no slope exactly */
        assert_true(worst * PHOTO_WIDTH < (filter == KILN_UNDISTORT_BILINEAR ? 0.01 : 0.05));
        assert_true(counting > (uint64_t)p->width * p->height * 3 / 4 &&
                    counting < (uint64_t)p->width * p->height);
        warp_free(w);
    }
}

/* No blank pixels are asked for, and there are none but at the border, where a sample is outside; a
 * hole of the photo's own mask is a hole of the result, somewhat larger. */
static void masks_follow(void **state)
{
    (void)state;
    warp *w = warp_new(4, barrel, 0, KILN_UNDISTORT_BILINEAR);
    const kiln_pinhole *p = &w->a.target;
    warp_run(w);
    for (uint32_t y = 2; y + 2 < p->height; y++)
        for (uint32_t x = 2; x + 2 < p->width; x++)
            assert_int_equal(w->mask[(size_t)y * p->width + x], 1);
    for (int y = 30; y < 34; y++)
        for (int x = 46; x < 50; x++) w->photo_mask[y * PHOTO_WIDTH + x] = 0;
    w->a.photo_mask = w->photo_mask;
    warp_run(w);
    uint64_t hole = 0;
    for (uint32_t y = 2; y + 2 < p->height; y++)
        for (uint32_t x = 2; x + 2 < p->width; x++) hole += !w->mask[(size_t)y * p->width + x];
    assert_true(hole >= 25 && hole <= 81);
    assert_int_equal(w->mask[(size_t)(p->height / 2) * p->width + p->width / 2], 0);
    assert_int_equal(w->mask[(size_t)(p->height / 2) * p->width + p->width / 2 + 8], 1);
    warp_free(w);
    /* where the lens folds, COLMAP shows the photo again; it does not count */
    const double folded[] = {60, 48, 32, -0.9};
    w = warp_new(2, folded, 0, KILN_UNDISTORT_BILINEAR);
    warp_to(w, 60, 128, 96);
    warp_run(w);
    assert_int_equal(w->mask[48 * 128 + 64], 1);
    for (uint32_t x = 0; x < 128; x++) {
        const double ray = (x + 0.5 - 64) / 60, limit = w->a.lens.limit;
        if (fabs(ray) > limit * 1.1) assert_int_equal(w->mask[48 * 128 + x], 0);
        if (fabs(ray) < limit * 0.8) assert_int_equal(w->mask[48 * 128 + x], 1);
    }
    warp_free(w);
}

/* Rounded to 8 bits each value is one of 256; a pinhole of the photo's own gives the photo. */
static void levels_and_identity(void **state)
{
    const double own[] = {80, 80, 48, 32};
    (void)state;
    warp *w = warp_new(4, barrel, 0, KILN_UNDISTORT_BILINEAR);
    w->a.levels = 255;
    warp_run(w);
    for (size_t i = 0; i < 3 * (size_t)w->a.target.width * w->a.target.height; i++) {
        const double v = (double)w->out[i] * 255;
        assert_true(fabs(v - nearbyint(v)) < 1e-4 && v >= 0 && v <= 255);
    }
    warp_free(w);
    for (int filter = 0; filter < 2; filter++) {
        w = warp_new(1, own, 0, (kiln_undistort_filter)filter);
        warp_to(w, 80, PHOTO_WIDTH, PHOTO_HEIGHT);
        warp_run(w);
        for (size_t y = 3; y < PHOTO_HEIGHT - 3; y++)
            for (size_t x = 3; x < PHOTO_WIDTH - 3; x++) {
                const size_t i = y * PHOTO_WIDTH + x;
                assert_int_equal(w->mask[i], 1);
                for (size_t c = 0; c < 3; c++)
                    assert_true(fabsf(w->out[3 * i + c] - w->photo[3 * i + c]) < 1e-6f);
            }
        warp_free(w);
    }
}

static void arguments_are_checked(void **state)
{
    kiln_error err = {0};
    (void)state;
    warp *w = warp_new(4, barrel, 0, KILN_UNDISTORT_BILINEAR);
    const kiln_undistort_args good = w->a;
    assert_int_equal(kiln_undistort_check(&w->a, &err), KILN_OK);
    w->a.channels = 5;
    assert_int_equal(kiln_undistort_check(&w->a, &err), KILN_E_INPUT);
    w->a = good;
    w->a.filter = 2;
    assert_int_equal(kiln_undistort_check(&w->a, &err), KILN_E_INPUT);
    w->a = good;
    w->a.target.width = 0;
    assert_int_equal(kiln_undistort_check(&w->a, &err), KILN_E_INPUT);
    w->a = good;
    w->a.lens.height = (1 << 20) + 1;
    assert_int_equal(kiln_undistort_check(&w->a, &err), KILN_E_INPUT);
    warp_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trigonometry_keeps_its_errors),
        cmocka_unit_test(golden_points_of_every_model),
        cmocka_unit_test(jacobians_are_derivatives),
        cmocka_unit_test(rays_of_corners_are_found),
        cmocka_unit_test(folds_are_found),
        cmocka_unit_test(pinholes_are_those_of_colmap),
        cmocka_unit_test(pinholes_of_wide_lenses_are_bounded),
        cmocka_unit_test(pixels_come_from_where_the_lens_shows_them),
        cmocka_unit_test(masks_follow),
        cmocka_unit_test(levels_and_identity),
        cmocka_unit_test(arguments_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
