/* similarity_test -- what is moved is seen as before: rows, spherical harmonics and poses against
 * their definitions. */
#include "kernels/math/real64.h"
#include "kernels/project/sh_math.h"
#include "kernels/similarity/similarity.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { K = KILN_SH_COEFFICIENTS_MAX - 1 };
static const double nowhere[3] = {0, 0, 0}, straight[3] = {0, 0, 0};

static uint64_t state_of_random = 88172645463325252u;
static double uniform(void)
{
    state_of_random ^= state_of_random << 13;
    state_of_random ^= state_of_random >> 7;
    state_of_random ^= state_of_random << 17;
    return (double)(state_of_random >> 11) * 0x1p-53 * 2 - 1;
}

static void random_turn(kiln_similarity *s)
{
    const double degrees[3] = {180 * uniform(), 180 * uniform(), 180 * uniform()};
    kiln_similarity_of_degrees(nowhere, degrees, 1, s);
}

static void turn_vector(const double r[9], const double x[3], double out[3])
{
    for (int i = 0; i < 3; i++)
        out[i] = r[3 * i] * x[0] + r[3 * i + 1] * x[1] + r[3 * i + 2] * x[2];
}

static void degrees_are_those_of_libm(void **state)
{
    (void)state;
    for (int i = 0; i < 200000; i++) {
        const double d = 2000 * uniform(), exact = fmod(d, 360) * (acos(-1) / 180);
        double s, c;
        kiln_sincos_degrees(d, &s, &c);
        /* of which libm's argument has 1e-15 */
        assert_true(fabs(s - sin(exact)) < 1.5e-15 && fabs(c - cos(exact)) < 1.5e-15);
    }
    static const double sines[4] = {0, 1, 0, -1};
    for (int k = -9; k <= 9; k++) {
        double s, c;
        kiln_sincos_degrees(90.0 * k, &s, &c);
        assert_true(s == sines[k & 3] && c == sines[(k + 1) & 3] && !(signbit(s) && s == 0) &&
                    !(signbit(c) && c == 0));
        kiln_sincos_degrees(90.0 * k + 45, &s, &c);
        assert_true(fabs(s) == fabs(c) && fabs(s * s - 0.5) < 1e-15);
    }
}

/* The order of the turns and their direction: x towards y about z, and so on. */
static void turns_are_z_after_y_after_x(void **state)
{
    (void)state;
    static const struct {
        double degrees[3], to[9];
    } rows[] = {
        {{90, 0, 0}, {1, 0, 0, 0, 0, -1, 0, 1, 0}}, {{0, 90, 0}, {0, 0, 1, 0, 1, 0, -1, 0, 0}},
        {{0, 0, 90}, {0, -1, 0, 1, 0, 0, 0, 0, 1}}, {{90, 90, 0}, {0, 1, 0, 0, 0, -1, -1, 0, 0}},
        {{90, 0, 90}, {0, 0, 1, 1, 0, 0, 0, 1, 0}},
    };
    kiln_similarity s;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kiln_similarity_of_degrees(nowhere, rows[i].degrees, 1, &s);
        assert_memory_equal(s.r, rows[i].to, sizeof s.r);
    }
}

static void parts_are_put_together(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        const double ta[3] = {uniform(), uniform(), uniform()},
                     tb[3] = {uniform(), uniform(), uniform()};
        const double da[3] = {180 * uniform(), 180 * uniform(), 180 * uniform()},
                     db[3] = {90, -180, 180 * uniform()};
        kiln_similarity a, b, both, again;
        double q[4], m[9], x[3] = {uniform(), uniform(), uniform()}, y[3] = {x[0], x[1], x[2]};
        kiln_similarity_of_degrees(ta, da, 2.5, &a);
        kiln_similarity_of_degrees(tb, db, 0.125, &b);
        kiln_similarity_compose(&b, &a, &both);
        kiln_similarity_rows(&a, 1, &(kiln_similarity_planes){.n = 1, .means = x});
        kiln_similarity_rows(&b, 1, &(kiln_similarity_planes){.n = 1, .means = x});
        kiln_similarity_rows(&both, 1, &(kiln_similarity_planes){.n = 1, .means = y});
        for (int i = 0; i < 3; i++) assert_true(fabs(x[i] - y[i]) < 1e-14);
        kiln_similarity_quat(&both, q);
        assert_true(q[0] >= 0 &&
                    fabs(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] - 1) < 1e-14);
        for (int i = 0; i < 4; i++) q[i] *= -1e-170;
        assert_true(kiln_similarity_of_quat(both.t, q, both.scale, &again));
        for (int i = 0; i < 9; i++) assert_true(fabs(again.r[i] - both.r[i]) < 1e-14);
        for (int i = 0; i < 9; i++) m[i] = both.scale * both.r[i];
        assert_true(kiln_similarity_of_matrix(m, both.t, 1e-6, &again));
        for (int i = 0; i < 9; i++) assert_true(fabs(again.r[i] - both.r[i]) < 1e-14);
        assert_true(fabs(again.scale - both.scale) < 1e-15 &&
                    memcmp(again.t, both.t, sizeof again.t) == 0);
    }
}

