/* project_test -- the projection against an independent one in double (project_reference.h), its
 * culls, its edges, and the same bytes from any number of threads and from both CPU builds. */
#include "tests/unit/project_planes.h"
#include "tests/unit/project_reference.h"

#include <string.h>

static bool near(double got, double want, double relative, double absolute)
{
    return fabs(got - want) <= relative * fabs(want) + absolute;
}

static void compare(const kiln_splat2d *got, const reference *want)
{
    assert_true(near(got->x, want->x, 2e-6, 2e-4) && near(got->y, want->y, 2e-6, 2e-4));
    const double size = want->conic[0] + want->conic[2];
    for (int i = 0; i < 3; i++)
        assert_true(near(got->conic[i], want->conic[i], 0, 4e-6 * want->condition * size));
    assert_true(near(got->opacity, want->opacity, 1e-6 + 4e-6 * want->condition, 0));
    assert_true(near(got->power_min, log((1 - 0x1p-14) / (255.0 * (double)got->opacity)), 0, 1e-6));
    assert_true(near(got->depth, want->depth, 2e-6, 0));
    for (int c = 0; c < 3; c++) assert_true(near(got->rgb[c], want->rgb[c], 0, 5e-6));
}

static void every_profile_and_degree_follows_the_definition(void **state)
{
    (void)state;
    static gaussian g[MOST];
    static kiln_splat2d out[MOST];
    kiln_view view;
    view_of(&view);
    random_gaussians(g, MOST, 1);
    const planes p = planes_of(g, MOST);
    for (unsigned variant = 0; variant < 6; variant++) {
        const how h = {
            .profile = variant / 2, .aa = variant % 2, .degree = variant % 5, .threads = 2};
        const uint64_t visible = project(&p, &view, h, out);
        uint64_t seen = 0, compared = 0;
        for (uint32_t i = 0; i < MOST; i++) {
            const reference want = reference_project(&g[i], &view, h.profile, h.aa, h.degree);
            const bool got = seen < visible && out[seen].row == i;
            if (want.margin > 1e-4) assert_int_equal(got, want.visible);
            if (got && want.visible) {
                compare(&out[seen], &want);
                compared++;
            }
            seen += got;
        }
        assert_int_equal(seen, visible);
        assert_true(compared > 500 && compared < 3500);
    }
    const how four = {.profile = KILN_PROFILE_INRIA, .degree = 4};
    for (uint64_t k = project(&p, &view, four, out); k-- > 0;) {
        const reference want = reference_project(&g[out[k].row], &view, four.profile, false, 4);
        for (int c = 0; c < 3; c++) assert_true(near(out[k].rgb[c], want.rgb[c], 0, 5e-6));
    }
    free(p.data);
}

/* A small round one in front of a camera at the origin: 64 x 48, f = 64, so (0, 0, 1) is at the
 * middle. */
static const gaussian middle = {.mean = {0, 0, 1},
                                .log_scale = {-4, -4, -4},
                                .quat = {2, 0, 0, 0},
                                .opacity_logit = 2,
                                .sh = {{1, 0, -9}}};

static void view_front(kiln_view *v, float near_m, float far_m)
{
    const double r[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, zero[3] = {0, 0, 0},
                 intrinsics[4] = {64, 64, 32, 24};
    kiln_view_init(v, r, zero, zero, intrinsics, 64, 48, near_m, far_m);
}

static uint64_t project_one(gaussian g, const kiln_view *view, how h, kiln_splat2d *out)
{
    const planes p = planes_of(&g, 1);
    const uint64_t visible = project(&p, view, h, out);
    free(p.data);
    return visible;
}

static const how profiles[] = {{.profile = KILN_PROFILE_INRIA},
                               {.profile = KILN_PROFILE_GSPLAT_15},
                               {.profile = KILN_PROFILE_GSPLAT_16}};

static void one_in_the_middle_is_as_computed_by_hand(void **state)
{
    (void)state;
    kiln_view view;
    kiln_splat2d s;
    view_front(&view, 0.2f, 100);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(project_one(middle, &view, profiles[i], &s), 1);
        const double a = exp(-8) * 64 * 64 + 0.3; /* 1.674 */
        assert_true(near(s.x, 32, 0, 1e-4) && near(s.y, 24, 0, 1e-4) && s.depth == 1.0f);
        assert_true(near(s.conic[0], 1 / a, 1e-6, 0) && s.conic[1] == 0.0f &&
                    near(s.conic[2], 1 / a, 1e-6, 0));
        assert_true(near(s.rgb[0], 0.78209479, 1e-6, 0) && s.rgb[1] == 0.5f && s.rgb[2] == 0.0f);
        /* inria: radius ceil(3 sqrt(a + sqrt(0.1))) = 5 about (31.5, 23.5): columns 26.5 to 36.5,
         * rows 18.5 to 28.5 */
        assert_int_equal(s.tile_x0, 1);
        assert_int_equal(s.tile_x1, 3);
        assert_int_equal(s.tile_y0, 1);
        assert_int_equal(s.tile_y1, 2);
    }
}

