/* Orbits, paths between cameras, and cameras for pictures of another size. */
#include "stages/frame/camera_path.h"

#include "stages/cameras/orbit.h"
#include "tests/unit/manifest_fixture.h"

#include <math.h>

#define PI 3.14159265358979323846

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void centre_of(const kiln_camera *c, double out[3])
{
    for (int i = 0; i < 3; i++)
        out[i] = -(c->r[i] * c->t[0] + c->r[3 + i] * c->t[1] + c->r[6 + i] * c->t[2]);
}

static double apart(const double a[3], const double b[3])
{
    return sqrt(pow(a[0] - b[0], 2) + pow(a[1] - b[1], 2) + pow(a[2] - b[2], 2));
}

static bool is_rotation(const double r[9])
{
    /* row 0 x row 1 */
    const double x[3] = {r[1] * r[5] - r[2] * r[4], r[2] * r[3] - r[0] * r[5],
                         r[0] * r[4] - r[1] * r[3]};
    return fabs(dot(r, r) - 1) < 1e-12 && fabs(dot(r + 3, r + 3) - 1) < 1e-12 &&
           fabs(dot(r, r + 3)) < 1e-12 && apart(x, r + 6) < 1e-12;
}

/* A camera at `centre` that is turned about y by these degrees. */
static kiln_camera at(double x, double y, double z, double degrees)
{
    const double c = cos(degrees * PI / 180), s = sin(degrees * PI / 180);
    kiln_camera out = {.r = {c, 0, -s, 0, 1, 0, s, 0, c},
                       .width = 640,
                       .height = 400,
                       .fx = 500,
                       .fy = 510,
                       .cx = 320,
                       .cy = 200};
    for (int i = 0; i < 3; i++)
        out.t[i] = -(out.r[3 * i] * x + out.r[3 * i + 1] * y + out.r[3 * i + 2] * z);
    snprintf(out.model, sizeof out.model, "OPENCV");
    out.photo = "/photo.png";
    out.mask = "";
    out.photo_width = 640;
    out.distorted = true;
    return out;
}

/* ---- size ------------------------------------------------------------------------------------ */
/* Where the camera shows this direction, as a share of the picture's size. */
static void shown_at(const kiln_camera *c, const double d[3], double pixel[2])
{
    pixel[0] = c->fx * d[0] / d[2] + c->cx;
    pixel[1] = c->fy * d[1] / d[2] + c->cy;
}

static void sizes_keep_the_view(void **state)
{
    const double direction[3] = {0.3, -0.2, 1};
    double before[2], after[2];
    kiln_camera c = at(0, 0, 0, 0);
    (void)state;
    c.cx = 333;
    shown_at(&c, direction, before);
    kiln_camera same = c;
    kiln_camera_rescale(&same, 960, 800);
    assert_true(same.distorted == c.distorted && same.photo_width == c.photo_width &&
                same.n_params == c.n_params);
    assert_string_equal(same.photo, c.photo);
    kiln_camera_resize(&c, 960, 800);
    assert_true(same.fx == c.fx && same.fy == c.fy && same.cx == c.cx && same.cy == c.cy &&
                same.width == 960 && same.height == 800);
    shown_at(&c, direction, after);
    assert_true(fabs(after[0] - 1.5 * before[0]) < 1e-9 && fabs(after[1] - 2 * before[1]) < 1e-9);
    assert_true(c.width == 960 && c.height == 800 && !c.photo[0] && !c.distorted &&
                c.photo_width == 0);
    assert_string_equal(c.model, "PINHOLE");
    assert_true(c.n_params == 4 && c.params[0] == c.fx && c.params[3] == c.cy);
    assert_int_equal(kiln_camera_scaled(401, 0.5), 201);
    assert_int_equal(kiln_camera_scaled(3, 0.001), 1);
    assert_int_equal(kiln_camera_scaled(UINT32_MAX, 64), KILN_CAMERA_SIZE_MAX);
}

/* Not stretched; the corners that it showed are within the picture, two of their sides at its
 * edge. */
