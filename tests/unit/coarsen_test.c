/* coarsen_test -- levels have the asked counts, keep mass, mean and covariance, and are the same
 * from both builds; what is hostile stays finite. Surfaces and axes against long double. */
#include "kernels/coarsen/coarsen.h"
#include "kernels/coarsen/coarsen_state.h"
#include "kernels/math/ellipsoid_math.h"
#include "kernels/math/real.h"
#include "kernels/ops.h"
#include "stages/generate/inputs.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_LEVELS = 5 };
/* Of the rows that the_bits_are_those_of_every_machine makes. */
#define EXPECTED_CLASSIC 0x15bbde9f3e8cb30fu
#define EXPECTED_ANTIALIASED 0x1df52195a050e06au
#define EXPECTED_PROMINENT 0xeecf0936245186e1u
#define EXPECTED_PROMINENT_ANTIALIASED 0x770846aa54f14641u

static float *floats(uint64_t n) { return calloc(n ? n : 1, sizeof(float)); }
static uint32_t *words(uint64_t n) { return calloc(n ? n : 1, sizeof(uint32_t)); }
static uint64_t rest_of(uint32_t degree) { return kiln_coarsen_colours(degree) - 3; }

static kiln_coarsen_rows rows_of(uint64_t n, uint32_t degree)
{
    return (kiln_coarsen_rows){n,
                               degree,
                               false,
                               floats(3 * n),
                               floats(3 * n),
                               floats(4 * n),
                               floats(n),
                               floats(3 * n),
                               degree ? floats(rest_of(degree) * n) : NULL,
                               floats(n),
                               floats(n),
                               NULL,
                               words(n),
                               words(n),
                               words(n)};
}

static void release(kiln_coarsen_rows *r)
{
    free(r->means), free(r->log_scales), free(r->quats), free(r->opacity_logits), free(r->sh0),
        free(r->shN);
    free(r->weights), free(r->visibility), free(r->prominence), free(r->source_first),
        free(r->source_last), free(r->source_count);
}

/* Rows on a bent sheet, flat, as trained scenes have them. */
static kiln_coarsen_rows scene(uint64_t n, uint32_t degree, uint64_t seed)
{
    kiln_coarsen_rows r = rows_of(n, degree);
    kg_rng g = {kg_stream(seed, 71), 0};
    for (uint64_t i = 0; i < n; i++) {
        const double u = kg_u(&g), v = kg_u(&g);
        r.means[i] = (float)(4 * u);
        r.means[n + i] = (float)(4 * v);
        r.means[2 * n + i] = (float)(4 * u * (1 - u) + 0.05 * kg_n(&g));
        for (uint64_t a = 0; a < 3; a++)
            r.log_scales[a * n + i] = (float)(-4 - 2 * (a == 2) + 0.5 * kg_n(&g));
        for (uint64_t a = 0; a < 4; a++) r.quats[a * n + i] = (float)kg_n(&g);
        r.opacity_logits[i] = (float)(2 * kg_n(&g));
        for (uint64_t a = 0; a < 3; a++)
            r.sh0[a * n + i] = (float)(2 * v * v - 0.5 * (double)a * v + 0.2 * kg_n(&g));
        for (uint64_t a = 0; a < rest_of(degree); a++) r.shN[a * n + i] = (float)(0.1 * kg_n(&g));
        r.visibility[i] = (float)(0.02 + 0.98 * kg_u(&g));
        r.source_first[i] = r.source_last[i] = (uint32_t)i;
        r.source_count[i] = 1;
    }
    kiln_coarsen_weights(&r);
    return r;
}

typedef struct {
    uint32_t n;
    kiln_coarsen_rows at[MAX_LEVELS];
} levels;

static unsigned threads = 1;

