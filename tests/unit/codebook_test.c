/* codebook_test -- codebooks of 256 values against the exact optimum, found here without any short
 * cut. */
#include "kernels/palette/codebook.h"
#include "kernels/palette/palette_math.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { K = KILN_CODEBOOK_VALUES };

static kiln_codebook_counts *counts_of(const float *values, uint64_t n)
{
    kiln_codebook_counts *c = calloc(1, sizeof *c);
    assert_non_null(c);
    kiln_codebook_add(c, values, n);
    return c;
}

static void make(const kiln_codebook_counts *c, float codebook[K])
{
    void *work = malloc(kiln_codebook_work_bytes());
    assert_non_null(work);
    memset(work, 0xa5, kiln_codebook_work_bytes());
    kiln_codebook_make(c, KILN_CODEBOOK_ALL, work, codebook);
    for (unsigned k = 1; k < K; k++) assert_true(codebook[k] >= codebook[k - 1]);
    free(work);
}

static void make_of(const float *values, uint64_t n, float codebook[K])
{
    kiln_codebook_counts *c = counts_of(values, n);
    make(c, codebook);
    free(c);
}

/* About a bell around `middle`. */
static void fill(float *values, uint64_t n, float middle, float size, uint64_t seed)
{
    for (uint64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int j = 0; j < 4; j++)
            sum += (float)(kiln_palette_mix(seed = seed + 0x9e3779b97f4a7c15u) >> 40) * 0x1p-24f -
                   0.5f;
        values[i] = middle + size * sum * sum * sum;
    }
}

static double error_of(const float *values, uint64_t n, const float codebook[K])
{
    double error = 0;
    uint8_t *codes = malloc(n);
    assert_non_null(codes);
    kiln_codebook_codes(codebook, values, n, codes);
    for (uint64_t i = 0; i < n; i++) {
        const double d = fabs((double)values[i] - (double)codebook[codes[i]]);
        for (unsigned k = 0; k < K; k++) { /* the nearest, and the lowest of those */
            const double other = fabs((double)values[i] - (double)codebook[k]);
            assert_false(other < d || (other == d && k < codes[i]));
        }
        error += d * d;
    }
    free(codes);
    return error;
}

static int by_value(const void *a, const void *b)
{
    const float p = *(const float *)a, q = *(const float *)b;
    return (p > q) - (p < q);
}

/* The least error of any 256 values, by the quadratic dynamic program; sorts. */
static double least_error(float *values, uint64_t n)
{
    double *least = calloc(n + 1, sizeof *least), *before = calloc(n + 1, sizeof *before);
    assert_true(least && before);
    qsort(values, n, sizeof *values, by_value);
    for (uint64_t end = 1; end <= n; end++) before[end] = (double)INFINITY;
    for (unsigned k = 0; k < K; k++) {
        /* the last run grows downwards: its mean and error as Welford keeps them */
        for (uint64_t end = 1; end <= n; end++) {
            double mean = 0, error = 0;
            least[end] = (double)INFINITY;
            for (uint64_t begin = end; begin-- > 0;) {
                const double d = (double)values[begin] - mean;
                mean += d / (double)(end - begin);
                error += d * ((double)values[begin] - mean);
                if (error > least[end]) break; /* longer runs cost more */
                if (before[begin] + error < least[end]) least[end] = before[begin] + error;
            }
        }
        least[0] = 0;
        memcpy(before, least, (n + 1) * sizeof *least);
    }
    const double error = least[n];
    free(least);
    free(before);
    return error;
}

static void few_values_are_kept(void **state)
{
    (void)state;
    static const unsigned different[] = {1, 2, 255, 256};
    for (unsigned c = 0; c < 4; c++) {
        float values[3000], codebook[K];
        fill(values, different[c], -4.0f, 3.0f, c);
        for (unsigned i = different[c]; i < 3000; i++) values[i] = values[i * 7 % different[c]];
        make_of(values, 3000, codebook);
        assert_true(error_of(values, 3000, codebook) == 0);
    }
    const float odd[] = {-0.0f,   0.0f, FLT_TRUE_MIN,          -FLT_MAX,
                         FLT_MAX, 1.0f, nextafterf(1.0f, 2.0f)};
    float codebook[K];
    make_of(odd, 7, codebook);
    assert_true(codebook[0] == -FLT_MAX && codebook[1] == 0 && !signbit(codebook[1]) &&
                codebook[5] == FLT_MAX && codebook[255] == FLT_MAX);
    assert_true(error_of(odd, 7, codebook) == 0);
    make_of(odd, 0, codebook);
    assert_true(codebook[0] == 0 && codebook[255] == 0);
}

static void many_values_have_nearly_the_least_error(void **state)
{
    (void)state;
    static const struct {
        unsigned n;
        float middle, size;
    } cases[] = {{257, 0, 1}, {1000, 0, 1}, {1000, -5, 8}, {1000, -7, 1}, {1000, 0, 1e-3f}};
    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
        float values[1000], codebook[K];
        fill(values, cases[c].n, cases[c].middle, cases[c].size, 20 + c);
        make_of(values, cases[c].n, codebook);
        const double error = error_of(values, cases[c].n, codebook),
                     least = least_error(values, cases[c].n);
        /* two values may share one */
        const double size = (double)cases[c].size, bins = 1e-11 * size * size * cases[c].n;
        if (error > least * 1.02 + bins) fail_msg("case %u: %g, the least is %g", c, error, least);
    }
}

