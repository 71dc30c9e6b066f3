/* metrics_test -- PSNR and SSIM against a plain two-dimensional computation, against fused-ssim's
 * own numbers, and against themselves on other threads and instruction sets.
 * KILN_TEST_DEVICES=cuda: by a GPU (test_runner.h). */
#include "kernels/metrics/metrics_math.h"
#include "kernels/ops.h"
#include "tests/unit/test_runner.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct {
    uint32_t width, height, a_step, b_step, a_row, b_row;
    float *a, *b;
    uint8_t *mask; /* NULL: none */
} pair;

static pair pair_make(uint32_t width, uint32_t height, uint32_t a_step, uint32_t b_step,
                      uint32_t margin)
{
    pair p = {.width = width,
              .height = height,
              .a_step = a_step,
              .b_step = b_step,
              .a_row = width + margin,
              .b_row = width};
    p.a = calloc((size_t)p.a_row * height * a_step, sizeof *p.a);
    p.b = calloc((size_t)p.b_row * height * b_step, sizeof *p.b);
    assert_true(p.a && p.b);
    return p;
}

static void pair_free(pair *p)
{
    free(p->a);
    free(p->b);
    free(p->mask);
}

static float *at(float *v, uint32_t row, uint32_t step, uint32_t x, uint32_t y, uint32_t c)
{
    return v + ((size_t)y * row + x) * step + c;
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull; /* Knuth, MMIX */
    return *state >> 33;
}

/* Noise over a gradient, some of it outside [0,1]; the rest of each row and the alpha are poison
 * that must not be read. */
static void fill(pair *p, uint64_t seed, float level, float amplitude)
{
    for (size_t i = 0; i < (size_t)p->a_row * p->height * p->a_step; i++) p->a[i] = NAN;
    for (size_t i = 0; i < (size_t)p->b_row * p->height * p->b_step; i++) p->b[i] = NAN;
    for (uint32_t y = 0; y < p->height; y++)
        for (uint32_t x = 0; x < p->width; x++)
            for (uint32_t c = 0; c < 3; c++) {
                float u = (float)next_random(&seed) / 2147483648.0f - 0.5f;
                float v = (float)next_random(&seed) / 2147483648.0f - 0.5f;
                float base = level + 0.3f * (float)x / (float)p->width;
                *at(p->a, p->a_row, p->a_step, x, y, c) = base + amplitude * u;
                *at(p->b, p->b_row, p->b_step, x, y, c) = base + amplitude * (0.7f * u + 0.3f * v);
            }
}

static kiln_metrics_args args_of(const pair *p, kiln_metrics *out)
{
    return (kiln_metrics_args){.width = p->width,
                               .height = p->height,
                               .a = p->a,
                               .b = p->b,
                               .a_step = p->a_step,
                               .b_step = p->b_step,
                               .a_row = p->a_row,
                               .b_row = p->b_row,
                               .mask = p->mask,
                               .out = out};
}

static kiln_metrics measure_with(const kiln_ops *ops, const pair *p, unsigned threads)
{
    kiln_metrics m;
    kiln_exec x = {.device = -1, .threads = threads};
    const kiln_metrics_args args = args_of(p, &m);
    kiln_error err = {0};
    size_t bytes = 0;
    assert_int_equal(ops->metrics(&x, &args, NULL, &bytes, &err), KILN_OK);
    void *work = malloc(bytes);
    assert_non_null(work);
    assert_int_equal(ops->metrics(&x, &args, work, &bytes, &err), KILN_OK);
    free(work);
    return m;
}

/* By the sibling that the test is run for. */
static kiln_metrics measure(const pair *p)
{
    kiln_metrics m;
    kiln_error err = {0};
    const kiln_metrics_args args = args_of(p, &m);
    if (test_run(KILN_OP_metrics, &args, &err) != KILN_OK) fail_msg("%s", err.msg);
    return m;
}

static double clamped(float v) { return v > 0 ? v < 1 ? (double)v : 1.0 : 0.0; }

static bool is_in(const pair *p, uint32_t x, uint32_t y)
{
    return !p->mask || p->mask[(size_t)y * p->width + x];
}