static levels coarsen(const kiln_coarsen_rows *in, uint32_t n_levels, const uint64_t *counts)
{
    levels l = {.n = n_levels};
    kiln_error err = {0};
    const size_t bytes = kiln_coarsen_bytes(in->n, in->sh_degree, n_levels);
    void *work = aligned_alloc(256, (bytes + 511) / 256 * 256);
    memset(work, 0xa5, bytes);
    for (uint32_t i = 0; i < n_levels; i++) {
        l.at[i] = rows_of(counts[i], in->sh_degree);
        if (!in->visibility) free(l.at[i].visibility), l.at[i].visibility = NULL;
        if (in->prominence) l.at[i].prominence = floats(counts[i]);
    }
    assert_int_equal(kiln_coarsen(in, &(kiln_coarsen_levels){n_levels, counts, l.at}, work, bytes,
                                  threads, &err),
                     KILN_OK);
    free(work);
    return l;
}

static void release_levels(levels *l)
{
    for (uint32_t i = 0; i < l->n; i++) release(&l->at[i]);
}

static levels halves(const kiln_coarsen_rows *in, uint32_t n_levels)
{
    uint64_t counts[MAX_LEVELS];
    for (uint32_t i = 0; i < n_levels; i++) counts[i] = in->n >> (i + 1) ? in->n >> (i + 1) : 1;
    return coarsen(in, n_levels, counts);
}

static double sum(const float *v, uint64_t n)
{
    double s = 0;
    for (uint64_t i = 0; i < n; i++) s += (double)v[i];
    return s;
}

static void each_level_has_its_count_and_all_of_the_mass(void **state)
{
    (void)state;
    for (uint32_t degree = 0; degree <= 4; degree++) {
        kiln_coarsen_rows in = scene(1501, degree, degree);
        levels l = halves(&in, 4);
        for (uint32_t k = 0; k < l.n; k++) {
            const kiln_coarsen_rows *out = &l.at[k];
            uint64_t rows = 0;
            assert_int_equal(out->n, in.n >> (k + 1));
            assert_int_equal(out->sh_degree, degree);
            assert_true(fabs(sum(out->weights, out->n) / sum(in.weights, in.n) - 1) < 1e-6);
            for (uint64_t i = 0; i < out->n; i++) {
                rows += out->source_count[i];
                assert_true(i == 0 || out->source_first[i] > out->source_first[i - 1]);
                assert_true(out->source_last[i] - out->source_first[i] + 1 >= out->source_count[i]);
                assert_true(out->quats[i] >= 0 || out->source_count[i] == 1);
                assert_true(out->visibility[i] > 0.019f && out->visibility[i] <= 1);
            }
            assert_int_equal(rows, in.n);
        }
        release(&in), release_levels(&l);
    }
}

static double weight_of(const kiln_coarsen_rows *r, uint64_t i)
{
    const double v = (double)r->visibility[i];
    return (double)r->weights[i] * (r->antialiased ? sqrt(v) : v);
}

static double sum_of_weights(const kiln_coarsen_rows *r)
{
    double s = 0;
    for (uint64_t i = 0; i < r->n; i++) s += weight_of(r, i);
    return s;
}

static void mean_of(const kiln_coarsen_rows *r, double mean[3])
{
    double total = 0;
    memset(mean, 0, 3 * sizeof *mean);
    for (uint64_t i = 0; i < r->n; i++) {
        const double w = weight_of(r, i);
        total += w;
        for (uint64_t a = 0; a < 3; a++) mean[a] += w * (double)r->means[a * r->n + i];
    }
    for (uint64_t a = 0; a < 3; a++) mean[a] /= total;
}

/* Second moments of the whole mixture about 0, and its mean colour. */
static void moments_of(const kiln_coarsen_rows *r, double moments[9])
{
    double total = 0;
    memset(moments, 0, 9 * sizeof *moments);
    for (uint64_t i = 0; i < r->n; i++) {
        const double w = weight_of(r, i);
        double log_scales[3], quat[4], c[6], x[3];
        for (uint64_t a = 0; a < 3; a++)
            log_scales[a] = (double)r->log_scales[a * r->n + i],
            x[a] = (double)r->means[a * r->n + i];
        for (uint64_t a = 0; a < 4; a++) quat[a] = (double)r->quats[a * r->n + i];
        kiln_coarsen_shrink((double)r->weights[i], r->antialiased, log_scales);
        kiln_covar_of(log_scales, quat, c);
        for (int a = 0, at = 0; a < 3; a++)
            for (int b = a; b < 3; b++, at++) moments[at] += w * (c[at] + x[a] * x[b]);
        for (uint64_t a = 0; a < 3; a++) moments[6 + a] += w * (double)r->sh0[a * r->n + i];
        total += w;
    }
    for (int a = 0; a < 9; a++) moments[a] /= total;
}

