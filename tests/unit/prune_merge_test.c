/* prune_merge_test -- near-duplicates are those of a brute-force search in the same greedy order;
 * the merged Gaussian has the mixture's mean and covariance. */
#include "kernels/prune/merge.h"
#include "stages/generate/inputs.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 3000 };
static float means[3 * N], log_scales[3 * N], quats[4 * N], sh0[3 * N];
static uint8_t skip_row[N];

/* Rows of which many repeat an earlier one, a little moved, coloured, scaled or turned. */
static void fill(void)
{
    kg_rng r = {kg_stream(7, 40), 0};
    for (uint64_t i = 0; i < N; i++) {
        const uint64_t of = i >= 3 && i % 3 ? i / 3 : i;
        const double change = i % 2 ? 0.05 : 0.4;
        for (uint64_t c = 0; c < 3; c++) {
            const double u = kg_u(&r);
            means[c * N + i] = of == i ? (float)u : means[c * N + of] + (float)(0.02 * (u - 0.5));
            log_scales[c * N + i] =
                of == i ? (float)(-4 + kg_n(&r))
                        : log_scales[((c + i) % 3) * N + of] + (float)(change * kg_n(&r));
            sh0[c * N + i] =
                of == i ? (float)kg_n(&r) : sh0[c * N + of] + (float)(change * (kg_u(&r) - 0.5));
        }
        for (uint64_t c = 0; c < 4; c++)
            quats[c * N + i] = of == i
                                   ? (float)kg_n(&r)
                                   : -2.0f * (quats[c * N + of] + (float)(0.2 * change * kg_n(&r)));
        skip_row[i] = kg_u(&r) < 0.01;
    }
}

static kiln_merge_find_args arguments(float distance, uint32_t *into)
{
    return (kiln_merge_find_args){.n = N,
                                  .means = means,
                                  .log_scales = log_scales,
                                  .quats = quats,
                                  .sh0 = sh0,
                                  .skip = skip_row,
                                  .distance = distance,
                                  .lo = {0, 0, 0},
                                  .hi = {1, 1, 1},
                                  .into = into};
}

static uint64_t find(const kiln_merge_find_args *a)
{
    uint64_t merged = 0;
    void *work = malloc(kiln_merge_find_bytes(a->n) + 1);
    assert_non_null(work);
    kiln_merge_find(a, work);
    free(work);
    for (uint64_t i = 0; i < a->n; i++) merged += a->into[i] != i;
    return merged;
}

static int sorted_apart(uint64_t p, uint64_t q)
{
    float s[2][3];
    for (int k = 0; k < 2; k++) {
        const uint64_t row = k ? q : p;
        const float a = log_scales[row], b = log_scales[N + row], c = log_scales[2 * N + row];
        s[k][0] = fminf(a, fminf(b, c));
        s[k][2] = fmaxf(a, fmaxf(b, c));
        s[k][1] = fmaxf(fminf(a, b), fminf(fmaxf(a, b), c));
    }
    for (int c = 0; c < 3; c++)
        if (fabsf(s[0][c] - s[1][c]) > 0.25f) return 1;
    return 0;
}

static int alike(uint64_t p, uint64_t q, double distance)
{
    double d2 = 0, dot = 0, pp = 0, qq = 0;
    for (uint64_t c = 0; c < 3; c++) {
        const double d = (double)means[c * N + p] - (double)means[c * N + q];
        d2 += d * d;
        if (fabsf((sh0[c * N + p] - sh0[c * N + q]) * 0.28209479f) > 0.05f) return 0;
    }
    for (uint64_t c = 0; c < 4; c++) {
        dot += (double)quats[c * N + p] * (double)quats[c * N + q];
        pp += (double)quats[c * N + p] * (double)quats[c * N + p];
        qq += (double)quats[c * N + q] * (double)quats[c * N + q];
    }
    return d2 <= distance * distance && !sorted_apart(p, q) && dot * dot >= 0.98 * 0.98 * pp * qq;
}

static void groups_equal_brute_force(void **state)
{
    (void)state;
    static uint32_t into[N], want[N];
    fill();
    const float distance = 0.015f;
    const kiln_merge_find_args a = arguments(distance, into);
    for (uint32_t i = 0; i < N; i++) want[i] = i;
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t j = i + 1; want[i] == i && !skip_row[i] && j < N; j++)
            if (want[j] == j && !skip_row[j] && alike(i, j, (double)distance)) want[j] = i;
    const uint64_t merged = find(&a);
    assert_memory_equal(into, want, sizeof want);
    print_message("%d of %d rows are near-duplicates\n", (int)merged, N);
    assert_in_range(merged, 100, N / 2);
}

static void an_outlier_changes_nothing(void **state)
{
    (void)state;
    static uint32_t into[N], with[N];
    fill();
    kiln_merge_find_args a = arguments(0.015f, into);
    skip_row[0] = 1;
    (void)find(&a);
    means[0] = 1e7f;
    a.into = with;
    (void)find(&a);
    assert_memory_equal(into, with, sizeof into);
}

