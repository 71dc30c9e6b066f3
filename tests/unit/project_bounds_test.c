/* project_bounds_test -- tile bounds hold every pixel that can show, and a chunk is ruled out only
 * when nothing of it is visible: against the projection itself, over random cameras and boxes. */
#include "kernels/math/power_math.h"
#include "tests/unit/project_planes.h"

#include <float.h>

/* Tiles that hold a pixel with power >= power_min, found by looking at all pixels. */
static void brute_tiles(const kiln_splat2d *s, const kiln_view *v, int32_t box[4])
{
    box[0] = box[1] = INT32_MAX;
    box[2] = box[3] = INT32_MIN;
    for (uint32_t y = 0; y < v->height; y++)
        for (uint32_t x = 0; x < v->width; x++) {
            const float power = kiln_power(s->conic[0], s->conic[1], s->conic[2],
                                           kiln_power_offset(s->x, x), kiln_power_offset(s->y, y));
            if (!(power >= s->power_min)) continue;
            const int32_t tx = (int32_t)x / KILN_TILE, ty = (int32_t)y / KILN_TILE;
            box[0] = tx < box[0] ? tx : box[0];
            box[1] = ty < box[1] ? ty : box[1];
            box[2] = tx + 1 > box[2] ? tx + 1 : box[2];
            box[3] = ty + 1 > box[3] ? ty + 1 : box[3];
        }
}

/* Some of them needles: two axes tiny, one up to thousands of pixels long. */
static void needles(gaussian *g, uint64_t n)
{
    kg_rng r = {kg_stream(9, 9), 0};
    random_gaussians(g, n, 3);
    for (uint64_t i = 0; i < n; i += 2) {
        g[i].log_scale[0] = (float)uniform(&r, -2, 9);
        g[i].log_scale[1] = g[i].log_scale[2] = (float)uniform(&r, -12, -5);
        g[i].opacity_logit = (float)uniform(&r, -5.4, 8);
    }
}

static void gsplat_bounds_hold_every_pixel_that_can_show(void **state)
{
    (void)state;
    enum { N = 900 };
    static gaussian g[N];
    static kiln_splat2d out[N];
    kiln_view view;
    view_of(&view);
    needles(g, N);
    const planes p = planes_of(g, N);
    int64_t ours = 0, least = 0; /* tiles in the bounds of those that are no needles */
    const uint64_t visible = project(&p, &view, (how){.profile = KILN_PROFILE_GSPLAT_16}, out);
    assert_true(visible > 150);
    for (uint64_t i = 0; i < visible; i++) {
        int32_t box[4];
        const kiln_splat2d *s = &out[i];
        brute_tiles(s, &view, box);
        assert_true(s->tile_x0 >= 0 && s->tile_x1 <= (int32_t)kiln_view_tiles_x(&view) &&
                    s->tile_x0 <= s->tile_x1);
        assert_true(s->tile_y0 >= 0 && s->tile_y1 <= (int32_t)kiln_view_tiles_y(&view) &&
                    s->tile_y0 <= s->tile_y1);
        if (box[0] == INT32_MAX) continue;
        assert_true(s->tile_x0 <= box[0] && s->tile_y0 <= box[1] && s->tile_x1 >= box[2] &&
                    s->tile_y1 >= box[3]);
        if (s->row % 2 == 0) continue;
        ours += (s->tile_x1 - s->tile_x0) * (s->tile_y1 - s->tile_y0);
        least += (box[2] - box[0]) * (box[3] - box[1]);
    }
    assert_true(least > 500 && ours < least + least / 5);
    free(p.data);
}

/* In a large image, diagonal needles a thousand pixels long: nearly all digits of the determinant
 * cancel, and a bound made from its float32 value would cut off tips. In each column outside the
 * bounds the best pixels are looked at. */