static void merging_keeps_mean_covariance_and_colour_of_the_mixture(void **state)
{
    (void)state;
    for (uint64_t n = 2; n < 400; n = 3 * n + 1)
        for (int antialiased = 0; antialiased < 2; antialiased++) {
            kiln_coarsen_rows in = scene(n, 1, n);
            in.antialiased = antialiased;
            levels l = coarsen(&in, 1, (uint64_t[]){1});
            double mean[3], all[3], moments[9], of_all[9];
            assert_int_equal(l.at[0].antialiased, antialiased);
            mean_of(&l.at[0], mean), mean_of(&in, all);
            moments_of(&l.at[0], moments), moments_of(&in, of_all);
            for (int a = 0; a < 3; a++) assert_true(fabs(mean[a] - all[a]) < 1e-6);
            for (int a = 0; a < 9; a++)
                assert_true(fabs(moments[a] - of_all[a]) < 4e-6 * (1 + fabs(of_all[a])));
            assert_true(fabs(weight_of(&l.at[0], 0) / sum_of_weights(&in) - 1) < 1e-6);
            release(&in), release_levels(&l);
        }
}

/* A merged Gaussian covers what both did: its opacity times its surface is the sum of the weights,
 * or it is as opaque as can be and larger by the square root of what is left over. */
static void opacity_spreads_the_weight_over_the_new_surface(void **state)
{
    (void)state;
    kiln_coarsen_rows in = scene(900, 0, 5);
    levels l = halves(&in, 3);
    uint64_t full = 0, spread = 0;
    for (uint32_t k = 0; k < 3; k++) {
        kiln_coarsen_rows *out = &l.at[k], again = *out;
        again.weights = floats(out->n);
        kiln_coarsen_weights(&again);
        for (uint64_t i = 0; i < out->n; i++) {
            const double share = (double)again.weights[i] / (double)out->weights[i];
            full += out->opacity_logits[i] > 12;
            spread += out->opacity_logits[i] < 12;
            assert_true(out->opacity_logits[i] < 12.03f && share < 1 + 2e-5);
            assert_true(out->opacity_logits[i] > 12 || share > 1 - 2e-5);
        }
        free(again.weights);
    }
    assert_true(full > 10 && spread > 100);
    release(&in), release_levels(&l);
}

/* 16 equal opaque Gaussians become one of 16^g times their surface, by one run or by several that
 * read what the last one wrote. */
static void what_lies_over_another_grows(void **state)
{
    (void)state;
    for (int antialiased = 0; antialiased < 2; antialiased++) {
        kiln_coarsen_rows in = scene(16, 0, 5);
        for (uint64_t i = 0; i < in.n; i++) {
            for (uint64_t a = 0; a < 3; a++)
                in.means[a * in.n + i] = 1, in.log_scales[a * in.n + i] = a == 2 ? -6.0f : -3.0f;
            for (uint64_t a = 0; a < 4; a++) in.quats[a * in.n + i] = a == 0;
            in.opacity_logits[i] = 20, in.visibility[i] = 1;
        }
        in.antialiased = antialiased;
        kiln_coarsen_weights(&in);
        levels l = coarsen(&in, 4, (uint64_t[]){8, 4, 2, 1}),
               again = coarsen(&l.at[1], 2, (uint64_t[]){2, 1});
        const double by = (antialiased ? 0.4 : 0.5) * 0.5 * log(16);
        for (uint64_t a = 0; a < 3; a++) {
            assert_true(fabs((double)l.at[3].log_scales[a] - (by + (a == 2 ? -6.0 : -3.0))) < 1e-6);
            assert_true(fabsf(again.at[1].log_scales[a] - l.at[3].log_scales[a]) < 1e-6f);
        }
        release(&in), release_levels(&l), release_levels(&again);
    }
}