static double reference_map(const pair *p, int x, int y, uint32_t c, const double weight[11])
{
    double e[5] = {0};
    for (int j = -5; j <= 5; j++)
        for (int i = -5; i <= 5; i++) {
            if (x + i < 0 || y + j < 0 || x + i >= (int)p->width || y + j >= (int)p->height)
                continue;
            if (!is_in(p, (uint32_t)(x + i), (uint32_t)(y + j))) continue; /* 0 in both */
            double u =
                clamped(*at(p->a, p->a_row, p->a_step, (uint32_t)(x + i), (uint32_t)(y + j), c));
            double v =
                clamped(*at(p->b, p->b_row, p->b_step, (uint32_t)(x + i), (uint32_t)(y + j), c));
            double w = weight[i + 5] * weight[j + 5];
            e[0] += w * u, e[1] += w * v, e[2] += w * u * u, e[3] += w * v * v, e[4] += w * u * v;
        }
    double s1 = fmax(0, e[2] - e[0] * e[0]), s2 = fmax(0, e[3] - e[1] * e[1]),
           s12 = e[4] - e[0] * e[1];
    double v = (2 * e[0] * e[1] + 1e-4) * (2 * s12 + 9e-4) /
               ((e[0] * e[0] + e[1] * e[1] + 1e-4) * (s1 + s2 + 9e-4));
    return fmin(1, fmax(-1, v));
}

static kiln_metrics reference(const pair *p)
{
    static const float half[6] = {0.0010283801f, 0.0075987582f, 0.0360007733f,
                                  0.1093606874f, 0.2130055279f, 0.2660117149f}; /* fused-ssim */
    double weight[11];
    for (int i = 0; i < 11; i++) weight[i] = (double)half[i < 6 ? i : 10 - i];
    kiln_metrics m = {0};
    double inner = 0, all = 0;
    for (uint32_t y = 0; y < p->height; y++)
        for (uint32_t x = 0; x < p->width; x++) all += is_in(p, x, y);
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t y = 0; y < p->height; y++)
            for (uint32_t x = 0; x < p->width; x++) {
                if (!is_in(p, x, y)) continue;
                double u = clamped(*at(p->a, p->a_row, p->a_step, x, y, c)),
                       v = clamped(*at(p->b, p->b_row, p->b_step, x, y, c));
                double map = reference_map(p, (int)x, (int)y, c, weight);
                m.mean_a[c] += u / all;
                m.mean_b[c] += v / all;
                m.mse += (u - v) * (u - v) / 3 / all;
                m.ssim_same += map / 3 / all;
                if (x < 5 || y < 5 || x + 5 >= p->width || y + 5 >= p->height) continue;
                m.ssim_valid += map;
                inner++;
            }
    m.ssim_valid = inner > 0 ? m.ssim_valid / inner : NAN;
    m.psnr = -10 * log10(m.mse);
    return m;
}

static void assert_near(double got, double want, double tolerance, const char *what)
{
    if (isnan(want) ? isnan(got) : fabs(got - want) <= tolerance) return;
    fail_msg("%s is %.12g, not %.12g", what, got, want);
}

static void metrics_equal_the_plain_computation(void **state)
{
    (void)state;
    /* 1, the filter's edges 10, 11, 12, one over a piece (128 x 64), several pieces */
    static const uint32_t sizes[][2] = {{1, 1},    {3, 40},   {10, 11},  {11, 11}, {12, 40},
                                        {129, 65}, {128, 64}, {260, 30}, {20, 140}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pair p = pair_make(sizes[i][0], sizes[i][1], 3 + i % 2, 4 - i % 2, (uint32_t)i);
        fill(&p, i, i % 3 == 0 ? -0.05f : 0.4f, i % 3 == 1 ? 0.001f : 1.0f);
        kiln_metrics m = measure(&p), want = reference(&p);
        assert_near(m.psnr, want.psnr, 1e-6, "psnr");
        assert_near(m.mse, want.mse, 1e-14, "mse");
        assert_near(m.ssim_same, want.ssim_same, 3e-8, "ssim same");
        assert_near(m.ssim_valid, want.ssim_valid, 3e-8, "ssim valid");
        for (int c = 0; c < 3; c++) {
            assert_near(m.mean_a[c], want.mean_a[c], 1e-12, "mean a");
            assert_near(m.mean_b[c], want.mean_b[c], 1e-12, "mean b");
        }
        pair_free(&p);
    }
}

/* Every pixel that a mask leaves out is poison of another kind than no number: it must decide
 * nothing. */