static void a_fitted_camera_shows_all_that_it_showed(void **state)
{
    (void)state;
    static const uint32_t shapes[][2] = {{400, 400}, {1920, 1080}, {100, 900}, {640, 400}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        kiln_camera c = at(0, 0, 0, 0);
        c.cx = 300;
        const double corners[2][3] = {{-300 / 500.0, -200 / 510.0, 1},
                                      {340 / 500.0, 200 / 510.0, 1}};
        double low[2], high[2];
        kiln_camera_fit(&c, shapes[s][0], shapes[s][1]);
        assert_true(c.width == shapes[s][0] && c.height == shapes[s][1]);
        assert_true(fabs(c.fx / c.fy - 500 / 510.0) < 1e-12);
        shown_at(&c, corners[0], low);
        shown_at(&c, corners[1], high);
        assert_true(low[0] > -1e-9 && low[1] > -1e-9 && high[0] < c.width + 1e-9 &&
                    high[1] < c.height + 1e-9);
        assert_true(fabs(low[0]) < 1e-9 || fabs(low[1]) < 1e-9);
        assert_true(fabs(low[0] + high[0] - c.width) < 1e-9 &&
                    fabs(low[1] + high[1] - c.height) < 1e-9);
    }
}

/* ---- orbit ----------------------------------------------------------------------------------- */
static void orbits_are_upright_and_look_at_the_centre(void **state)
{
    (void)state;
    const kiln_camera lens = at(0, 0, 0, 0);
    kiln_orbit_shape shape = {.centre = {1, 2, 3},
                              .up = {0, -0.6, 0.8},
                              .radius = 5,
                              .height = 1.5,
                              .start = {2, 0.7, -0.3}};
    const double from_centre = sqrt(5 * 5 + 1.5 * 1.5);
    double before[3], p[3];
    for (uint32_t i = 0; i < 7; i++) {
        kiln_camera c;
        kiln_camera_path_orbit(&shape, &lens, i, 7, &c);
        assert_true(is_rotation(c.r));
        assert_true(c.width == 640 && c.height == 400 && c.fx == 500 && c.fy == 510 &&
                    c.cx == 320 && c.cy == 200);
        assert_true(!c.photo[0] && !c.distorted);
        centre_of(&c, p);
        for (int k = 0; k < 3; k++) p[k] -= shape.centre[k];
        assert_true(fabs(dot(p, shape.up) - 1.5) < 1e-12 &&
                    fabs(sqrt(dot(p, p)) - from_centre) < 1e-12);
        assert_true(fabs(dot(c.r, shape.up)) < 1e-12);            /* its x axis is level */
        assert_true(dot(c.r + 3, shape.up) < -0.9);               /* y is down */
        assert_true(fabs(dot(c.r + 6, p) + from_centre) < 1e-12); /* it looks at the centre */
        if (i == 0) {
            double side[3];
            const double along = dot(shape.start, shape.up);
            for (int k = 0; k < 3; k++) side[k] = shape.start[k] - along * shape.up[k];
            assert_true(fabs(dot(side, p) - 5 * sqrt(dot(side, side))) < 1e-12);
        } else { /* each turn is by 360 / 7 degrees, counter-clockwise */
            const double angle = 2 * PI / 7;
            double turned = before[0] * (p[1] * shape.up[2] - p[2] * shape.up[1]) +
                            before[1] * (p[2] * shape.up[0] - p[0] * shape.up[2]) +
                            before[2] * (p[0] * shape.up[1] - p[1] * shape.up[0]);
            assert_true(fabs(turned - 25 * sin(angle)) < 1e-11);
            assert_true(fabs(dot(before, p) - 1.5 * 1.5 - 25 * cos(angle)) < 1e-11);
        }
        memcpy(before, p, sizeof before);
    }
    for (int axis = 0; axis < 3; axis++) { /* a start that says nothing */
        kiln_camera c;
        shape = (kiln_orbit_shape){.radius = 1};
        shape.up[axis] = shape.start[axis] = 1;
        kiln_camera_path_orbit(&shape, &lens, 0, 1, &c);
        assert_true(is_rotation(c.r) && fabs(c.r[axis]) < 1e-15);
    }
}