static void rows_that_were_not_merged_keep_their_bits(void **state)
{
    (void)state;
    kiln_coarsen_rows in = scene(600, 2, 9);
    levels l = halves(&in, 1);
    const kiln_coarsen_rows *out = &l.at[0];
    uint64_t kept = 0;
    for (uint64_t i = 0; i < out->n; i++) {
        const uint64_t row = out->source_first[i];
        if (out->source_count[i] != 1) continue;
        kept++;
        assert_int_equal(out->source_last[i], row);
        assert_memory_equal(&out->opacity_logits[i], &in.opacity_logits[row], sizeof(float));
        assert_memory_equal(&out->weights[i], &in.weights[row], sizeof(float));
        assert_memory_equal(&out->visibility[i], &in.visibility[row], sizeof(float));
        for (uint64_t a = 0; a < 4; a++)
            assert_memory_equal(&out->quats[a * out->n + i], &in.quats[a * in.n + row],
                                sizeof(float));
        for (uint64_t a = 0; a < rest_of(2); a++)
            assert_memory_equal(&out->shN[a * out->n + i], &in.shN[a * in.n + row], sizeof(float));
    }
    assert_true(kept > 10);
    release(&in), release_levels(&l);
}

static void assert_same(const levels *a, const levels *b)
{
    for (uint32_t k = 0; k < a->n; k++) {
        const kiln_coarsen_rows *x = &a->at[k], *y = &b->at[k];
        assert_int_equal(x->n, y->n);
        assert_memory_equal(x->means, y->means, 3 * x->n * sizeof(float));
        assert_memory_equal(x->log_scales, y->log_scales, 3 * x->n * sizeof(float));
        assert_memory_equal(x->quats, y->quats, 4 * x->n * sizeof(float));
        assert_memory_equal(x->opacity_logits, y->opacity_logits, x->n * sizeof(float));
        assert_memory_equal(x->sh0, y->sh0, 3 * x->n * sizeof(float));
        if (x->sh_degree)
            assert_memory_equal(x->shN, y->shN, rest_of(x->sh_degree) * x->n * sizeof(float));
        assert_memory_equal(x->weights, y->weights, x->n * sizeof(float));
        assert_memory_equal(x->source_count, y->source_count, x->n * sizeof(uint32_t));
    }
}

static void give_prominence(kiln_coarsen_rows *r, uint64_t seed)
{
    kg_rng g = {kg_stream(seed, 72), 0};
    r->prominence = floats(r->n);
    for (uint64_t i = 0; i < r->n; i++) r->prominence[i] = (float)(0.5 * exp(8 * kg_u(&g)));
}

static void both_builds_give_the_same_bits(void **state)
{
    (void)state;
    for (uint32_t degree = 0; degree <= 4; degree++) {
        kiln_coarsen_rows in = scene(3000, degree, 20 + degree);
        in.antialiased = degree % 2;
        if (degree > 1) give_prominence(&in, degree);
        levels best = halves(&in, 4);
        assert_int_equal(setenv("KILN_ISA", "baseline", 1), 0);
        assert_ptr_equal(kiln_ops_cpu(), kiln_ops_cpu_baseline());
        levels base = halves(&in, 4);
        assert_int_equal(unsetenv("KILN_ISA"), 0);
        assert_same(&best, &base);
        release(&in), release_levels(&best), release_levels(&base);
    }
}

static uint64_t hash(uint64_t h, const float *v, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) h = (h ^ kiln_bits_of(v[i])) * 0x100000001b3u;
    return h;
}

static uint64_t hash_of_levels(bool antialiased, bool prominent)
{
    kiln_coarsen_rows in = scene(2000, 1, 77);
    in.antialiased = antialiased;
    if (prominent) give_prominence(&in, 77);
    levels l = halves(&in, 4);
    uint64_t h = 0xcbf29ce484222325u;
    for (uint32_t k = 0; k < 4; k++) {
        h = hash(h, l.at[k].means, 3 * l.at[k].n);
        h = hash(h, l.at[k].log_scales, 3 * l.at[k].n);
        h = hash(h, l.at[k].quats, 4 * l.at[k].n);
        h = hash(h, l.at[k].opacity_logits, l.at[k].n);
        h = hash(h, l.at[k].visibility, l.at[k].n);
        if (prominent) h = hash(h, l.at[k].prominence, l.at[k].n);
    }
    release(&in), release_levels(&l);
    return h;
}