/* A million steps further out than the rest: those cost a few codes and no more. */
static void values_far_out_cost_little(void **state)
{
    (void)state;
    static const float far[] = {1e3f, 1e10f, 3e38f};
    for (unsigned c = 0; c < 3; c++) {
        float values[4000], codebook[K];
        fill(values, 4000, 0, 1, 30);
        make_of(values, 3998, codebook);
        const double without = error_of(values, 3998, codebook);
        values[3998] = far[c];
        values[3999] = -far[c];
        make_of(values, 4000, codebook);
        const double with = error_of(values, 3998, codebook);
        if (with > 2 * without)
            fail_msg("beside %g: %g, without it %g", (double)far[c], with, without);
        assert_true(codebook[0] == -far[c] && codebook[255] == far[c]);
    }
}

/* The largest error of values above 4, of which there are few. */
static double error_far_out(const float *values, uint64_t n, const float codebook[K])
{
    double most = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint8_t code;
        kiln_codebook_codes(codebook, &values[i], 1, &code);
        const double off = fabs((double)values[i] - (double)codebook[code]);
        if (values[i] > 4 && off > most) most = off;
    }
    return most;
}

static void rare_values_have_values_of_their_own_where_they_count(void **state)
{
    enum { N = 200000, FAR = 24 };
    float *values = malloc(N * sizeof *values), all[K], rare[K];
    kiln_codebook_counts *c = calloc(1, sizeof *c);
    void *work = malloc(kiln_codebook_work_bytes());
    (void)state;
    assert_non_null(values);
    fill(values, N, 0, 1, 5);
    for (uint64_t i = 0; i < FAR; i++) values[i] = 5 + 0.125f * (float)i;
    kiln_codebook_add(c, values, N);
    kiln_codebook_make(c, KILN_CODEBOOK_ALL, work, all);
    kiln_codebook_make(c, KILN_CODEBOOK_RARE, work, rare);
    assert_true(error_far_out(values, N, rare) < 0.07);
    assert_true(error_far_out(values, N, all) > 2 * error_far_out(values, N, rare));
    free(work);
    free(c);
    free(values);
}

static void order_and_pieces_do_not_show(void **state)
{
    (void)state;
    /* at most 256 in each piece, and more in all */
    static const uint64_t sizes[] = {100, 300, 5000};
    for (unsigned c = 0; c < 3; c++) {
        float values[5000], first[K], second[K];
        const uint64_t n = sizes[c];
        fill(values, n, 1, 2, 40 + c);
        kiln_codebook_counts *all = counts_of(values, n), *pieces = counts_of(values, 0);
        for (uint64_t at = n; at > 0;) {
            const uint64_t count = at < 70 ? at : 70;
            kiln_codebook_counts *piece = counts_of(values + (at -= count), count);
            kiln_codebook_merge(pieces, piece);
            free(piece);
        }
        make(all, first);
        make(pieces, second);
        assert_int_equal(all->n, pieces->n);
        assert_int_equal(all->n_values, pieces->n_values);
        assert_memory_equal(first, second, sizeof first);
        free(all);
        free(pieces);
    }
}

static void levels_keep_values_apart(void **state)
{
    (void)state;
    float codebooks[4][K];
    for (unsigned k = 0; k < K; k++) {
        codebooks[0][k] = ((float)k - 128) / 100;
        /* all at one level, but for the last */
        codebooks[1][k] = k < 255 ? 1e-6f * (float)k : 1.0f;
        /* above the limit, if they were only moved up */
        codebooks[2][k] = k > 0 ? 1.0f + 1e-6f * (float)k : -1;
        codebooks[3][k] = k < 3 ? (float)k : 3; /* four values */
    }
    for (unsigned c = 0; c < 4; c++) {
        int16_t levels[K];
        kiln_codebook_levels(codebooks[c], levels);
        for (unsigned k = 0; k < K; k++)
            assert_true(levels[k] >= -KILN_PALETTE_LIMIT && levels[k] <= KILN_PALETTE_LIMIT);
        for (unsigned k = 1; k < K; k++)
            assert_true(codebooks[c][k] > codebooks[c][k - 1] ? levels[k] > levels[k - 1]
                                                              : levels[k] == levels[k - 1]);
    }
    int16_t levels[K];
    kiln_codebook_levels(codebooks[0], levels);
    assert_int_equal(levels[0], -KILN_PALETTE_LIMIT);
    assert_int_equal(levels[192], 1024); /* 0.64 / 1.28 of 2047 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_values_are_kept),
        cmocka_unit_test(rare_values_have_values_of_their_own_where_they_count),
        cmocka_unit_test(many_values_have_nearly_the_least_error),
        cmocka_unit_test(values_far_out_cost_little),
        cmocka_unit_test(order_and_pieces_do_not_show),
        cmocka_unit_test(levels_keep_values_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
