/* ssim3d_test -- SSIM of volumes as a loss and its gradient against a plain computation in double,
 * and against themselves on other threads. KILN_TEST_DEVICES=cuda: by a GPU (test_runner.h). */
#include "kernels/ops.h"
#include "kernels/ssim3d/ssim3d_math.h"
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
    uint32_t width, height, depth;
    bool valid;
    float *a, *b, *partials, *gradient, mean;
} volume_pair;

static uint64_t values_of(const volume_pair *p)
{
    return p->planes * p->depth * p->height * p->width;
}

static void *numbers(uint64_t n, size_t elem)
{
    void *v = calloc(n, elem);
    assert_non_null(v);
    return v;
}

/* b is smooth with noise, a is b with more noise, `apart` strong. */
static volume_pair pair_make(volume_pair p, float noise, float apart)
{
    const uint64_t n = values_of(&p);
    uint64_t state = n;
    p.a = numbers(n, sizeof *p.a);
    p.b = numbers(n, sizeof *p.b);
    p.partials = numbers(3 * n, sizeof *p.partials);
    p.gradient = numbers(n, sizeof *p.gradient);
    for (uint64_t i = 0; i < n; i++) {
        float u[2];
        for (int k = 0; k < 2; k++) {
            state = state * 6364136223846793005ull + 1442695040888963407ull; /* Knuth, MMIX */
            u[k] = (float)(state >> 40) * 0x1p-24f - 0.5f;
        }
        p.b[i] = 0.5f + 0.3f * sinf((float)(i % p.width) / 9.0f) + noise * u[0];
        p.a[i] = p.b[i] + apart * u[1];
    }
    return p;
}

static void pair_free(volume_pair *p)
{
    free(p->a);
    free(p->b);
    free(p->partials);
    free(p->gradient);
}

static void measure(volume_pair *p, float upstream, unsigned threads)
{
    kiln_error err = {0};
    kiln_runner *r = NULL;
    const kiln_ssim3d_args f = {p->planes, p->width, p->height,   p->depth, p->valid,
                                p->a,      p->b,     p->partials, &p->mean};
    const kiln_ssim3d_backward_args g = {p->planes, p->width, p->height,   p->depth,  p->valid,
                                         p->a,      p->b,     p->partials, &upstream, p->gradient};
    if (test_runner(threads, &r, &err) != KILN_OK) fail_msg("%s", err.msg);
    kiln_runner_set_threads(r, threads);
    if (kiln_runner_run(r, KILN_OP_ssim3d, &f, &err) != KILN_OK ||
        kiln_runner_run(r, KILN_OP_ssim3d_backward, &g, &err) != KILN_OK)
        fail_msg("%s", err.msg);
}

/* ---- the plain way, in double ---------------------------------------------------------------- */

typedef struct {
    double map, by_mu, by_var, by_cov;
} window;

/* A window of a plane: its voxels that are inside the volume, with their weights. */
typedef struct {
    uint64_t n, at[1331];
    double weight[1331];
} window_voxels;

static double tap(int64_t by) { return (double)kiln_ssim_weight((int)by + RADIUS); }

static void voxels_around(const volume_pair *p, uint64_t plane, const int64_t at[3],
                          window_voxels *out)
{
    out->n = 0;
    for (int64_t z = at[2] - RADIUS; z <= at[2] + RADIUS; z++)
        for (int64_t y = at[1] - RADIUS; y <= at[1] + RADIUS; y++)
            for (int64_t x = at[0] - RADIUS; x <= at[0] + RADIUS; x++) {
                if (x < 0 || y < 0 || z < 0 || x >= p->width || y >= p->height || z >= p->depth)
                    continue;
                out->at[out->n] =
                    ((plane * p->depth + (uint64_t)z) * p->height + (uint64_t)y) * p->width +
                    (uint64_t)x;
                out->weight[out->n++] = tap(x - at[0]) * tap(y - at[1]) * tap(z - at[2]);
            }
}

/* As fused-ssim writes it. */
static window window_of(const volume_pair *p, const window_voxels *v)
{
    double ea = 0, eb = 0, eaa = 0, ebb = 0, eab = 0;
    for (uint64_t i = 0; i < v->n; i++) {
        const double w = v->weight[i], va = (double)p->a[v->at[i]], vb = (double)p->b[v->at[i]];
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
                    .by_cov = 2 * C / (A * B)};
}

static bool counts(const volume_pair *p, const int64_t at[3])
{
    const int64_t margin = p->valid ? RADIUS : 0;
    return kiln_ssim3d_counts(at[0], p->width, margin) &&
           kiln_ssim3d_counts(at[1], p->height, margin) &&
           kiln_ssim3d_counts(at[2], p->depth, margin);
}

/* Adds a voxel's map to *sum, its derivatives to the gradients of its window. */
static void add_voxel(const volume_pair *p, uint64_t plane, const int64_t at[3], double *sum,
                      double *gradient)
{
    window_voxels v;
    voxels_around(p, plane, at, &v);
    const window w = window_of(p, &v);
    *sum += w.map;
    for (uint64_t i = 0; i < v.n; i++) {
        const double va = (double)p->a[v.at[i]], vb = (double)p->b[v.at[i]];
        gradient[v.at[i]] += v.weight[i] * (w.by_mu + 2 * va * w.by_var + vb * w.by_cov);
    }
}