/* A change of the rule on purpose changes them, with the version of the stage that stores
 * levels. */
static void the_bits_are_those_of_every_machine(void **state)
{
    (void)state;
    static const uint64_t expected[2][2] = {{EXPECTED_CLASSIC, EXPECTED_ANTIALIASED},
                                            {EXPECTED_PROMINENT, EXPECTED_PROMINENT_ANTIALIASED}};
    for (int prominent = 0; prominent < 2; prominent++)
        for (int antialiased = 0; antialiased < 2; antialiased++) {
            const uint64_t h = hash_of_levels(antialiased, prominent);
            if (h != expected[prominent][antialiased])
                print_message("hash 0x%016llx\n", (unsigned long long)h);
            assert_true(h == expected[prominent][antialiased]);
        }
}

/* Two pairs: the closer one is merged, unless it is the more prominent one. */
static void what_is_prominent_is_merged_last(void **state)
{
    (void)state;
    for (int far_first = 0; far_first < 2; far_first++) {
        kiln_coarsen_rows in = scene(4, 0, 5);
        in.prominence = floats(4);
        for (uint64_t i = 0; i < 4; i++) {
            for (uint64_t a = 0; a < 3; a++) {
                in.means[a * 4 + i] =
                    a ? 0 : (float)(i < 2 ? 0.5 * (double)i : 50 + 1.0 * (double)(i - 2));
                in.log_scales[a * 4 + i] = in.sh0[a * 4 + i] = 0;
            }
            in.opacity_logits[i] = 0, in.visibility[i] = 1;
            in.prominence[i] = far_first && i < 2 ? 100 : 1;
        }
        kiln_coarsen_weights(&in);
        levels l = coarsen(&in, 1, (uint64_t[]){3});
        for (uint64_t i = 0; i < 3; i++) {
            const bool merged = l.at[0].source_count[i] == 2;
            assert_int_equal(merged, l.at[0].source_first[i] == (far_first ? 2 : 0));
            assert_true(l.at[0].prominence[i] == (merged                                     ? 2
                                                  : far_first && l.at[0].source_first[i] < 2 ? 100
                                                                                             : 1));
        }
        release(&in), release_levels(&l);
    }
}

/* Two pairs: the closer one is merged, unless cameras are ten times as near to one of its rows as
 * to the other. */
static void rows_at_other_distances_from_cameras_are_merged_last(void **state)
{
    (void)state;
    for (int antialiased = 0; antialiased < 2; antialiased++)
        for (int apart = 0; apart < 2; apart++) {
            kiln_coarsen_rows in = scene(4, 0, 5);
            in.antialiased = antialiased;
            in.prominence = floats(4);
            for (uint64_t i = 0; i < 4; i++) {
                for (uint64_t a = 0; a < 3; a++) {
                    in.means[a * 4 + i] =
                        a ? 0 : (float)(i < 2 ? 0.5 * (double)i : 50 + 1.0 * (double)(i - 2));
                    in.log_scales[a * 4 + i] = in.sh0[a * 4 + i] = 0;
                }
                in.opacity_logits[i] = 0, in.visibility[i] = 0.25f;
                in.prominence[i] = apart && i == 0 ? 200 : 2;
            }
            kiln_coarsen_weights(&in);
            levels l = coarsen(&in, 1, (uint64_t[]){3});
            for (uint64_t i = 0; i < 3; i++)
                assert_int_equal(l.at[0].source_count[i] == 2,
                                 l.at[0].source_first[i] == (apart ? 2 : 0));
            release(&in), release_levels(&l);
        }
}

/* 0.1th power of the ratio of visibilities, antialiased too; without prominence all of it
 * counts. */