static void matrices_that_are_none(void **state)
{
    (void)state;
    static const double bad[][9] = {
        {-1, 0, 0, 0, 1, 0, 0, 0, 1},   {1, 0.01, 0, 0, 1, 0, 0, 0, 1},
        {1, 0, 0, 0, 1, 0, 0, 0, 1.01}, {0, 0, 0, 0, 0, 0, 0, 0, 0},
        {NAN, 0, 0, 0, 1, 0, 0, 0, 1},  {INFINITY, 0, 0, 0, 1, 0, 0, 0, 1},
        {-1, 0, 0, 0, -1, 0, 0, 0, -1}};
    kiln_similarity s;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(kiln_similarity_of_matrix(bad[i], nowhere, 1e-4, &s));
        assert_true(kiln_similarity_is_identity(&s));
    }
    static const double none[][4] = {
        {0, 0, 0, 0}, {NAN, 1, 0, 0}, {0, 1, NAN, 0}, {INFINITY, 0, 0, 0}};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(kiln_similarity_of_quat(nowhere, none[i], 1, &s));
}

/* ---- spherical harmonics --------------------------------------------------------------------- */

static void basis(const double d[3], float b[K])
{
    const float x = (float)d[0], y = (float)d[1], z = (float)d[2];
    kiln_sh_basis1(x, y, z, b);
    kiln_sh_basis2(x, y, z, b + 3);
    kiln_sh_basis3(x, y, z, b + 8);
    kiln_sh_basis4(x, y, z, b + 15);
}

/* What a Gaussian shows in direction R d after the turn is what it showed in direction d before,
 * degree by degree. */
static void turned_colours_are_the_same(void **state)
{
    (void)state;
    enum { N = 300 };
    static float shN[3 * K * N], turned[3 * K * N];
    for (uint32_t degree = 1; degree <= 4; degree++)
        for (int round = 0; round < 20; round++) {
            const uint32_t k = (degree + 1) * (degree + 1) - 1;
            kiln_similarity s;
            random_turn(&s);
            for (uint32_t i = 0; i < 3 * k * N; i++) turned[i] = shN[i] = (float)uniform();
            kiln_similarity_rows(
                &s, 1 + (unsigned)round % 3,
                &(kiln_similarity_planes){.n = N, .shN = turned, .sh_degree = degree});
            for (uint32_t i = 0; i < N; i++) {
                double d[3] = {uniform(), uniform(), uniform()}, to[3];
                const double length = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
                float at[K], behind[K];
                for (int a = 0; a < 3; a++) d[a] /= length;
                turn_vector(s.r, d, to);
                basis(d, at);
                basis(to, behind);
                for (uint32_t c = 0; c < 3; c++) {
                    double want = 0, got = 0;
                    for (uint32_t j = 0; j < k; j++) {
                        want += (double)at[j] * (double)shN[(3 * j + c) * N + i];
                        got += (double)behind[j] * (double)turned[(3 * j + c) * N + i];
                    }
                    assert_true(fabs(want - got) < 1e-5);
                }
            }
        }
}

/* The signs of spherical harmonics (kernels/project/sh_math.h), for a half turn about each axis.
 * Its last one, of order 4 and degree 4, is y there; the function is x^4 - 6 x^2 y^2 + y^4, which
 * no sign changes. */
static void half_turns_change_signs(void **state)
{
    (void)state;
    static const char *const products[K] = {"y",  "z",   "x",  "xy", "yz", "",  "xz", "",
                                            "y",  "xyz", "y",  "z",  "x",  "z", "x",  "xy",
                                            "yz", "xy",  "yz", "",   "xz", "",  "xz", ""};
    static const double signs[3][3] = {{1, -1, -1}, {-1, 1, -1}, {-1, -1, 1}};
    for (int t = 0; t < 3; t++) {
        kiln_similarity s;
        const double degrees[3] = {t == 0 ? 180 : 0, t == 1 ? -180 : 0, t == 2 ? 540 : 0};
        float shN[3 * K], was[3 * K], quat[4] = {0.1f, -0.2f, 0.3f, 0.4f};
        kiln_similarity_of_degrees(nowhere, degrees, 1, &s);
        for (int i = 0; i < 3 * K; i++) shN[i] = was[i] = (float)uniform();
        kiln_similarity_rows(
            &s, 1, &(kiln_similarity_planes){.n = 1, .quats = quat, .shN = shN, .sh_degree = 4});
        for (int k = 0; k < K; k++) {
            double sign = 1;
            for (const char *c = products[k]; *c; c++) sign *= signs[t][*c - 'x'];
            for (int c = 0; c < 3; c++) assert_true(shN[3 * k + c] == (float)sign * was[3 * k + c]);
        }
        static const float want[3][4] = {
            {0.2f, 0.1f, -0.4f, 0.3f}, {-0.3f, 0.4f, 0.1f, 0.2f}, {-0.4f, -0.3f, -0.2f, 0.1f}};
        for (int i = 0; i < 4; i++) assert_true(fabsf(quat[i]) == fabsf(want[t][i]));
    }
}