static void add_mask(pair *p, uint64_t seed)
{
    p->mask = malloc((size_t)p->width * p->height);
    assert_non_null(p->mask);
    for (uint32_t y = 0; y < p->height; y++)
        for (uint32_t x = 0; x < p->width; x++) {
            const bool in =
                ((x / 9 + y / 7) % 3 != 0 && (x * 7 + y) % 13 != 0) || (x == 0 && y == 0);
            p->mask[(size_t)y * p->width + x] = in ? (uint8_t)(1 + next_random(&seed) % 255) : 0;
            for (uint32_t c = 0; !in && c < 3; c++) {
                *at(p->a, p->a_row, p->a_step, x, y, c) = c == 0 ? NAN : 0.9f;
                *at(p->b, p->b_row, p->b_step, x, y, c) = 0.1f;
            }
        }
}

static void left_out_pixels_count_in_nothing(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{1, 1}, {12, 40}, {11, 13}, {129, 65}, {260, 140}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pair p = pair_make(sizes[i][0], sizes[i][1], 3 + i % 2, 4 - i % 2, (uint32_t)i);
        fill(&p, i, 0.4f, 1.0f);
        add_mask(&p, i);
        kiln_metrics m = measure(&p), want = reference(&p);
        assert_near(m.psnr, want.psnr, 1e-6, "psnr");
        assert_near(m.mse, want.mse, 1e-14, "mse");
        assert_near(m.ssim_same, want.ssim_same, 3e-8, "ssim same");
        assert_near(m.ssim_valid, want.ssim_valid, 3e-8, "ssim valid");
        for (int c = 0; c < 3; c++) {
            assert_near(m.mean_a[c], want.mean_a[c], 1e-12, "mean a");
            assert_near(m.mean_b[c], want.mean_b[c], 1e-12, "mean b");
        }
        pair_free(&p);
    }
}

static void a_mask_without_a_hole_changes_no_bit(void **state)
{
    (void)state;
    pair p = pair_make(301, 203, 4, 3, 2);
    fill(&p, 7, 0.3f, 0.8f);
    const kiln_metrics none = measure(&p);
    p.mask = malloc((size_t)p.width * p.height);
    assert_non_null(p.mask);
    memset(p.mask, 1, (size_t)p.width * p.height);
    const kiln_metrics full = measure(&p);
    assert_memory_equal(&none, &full, sizeof none);
    pair_free(&p);
}

static void an_empty_mask_has_no_numbers(void **state)
{
    (void)state;
    pair p = pair_make(40, 30, 3, 3, 0);
    fill(&p, 3, 0.5f, 0.5f);
    p.mask = calloc(p.width, p.height);
    assert_non_null(p.mask);
    kiln_metrics m = measure(&p);
    assert_true(isnan(m.psnr) && isnan(m.mse) && isnan(m.ssim_same) && isnan(m.ssim_valid) &&
                isnan(m.mean_a[0]) && isnan(m.mean_b[2]));
    p.mask[2] = 255; /* a pixel of the border alone */
    m = measure(&p);
    assert_true(isfinite(m.psnr) && isfinite(m.ssim_same) && isnan(m.ssim_valid));
    pair_free(&p);
}

/* The test pictures of shared/bench/generate.h (kg_image): splitmix64 and three octaves of value
 * noise. */
static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

static uint64_t draw(uint64_t seed, uint64_t stream, uint64_t i)
{
    const uint64_t golden = 0x9E3779B97F4A7C15ull;
    uint64_t key = mix(mix(seed + golden) ^ (stream * 0xD1342543DE82EF95ull));
    return mix(key + (i + 1) * golden);
}

static uint32_t noise(uint64_t seed, uint32_t c, uint32_t x, uint32_t y)
{
    uint32_t sum = 0;
    for (uint32_t o = 0; o < 3; o++) {
        uint32_t shift = 6 - 2 * o;
        uint64_t n = 1u << shift, fx = x & (n - 1), fy = y & (n - 1), corner[4];
        for (uint32_t k = 0; k < 4; k++) {
            uint64_t cx = (x >> shift) + (k & 1), cy = (y >> shift) + (k >> 1);
            corner[k] =
                (uint32_t)(draw(seed, 20, (((uint64_t)o * 3 + c) << 40) ^ (cy << 20) ^ cx) >> 48);
        }
        uint64_t top = corner[0] * (n - fx) + corner[1] * fx,
                 bottom = corner[2] * (n - fx) + corner[3] * fx;
        sum += (uint32_t)((top * (n - fy) + bottom * fy) >> (2 * shift)) >> (o + 1);
    }
    return sum;
}