static void what_others_hide_adds_less_weight(void **state)
{
    (void)state;
    for (int antialiased = 0; antialiased < 2; antialiased++)
        for (int prominent = 0; prominent < 2; prominent++) {
            kiln_coarsen_rows in = scene(2, 0, 6);
            in.antialiased = antialiased;
            in.visibility[0] = 1, in.visibility[1] = 0.02f;
            if (prominent) give_prominence(&in, 6);
            levels l = coarsen(&in, 1, (uint64_t[]){1});
            const double share = prominent ? pow(0.02, 0.1) : 1;
            const double want = (double)in.weights[0] + share * (double)in.weights[1];
            assert_true(fabs((double)l.at[0].weights[0] / want - 1) < 1e-6);
            release(&in), release_levels(&l);
        }
}

static void few_rows(void **state)
{
    (void)state;
    for (uint64_t n = 0; n <= 40; n++) {
        kiln_coarsen_rows in = scene(n, 1, 100 + n);
        levels l = halves(&in, 4);
        for (uint32_t k = 0; k < 4; k++)
            assert_int_equal(l.at[k].n, n == 0 ? 0 : n >> (k + 1) ? n >> (k + 1) : 1);
        release(&in), release_levels(&l);
    }
    kiln_coarsen_rows in = scene(7, 0, 3);
    levels l = coarsen(&in, 3, (uint64_t[]){9, 7, 5}); /* more than there are: all of them */
    assert_int_equal(l.at[0].n, 7);
    assert_int_equal(l.at[1].n, 7);
    assert_int_equal(l.at[2].n, 5);
    assert_memory_equal(l.at[1].means, in.means, 21 * sizeof(float));
    release(&in), release_levels(&l);
}

static void assert_finite(const float *v, uint64_t n, float most)
{
    for (uint64_t i = 0; i < n; i++) assert_true(v[i] >= -most && v[i] <= most);
}

static void assert_sane(const kiln_coarsen_rows *r)
{
    assert_finite(r->means, 3 * r->n, FLT_MAX);
    assert_finite(r->log_scales, 3 * r->n, 88);
    assert_finite(r->quats, 4 * r->n, 1e20f);
    assert_finite(r->opacity_logits, r->n, 88);
    assert_finite(r->sh0, 3 * r->n, FLT_MAX);
    assert_finite(r->shN, rest_of(r->sh_degree) * r->n, FLT_MAX);
    assert_finite(r->weights, r->n, FLT_MAX);
    for (uint64_t i = 0; i < r->n; i++) assert_true(r->weights[i] > 0);
}

/* Each value from a short list, the worst of what import lets through. */
static void hostile_values_stay_finite(void **state)
{
    (void)state;
    static const float at[] = {0, 1, -1, 1e-30f, 1e6f, -1e18f, 3e38f, -3e38f},
                       log_scale[] = {-87, 88, 0, -87, -20, 40},
                       quat[] = {0, 1e-20f, 1e20f, -1e20f, 1, -1}, logit[] = {-88, 88, 0, 12},
                       colour[] = {0, 3e38f, -3e38f, 1, 1e-40f};
    for (uint64_t seed = 0; seed < 12; seed++) {
        kiln_coarsen_rows in = scene(700, 1, seed);
        kg_rng g = {kg_stream(seed, 72), 0};
        const uint64_t n = in.n;
        for (uint64_t i = 0; i < n; i++) {
            for (uint64_t a = 0; a < 3; a++)
                in.means[a * n + i] = at[(uint64_t)(kg_u(&g) * (seed % 2 ? 8 : 6))];
            for (uint64_t a = 0; a < 3; a++)
                in.log_scales[a * n + i] = log_scale[(uint64_t)(kg_u(&g) * 6)];
            for (uint64_t a = 0; a < 4; a++) in.quats[a * n + i] = quat[(uint64_t)(kg_u(&g) * 6)];
            in.opacity_logits[i] = logit[(uint64_t)(kg_u(&g) * 4)];
            for (uint64_t a = 0; a < 3; a++) in.sh0[a * n + i] = colour[(uint64_t)(kg_u(&g) * 5)];
        }
        kiln_coarsen_weights(&in);
        levels l = halves(&in, 5);
        for (uint32_t k = 0; k < 5; k++) {
            assert_int_equal(l.at[k].n, n >> (k + 1));
            assert_sane(&l.at[k]);
        }
        release(&in), release_levels(&l);
    }
}