/* What the cameras of an orbit say is that orbit again. */
static void cameras_say_their_orbit(void **state)
{
    (void)state;
    enum { N = 11 };
    kiln_camera cameras[N], lens = at(0, 0, 0, 0);
    const kiln_orbit_shape shape = {.centre = {1e4, -2, 3},
                                    .up = {0.48, -0.6, 0.64},
                                    .radius = 2.5,
                                    .height = 0.75,
                                    .start = {1, 0, 0}};
    kiln_orbit_shape again = {0};
    kiln_error err = {0};
    bool found = false;
    for (uint32_t i = 0; i < N; i++) kiln_camera_path_orbit(&shape, &lens, i, N, &cameras[i]);
    cameras[7].t[2] += 40; /* one that stands elsewhere, with the same axis */
    kiln_camera_path_up("", KILN_POSES(cameras, N), again.up);
    assert_true(apart(again.up, shape.up) < 1e-9);
    assert_true(kiln_camera_path_focus(KILN_POSES(cameras, N), again.centre));
    assert_true(apart(again.centre, shape.centre) < 1e-6);
    memcpy(again.up, shape.up, sizeof again.up);
    assert_int_equal(kiln_camera_path_around(cameras, N, &again, &found, &err), KILN_OK);
    assert_true(found && fabs(again.radius - 2.5) < 1e-6 && fabs(again.height - 0.75) < 1e-6);
    kiln_camera_path_up("z", KILN_POSES(cameras, N), again.up); /* the scene knows better */
    assert_true(again.up[0] == 0 && again.up[1] == 0 && again.up[2] == 1);
}

/* Cameras that look down from various heights: the mean of their own up leans, the level does
 * not. */
static void level_cameras_say_up(void **state)
{
    (void)state;
    enum { N = 9 };
    kiln_camera cameras[N], lens = at(0, 0, 0, 0);
    double up[3];
    kiln_orbit_shape shape = {.up = {0, 0, 1}, .radius = 3};
    for (uint32_t i = 0; i < N; i++) {
        shape.height = i * 0.6;
        kiln_camera_path_orbit(&shape, &lens, i, 2 * N, &cameras[i]); /* half of a circle */
    }
    kiln_camera_path_up("", KILN_POSES(cameras, N), up);
    assert_true(apart(up, shape.up) < 1e-9);
    /* none of them turns: their own up, which is -y */
    for (uint32_t i = 0; i < N; i++) cameras[i] = at(i, 0, 0, 0);
    kiln_camera_path_up("", KILN_POSES(cameras, N), up);
    assert_true(up[0] == 0 && up[1] == -1 && up[2] == 0);
    kiln_camera_path_up("", KILN_POSES((const kiln_camera *)NULL, 0), up);
    assert_true(up[0] == 0 && up[1] == -1 && up[2] == 0);
}

static void cameras_without_a_focus_have_none(void **state)
{
    (void)state;
    kiln_camera cameras[4];
    double point[3];
    kiln_error err = {0};
    bool found = true;
    for (int i = 0; i < 4; i++) cameras[i] = at(i, 0, 0, 5);
    assert_false(kiln_camera_path_focus(KILN_POSES(cameras, 4), point)); /* parallel */
    assert_false(kiln_camera_path_focus(KILN_POSES(cameras, 1), point));
    assert_false(kiln_camera_path_focus(KILN_POSES(cameras, 0), point));
    for (int i = 0; i < 4; i++) { /* back to back: they look outwards */
        cameras[i] = at(sin(i * PI / 2), 0, cos(i * PI / 2), i * 90);
        assert_true(is_rotation(cameras[i].r));
    }
    const bool outwards = kiln_camera_path_focus(KILN_POSES(cameras, 4), point);
    for (int i = 0; i < 4; i++) cameras[i] = at(-sin(i * PI / 2), 0, -cos(i * PI / 2), i * 90);
    assert_true(kiln_camera_path_focus(KILN_POSES(cameras, 4), point) != outwards && !outwards);
    kiln_orbit_shape above = {.up = {0, -1, 0}};
    cameras[0] = at(0, -3, 0, 0);
    assert_int_equal(kiln_camera_path_around(cameras, 1, &above, &found, &err), KILN_OK);
    assert_false(found);
}

