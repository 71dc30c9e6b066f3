/* prune_unseen_test -- the limits that act on every scene touch what no picture shows: opacities
 * below 1/255 never reach the least alpha that renderers draw, and an axis below 10^-10 is nothing
 * beside the blur of a pixel. */
#include "kernels/math/real.h"
#include "stages/prune/rules.h"
#include "tests/unit/project_planes.h"

#include <string.h>

/* Limits as rules.def has them, the two that are `auto` resting. */
static kiln_prune_rules default_rules(void)
{
    kiln_error err;
    kiln_prune_rules rules;
    const double origin[3] = {0, 0, 0};
    const kiln_prune_stats s = {.n = 9,
                                .lo = {-1, -1, -1},
                                .hi = {1, 1, 1},
                                .median_spacing2 = 0.01f,
                                .median_log_scale = -3};
    const kiln_prune_options o = {.min_opacity = 1.0 / 255,
                                  .min_scale = 1e-10,
                                  .max_scale = NAN,
                                  .max_extent = (double)INFINITY,
                                  .max_spacing = (double)INFINITY,
                                  .max_needle = NAN,
                                  .outlier = NAN,
                                  .crop_box = "off",
                                  .crop_sphere = "off"};
    const kiln_prune_options resting = kiln_prune_options_resolved(&o, false);
    assert_int_equal(kiln_prune_rules_make(&resting, &s, origin, &rules, &err), KILN_OK);
    assert_true(isnan(rules.max_spacing[0]) && isnan(rules.max_extent));
    return rules;
}

static void auto_is_a_limit_or_off(void **state)
{
    (void)state;
    const kiln_prune_options o = {
        .max_extent = (double)INFINITY, .max_spacing = 7, .max_scale = NAN};
    assert_int_equal(kiln_prune_auto_rules(&o), 1u << KILN_PRUNE_max_extent);
    assert_true(kiln_prune_auto_limit(&o, KILN_PRUNE_max_extent) == 0.5);
    assert_true(isnan(kiln_prune_auto_limit(&o, KILN_PRUNE_max_spacing)) &&
                isnan(kiln_prune_auto_limit(&o, KILN_PRUNE_min_opacity)));
    const kiln_prune_options act = kiln_prune_options_resolved(&o, true),
                             rest = kiln_prune_options_resolved(&o, false);
    assert_true(act.max_extent == 0.5 && act.max_spacing == 7 && isnan(act.max_scale));
    assert_true(isnan(rest.max_extent) && rest.max_spacing == 7 && isnan(rest.max_scale));
    const kiln_prune_options both = {.max_extent = (double)INFINITY,
                                     .max_spacing = (double)INFINITY};
    assert_true(kiln_prune_options_resolved(&both, true).max_spacing == 32);
}

/* Each float below the limit for a million of them, then ever larger steps. */
static void opacities_that_are_dropped_are_below_the_least_alpha(void **state)
{
    (void)state;
    const float limit = default_rules().min_opacity, least_alpha = 1.0f / 255.0f;
    float logit = nextafterf(limit, -INFINITY), step = 0;
    for (int i = 0; i < 1000000; i++, logit = nextafterf(logit, -INFINITY))
        assert_true(kiln_sigmoidf(logit) < least_alpha);
    for (step = 1e-3f; logit - step > -200; logit -= step, step *= 1.001f)
        assert_true(kiln_sigmoidf(logit) < least_alpha);
}

/* Flat Gaussians, as 2DGS trains them, from all sides and near: projected as they are, and with the
 * axis raised. */
static void a_raised_axis_moves_nothing_of_a_projection(void **state)
{
    (void)state;
    static gaussian flat[MOST], raised[MOST];
    static kiln_splat2d was[MOST], is[MOST];
    const kiln_prune_rules rules = default_rules();
    const double r[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, zero[3] = {0, 0, 0},
                 intrinsics[4] = {4000, 4000, 960, 540};
    kg_rng random = {kg_stream(3, 1), 0};
    for (int i = 0; i < MOST; i++) {
        gaussian *g = &flat[i];
        memset(g, 0, sizeof *g);
        const float z = (float)uniform(&random, 0.25, 4);
        for (int a = 0; a < 2; a++) g->mean[a] = z * (float)uniform(&random, -0.1, 0.1);
        g->mean[2] = z;
        for (int a = 0; a < 3; a++) g->log_scale[a] = (float)uniform(&random, -7, -2);
        g->log_scale[i % 3] = i % 2 ? -87 : -40;
        for (int a = 0; a < 4; a++) g->quat[a] = (float)kg_n(&random);
        /* seen from the edge */
        if (i % 5 == 0) memcpy(g->quat, (const float[4]){1, 0, 0, 0}, sizeof g->quat);
        g->opacity_logit = 3;
        raised[i] = *g;
        raised[i].log_scale[i % 3] = rules.min_scale;
    }
    const planes before = planes_of(flat, MOST), after = planes_of(raised, MOST);
    for (unsigned variant = 0; variant < 6; variant++) {
        const how h = {.profile = variant / 2, .aa = variant % 2, .no_colour = true, .threads = 2};
        kiln_view view;
        kiln_view_init(&view, r, zero, zero, intrinsics, 1920, 1080, 0.2f, 1e10f);
        const uint64_t n = project(&before, &view, h, was);
        assert_int_equal(project(&after, &view, h, is), n);
        assert_true(n > MOST / 4);
        for (uint64_t i = 0; i < n; i++) {
            assert_int_equal(was[i].row, is[i].row);
            const float size = was[i].conic[0] + was[i].conic[2];
            for (int c = 0; c < 3; c++)
                assert_true(fabsf(was[i].conic[c] - is[i].conic[c]) <= 1e-10f * size);
            /* antialiased, an edge of no width is not quite nothing */
            assert_true(fabsf(was[i].opacity - is[i].opacity) <= (h.aa ? 1e-4f : 0));
        }
    }
    free(before.data);
    free(after.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_is_a_limit_or_off),
        cmocka_unit_test(opacities_that_are_dropped_are_below_the_least_alpha),
        cmocka_unit_test(a_raised_axis_moves_nothing_of_a_projection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