static void rows_in_one_place(void **state)
{
    (void)state;
    for (int same = 0; same < 2; same++) {
        kiln_coarsen_rows in = scene(5000, 1, 8);
        for (uint64_t i = 0; i < in.n; i++) {
            for (uint64_t a = 0; a < 3; a++) in.means[a * in.n + i] = 1.5f;
            for (uint64_t a = 0; same && a < 3; a++) in.log_scales[a * in.n + i] = -87;
            for (uint64_t a = 0; same && a < 4; a++) in.quats[a * in.n + i] = 0.5f;
        }
        kiln_coarsen_weights(&in);
        levels l = coarsen(&in, 5, (uint64_t[]){2500, 1250, 600, 3, 1});
        assert_int_equal(l.at[3].n, 3);
        assert_int_equal(l.at[4].n, 1);
        assert_int_equal(l.at[4].source_count[0], 5000);
        for (uint32_t k = 0; k < 5; k++) assert_sane(&l.at[k]);
        release(&in), release_levels(&l);
    }
}

static void visibility_and_sources_are_optional(void **state)
{
    (void)state;
    kiln_coarsen_rows in = scene(800, 0, 4), without = in, ones = in;
    ones.visibility = floats(in.n);
    for (uint64_t i = 0; i < in.n; i++) ones.visibility[i] = 1;
    without.visibility = NULL;
    levels l = halves(&in, 2), a = halves(&ones, 2), b = halves(&without, 2);
    assert_same(&a, &b);
    assert_true(memcmp(l.at[1].means, a.at[1].means, 3 * l.at[1].n * sizeof(float)) != 0);
    free(ones.visibility);
    release(&in), release_levels(&l), release_levels(&a), release_levels(&b);
}

static void threads_do_not_show(void **state)
{
    (void)state;
    kiln_coarsen_rows in = scene(5000, 1, 4);
    levels one = halves(&in, 3);
    threads = 3;
    levels three = halves(&in, 3);
    threads = 1;
    assert_same(&one, &three);
    release(&in), release_levels(&one), release_levels(&three);
}

/* ---- parts ---- */

static void candidates_are_the_nearest(void **state)
{
    (void)state;
    kiln_coarsen_rows in = scene(1111, 0, 6);
    coarsen_state s;
    void *work = aligned_alloc(256, (kiln_coarsen_bytes(in.n, 0, 1) + 511) / 256 * 256);
    kiln_coarsen_layout(&s, in.n, 0, work);
    kiln_coarsen_load_cpu(&s, &in);
    kiln_coarsen_near_cpu(&s);
    for (uint64_t i = 0; i < in.n; i++) {
        double worst = 0;
        uint32_t nearer = 0;
        double d2[1111];
        for (uint64_t j = 0; j < in.n; j++) {
            d2[j] = 0;
            for (uint64_t a = 0; a < 3; a++)
                d2[j] += pow((double)in.means[a * in.n + j] - (double)in.means[a * in.n + i], 2);
        }
        assert_int_equal(s.n_near[i], COARSEN_NEAR);
        for (uint32_t k = 0; k < COARSEN_NEAR; k++) {
            assert_true(s.near[i][k] != i);
            worst = d2[s.near[i][k]] > worst ? d2[s.near[i][k]] : worst;
        }
        for (uint64_t j = 0; j < in.n; j++) nearer += j != i && d2[j] < worst * (1 - 1e-5);
        assert_true(nearer < COARSEN_NEAR);
    }
    free(work);
    release(&in);
}

static long double area_l(const double s[3])
{
    const long double p = 1.6075L, a = expl(p * (s[0] + s[1])), b = expl(p * (s[0] + s[2])),
                      c = expl(p * (s[1] + s[2]));
    return 4 * 3.14159265358979323846264338328L * powl((a + b + c) / 3, 1 / p);
}