static void without_distance_only_duplicates(void **state)
{
    (void)state;
    static uint32_t into[N];
    fill();
    for (uint64_t c = 0; c < 3; c++) {
        means[c * N + 10] = means[c * N + 5];
        log_scales[c * N + 10] = log_scales[c * N + 5];
        sh0[c * N + 10] = sh0[c * N + 5];
    }
    for (uint64_t c = 0; c < 4; c++) quats[c * N + 10] = quats[c * N + 5];
    skip_row[5] = skip_row[10] = 0;
    const kiln_merge_find_args a = arguments(0, into);
    assert_int_equal(find(&a), 1);
    assert_int_equal(into[10], 5);
}

/* R S S R^T */
static void covariance(const kiln_merge_gaussian *g, double out[9])
{
    double q[4], norm = 0;
    for (int i = 0; i < 4; i++) norm += (double)g->quat[i] * (double)g->quat[i];
    for (int i = 0; i < 4; i++) q[i] = (double)g->quat[i] / sqrt(norm);
    const double w = q[0], x = q[1], y = q[2], z = q[3];
    const double r[9] = {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
                         2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                         2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
    for (int i = 0; i < 9; i++) {
        out[i] = 0;
        for (int k = 0; k < 3; k++)
            out[i] += r[i / 3 * 3 + k] * exp(2 * (double)g->log_scale[k]) * r[i % 3 * 3 + k];
    }
}

static kiln_merge_gaussian random_gaussian(kg_rng *r, double spread)
{
    kiln_merge_gaussian g;
    for (int i = 0; i < 3; i++) {
        g.mean[i] = (float)(spread * kg_n(r));
        g.log_scale[i] = (float)(-2 + kg_n(r));
    }
    for (int i = 0; i < 4; i++) g.quat[i] = (float)kg_n(r);
    g.opacity_logit = (float)kg_n(r);
    return g;
}

static void moments_are_those_of_the_mixture(void **state)
{
    (void)state;
    kg_rng r = {kg_stream(8, 40), 0};
    for (int round = 0; round < 500; round++) {
        enum { MOST = 5 };
        kiln_merge_gaussian g[MOST], m;
        double weights[MOST], mean[3] = {0}, want[9] = {0}, got[9], scale = 0, sum = 0, through = 1;
        const uint32_t n = 1 + (uint32_t)round % MOST;
        for (uint32_t i = 0; i < n; i++) g[i] = random_gaussian(&r, 0.1);
        kiln_merge_moments(g, n, weights, &m);
        for (uint32_t i = 0; i < n; i++) {
            sum += weights[i];
            through *= 1 - 1 / (1 + exp(-(double)g[i].opacity_logit));
            for (int c = 0; c < 3; c++) mean[c] += weights[i] * (double)g[i].mean[c];
        }
        assert_true(fabs(sum - 1) < 1e-12);
        for (uint32_t i = 0; i < n; i++) {
            double one[9];
            covariance(&g[i], one);
            for (int k = 0; k < 9; k++)
                want[k] += weights[i] * (one[k] + ((double)g[i].mean[k / 3] - mean[k / 3]) *
                                                      ((double)g[i].mean[k % 3] - mean[k % 3]));
        }
        covariance(&m, got);
        for (int k = 0; k < 9; k += 4) scale += want[k];
        for (int k = 0; k < 9; k++) assert_true(fabs(got[k] - want[k]) < 2e-6 * scale);
        for (int c = 0; c < 3; c++) assert_true(fabs((double)m.mean[c] - mean[c]) < 1e-6);
        assert_true(
            fabs(1 / (1 + exp(-(double)m.opacity_logit)) - fmin(1 - through, 254.75 / 255)) < 1e-6);
    }
}

static void opaque_ones_keep_a_finite_logit(void **state)
{
    (void)state;
    kiln_merge_gaussian g[2] = {{.quat = {1, 0, 0, 0}, .opacity_logit = 80},
                                {.quat = {1, 0, 0, 0}, .opacity_logit = 80}},
                        m;
    double weights[2];
    kiln_merge_moments(g, 2, weights, &m);
    assert_true(isfinite(m.opacity_logit) && m.opacity_logit > 6 && m.opacity_logit < 7.5f);
    g[0].opacity_logit = g[1].opacity_logit = -200; /* nothing to weigh with */
    kiln_merge_moments(g, 2, weights, &m);
    assert_true(weights[0] == 0.5 && weights[1] == 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_equal_brute_force),
        cmocka_unit_test(an_outlier_changes_nothing),
        cmocka_unit_test(without_distance_only_duplicates),
        cmocka_unit_test(moments_are_those_of_the_mixture),
        cmocka_unit_test(opaque_ones_keep_a_finite_logit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