static void fill_noise(pair *p, uint64_t seed)
{
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t y = 0; y < p->height; y++)
            for (uint32_t x = 0; x < p->width; x++) {
                uint32_t v = noise(seed, c, x, y);
                int32_t w =
                    (int32_t)v +
                    (int32_t)(draw(seed, 21, ((uint64_t)c << 40) ^ ((uint64_t)y << 20) ^ x) >> 51) -
                    4096;
                w = w < 0 ? 0 : w > 65535 ? 65535 : w;
                *at(p->a, p->a_row, p->a_step, x, y, c) = (float)v / 65535.0f;
                *at(p->b, p->b_row, p->b_step, x, y, c) = (float)w / 65535.0f;
            }
}

static void metrics_equal_fused_ssim(void **state)
{
    (void)state;
    /* rows `ssim` of shared/truth/truth.json: fused-ssim 0ac916a on kg_image, and the same in
     * float64 */
    static const struct {
        uint32_t seed, width, height;
        double fused_same, fused_valid, same, valid, psnr, mean_a[3], mean_b[3];
    } truth[] = {
        {1,
         480,
         270,
         0.580926836,
         0.563590527,
         0.580926809489,
         0.563590500127,
         28.8561925459,
         {0.421268618, 0.441509663, 0.43308567},
         {0.421203458, 0.441231537, 0.433088967}},
        {2,
         1001,
         701,
         0.57315886,
         0.565992594,
         0.573158829775,
         0.565992624925,
         28.8531481749,
         {0.435642247, 0.447729593, 0.429943878},
         {0.435689473, 0.447761442, 0.429966188}},
    };
    for (size_t i = 0; i < sizeof truth / sizeof *truth; i++) {
        pair p = pair_make(truth[i].width, truth[i].height, 3, 4, 0);
        fill_noise(&p, truth[i].seed);
        kiln_metrics m = measure(&p);
        assert_near(m.ssim_same, truth[i].fused_same, 1e-6, "fused-ssim same");
        assert_near(m.ssim_valid, truth[i].fused_valid, 1e-6, "fused-ssim valid");
        assert_near(m.ssim_same, truth[i].same, 1e-7, "float64 same");
        assert_near(m.ssim_valid, truth[i].valid, 1e-7, "float64 valid");
        assert_near(m.psnr, truth[i].psnr, 1e-6, "psnr");
        for (int c = 0; c < 3; c++) {
            assert_near(m.mean_a[c], truth[i].mean_a[c], 1e-9, "mean of picture 0");
            assert_near(m.mean_b[c], truth[i].mean_b[c], 1e-9, "mean of picture 1");
        }
        pair_free(&p);
    }
}

static void metrics_do_not_depend_on_threads_or_instructions(void **state)
{
    (void)state;
    pair p = pair_make(301, 203, 4, 3, 2);
    fill(&p, 7, 0.3f, 0.8f);
    kiln_metrics one = measure_with(kiln_ops_cpu_baseline(), &p, 1);
    for (unsigned threads = 1; threads <= 10; threads++) {
        if (threads == 6) add_mask(&p, 7), one = measure_with(kiln_ops_cpu_baseline(), &p, 1);
        kiln_metrics base = measure_with(kiln_ops_cpu_baseline(), &p, threads),
                     best = measure_with(kiln_ops_cpu(), &p, threads);
        assert_memory_equal(&one, &base, sizeof one);
        assert_memory_equal(&one, &best, sizeof one);
    }
    pair_free(&p);
}

/* Picture a is flat, b flat or squares of a's level and another. */
static void fill_levels(pair *p, float level, float other, bool squares)
{
    for (uint32_t y = 0; y < p->height; y++)
        for (uint32_t x = 0; x < p->width; x++)
            for (uint32_t c = 0; c < 3; c++) {
                *at(p->a, p->a_row, p->a_step, x, y, c) = level;
                *at(p->b, p->b_row, p->b_step, x, y, c) =
                    squares && (x / 13 + y / 17) % 2 == 0 ? level : other;
            }
}

/* Where most variances are 0 what is left of them is rounding alone, the same at every pixel:
 * nothing averages it. */
static void flat_pictures_are_as_exact(void **state)
{
    (void)state;
    static const float levels[][2] = {{0.0f, 0.01f}, {0.97f, 1.0f}, {0.3f, 0.4f},  {0.55f, 0.85f},
                                      {0.0f, 1.0f},  {0.2f, 0.9f},  {0.1f, 0.101f}};
    for (size_t i = 0; i < 2 * (sizeof levels / sizeof *levels); i++) {
        pair p = pair_make(70, 60, 3, 3, 0);
        fill_levels(&p, levels[i / 2][0], levels[i / 2][1], i % 2 == 1);
        kiln_metrics m = measure(&p), want = reference(&p);
        assert_near(m.ssim_same, want.ssim_same, 2e-7, "ssim same");
        assert_near(m.ssim_valid, want.ssim_valid, 2e-7, "ssim valid");
        assert_near(m.psnr, want.psnr, 1e-6, "psnr");
        pair_free(&p);
    }
}

