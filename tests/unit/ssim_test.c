/* ssim_test -- SSIM as a loss and its gradient against a plain two-dimensional computation in
 * double, against metrics for pictures within [0,1], and against themselves on other threads.
 * KILN_TEST_DEVICES=cuda: by a GPU (test_runner.h). */
#include "kernels/metrics/metrics_math.h"
#include "kernels/ops.h"
#include "tests/unit/test_runner.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { RADIUS = KILN_SSIM_RADIUS };

typedef struct {
    uint64_t planes;
    uint32_t width, height;
    float *a, *b, *partials, *gradient, mean;
} pair;

static uint64_t values_of(const pair *p) { return p->planes * p->height * p->width; }

static float *floats(uint64_t n)
{
    float *v = malloc((n ? n : 1) * sizeof *v);
    assert_non_null(v);
    return v;
}

/* b is a smooth picture with noise, a is b with more noise, `apart` strong. */
static pair pair_make(uint64_t planes, uint32_t width, uint32_t height, float noise, float apart)
{
    pair p = {.planes = planes, .width = width, .height = height};
    const uint64_t n = values_of(&p);
    uint64_t state = n;
    p.a = floats(n);
    p.b = floats(n);
    p.partials = floats(3 * n);
    p.gradient = floats(n);
    for (uint64_t i = 0; i < n; i++) {
        float u[2];
        for (int k = 0; k < 2; k++) {
            state = state * 6364136223846793005ull + 1442695040888963407ull; /* Knuth, MMIX */
            u[k] = (float)(state >> 40) * 0x1p-24f - 0.5f;
        }
        p.b[i] = 0.5f + 0.3f * sinf((float)(i % width) / 9.0f) + noise * u[0];
        p.a[i] = p.b[i] + apart * u[1];
    }
    return p;
}

static void pair_free(pair *p)
{
    free(p->a);
    free(p->b);
    free(p->partials);
    free(p->gradient);
}

static void measure(pair *p, bool valid, float upstream, unsigned threads)
{
    kiln_error err = {0};
    kiln_runner *r = NULL;
    const kiln_ssim_args f = {.planes = p->planes,
                              .width = p->width,
                              .height = p->height,
                              .valid = valid,
                              .a = p->a,
                              .b = p->b,
                              .partials = p->partials,
                              .mean = &p->mean};
    const kiln_ssim_backward_args g = {.planes = p->planes,
                                       .width = p->width,
                                       .height = p->height,
                                       .valid = valid,
                                       .a = p->a,
                                       .b = p->b,
                                       .partials = p->partials,
                                       .upstream = &upstream,
                                       .gradient = p->gradient};
    if (test_runner(threads, &r, &err) != KILN_OK) fail_msg("%s", err.msg);
    kiln_runner_set_threads(r, threads);
    if (kiln_runner_run(r, KILN_OP_ssim, &f, &err) != KILN_OK ||
        kiln_runner_run(r, KILN_OP_ssim_backward, &g, &err) != KILN_OK)
        fail_msg("%s", err.msg);
}

/* ---- the plain way, in double ---------------------------------------------------------------- */

static double weight(int64_t dx, int64_t dy)
{
    return (double)kiln_ssim_weight((int)dx + RADIUS) * (double)kiln_ssim_weight((int)dy + RADIUS);
}

typedef struct {
    double map, by_mu, by_var, by_cov, mu_a, mu_b;
} window;

/* The window around a pixel of a plane, as fused-ssim writes it. */
static window window_at(const pair *p, uint64_t plane, int64_t x, int64_t y)
{
    double ea = 0, eb = 0, eaa = 0, ebb = 0, eab = 0;
    for (int64_t dy = -RADIUS; dy <= RADIUS; dy++)
        for (int64_t dx = -RADIUS; dx <= RADIUS; dx++) {
            if (x + dx < 0 || x + dx >= p->width || y + dy < 0 || y + dy >= p->height) continue;
            const uint64_t i =
                (plane * p->height + (uint64_t)(y + dy)) * p->width + (uint64_t)(x + dx);
            const double w = weight(dx, dy), va = (double)p->a[i], vb = (double)p->b[i];
            ea += w * va, eb += w * vb, eaa += w * va * va, ebb += w * vb * vb, eab += w * va * vb;
        }
    const double c1 = 0.0001, c2 = 0.0009;
    const double A = ea * ea + eb * eb + c1,
                 B = fmax(eaa - ea * ea, 0) + fmax(ebb - eb * eb, 0) + c2;
    const double C = 2 * ea * eb + c1, D = 2 * (eab - ea * eb) + c2;
    return (window){.map = C * D / (A * B),
                    .by_mu = 2 * eb * (D - C) / (A * B) - 2 * ea * C * D / (A * A * B) +
                             2 * ea * C * D / (A * B * B),
                    .by_var = -C * D / (A * B * B),
                    .by_cov = 2 * C / (A * B),
                    .mu_a = ea,
                    .mu_b = eb};
}