static void a_contained_sphere_touches_the_edge(void **state)
{
    (void)state;
    kiln_orbit_shape shape = {.up = {0, -1, 0}};
    kiln_camera lens;
    kiln_camera_path_lens(&lens);
    kiln_camera_path_contain(&lens, 2, &shape);
    const double far_away = sqrt(shape.radius * shape.radius + shape.height * shape.height);
    assert_true(fabs(2 / far_away - sin(25 * PI / 180)) < 1e-12);
    assert_true(fabs(shape.height / far_away - sin(20 * PI / 180)) < 1e-12);
}

/* ---- between cameras ------------------------------------------------------------------------- */
static void slerp_is_that_of_shoemake(void **state)
{
    (void)state;
    for (int turn = 0; turn < 200; turn++) {
        double a[4], b[4], out[4], norm_a = 0, norm_b = 0, cosine = 0;
        for (int i = 0; i < 4; i++) {
            a[i] = sin(turn * 7.0 + i * 3.1);
            b[i] = cos(turn * 5.0 + i * 1.7);
            norm_a += a[i] * a[i];
            norm_b += b[i] * b[i];
        }
        for (int i = 0; i < 4; i++) {
            a[i] /= sqrt(norm_a);
            b[i] /= sqrt(norm_b);
            cosine += a[i] * b[i];
        }
        const double share = turn / 199.0, angle = acos(fabs(cosine)), sign = cosine < 0 ? -1 : 1;
        kiln_slerp(a, b, share, out);
        for (int i = 0; i < 4; i++) {
            const double want =
                (sin((1 - share) * angle) * a[i] + sign * sin(share * angle) * b[i]) / sin(angle);
            assert_true(fabs(out[i] - want) < 1e-12);
        }
    }
    const double one[4] = {1, 0, 0, 0}, same[4] = {-1, 0, 0, 0};
    double out[4];
    kiln_slerp(one, same, 0.3, out);
    assert_memory_equal(out, one, sizeof one);
}

/* The cubic of Yuksel et al.: its tangent at a point by their formula for any knots, by which its
 * middle is Hermite's. */
static void the_curve_is_centripetal(void **state)
{
    (void)state;
    const double p[4][3] = {{0, 0, 0}, {1, 2, 0}, {5, 2, -1}, {5, 3, 4}};
    double t[4] = {0}, out[3], m[2][3];
    for (int i = 1; i < 4; i++) t[i] = t[i - 1] + sqrt(apart(p[i], p[i - 1]));
    for (int k = 0; k < 3; k++)
        for (int e = 1; e < 3; e++)
            m[e - 1][k] = ((p[e][k] - p[e - 1][k]) / (t[e] - t[e - 1]) -
                           (p[e + 1][k] - p[e - 1][k]) / (t[e + 1] - t[e - 1]) +
                           (p[e + 1][k] - p[e][k]) / (t[e + 1] - t[e])) *
                          (t[2] - t[1]);
    kiln_catmull_rom(p, 0.5, out);
    for (int k = 0; k < 3; k++)
        assert_true(fabs(out[k] - (0.5 * (p[1][k] + p[2][k]) + 0.125 * (m[0][k] - m[1][k]))) <
                    1e-13);
    kiln_catmull_rom(p, 0, out);
    assert_memory_equal(out, p[1], sizeof out);
    kiln_catmull_rom(p, 1, out);
    assert_memory_equal(out, p[2], sizeof out);
    const double still[4][3] = {{1, 2, 3}, {1, 2, 3}, {1, 2, 3}, {1, 2, 3}},
                 half[4][3] = {{1, 0, 0}, {1, 0, 0}, {2, 0, 0}, {2, 0, 0}};
    kiln_catmull_rom(still, 0.4, out);
    assert_memory_equal(out, still[0], sizeof out);
    kiln_catmull_rom(half, 0.25, out);
    assert_true(out[0] > 1 && out[0] < 2 && out[1] == 0);
}