/* Orthogonal, and of a turn after another the product. */
static void matrices_are_a_group(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        kiln_similarity a, b, both;
        kiln_sh_turn ma, mb, m;
        random_turn(&a);
        random_turn(&b);
        kiln_similarity_compose(&b, &a, &both);
        kiln_sh_turn_of(a.r, &ma);
        kiln_sh_turn_of(b.r, &mb);
        kiln_sh_turn_of(both.r, &m);
        const double *pa[4] = {ma.m1, ma.m2, ma.m3, ma.m4}, *pb[4] = {mb.m1, mb.m2, mb.m3, mb.m4},
                     *p[4] = {m.m1, m.m2, m.m3, m.m4};
        for (int l = 1; l <= 4; l++) {
            const int size = 2 * l + 1;
            for (int i = 0; i < size; i++)
                for (int j = 0; j < size; j++) {
                    double product = 0, dot = 0;
                    for (int k = 0; k < size; k++) {
                        product += pb[l - 1][size * i + k] * pa[l - 1][size * k + j];
                        dot += pa[l - 1][size * i + k] * pa[l - 1][size * j + k];
                    }
                    assert_true(fabs(product - p[l - 1][size * i + j]) < 1e-13);
                    assert_true(fabs(dot - (i == j)) < 1e-13);
                }
        }
    }
}

/* ---- rows and poses -------------------------------------------------------------------------- */

static void fill(uint64_t n, double *means, float *scales, float *quats, float *shN)
{
    for (uint64_t i = 0; i < 3 * n; i++) means[i] = 100 * uniform();
    for (uint64_t i = 0; i < 3 * n; i++) scales[i] = (float)(5 * uniform());
    for (uint64_t i = 0; i < 4 * n; i++) quats[i] = (float)(3 * uniform());
    for (uint64_t i = 0; i < 3 * K * n; i++) shN[i] = (float)uniform();
    means[0] = -0.0;
    scales[1] = -INFINITY;
    quats[2] = -0.0f;
    shN[3] = -0.0f;
}

static void what_does_nothing_changes_no_bit(void **state)
{
    (void)state;
    enum { N = 700 };
    static double means[3 * N], means_was[3 * N];
    static float scales[3 * N], scales_was[3 * N], quats[4 * N], quats_was[4 * N], shN[3 * K * N],
        shN_was[3 * K * N];
    const double turned[3] = {360, -360, 720}, away[3] = {1, 2, 3};
    kiln_similarity s;
    fill(N, means, scales, quats, shN);
    memcpy(means_was, means, sizeof means);
    memcpy(scales_was, scales, sizeof scales);
    memcpy(quats_was, quats, sizeof quats);
    memcpy(shN_was, shN, sizeof shN);
    kiln_similarity_of_degrees(nowhere, turned, 1, &s);
    assert_true(kiln_similarity_is_identity(&s));
    kiln_similarity_rows(&s, 2,
                         &(kiln_similarity_planes){.n = N,
                                                   .means = means,
                                                   .log_scales = scales,
                                                   .quats = quats,
                                                   .shN = shN,
                                                   .sh_degree = 4});
    assert_memory_equal(means, means_was, sizeof means);
    assert_memory_equal(scales, scales_was, sizeof scales);
    kiln_similarity_of_degrees(away, straight, 1, &s);
    assert_false(kiln_similarity_is_identity(&s));
    kiln_similarity_rows(&s, 2,
                         &(kiln_similarity_planes){.n = N,
                                                   .means = means,
                                                   .log_scales = scales,
                                                   .quats = quats,
                                                   .shN = shN,
                                                   .sh_degree = 4});
    assert_memory_equal(scales, scales_was, sizeof scales);
    kiln_similarity_of_degrees(away, straight, 2, &s);
    kiln_similarity_rows(
        &s, 2,
        &(kiln_similarity_planes){
            .n = N, .log_scales = scales, .quats = quats, .shN = shN, .sh_degree = 4});
    assert_memory_equal(quats, quats_was, sizeof quats);
    assert_memory_equal(shN, shN_was, sizeof shN);
    for (int i = 0; i < 3 * N; i++)
        assert_true(scales[i] == (float)((double)scales_was[i] + 0.69314718055994531) ||
                    fabs((double)scales[i]) < 1e-3);
    assert_true(scales[1] == -INFINITY);
}

