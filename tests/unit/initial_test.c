/* initial_test -- points become the Gaussians that INRIA's scene set-up makes of them. */
#include "kernels/ops.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 7 };

typedef struct {
    float log_scales[3 * N], quats[4 * N], opacity_logits[N], sh0[3 * N];
    uint64_t n_fallback;
} gaussians;

static gaussians make(const kiln_ops *ops, const float spacing2[N], const float rgb[3 * N])
{
    kiln_error err;
    size_t bytes = 0;
    gaussians g;
    memset(&g, 0xff, sizeof g);
    const kiln_exec x = {.device = -1, .threads = 2};
    const kiln_initial_args a = {.n = N,
                                 .spacing2 = spacing2,
                                 .rgb = rgb,
                                 .opacity = 0.1f,
                                 .fallback_log_scale = -3.0f,
                                 .log_scales = g.log_scales,
                                 .quats = g.quats,
                                 .opacity_logits = g.opacity_logits,
                                 .sh0 = g.sh0,
                                 .n_fallback = &g.n_fallback};
    assert_int_equal(ops->initial(&x, &a, &g, &bytes, &err), KILN_OK);
    return g;
}

static const float spacing2[N] = {0.25f, 0.0f, 1e-9f, INFINITY, 1.13427449e+38f, 4.0f, 1e20f};
static const float rgb[3 * N] = {0, 0.5f, 1, 0.2f, 0.4f, 0.6f, 0.8f, 1, 1, 1, 1,
                                 1, 1,    1, 0,    0,    0,    0,    0, 0, 0};

static void scale_is_the_spacing(void **state)
{
    (void)state;
    const gaussians g = make(kiln_ops_cpu(), spacing2, rgb);
    const double want[N] = {log(0.5), log(sqrt(1e-7)), log(sqrt(1e-7)), -3, -3, log(2), log(1e10)};
    for (int a = 0; a < 3; a++)
        for (int i = 0; i < N; i++)
            assert_true(fabs((double)g.log_scales[a * N + i] - want[i]) < 2e-6);
    assert_int_equal(g.n_fallback, 2); /* infinite, and a mean with FLT_MAX in it */
}

static void rotation_opacity_and_colour_are_inrias(void **state)
{
    (void)state;
    const gaussians g = make(kiln_ops_cpu(), spacing2, rgb);
    for (int i = 0; i < N; i++) {
        assert_true(g.quats[i] == 1 && g.quats[N + i] == 0 && g.quats[2 * N + i] == 0 &&
                    g.quats[3 * N + i] == 0);
        assert_true(fabs((double)g.opacity_logits[i] - log(0.1 / 0.9)) < 1e-6);
    }
    for (int i = 0; i < 3 * N; i++)
        assert_true(fabs((double)g.sh0[i] - ((double)rgb[i] - 0.5) / 0.28209479177387814) < 1e-6);
}

static void instruction_sets_give_the_same_bits(void **state)
{
    (void)state;
    const gaussians a = make(kiln_ops_cpu(), spacing2, rgb),
                    b = make(kiln_ops_cpu_baseline(), spacing2, rgb);
    assert_memory_equal(&a, &b, sizeof a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scale_is_the_spacing),
        cmocka_unit_test(rotation_opacity_and_colour_are_inrias),
        cmocka_unit_test(instruction_sets_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