static void check_between(const kiln_camera *through, uint32_t n_through, bool constant, uint32_t n,
                          kiln_camera *out)
{
    kiln_error err = {0};
    assert_int_equal(kiln_camera_path_between(through, n_through, constant, n, out, &err), KILN_OK);
    for (uint32_t i = 0; i < n; i++)
        assert_true(is_rotation(out[i].r) && out[i].width == through[0].width && !out[i].photo[0]);
    /* the first and the last are those cameras, bit by bit */
    assert_memory_equal(out[0].r, through[0].r, sizeof out->r);
    assert_memory_equal(out[0].t, through[0].t, sizeof out->t);
    if (n > 1) assert_memory_equal(out[n - 1].t, through[n_through - 1].t, sizeof out->t);
}

static void paths_go_through_their_cameras(void **state)
{
    (void)state;
    enum { K = 4, N = 31 };
    kiln_camera through[K] = {at(0, 0, 0, 0), at(4, 0, 0, 30), at(4, 0, 4, 80), at(4, 4, 4, 170)},
                out[N];
    through[1].fx = through[1].fy = 1000;
    /* fits into half of its size */
    through[2].width = 1280, through[2].height = 800, through[2].cx = 640, through[2].cy = 400;
    check_between(through, K, false, N, out);
    for (uint32_t i = 0; i < K; i++) { /* of equal distances: as many steps for each */
        for (int k = 0; k < 3; k++) assert_true(fabs(out[10 * i].t[k] - through[i].t[k]) < 1e-12);
        for (int k = 0; k < 9; k++) assert_true(fabs(out[10 * i].r[k] - through[i].r[k]) < 1e-12);
    }
    assert_true(fabs(out[10].fx - 1000) < 1e-9 && fabs(out[5].fx - 750) < 1e-9 &&
                fabs(out[20].fx - 250) < 1e-9);
    assert_true(fabs(out[20].cx - 320) < 1e-9);
    assert_true(fabs(out[5].r[0] - cos(15 * PI / 180)) < 1e-12); /* half of the turn */
    check_between(through, 2, false, 2, out);
    check_between(through, 2, true, 1, out);
}

/* Neither the length of steps nor their direction jumps, where cameras are at unequal distances
 * either. */
static void paths_are_smooth(void **state)
{
    (void)state;
    enum { K = 4, N = 1000 };
    kiln_camera through[K] = {at(0, 0, 0, 0), at(1, 0, 0, 10), at(1, 9, 0, 20), at(3, 9, 2, 30)},
                *out;
    out = calloc(N, sizeof *out);
    assert_non_null(out);
    check_between(through, K, false, N, out);
    for (uint32_t i = 1; i + 1 < N; i++) {
        double a[3], b[3], c[3], change = 0;
        centre_of(&out[i - 1], a);
        centre_of(&out[i], b);
        centre_of(&out[i + 1], c);
        for (int k = 0; k < 3; k++) change += pow(c[k] - 2 * b[k] + a[k], 2);
        assert_true(sqrt(change) < 0.03 * apart(a, b));
    }
    free(out);
}

static void steps_of_constant_speed_are_of_one_length(void **state)
{
    (void)state;
    enum { K = 4, N = 400 };
    kiln_camera through[K] = {at(0, 0, 0, 0), at(1, 0, 0, 10), at(1, 5, 0, 20), at(12, 5, 1, 30)},
                *out;
    double least = 1e9, most = 0, a[3], b[3];
    out = calloc(N, sizeof *out);
    assert_non_null(out);
    check_between(through, K, true, N, out);
    for (uint32_t i = 1; i < N; i++) {
        centre_of(&out[i - 1], a);
        centre_of(&out[i], b);
        least = fmin(least, apart(a, b));
        most = fmax(most, apart(a, b));
    }
    assert_true(most < 1.02 * least);
    /* a turn on the spot takes as long as another segment, and does not jump */
    through[1] = at(0, 0, 0, 90);
    check_between(through, 3, true, N, out);
    for (uint32_t i = 1; i < N; i++) assert_true(dot(out[i - 1].r + 6, out[i].r + 6) > 0.999);
    centre_of(&out[N / 2 - 2], a);
    assert_true(apart(a, (double[3]){0, 0, 0}) == 0);
    for (int i = 0; i < K; i++) through[i] = at(1, 2, 3, 20 * i); /* nothing but turns */
    check_between(through, K, true, N, out);
    free(out);
}