/* The largest sums that can be: no part of them may overflow, however large the pieces are. */
static void black_and_white_are_the_worst(void **state)
{
    (void)state;
    pair p = pair_make(1000, 2000, 3, 3, 0);
    fill_levels(&p, 0.0f, 1.0f, false);
    kiln_metrics m = measure(&p);
    assert_near(m.mse, 1.0, 0.0, "mse");
    assert_near(m.psnr, 0.0, 0.0, "psnr");
    assert_near(m.ssim_valid, 1e-4 / (1.0 + 1e-4), 1e-7, "ssim valid");
    for (int c = 0; c < 3; c++) {
        assert_near(m.mean_a[c], 0.0, 0.0, "mean a");
        assert_near(m.mean_b[c], 1.0, 0.0, "mean b");
    }
    pair_free(&p);
}

static void equal_pictures_have_infinite_psnr_and_ssim_one(void **state)
{
    (void)state;
    pair p = pair_make(40, 30, 3, 3, 0);
    fill(&p, 3, 0.9f, 0.5f); /* partly clamped: white and flat there */
    memcpy(p.b, p.a, (size_t)p.width * p.height * 3 * sizeof *p.a);
    kiln_metrics m = measure(&p);
    assert_true(isinf(m.psnr) && m.psnr > 0);
    assert_true(m.mse == 0 && m.ssim_same == 1 && m.ssim_valid == 1);
    pair_free(&p);
}

static void pictures_that_cannot_be_measured_are_refused(void **state)
{
    (void)state;
    static const kiln_metrics_args bad[] = {
        {.width = 0, .height = 4, .a_step = 3, .b_step = 3, .a_row = 4, .b_row = 4},
        {.width = 4, .height = 4, .a_step = 1, .b_step = 3, .a_row = 4, .b_row = 4},
        {.width = 4, .height = 4, .a_step = 3, .b_step = 3, .a_row = 3, .b_row = 4},
    };
    kiln_exec x = {.device = -1, .threads = 1};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kiln_error err = {0};
        size_t bytes = 0;
        assert_int_equal(kiln_ops_cpu()->metrics(&x, &bad[i], NULL, &bytes, &err), KILN_OK);
        void *work = malloc(bytes);
        assert_int_equal(kiln_ops_cpu()->metrics(&x, &bad[i], work, &bytes, &err), KILN_E_INPUT);
        bytes = 1;
        assert_int_equal(kiln_ops_cpu()->metrics(&x, &bad[i], work, &bytes, &err), KILN_E_CAP);
        free(work);
    }
}

/* As the compiler's own conversion, above all around the middle between two doubles. */
static void totals_become_the_nearest_double(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int i = 0; i < 200000; i++) {
        kiln_fixed_total v = 0;
        for (int k = 0; k < 4; k++) v = v << 31 | (kiln_fixed_total)next_random(&seed);
        v >>= next_random(&seed) % 124;
        const uint32_t cut = (uint32_t)(next_random(&seed) % 64);
        if (i % 2) v = (v >> cut | 1) << cut >> 1; /* a one with zeros behind it */
        if (i % 4 == 3) v += (kiln_fixed_total)(next_random(&seed) % 3) - 1;
        assert_true(kiln_fixed_to_double(v) == (double)v);
        assert_true(kiln_fixed_to_double(-v) == (double)-v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_equal_the_plain_computation),
        cmocka_unit_test(metrics_equal_fused_ssim),
        cmocka_unit_test(left_out_pixels_count_in_nothing),
        cmocka_unit_test(a_mask_without_a_hole_changes_no_bit),
        cmocka_unit_test(an_empty_mask_has_no_numbers),
        cmocka_unit_test(metrics_do_not_depend_on_threads_or_instructions),
        cmocka_unit_test(flat_pictures_are_as_exact),
        cmocka_unit_test(black_and_white_are_the_worst),
        cmocka_unit_test(equal_pictures_have_infinite_psnr_and_ssim_one),
        cmocka_unit_test(pictures_that_cannot_be_measured_are_refused),
        cmocka_unit_test(totals_become_the_nearest_double),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