static void surfaces_are_exact_to_half_an_ulp_of_float(void **state)
{
    (void)state;
    kg_rng g = {kg_stream(3, 73), 0};
    double worst = 0;
    for (int i = 0; i < 20000; i++) {
        const double spread = i % 3 ? 3 : 25,
                     s[3] = {spread * kg_n(&g), spread * kg_n(&g), spread * kg_n(&g)};
        const long double exact = area_l(s);
        const double off = fabs((double)(((long double)kiln_ellipsoid_area(s) - exact) / exact));
        worst = off > worst ? off : worst;
    }
    assert_true(worst < 1e-14);
    assert_true(fabs(kiln_ellipsoid_area((double[]){0, 0, 0}) - 12.566370614359173) < 1e-13);
}

static void axes_give_the_covariance_back(void **state)
{
    (void)state;
    kg_rng g = {kg_stream(4, 74), 0};
    for (int i = 0; i < 20000; i++) {
        double s[3], q[4], c[6], values[3], axes[9], quat[4], again[6], most = 0;
        for (int a = 0; a < 3; a++) s[a] = (i % 2 ? 1 : 6) * kg_n(&g);
        for (int a = 0; a < 4; a++) q[a] = i % 5 == 0 ? (a == i % 4) : kg_n(&g);
        kiln_covar_of(s, q, c);
        kiln_covar_axes(c, values, axes);
        kiln_quat_of_rotation(axes, quat);
        for (int a = 0; a < 3; a++) most = values[a] > most ? values[a] : most;
        for (int a = 0; a < 3; a++)
            s[a] = 0.5 * log(values[a] > 1e-20 * most ? values[a] : 1e-20 * most);
        kiln_covar_of(s, quat, again);
        assert_true(quat[0] >= 0);
        for (int a = 0; a < 6; a++) assert_true(fabs(again[a] - c[a]) < 1e-14 * most);
    }
}

static void refusals(void **state)
{
    (void)state;
    kiln_coarsen_rows in = scene(10, 0, 1), out = rows_of(5, 0), bad = in;
    kiln_error err = {0};
    const size_t bytes = kiln_coarsen_bytes(10, 0, 1);
    void *work = aligned_alloc(256, (bytes + 511) / 256 * 256);
    const kiln_coarsen_levels five = {1, (uint64_t[]){5}, &out}, none = {1, (uint64_t[]){0}, &out};
    assert_int_equal(kiln_coarsen(&in, &five, work, bytes - 1, 1, &err), KILN_E_CAP);
    assert_int_equal(kiln_coarsen(&in, &none, work, bytes, 1, &err), KILN_E_INPUT);
    bad.sh_degree = 5;
    assert_int_equal(kiln_coarsen(&bad, &five, work, bytes, 1, &err), KILN_E_INPUT);
    assert_true(kiln_coarsen_bytes(UINT64_MAX / 4, 3, 1) == SIZE_MAX);
    free(work);
    release(&in), release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_level_has_its_count_and_all_of_the_mass),
        cmocka_unit_test(merging_keeps_mean_covariance_and_colour_of_the_mixture),
        cmocka_unit_test(opacity_spreads_the_weight_over_the_new_surface),
        cmocka_unit_test(what_lies_over_another_grows),
        cmocka_unit_test(rows_that_were_not_merged_keep_their_bits),
        cmocka_unit_test(both_builds_give_the_same_bits),
        cmocka_unit_test(the_bits_are_those_of_every_machine),
        cmocka_unit_test(what_is_prominent_is_merged_last),
        cmocka_unit_test(rows_at_other_distances_from_cameras_are_merged_last),
        cmocka_unit_test(what_others_hide_adds_less_weight),
        cmocka_unit_test(few_rows),
        cmocka_unit_test(hostile_values_stay_finite),
        cmocka_unit_test(rows_in_one_place),
        cmocka_unit_test(visibility_and_sources_are_optional),
        cmocka_unit_test(threads_do_not_show),
        cmocka_unit_test(candidates_are_the_nearest),
        cmocka_unit_test(surfaces_are_exact_to_half_an_ulp_of_float),
        cmocka_unit_test(axes_give_the_covariance_back),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