/* The covariance R S S R^T of a row is turned and scaled as the space is. */
static void covariance(const float q[4], const float log_scale[3], double out[9])
{
    double length = 0, r[9];
    for (int i = 0; i < 4; i++) length += (double)q[i] * (double)q[i];
    const double f = 1 / sqrt(length), w = f * (double)q[0], x = f * (double)q[1],
                 y = f * (double)q[2], z = f * (double)q[3];
    const double rows[9] = {
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
        2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
    memcpy(r, rows, sizeof r);
    memset(out, 0, 9 * sizeof *out);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++)
                out[3 * i + j] += r[3 * i + k] * r[3 * j + k] * exp(2 * (double)log_scale[k]);
}

static void gaussians_are_moved(void **state)
{
    (void)state;
    const double away[3] = {1, -2, 3};
    for (int round = 0; round < 300; round++) {
        const double degrees[3] = {180 * uniform(), 180 * uniform(), 180 * uniform()};
        double mean[3] = {uniform(), uniform(), uniform()}, was[3] = {mean[0], mean[1], mean[2]},
               want[3], before[9], after[9];
        float q[4], log_scale[3], length = 0, length_after = 0;
        kiln_similarity s;
        kiln_similarity_of_degrees(away, degrees, 3, &s);
        for (int i = 0; i < 4; i++) q[i] = (float)uniform();
        for (int i = 0; i < 3; i++) log_scale[i] = (float)uniform();
        for (int i = 0; i < 4; i++) length += q[i] * q[i];
        covariance(q, log_scale, before);
        kiln_similarity_rows(
            &s, 1,
            &(kiln_similarity_planes){.n = 1, .means = mean, .log_scales = log_scale, .quats = q});
        for (int i = 0; i < 4; i++) length_after += q[i] * q[i];
        assert_true(fabsf(length_after - length) < 1e-6f * (1 + length));
        covariance(q, log_scale, after);
        turn_vector(s.r, was, want);
        for (int i = 0; i < 3; i++) assert_true(fabs(mean[i] - (3 * want[i] + away[i])) < 1e-14);
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                double turned = 0;
                for (int a = 0; a < 3; a++)
                    for (int b = 0; b < 3; b++)
                        turned += 9 * s.r[3 * i + a] * before[3 * a + b] * s.r[3 * j + b];
                assert_true(fabs(turned - after[3 * i + j]) < 2e-5);
            }
    }
}

static void cameras_see_the_same(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        const double away[3] = {10 * uniform(), 10 * uniform(), 10 * uniform()};
        const double degrees[3] = {180 * uniform(), 180 * uniform(), 180 * uniform()},
                     scale = 1.5 + uniform();
        double x[3] = {uniform(), uniform(), uniform()}, r[9],
               t[3] = {uniform(), uniform(), uniform()}, was[3], is[3];
        const double t_was[3] = {t[0], t[1], t[2]};
        kiln_similarity s, pose;
        random_turn(&pose);
        memcpy(r, pose.r, sizeof r);
        kiln_similarity_of_degrees(away, degrees, scale, &s);
        turn_vector(r, x, was);
        for (int i = 0; i < 3; i++) was[i] += t[i];
        kiln_similarity_rows(&s, 1, &(kiln_similarity_planes){.n = 1, .means = x});
        kiln_similarity_pose(&s, r, t);
        turn_vector(r, x, is);
        for (int i = 0; i < 3; i++) assert_true(fabs(is[i] + t[i] - scale * was[i]) < 1e-13);
        kiln_similarity_pose_back(&s, r, t);
        for (int i = 0; i < 9; i++) assert_true(fabs(r[i] - pose.r[i]) < 1e-14);
        for (int i = 0; i < 3; i++) assert_true(fabs(t[i] - t_was[i]) < 1e-13);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(degrees_are_those_of_libm),
        cmocka_unit_test(turns_are_z_after_y_after_x),
        cmocka_unit_test(parts_are_put_together),
        cmocka_unit_test(matrices_that_are_none),
        cmocka_unit_test(turned_colours_are_the_same),
        cmocka_unit_test(half_turns_change_signs),
        cmocka_unit_test(matrices_are_a_group),
        cmocka_unit_test(what_does_nothing_changes_no_bit),
        cmocka_unit_test(gaussians_are_moved),
        cmocka_unit_test(cameras_see_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
