/* bounds_test -- what a chunk says about itself holds for every Gaussian in it. */
#include "kernels/bounds/bounds.h"
#include "stages/generate/inputs.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 2000 };
static float means[3 * N], log_scales[3 * N], logits[N];

static void fill(void)
{
    kg_scene s;
    kg_scene_init(&s, N, 1);
    for (uint64_t i = 0; i < N; i++) {
        kg_splat g;
        kg_splat_at(&s, i, &g);
        for (uint64_t a = 0; a < 3; a++) {
            means[a * N + i] = g.pos[a];
            log_scales[a * N + i] = g.scale[a];
        }
        logits[i] = g.opacity;
    }
}

static void boxes_hold_every_row(void **state)
{
    (void)state;
    kiln_bounds b;
    fill();
    kiln_chunk_bounds(1, N, means, log_scales, logits, &b);
    float scale = -FLT_MAX, logit = -FLT_MAX;
    for (int i = 0; i < N; i++) {
        const double longest = fmax(log_scales[i], fmax(log_scales[N + i], log_scales[2 * N + i]));
        const double peak = 255 / (1 + exp(-(double)logits[i]));
        const double reach = peak > 1 ? exp(longest) * sqrt(2 * log(peak)) : 0;
        for (int a = 0; a < 3; a++) {
            const double at = means[a * N + i];
            assert_true(b.box_min[a] <= at && at <= b.box_max[a]);
            assert_true(b.reach_min[a] <= at - reach * (1 - 1e-6) &&
                        at + reach * (1 - 1e-6) <= b.reach_max[a]);
        }
        scale = fmaxf(scale, (float)longest);
        logit = fmaxf(logit, logits[i]);
    }
    assert_true(b.max_log_scale == scale && b.max_opacity_logit == logit);
}

/* Enough rows for every thread; zeros of both signs among them, which are equal and not the
 * same. */
static void threads_change_no_bit(void **state)
{
    (void)state;
    enum { MANY = 300000 };
    static float of[7 * MANY];
    static const unsigned threads[] = {0, 2, 3, 16, 64, 200};
    kiln_bounds one, many;
    uint32_t seed = 3;
    for (size_t i = 0; i < 7 * (size_t)MANY; i++) {
        seed = seed * 1664525u + 1013904223u;
        of[i] = (float)(seed >> 8) * 0x1p-24f;
        if (i < MANY) of[i] = seed & 0x40000000u ? 0.f : -0.f;
    }
    kiln_chunk_bounds(1, MANY, of, of + 3 * MANY, of + 6 * MANY, &one);
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        kiln_chunk_bounds(threads[i], MANY, of, of + 3 * MANY, of + 6 * MANY, &many);
        assert_memory_equal(&many, &one, sizeof one);
    }
}

/* The box is that of every row's reach: rows that cannot widen it are passed over, and no other. A
 * row alone tells its own reach.
 */
static void no_row_that_counts_is_passed_over(void **state)
{
    (void)state;
    static const float spreads[] = {0, 1e-30f, 1e-3f, 1, 30, 1e30f};
    uint32_t seed = 11;
    for (size_t k = 0; k < sizeof spreads / sizeof *spreads; k++) {
        kiln_bounds all, one, sum = {.box_min = {FLT_MAX, FLT_MAX, FLT_MAX}};
        for (int i = 0; i < 7 * N; i++) {
            seed = seed * 1664525u + 1013904223u;
            const float unit = (float)(seed >> 8) * 0x1p-23f - 1;
            if (i < 3 * N)
                means[i] = spreads[k] * unit;
            else if (i < 6 * N)
                /* with 100 some are infinite, some nothing */
                log_scales[i - 3 * N] = unit * (k % 2 && i % 5 == 0 ? 100 : 4);
            else
                logits[i - 6 * N] = unit * 12;
        }
        kiln_chunk_bounds(1, N, means, log_scales, logits, &all);
        for (int i = 0; i < N; i++) {
            const float mean[3] = {means[i], means[N + i], means[2 * N + i]};
            const float scale[3] = {log_scales[i], log_scales[N + i], log_scales[2 * N + i]};
            kiln_chunk_bounds(1, 1, mean, scale, &logits[i], &one);
            for (int a = 0; a < 3; a++) {
                if (i == 0 || one.box_min[a] < sum.box_min[a]) sum.box_min[a] = one.box_min[a];
                if (i == 0 || one.box_max[a] > sum.box_max[a]) sum.box_max[a] = one.box_max[a];
                if (i == 0 || one.reach_min[a] < sum.reach_min[a])
                    sum.reach_min[a] = one.reach_min[a];
                if (i == 0 || one.reach_max[a] > sum.reach_max[a])
                    sum.reach_max[a] = one.reach_max[a];
            }
        }
        sum.max_log_scale = all.max_log_scale;
        sum.max_opacity_logit = all.max_opacity_logit;
        assert_memory_equal(&all, &sum, sizeof all);
    }
}

static void reach_is_not_wider_than_the_gaussian(void **state)
{
    (void)state;
    kiln_bounds b;
    /* logit of 1/255: -5.537 */
    const float mean[3] = {1, 2, 3}, scale[3] = {0, -1, -2}, opaque = 80, faint = -5.6f;
    kiln_chunk_bounds(1, 1, mean, scale, &opaque, &b);
    assert_true(fabs(b.reach_max[0] - 1 - sqrt(2 * log(255))) < 1e-5);
    assert_true(b.box_min[1] == 2 && b.box_max[1] == 2);
    kiln_chunk_bounds(1, 1, mean, scale, &faint, &b);
    assert_true(b.reach_min[2] == 3 && b.reach_max[2] == 3);
}

static void huge_scales_stay_finite(void **state)
{
    (void)state;
    kiln_bounds b;
    const float mean[3] = {-FLT_MAX, 0, FLT_MAX}, scale[3] = {88, 88, 88}, opaque = 80;
    kiln_chunk_bounds(1, 1, mean, scale, &opaque, &b);
    for (int a = 0; a < 3; a++)
        assert_true(isfinite(b.reach_min[a]) && isfinite(b.reach_max[a]) &&
                    b.reach_min[a] < b.reach_max[a]);
}

static void no_row_no_bounds(void **state)
{
    (void)state;
    kiln_bounds b, zero;
    memset(&zero, 0, sizeof zero);
    memset(&b, 0xff, sizeof b);
    kiln_chunk_bounds(1, 0, NULL, NULL, NULL, &b);
    assert_memory_equal(&b, &zero, sizeof b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_hold_every_row),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(no_row_that_counts_is_passed_over),
        cmocka_unit_test(reach_is_not_wider_than_the_gaussian),
        cmocka_unit_test(huge_scales_stay_finite),
        cmocka_unit_test(no_row_no_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
