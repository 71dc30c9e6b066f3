/* import_frame -- where an import puts its frame: origin, root cube, synthetic cameras, random
 * points. */
#include "base/vec3.h"
#include "stages/cameras/orbit.h"
#include "stages/import/blocks.h"
#include "stages/import/origin.h"
#include "stages/import/random_points.h"
#include "stages/select/up_axis.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- origin ---------------------------------------------------------------------------------- */

static unsigned find_origin(const double *means, const unsigned char *skip, uint64_t n,
                            double out[3])
{
    kiln_origin o;
    unsigned passes = 0;
    assert_int_equal(kiln_origin_init(&o, NULL), KILN_OK);
    do {
        kiln_origin_add(&o, means, skip, n);
        passes++;
    } while (kiln_origin_next(&o, out));
    kiln_origin_release(&o);
    return passes;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* By the definition: sorted axes, nearest ranks. */
static void brute_origin(const double *means, uint64_t n, double out[3])
{
    double lo[3], hi[3], largest = 0, diagonal2 = 0;
    for (uint32_t a = 0; a < 3; a++) {
        double *axis = malloc(n * sizeof *axis);
        memcpy(axis, means + a * n, n * sizeof *axis);
        qsort(axis, n, sizeof *axis, ascending);
        lo[a] = axis[(n + 99) / 100 - 1];
        hi[a] = axis[(99 * n + 99) / 100 - 1];
        for (uint64_t i = 0; i < n; i++) largest = fmax(largest, fabs(axis[i]));
        diagonal2 += (hi[a] - lo[a]) * (hi[a] - lo[a]);
        free(axis);
    }
    for (uint32_t a = 0; a < 3; a++)
        out[a] = largest > 256 * sqrt(diagonal2) ? floor((lo[a] + hi[a]) / 2 + 0.5) : 0;
}

static void origin_is_the_rounded_centre_of_far_scenes_only(void **state)
{
    enum { N = 1003 };
    static const double centres[] = {0, 10, 1000, 2559, 2561, 5e5, -4e6, 1e12};
    static const double sizes[] = {1e-3, 1, 10, 100};
    double *means = malloc(3 * N * sizeof *means);
    unsigned char *skip = calloc(N, 1);
    (void)state;
    srand48(7);
    for (size_t c = 0; c < sizeof centres / sizeof *centres; c++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            double got[3], want[3];
            for (uint32_t i = 0; i < 3 * N; i++)
                means[i] = centres[c] * (i / N == 0 ? 1 : 0.5) + sizes[k] * drand48();
            means[5] = means[N + 9] = centres[c] * 1.5; /* outliers */
            find_origin(means, skip, N, got);
            brute_origin(means, N, want);
            assert_memory_equal(got, want, sizeof got);
        }
    free(means);
    free(skip);
}

static void an_ordinary_scene_needs_one_pass_and_dropped_rows_do_not_count(void **state)
{
    enum { N = 500 };
    double means[3 * N], origin[3];
    unsigned char skip[N] = {0};
    (void)state;
    srand48(3);
    for (int i = 0; i < 3 * N; i++) means[i] = drand48() * 20 - 10;
    assert_int_equal(find_origin(means, skip, N, origin), 1);
    assert_true(origin[0] == 0 && origin[1] == 0 && origin[2] == 0);
    means[4] = NAN;
    means[7] = 1e300;
    skip[4] = skip[7] = 1;
    assert_int_equal(find_origin(means, skip, N, origin), 1);
    assert_true(origin[0] == 0);
    memset(skip, 1, sizeof skip);
    assert_int_equal(find_origin(means, skip, N, origin), 1);
}

/* ---- root cube ------------------------------------------------------------------------------- */

static void root_cube_is_a_power_of_two_about_a_rounded_centre(void **state)
{
    static const struct {
        float lo[3], hi[3];
        double half;
    } cases[] = {
        /* 1.01 is more than 1 */
        {{-1, -1, -1}, {1, 1, 1}, 2},     {{-0.99f, 0, 0}, {0.99f, 0, 0}, 1},
        {{5, 5, 5}, {5, 5, 5}, 0x1p-20}, /* all points equal */
        {{0, -100, 3}, {1, 300, 4}, 256}, {{0, 0, 0}, {1e-9f, 0, 0}, 0x1p-20},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        double centre[3], half;
        kiln_root_cube(cases[k].lo, cases[k].hi, centre, &half);
        assert_true(half == cases[k].half);
        for (int a = 0; a < 3; a++) {
            double middle = ((double)cases[k].lo[a] + (double)cases[k].hi[a]) / 2,
                   steps = centre[a] / (half / 1024);
            assert_true(fabs(centre[a] - middle) <= half / 2048);
            assert_true(steps == floor(steps));
        }
    }
}

/* ---- orbit ----------------------------------------------------------------------------------- */

static void project(const kiln_camera *c, const double p[3], double out[3])
{
    double q[3];
    for (int i = 0; i < 3; i++)
        q[i] = c->r[3 * i] * p[0] + c->r[3 * i + 1] * p[1] + c->r[3 * i + 2] * p[2] + c->t[i];
    out[0] = c->fx * q[0] / q[2] + c->cx;
    out[1] = c->fy * q[1] / q[2] + c->cy;
    out[2] = q[2];
}

static void orbit_cameras_see_the_whole_box_the_right_way_up(void **state)
{
    static const char *const ups[] = {"", "y", "-y", "z", "x", "-x", "0 0.5 1"};
    const double lo[3] = {-3, 10, 2}, hi[3] = {5, 14, 3}, centre[3] = {1, 12, 2.5};
    (void)state;
    for (size_t k = 0; k < sizeof ups / sizeof *ups; k++) {
        kiln_camera c[KILN_ORBIT_CAMERAS];
        double up[3];
        kiln_up_vector(ups[k], up);
        kiln_orbit(ups[k], lo, hi, c);
        for (int i = 0; i < KILN_ORBIT_CAMERAS; i++) {
            double m[3], above[3], pixel[3], det;
            const double *r = c[i].r;
            det = r[0] * (r[4] * r[8] - r[5] * r[7]) - r[1] * (r[3] * r[8] - r[5] * r[6]) +
                  r[2] * (r[3] * r[7] - r[4] * r[6]);
            assert_true(fabs(det - 1) < 1e-12);
            project(&c[i], centre, m);
            assert_true(fabs(m[0] - c[i].cx) < 1e-6 && fabs(m[1] - c[i].cy) < 1e-6 && m[2] > 0);
            for (int a = 0; a < 3; a++) above[a] = centre[a] + 0.1 * up[a];
            project(&c[i], above, pixel);
            assert_true(pixel[1] < m[1] && fabs(pixel[0] - m[0]) < 1e-6);
            for (int corner = 0; corner < 8; corner++) {
                const double p[3] = {corner & 1 ? lo[0] : hi[0], corner & 2 ? lo[1] : hi[1],
                                     corner & 4 ? lo[2] : hi[2]};
                project(&c[i], p, pixel);
                assert_true(pixel[2] > 0 && pixel[0] >= 0 && pixel[0] <= c[i].width &&
                            pixel[1] >= 0 && pixel[1] <= c[i].height);
            }
            assert_true(c[i].synthetic);
        }
    }
}

static void inner_orbit_cameras_stand_where_they_should(void **state)
{
    static const char *const ups[] = {"", "y", "z", "0 0.5 1"};
    const double middle[3] = {3, -1, 7}, radius = 2.5;
    (void)state;
    for (size_t k = 0; k < sizeof ups / sizeof *ups; k++) {
        kiln_camera c[KILN_ORBIT_CAMERAS];
        double up[3];
        kiln_up_vector(ups[k], up);
        kiln_orbit_inner(ups[k], middle, radius, c);
        for (int i = 0; i < KILN_ORBIT_CAMERAS; i++) {
            double eye[3], m[3], height = 0, square = 0;
            kiln_pose_centre(c[i].r, c[i].t, eye);
            for (int a = 0; a < 3; a++) {
                height += (eye[a] - middle[a]) * up[a];
                square += (eye[a] - middle[a]) * (eye[a] - middle[a]);
            }
            assert_true(fabs(height - radius * KILN_ORBIT_INNER_ABOVE) < 1e-9);
            assert_true(fabs(sqrt(square - height * height) - radius * KILN_ORBIT_INNER_ACROSS) <
                        1e-9);
            project(&c[i], middle, m);
            assert_true(fabs(m[0] - c[i].cx) < 1e-6 && fabs(m[1] - c[i].cy) < 1e-6 && m[2] > 0);
            assert_true(kiln_orbit_is_inner(&c[i]));
            c[i].synthetic = false; /* a name of the user's says nothing */
            assert_false(kiln_orbit_is_inner(&c[i]));
        }
        kiln_orbit(ups[k], (const double[3]){-1, -1, -1}, (const double[3]){1, 1, 1}, c);
        assert_false(kiln_orbit_is_inner(&c[0]));
    }
}

/* ---- random points --------------------------------------------------------------------------- */

static void random_points_do_not_depend_on_how_they_are_cut(void **state)
{
    enum { N = 1000, CUT = 300 };
    kiln_source_info *info = calloc(1, sizeof *info);
    kiln_rows whole, part;
    const double box[6] = {-1, 0, 5, 1, 0.5, 9};
    (void)state;
    info->kind = KILN_SCENE_POINTS;
    assert_int_equal(kiln_rows_alloc(&whole, info, NULL), KILN_OK);
    assert_int_equal(kiln_rows_alloc(&part, info, NULL), KILN_OK);
    kiln_random_points(42, box, 0, N, &whole);
    kiln_random_points(42, box, CUT, N - CUT, &part);
    double mean[3] = {0};
    for (uint32_t c = 0; c < 3; c++) {
        for (uint32_t i = 0; i < N; i++) {
            double v = whole.means[c * N + i];
            assert_true(v >= box[c] && v <= box[c + 3]);
            assert_true(whole.rgb[c * N + i] >= 0 && whole.rgb[c * N + i] < 1);
            mean[c] += (v - box[c]) / (box[c + 3] - box[c]) / N;
            if (i >= CUT) assert_true(v == part.means[c * (N - CUT) + i - CUT]);
        }
        assert_true(fabs(mean[c] - 0.5) < 0.05);
    }
    kiln_random_points(43, box, CUT, N - CUT, &part);
    assert_true(part.means[0] != whole.means[CUT]);
    kiln_rows_release(&whole);
    kiln_rows_release(&part);
    free(info);
}

static void random_box_is_that_of_the_camera_centres(void **state)
{
    kiln_camera *c = calloc(2, sizeof *c);
    double box[6];
    (void)state;
    for (int i = 0; i < 2; i++) c[i].r[0] = c[i].r[4] = c[i].r[8] = 1;
    c[1].t[0] = -10; /* centre +10 */
    kiln_random_box(c, 2, false, box);
    assert_true(box[0] == 0 && box[3] == 10);
    assert_true(box[4] - box[1] > 0.99 && box[4] - box[1] < 1.01); /* flat axes get a tenth */
    kiln_random_box(c, 2, true, box);
    assert_true(box[0] == -1.3 && box[5] == 1.3);
    kiln_random_box(c, 1, false, box);
    assert_true(box[3] > box[0]);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(origin_is_the_rounded_centre_of_far_scenes_only),
        cmocka_unit_test(an_ordinary_scene_needs_one_pass_and_dropped_rows_do_not_count),
        cmocka_unit_test(root_cube_is_a_power_of_two_about_a_rounded_centre),
        cmocka_unit_test(orbit_cameras_see_the_whole_box_the_right_way_up),
        cmocka_unit_test(inner_orbit_cameras_stand_where_they_should),
        cmocka_unit_test(random_points_do_not_depend_on_how_they_are_cut),
        cmocka_unit_test(random_box_is_that_of_the_camera_centres),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