/* Returns the mean; the gradient times `upstream` goes into gradient. */
static double plain(const volume_pair *p, double upstream, double *gradient)
{
    uint64_t n = 0;
    double sum = 0;
    const uint64_t voxels = (uint64_t)p->depth * p->height * p->width;
    for (uint64_t i = 0; i < values_of(p); i++) {
        const uint64_t v = i % voxels;
        const int64_t at[3] = {(int64_t)(v % p->width), (int64_t)(v / p->width % p->height),
                               (int64_t)(v / p->width / p->height)};
        if (!counts(p, at)) continue;
        add_voxel(p, i / voxels, at, &sum, gradient);
        n++;
    }
    for (uint64_t i = 0; i < values_of(p); i++) gradient[i] *= upstream / (double)n;
    return sum / (double)n;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void is_the_plain_one(void **state)
{
    static const struct {
        volume_pair p;
        float noise, apart;
    } cases[] = {{{.planes = 2, .width = 20, .height = 18, .depth = 15}, 0.3f, 0.2f},
                 {{.planes = 1, .width = 12, .height = 25, .depth = 14, .valid = true}, 0.3f, 0.2f},
                 {{.planes = 1, .width = 70, .height = 3, .depth = 37}, 0.1f, 0.05f},
                 {{.planes = 3, .width = 1, .height = 1, .depth = 1}, 0, 0.1f},
                 {{.planes = 1, .width = 13, .height = 13, .depth = 13}, 0, 0.001f},
                 {{.planes = 1, .width = 13, .height = 13, .depth = 13}, 40, 9}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        volume_pair p = pair_make(cases[k].p, cases[k].noise, cases[k].apart);
        double *want = numbers(values_of(&p), sizeof *want), most = 0, off = 0;
        measure(&p, 0.7f, 2);
        const double mean = plain(&p, (double)0.7f, want), mean_off = fabs((double)p.mean - mean);
        for (uint64_t i = 0; i < values_of(&p); i++) {
            most = fmax(most, fabs(want[i]));
            off = fmax(off, fabs((double)p.gradient[i] - want[i]));
        }
        print_message("case %zu: mean %.8f, off by %.1e; gradient off by %.1e of its largest\n", k,
                      mean, mean_off, off / most);
        assert_true(mean_off < 2e-7);
        assert_true(off < 1e-6 * most);
        free(want);
        pair_free(&p);
    }
}

static void equal_volumes_have_no_gradient(void **state)
{
    (void)state;
    volume_pair p =
        pair_make((volume_pair){.planes = 1, .width = 20, .height = 12, .depth = 12}, 0.3f, 0);
    measure(&p, 1, 2);
    assert_true(p.mean == 1.0f);
    for (uint64_t i = 0; i < values_of(&p); i++) assert_true(p.gradient[i] == 0.0f);
    pair_free(&p);
}

static void nothing_valid_and_no_number_are_nan(void **state)
{
    (void)state;
    volume_pair flat =
        pair_make((volume_pair){.planes = 1, .width = 30, .height = 30, .depth = 10, .valid = true},
                  0.3f, 0.1f);
    volume_pair hole =
        pair_make((volume_pair){.planes = 1, .width = 30, .height = 12, .depth = 12, .valid = true},
                  0.3f, 0.1f);
    measure(&flat, 1, 1);
    assert_true(flat.mean != flat.mean);
    measure(&hole, 1, 1);
    assert_true(hole.mean == hole.mean);
    hole.a[17] = NAN; /* in the windows of slice 5, row 5 */
    measure(&hole, 1, 1);
    assert_true(hole.mean != hole.mean);
    pair_free(&flat);
    pair_free(&hole);
}

static void threads_do_not_show(void **state)
{
    const volume_pair shape = {.planes = 2, .width = 90, .height = 35, .depth = 40, .valid = true};
    (void)state;
    volume_pair one = pair_make(shape, 0.3f, 0.1f), many = pair_make(shape, 0.3f, 0.1f);
    measure(&one, 0.3f, 1);
    measure(&many, 0.3f, 5);
    assert_memory_equal(&one.mean, &many.mean, sizeof one.mean);
    assert_memory_equal(one.partials, many.partials, 3 * values_of(&one) * sizeof *one.partials);
    assert_memory_equal(one.gradient, many.gradient, values_of(&one) * sizeof *one.gradient);
    pair_free(&one);
    pair_free(&many);
}

static void impossible_sizes_are_refused(void **state)
{
    kiln_error err = {0};
    (void)state;
    assert_int_equal(kiln_ssim3d_check(0, 4, 4, 4, &err), KILN_E_INPUT);
    assert_int_equal(kiln_ssim3d_check(1, 4, 4, 0, &err), KILN_E_INPUT);
    assert_int_equal(kiln_ssim3d_check(1, 4, (1u << 20) + 1, 4, &err), KILN_E_INPUT);
    assert_int_equal(kiln_ssim3d_check(1, 1u << 20, 1u << 20, 2, &err), KILN_E_INPUT);
    assert_int_equal(kiln_ssim3d_check(1, 1u << 20, 1u << 20, 1, &err), KILN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_plain_one),
        cmocka_unit_test(equal_volumes_have_no_gradient),
        cmocka_unit_test(nothing_valid_and_no_number_are_nan),
        cmocka_unit_test(threads_do_not_show),
        cmocka_unit_test(impossible_sizes_are_refused),
    };
    return cmocka_run_group_tests_name("ssim3d", tests, NULL, NULL);
}