static void closed_paths_have_no_bend(void **state)
{
    (void)state;
    enum { K = 5, N = 401 };
    kiln_camera through[K] = {at(1, 0, 0, 0), at(0, 0, 1, 90), at(-1, 0, 0, 180), at(0, 0, -1, 270),
                              at(1, 0, 0, 0)},
                *out;
    double first[3], second[3], last[3], before[3];
    out = calloc(N, sizeof *out);
    assert_non_null(out);
    check_between(through, K, false, N, out);
    centre_of(&out[0], first);
    centre_of(&out[1], second);
    centre_of(&out[N - 2], before);
    centre_of(&out[N - 1], last);
    for (int k = 0; k < 3; k++)
        assert_true(fabs((second[k] - first[k]) - (last[k] - before[k])) < 1e-3);
    /* round: between four places of a circle the curve is within it by up to a ninth */
    for (uint32_t i = 0; i < N; i++) {
        centre_of(&out[i], first);
        assert_true(dot(first, first) > 0.78 && dot(first, first) < 1 + 1e-9);
    }
    centre_of(&out[50], first);
    assert_true(fabs(dot(first, first) - 2 * 0.625 * 0.625) < 1e-9);
    free(out);
}

/* The point is in the middle of the picture, before the camera, which stays where it is and
 * upright. */
static void cameras_turn_to_a_point(void **state)
{
    (void)state;
    const double up[3] = {0, -1, 0},
                 points[4][3] = {{3, 2, -1}, {-40, 0.5, 7}, {1, 100, 2}, {1, -100, 2}};
    for (int i = 0; i < 4; i++) {
        kiln_camera c = at(1, 0.25, 2, 33), before = c;
        double eye[3], was[3], p[3];
        centre_of(&before, was);
        const double own_down[3] = {before.r[3], before.r[4], before.r[5]};
        kiln_camera_path_look_at(points[i], up, &c);
        centre_of(&c, eye);
        for (int k = 0; k < 3; k++) assert_true(fabs(eye[k] - was[k]) < 1e-12);
        for (int k = 0; k < 3; k++) p[k] = dot(c.r + 3 * k, points[i]) + c.t[k];
        assert_true(p[2] > 1 && fabs(p[0]) < 1e-9 && fabs(p[1]) < 1e-9);
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++)
                assert_true(fabs(dot(c.r + 3 * a, c.r + 3 * b) - (a == b)) < 1e-12);
        assert_true(fabs(dot(c.r, up)) < 1e-12 && dot(c.r + 3, own_down) >= -1e-12);
    }
    kiln_camera there = at(1, 0, 2, 33), same = there;
    double eye[3];
    centre_of(&there, eye);
    kiln_camera_path_look_at(eye, up, &there);
    assert_memory_equal(&there, &same, sizeof there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_keep_the_view),
        cmocka_unit_test(a_fitted_camera_shows_all_that_it_showed),
        cmocka_unit_test(orbits_are_upright_and_look_at_the_centre),
        cmocka_unit_test(cameras_say_their_orbit),
        cmocka_unit_test(level_cameras_say_up),
        cmocka_unit_test(cameras_without_a_focus_have_none),
        cmocka_unit_test(a_contained_sphere_touches_the_edge),
        cmocka_unit_test(slerp_is_that_of_shoemake),
        cmocka_unit_test(the_curve_is_centripetal),
        cmocka_unit_test(paths_go_through_their_cameras),
        cmocka_unit_test(paths_are_smooth),
        cmocka_unit_test(steps_of_constant_speed_are_of_one_length),
        cmocka_unit_test(closed_paths_have_no_bend),
        cmocka_unit_test(cameras_turn_to_a_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