static void no_colour_wanted_gives_zero_and_lower_degrees_ignore_the_rest(void **state)
{
    (void)state;
    kiln_view view;
    kiln_splat2d s;
    gaussian g = middle;
    view_front(&view, 0.2f, 100);
    for (int k = 1; k < 25; k++)
        for (int c = 0; c < 3; c++) g.sh[k][c] = 3.0f;
    assert_int_equal(project_one(g, &view, profiles[0], &s), 1);
    assert_true(near(s.rgb[0], 0.78209479, 1e-6, 0));
    assert_int_equal(project_one(g, &view, (how){.no_colour = true, .degree = 4}, &s), 1);
    assert_true(s.rgb[0] == 0.0f && s.rgb[1] == 0.0f && s.rgb[2] == 0.0f);
}

static void near_and_far_are_each_profiles_own(void **state)
{
    (void)state;
    static const struct {
        float z, near_m, far_m;
        int inria, gsplat;
    } rows[] = {
        {1, 1, 100, 0, 1}, /* on the near plane: gsplat keeps it */
        {1.0000001f, 1, 100, 1, 1},
        {0.9999999f, 1, 100, 0, 0},
        {5, 0.2f, 5, 1, 1}, /* on the far plane, which inria does not have */
        {5, 0.2f, 4.9f, 1, 0},
        {-1, 0.2f, 100, 0, 0},
        {-1, -2, 100, 0, 0}, /* behind the camera, whatever the near plane says */
        {0, 0, 100, 0, 0},
        {0, -1, 100, 0, 0},
        {1e30f, 0.2f, INFINITY, 1, 1},
    };
    kiln_view view;
    kiln_splat2d s;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        gaussian g = middle;
        g.mean[2] = rows[i].z;
        view_front(&view, rows[i].near_m, rows[i].far_m);
        assert_int_equal(project_one(g, &view, profiles[0], &s), rows[i].inria);
        assert_int_equal(project_one(g, &view, profiles[1], &s), rows[i].gsplat);
        assert_int_equal(project_one(g, &view, profiles[2], &s), rows[i].gsplat);
    }
}

static void zero_opacity_takes_tiles_in_inria_only(void **state)
{
    (void)state;
    kiln_view view;
    kiln_splat2d s;
    gaussian g = middle;
    view_front(&view, 0.2f, 100);
    g.opacity_logit = -200;
    assert_int_equal(project_one(g, &view, profiles[0], &s), 1);
    assert_true(s.opacity == 0.0f && s.power_min == INFINITY && s.tile_x1 > s.tile_x0);
    assert_int_equal(project_one(g, &view, profiles[1], &s), 0);
    g.opacity_logit = -5.5f; /* 0.00407, just above 1/255 */
    assert_int_equal(project_one(g, &view, profiles[1], &s), 1);
    g.opacity_logit = -5.6f;
    assert_int_equal(project_one(g, &view, profiles[2], &s), 0);
}

static void tiny_ones_vanish_where_the_antialias_factor_has_no_floor(void **state)
{
    (void)state;
    kiln_view view;
    kiln_splat2d s;
    gaussian g = middle;
    view_front(&view, 0.2f, 100);
    for (int c = 0; c < 3; c++) g.log_scale[c] = -14;
    g.opacity_logit = 9;
    assert_int_equal(
        project_one(g, &view, (how){.profile = KILN_PROFILE_GSPLAT_15, .aa = true}, &s), 0);
    assert_int_equal(
        project_one(g, &view, (how){.profile = KILN_PROFILE_GSPLAT_16, .aa = true}, &s), 1);
    assert_true(near(s.opacity, 0.005, 1e-3, 0));
    assert_int_equal(project_one(g, &view, (how){.profile = KILN_PROFILE_INRIA, .aa = true}, &s),
                     1);
    assert_true(near(s.opacity, 0.005, 1e-3, 0));
}

static void huge_ones_cover_the_image_and_nothing_else(void **state)
{
    (void)state;
    kiln_view view;
    kiln_splat2d s;
    gaussian g = middle;
    view_front(&view, 0.2f, 100);
    for (float size = 3; size < 89; size += 0.37f) {
        for (int c = 0; c < 3; c++) g.log_scale[c] = size;
        for (int i = 0; i < 3; i++) {
            const uint64_t visible = project_one(g, &view, profiles[i], &s);
            if (size < 40) assert_int_equal(visible, 1);
            if (!visible) continue; /* where the covariance overflows */
            assert_true(s.tile_x0 == 0 && s.tile_y0 == 0 && s.tile_x1 == 4 && s.tile_y1 == 3);
            assert_true(isfinite(s.x) && isfinite(s.conic[0]) && isfinite(s.conic[1]) &&
                        isfinite(s.conic[2]));
        }
    }
}