static bool counts(const pair *p, bool valid, int64_t x, int64_t y)
{
    return !valid || kiln_metrics_in_valid(p->width, p->height, x, y);
}

/* The mean, and the gradient times `upstream`, into *mean and gradient. */
static void plain(const pair *p, bool valid, double upstream, double *mean, double *gradient)
{
    uint64_t n = 0;
    double sum = 0;
    memset(gradient, 0, values_of(p) * sizeof *gradient);
    for (uint64_t plane = 0; plane < p->planes; plane++)
        for (int64_t y = 0; y < p->height; y++)
            for (int64_t x = 0; x < p->width; x++) {
                if (!counts(p, valid, x, y)) continue;
                const window w = window_at(p, plane, x, y);
                sum += w.map;
                n++;
                for (int64_t dy = -RADIUS; dy <= RADIUS; dy++)
                    for (int64_t dx = -RADIUS; dx <= RADIUS; dx++) {
                        if (x + dx < 0 || x + dx >= p->width || y + dy < 0 || y + dy >= p->height)
                            continue;
                        const uint64_t j = (plane * p->height + (uint64_t)(y + dy)) * p->width +
                                           (uint64_t)(x + dx);
                        gradient[j] += weight(dx, dy) * (w.by_mu + 2 * (double)p->a[j] * w.by_var +
                                                         (double)p->b[j] * w.by_cov);
                    }
            }
    *mean = sum / (double)n;
    for (uint64_t j = 0; j < values_of(p); j++) gradient[j] *= upstream / (double)n;
}

/* The largest difference as a share of the largest gradient. */
static double worst_gradient(const pair *p, const double *want)
{
    double most = 0, off = 0;
    for (uint64_t i = 0; i < values_of(p); i++) {
        most = fmax(most, fabs(want[i]));
        off = fmax(off, fabs((double)p->gradient[i] - want[i]));
    }
    return off / most;
}

static void is_the_plain_one(void **state)
{
    static const struct {
        uint64_t planes;
        uint32_t width, height;
        bool valid;
        float noise, apart;
        /* of the gradient; where values of twenty have means near 0, these have lost digits */
        double bound;
    } cases[] = {{3, 33, 29, false, 0.3f, 0.2f, 1e-6}, {2, 40, 16, true, 0.3f, 0.2f, 1e-6},
                 {1, 5, 3, false, 0.3f, 0.2f, 1e-6},   {1, 1, 1, false, 0, 0.1f, 1e-6},
                 {1, 180, 30, false, 0, 0.01f, 1e-6},  {2, 175, 27, true, 0, 0.001f, 1e-6},
                 {1, 24, 24, false, 40, 9, 2e-5}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        pair p = pair_make(cases[k].planes, cases[k].width, cases[k].height, cases[k].noise,
                           cases[k].apart);
        double mean, *gradient = malloc(values_of(&p) * sizeof *gradient);
        assert_non_null(gradient);
        measure(&p, cases[k].valid, 0.7f, 2);
        plain(&p, cases[k].valid, (double)0.7f, &mean, gradient);
        const double off = fabs((double)p.mean - mean), worst = worst_gradient(&p, gradient);
        print_message("case %zu: mean %.8f, off by %.1e; gradient off by %.1e of its largest\n", k,
                      mean, off, worst);
        assert_true(off < 2e-7);
        assert_true(worst < cases[k].bound);
        free(gradient);
        pair_free(&p);
    }
}