static void bounds_of_long_needles_cut_off_no_tip(void **state)
{
    (void)state;
    enum { N = 200, SIZE = 8192 };
    static gaussian g[N];
    static kiln_splat2d out[N];
    const double r[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, zero[3] = {0, 0, 0},
                 intrinsics[4] = {SIZE, SIZE, SIZE / 2, SIZE / 2};
    kiln_view view;
    kg_rng random = {kg_stream(6, 6), 0};
    kiln_view_init(&view, r, zero, zero, intrinsics, SIZE, SIZE, 0.2f, 100.0f);
    random_gaussians(g, N, 7);
    for (uint64_t i = 0; i < N; i++) {
        const double half_turn = uniform(&random, 0.7, 0.87) / 2; /* about 45 degrees around z */
        g[i].mean[0] = (float)uniform(&random, -0.05, 0.05);
        g[i].mean[1] = (float)uniform(&random, -0.05, 0.05);
        g[i].mean[2] = 1;
        g[i].log_scale[0] = (float)uniform(&random, -3, -2);
        g[i].log_scale[1] = g[i].log_scale[2] = -14;
        g[i].quat[0] = (float)cos(half_turn);
        g[i].quat[1] = g[i].quat[2] = 0;
        g[i].quat[3] = (float)sin(half_turn);
        g[i].opacity_logit = 6;
    }
    const planes p = planes_of(g, N);
    assert_int_equal(project(&p, &view, (how){.profile = KILN_PROFILE_GSPLAT_16}, out), N);
    free(p.data);
    for (const kiln_splat2d *s = out; s < out + N; s++)
        for (uint32_t x = 0; x < SIZE; x++) {
            if ((int32_t)x / KILN_TILE >= s->tile_x0 && (int32_t)x / KILN_TILE < s->tile_x1)
                continue;
            const float dx = kiln_power_offset(s->x, x);
            /* where dy = -B dx / C */
            const double best = s->y + (double)s->conic[1] * dx / s->conic[2];
            for (int k = -3; k <= 3; k++) {
                if (best + k < 0 || best + k >= SIZE) continue;
                const float dy = kiln_power_offset(s->y, (uint32_t)(best + k));
                assert_false(kiln_power(s->conic[0], s->conic[1], s->conic[2], dx, dy) >=
                             s->power_min);
            }
        }
}

/* A camera anywhere, looking anywhere. */
static void any_view(kg_rng *r, kiln_view *v)
{
    double q[4], n = 0, m[9], t[3];
    for (int i = 0; i < 4; i++) {
        q[i] = kg_n(r);
        n += q[i] * q[i];
    }
    for (int i = 0; i < 4; i++) q[i] /= sqrt(n);
    const double w = q[0], x = q[1], y = q[2], z = q[3];
    const double rotation[9] = {
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
        2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
    for (int i = 0; i < 9; i++) m[i] = rotation[i];
    for (int i = 0; i < 3; i++) t[i] = uniform(r, -3, 3);
    const double width = 20 + floor(uniform(r, 0, 300)), height = 20 + floor(uniform(r, 0, 300)),
                 focal = uniform(r, 40, 600);
    const double origin[3] = {0, 0, 0};
    const double intrinsics[4] = {focal, focal * uniform(r, 0.8, 1.2), width * uniform(r, 0.3, 0.7),
                                  height * uniform(r, 0.3, 0.7)};
    kiln_view_init(v, m, t, origin, intrinsics, (uint32_t)width, (uint32_t)height,
                   kg_u(r) < 0.2 ? 0.0f : 0.2f, 20.0f);
}

/* n Gaussians in a small box somewhere, and what is stored of them. */
static kiln_project_bound any_chunk(kg_rng *r, gaussian *g, uint64_t n)
{
    kiln_project_bound b = {.max_log_scale = -FLT_MAX, .max_opacity_logit = -FLT_MAX};
    const double size = exp(uniform(r, -3, 1.5)), scale = uniform(r, -6, 0.5);
    double centre[3];
    for (int c = 0; c < 3; c++) {
        centre[c] = uniform(r, -6, 6);
        b.box_min[c] = FLT_MAX;
        b.box_max[c] = -FLT_MAX;
    }
    random_gaussians(g, n, kg_next(r));
    const float opacity = (float)uniform(r, -12, 2);
    for (uint64_t i = 0; i < n; i++) {
        for (int c = 0; c < 3; c++) {
            g[i].mean[c] = (float)(centre[c] + size * uniform(r, -0.5, 0.5));
            g[i].log_scale[c] = (float)(scale + uniform(r, -2, 0));
            b.box_min[c] = fminf(b.box_min[c], g[i].mean[c]);
            b.box_max[c] = fmaxf(b.box_max[c], g[i].mean[c]);
            b.max_log_scale = fmaxf(b.max_log_scale, g[i].log_scale[c]);
        }
        g[i].opacity_logit = opacity + (float)uniform(r, 0, 2);
        b.max_opacity_logit = fmaxf(b.max_opacity_logit, g[i].opacity_logit);
    }
    return b;
}

static void a_chunk_is_ruled_out_only_when_nothing_of_it_is_visible(void **state)
{
    (void)state;
    enum { N = 24, TRIALS = 6000 };
    static gaussian g[N];
    static kiln_splat2d out[N];
    kg_rng r = {kg_stream(4, 4), 0};
    for (kiln_profile_id profile = 0; profile < KILN_PROFILE_COUNT; profile++) {
        uint64_t ruled_out = 0, unseen = 0;
        for (int trial = 0; trial < TRIALS; trial++) {
            kiln_view view;
            any_view(&r, &view);
            const kiln_project_bound b = any_chunk(&r, g, N);
            const planes p = planes_of(g, N);
            const bool aa = trial % 2;
            const uint64_t visible = project(&p, &view, (how){.profile = profile, .aa = aa}, out);
            const bool may_see = kiln_project_may_see(&view, profile, aa, &b);
            free(p.data);
            assert_true(may_see || visible == 0);
            unseen += visible == 0;
            ruled_out += !may_see;
        }
        assert_true(unseen > TRIALS / 4);
        /* and it is worth asking: 4 of 5 unseen chunks are not read */
        assert_true(ruled_out * 10 > unseen * 8);
    }
}

static void plain_cases_are_ruled_out_and_unsure_ones_are_seen(void **state)
{
    (void)state;
    kiln_view v;
    const double r[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, zero[3] = {0, 0, 0},
                 intrinsics[4] = {500, 500, 320, 240};
    kiln_view_init(&v, r, zero, zero, intrinsics, 640, 480, 0.2f, 100.0f);
    const kiln_project_bound ahead = {{-1, -1, 3}, {1, 1, 5}, -4, 5},
                             behind = {{-1, -1, -5}, {1, 1, -3}, -4, 5};
    const kiln_project_bound left = {{-30, -1, 3}, {-20, 1, 5}, -4, 5},
                             below = {{-1, 20, 3}, {1, 30, 5}, -4, 5};
    const kiln_project_bound faint = {{-1, -1, 3}, {1, 1, 5}, -4, -6},
                             distant = {{-1, -1, 300}, {1, 1, 500}, -4, 5};
    const kiln_project_bound wide = {{-30, -1, 3}, {-20, 1, 5}, 3, 5},
                             unknown = {{NAN, -1, -5}, {1, 1, -3}, -4, 5};
    for (kiln_profile_id p = 0; p < KILN_PROFILE_COUNT; p++) {
        const bool inria = p == KILN_PROFILE_INRIA;
        assert_true(kiln_project_may_see(&v, p, false, &ahead));
        assert_false(kiln_project_may_see(&v, p, false, &behind));
        assert_false(kiln_project_may_see(&v, p, false, &left));
        assert_false(kiln_project_may_see(&v, p, false, &below));
        assert_true(kiln_project_may_see(&v, p, false, &wide));
        assert_true(kiln_project_may_see(&v, p, false, &unknown));
        /* inria does not look at opacity, */
        assert_int_equal(kiln_project_may_see(&v, p, false, &faint), inria);
        /* nor has it a far plane */
        assert_int_equal(kiln_project_may_see(&v, p, false, &distant), inria);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gsplat_bounds_hold_every_pixel_that_can_show),
        cmocka_unit_test(bounds_of_long_needles_cut_off_no_tip),
        cmocka_unit_test(a_chunk_is_ruled_out_only_when_nothing_of_it_is_visible),
        cmocka_unit_test(plain_cases_are_ruled_out_and_unsure_ones_are_seen),
    };
    return cmocka_run_group_tests_name("project_bounds", tests, NULL, NULL);
}