static void what_is_not_a_number_is_never_visible(void **state)
{
    (void)state;
    kiln_view view;
    kiln_splat2d s;
    view_front(&view, 0.2f, 100);
    /* mean, log_scale, quat, opacity_logit lie one after the other */
    for (unsigned at = 0; at < 11; at++)
        for (int i = 0; i < 3; i++) {
            float raw[11];
            gaussian g = middle;
            memcpy(raw, &g, sizeof raw);
            raw[at] = NAN;
            memcpy(&g, raw, sizeof raw);
            assert_int_equal(project_one(g, &view, profiles[i], &s), 0);
            raw[at] = INFINITY; /* only an opacity may be infinite */
            memcpy(&g, raw, sizeof raw);
            assert_int_equal(project_one(g, &view, profiles[i], &s), at == 10);
        }
}

static void a_zero_quaternion_is_what_each_caller_makes_of_it(void **state)
{
    (void)state;
    kiln_view view;
    kiln_splat2d s;
    gaussian g = middle;
    view_front(&view, 0.2f, 100);
    g.quat[0] = 0;
    /* torch's normalize gives 0, the formula then identity */
    assert_int_equal(project_one(g, &view, profiles[0], &s), 1);
    assert_int_equal(project_one(g, &view, profiles[1], &s), 0);
}

/* Random ones with every tenth value replaced by something awkward. */
static void awkward_gaussians(gaussian *g, uint64_t n)
{
    static const float odd[] = {NAN,   INFINITY, -INFINITY, 0,  -0.0f, 1e-40f,
                                3e38f, -3e38f,   1e10f,     88, -87,   1e-12f};
    kg_rng r = {kg_stream(5, 5), 0};
    random_gaussians(g, n, 2);
    for (uint64_t i = 0; i < n; i++)
        for (int k = 0; k < 11; k++)
            if (kg_next(&r) % 40 == 0)
                ((float *)(void *)&g[i])[k] = odd[kg_next(&r) % (sizeof odd / sizeof *odd)];
}

static void threads_and_builds_give_the_same_bytes(void **state)
{
    (void)state;
    static gaussian g[MOST - 5];
    static kiln_splat2d one[MOST], other[MOST];
    kiln_view view;
    view_of(&view);
    awkward_gaussians(g, MOST - 5);
    const planes p = planes_of(g, MOST - 5);
    for (unsigned variant = 0; variant < 6; variant++) {
        how h = {.profile = variant / 2,
                 .aa = variant % 2,
                 .degree = 4,
                 .threads = 1,
                 .ops = kiln_ops_cpu_baseline()};
        const uint64_t n = project(&p, &view, h, one);
        assert_true(n > 500);
        for (h.threads = 1; h.threads < 6; h.threads += 2) {
            h.ops = kiln_ops_cpu();
            assert_int_equal(project(&p, &view, h, other), n);
            assert_memory_equal(one, other, n * sizeof *one);
        }
    }
    free(p.data);
}

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    kiln_view view;
    kiln_error err;
    uint64_t visible = 7;
    size_t bytes = 0;
    float none[1] = {0};
    const kiln_exec x = {.device = -1, .threads = 1};
    view_front(&view, 0.2f, 100);
    kiln_project_args a = {.n = 100000,
                           .means = none,
                           .log_scales = none,
                           .quats = none,
                           .opacity_logits = none,
                           .view = &view,
                           .n_visible = &visible};
    assert_int_equal(kiln_ops_cpu()->project(&x, &a, NULL, &bytes, &err), KILN_OK);
    void *work = malloc(bytes);
    assert_non_null(work);
    a.n = 0;
    assert_int_equal(kiln_ops_cpu()->project(&x, &a, work, &bytes, &err), KILN_OK);
    assert_int_equal(visible, 0);
    a.n = 100000;
    bytes--;
    assert_int_equal(kiln_ops_cpu()->project(&x, &a, work, &bytes, &err), KILN_E_CAP);
    a.n = UINT32_MAX;
    assert_int_equal(kiln_ops_cpu()->project(&x, &a, NULL, &bytes, &err), KILN_E_INPUT);
    a.n = 0;
    a.sh_degree = 5;
    assert_int_equal(kiln_ops_cpu()->project(&x, &a, NULL, &bytes, &err), KILN_E_INPUT);
    free(work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_profile_and_degree_follows_the_definition),
        cmocka_unit_test(one_in_the_middle_is_as_computed_by_hand),
        cmocka_unit_test(no_colour_wanted_gives_zero_and_lower_degrees_ignore_the_rest),
        cmocka_unit_test(near_and_far_are_each_profiles_own),
        cmocka_unit_test(zero_opacity_takes_tiles_in_inria_only),
        cmocka_unit_test(tiny_ones_vanish_where_the_antialias_factor_has_no_floor),
        cmocka_unit_test(huge_ones_cover_the_image_and_nothing_else),
        cmocka_unit_test(what_is_not_a_number_is_never_visible),
        cmocka_unit_test(a_zero_quaternion_is_what_each_caller_makes_of_it),
        cmocka_unit_test(threads_and_builds_give_the_same_bytes),
        cmocka_unit_test(wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests_name("project", tests, NULL, NULL);
}