static void a_picture_has_the_metric_of_a_bake(void **state)
{
    enum { W = 90, H = 70 };
    kiln_error err = {0};
    kiln_metrics m;
    float *a = floats(3 * W * H), *b = floats(3 * W * H);
    (void)state;
    pair p = pair_make(3, W, H, 0.2f, 0.1f); /* within [0,1] */
    for (uint64_t i = 0; i < 3 * W * H; i++) {
        a[i % (W * H) * 3 + i / (W * H)] = p.a[i];
        b[i % (W * H) * 3 + i / (W * H)] = p.b[i];
    }
    const kiln_metrics_args args = {.width = W,
                                    .height = H,
                                    .a = a,
                                    .b = b,
                                    .a_step = 3,
                                    .b_step = 3,
                                    .a_row = W,
                                    .b_row = W,
                                    .out = &m};
    assert_int_equal(test_run(KILN_OP_metrics, &args, &err), KILN_OK);
    measure(&p, false, 1, 2);
    assert_true(fabs((double)p.mean - m.ssim_same) < 1e-7);
    measure(&p, true, 1, 2);
    assert_true(fabs((double)p.mean - m.ssim_valid) < 1e-7);
    free(a);
    free(b);
    pair_free(&p);
}

static void equal_pictures_have_no_gradient(void **state)
{
    (void)state;
    pair p = pair_make(1, 50, 40, 0.3f, 0);
    measure(&p, false, 1, 2);
    assert_true(p.mean == 1.0f);
    for (uint64_t i = 0; i < values_of(&p); i++) assert_true(p.gradient[i] == 0.0f);
    pair_free(&p);
}

static void nothing_valid_and_no_number_are_nan(void **state)
{
    (void)state;
    pair small = pair_make(1, 10, 30, 0.3f, 0.1f), hole = pair_make(1, 30, 30, 0.3f, 0.1f);
    measure(&small, true, 1, 1);
    assert_true(small.mean != small.mean);
    hole.a[17] = NAN;
    measure(&hole, true, 1, 1); /* row 0, column 17: in the windows of row 5 */
    assert_true(hole.mean != hole.mean);
    for (uint64_t i = 0; i < values_of(&hole); i++) hole.a[i] = 3e30f; /* its square is none */
    measure(&hole, false, 1, 1);
    assert_true(hole.mean != hole.mean);
    pair_free(&small);
    pair_free(&hole);
}

static void threads_do_not_show(void **state)
{
    (void)state;
    pair one = pair_make(2, 300, 61, 0.3f, 0.1f), many = pair_make(2, 300, 61, 0.3f, 0.1f);
    measure(&one, true, 0.3f, 1);
    measure(&many, true, 0.3f, 5);
    assert_memory_equal(&one.mean, &many.mean, sizeof one.mean);
    assert_memory_equal(one.gradient, many.gradient, values_of(&one) * sizeof *one.gradient);
    pair_free(&one);
    pair_free(&many);
}

static void impossible_sizes_are_refused(void **state)
{
    kiln_error err = {0};
    (void)state;
    assert_int_equal(kiln_ssim_check(0, 4, 4, &err), KILN_E_INPUT);
    assert_int_equal(kiln_ssim_check(1, 0, 4, &err), KILN_E_INPUT);
    assert_int_equal(kiln_ssim_check(1, 4, (1u << 20) + 1, &err), KILN_E_INPUT);
    assert_int_equal(kiln_ssim_check(2, 1u << 20, 1u << 20, &err), KILN_E_INPUT);
    assert_int_equal(kiln_ssim_check(1, 1u << 20, 1u << 20, &err), KILN_OK);
}

/* What callers without our headers go by. */
static void operations_are_found_by_name(void **state)
{
    (void)state;
    for (int op = 0; op < KILN_OP_COUNT; op++)
        assert_int_equal(kiln_op_find(kiln_op_name((kiln_op_id)op)), op);
    assert_int_equal(kiln_op_find("ssim_forward"), -1);
    assert_int_equal(kiln_op_find(""), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_plain_one),
        cmocka_unit_test(a_picture_has_the_metric_of_a_bake),
        cmocka_unit_test(equal_pictures_have_no_gradient),
        cmocka_unit_test(nothing_valid_and_no_number_are_nan),
        cmocka_unit_test(threads_do_not_show),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(operations_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
