/* real_test -- kiln_expf and its kin against the exact functions (double libm, rounded once) over
 * the whole float range, and the same bits from scalar baseline code and from vector code with
 * FMA. */
#include "base/isa.h"
#include "kernels/math/power_math.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* Distance from y to the exact result, in ulp of the result (denormals: in units of the least
 * one). */
static double ulps(float y, double exact)
{
    const double limit = 0x1.ffffffp127; /* from here on the exact value rounds to infinity */
    if (isnan(exact)) return isnan(y) ? 0.0 : INFINITY;
    if (fabs(exact) >= limit) return isinf(y) && (y > 0) == (exact > 0) ? 0.0 : INFINITY;
    if (isnan(y) || isinf(y)) return INFINITY;
    int e;
    frexp(exact, &e);
    return fabs((double)y - exact) / ldexp(1.0, e - 24 < -149 ? -149 : e - 24);
}

typedef float function(float x);
typedef double reference(double x);

static double sigmoid(double x) { return x > 0 ? 1.0 / (1.0 + exp(-x)) : exp(x) / (1.0 + exp(x)); }

static double logit(double p)
{
    const double f = (2.0 * p - 1.0) / (1.0 - p);
    return fabs(f) < 0.5 ? log1p(f) : log(p / (1.0 - p));
}

/* The largest error over every `step`th float with bits in [first, last]. */
static double worst(function *f, reference *exact, uint32_t first, uint32_t last, uint32_t step)
{
    double most = 0.0;
    for (uint64_t u = first; u <= last; u += step) {
        const float x = kiln_float_of((uint32_t)u);
        const double d = ulps(f(x), exact(x));
        most = d > most ? d : most;
    }
    return most;
}

enum { STRIDE = 4099 }; /* a prime: all exponents, about a million floats */

/* All floats by stride, and every float of n around x. */
static double worst_at(function *f, reference *exact, const float *dense, unsigned n)
{
    double most = worst(f, exact, 0, UINT32_MAX, STRIDE);
    for (unsigned i = 0; i < n; i++) {
        const uint32_t at = kiln_bits_of(dense[i]);
        const double d = worst(f, exact, at < 50000 ? 0 : at - 50000,
                               at > UINT32_MAX - 50000 ? UINT32_MAX : at + 50000, 1);
        most = d > most ? d : most;
    }
    return most;
}

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void exp_is_within_one_ulp(void **state)
{
    (void)state;
    const float dense[] = {0.0f,  0.34657f, -0.34657f, 1.0f,     -1.0f, 26.7222f,
                           59.3f, 88.7228f, -87.3365f, -103.97f, -0.0f};
    assert_true(worst_at(kiln_expf, exp, dense, COUNT(dense)) <= 0.9);
}

static void log_is_within_one_ulp(void **state)
{
    (void)state;
    const float dense[] = {0.0f, 0.66667f,        1.0f,          1.33333f,
                           0.7f, 1.17549435e-38f, 3.4028235e38f, 1.33742f};
    assert_true(worst_at(kiln_logf, log, dense, COUNT(dense)) <= 0.85);
}

static void sigmoid_is_within_two_ulp(void **state)
{
    (void)state;
    const float dense[] = {0.0f, -0.68625f, 0.68625f, -17.0f, 17.0f, -87.0f, -103.9f, 1.0f};
    assert_true(worst_at(kiln_sigmoidf, sigmoid, dense, COUNT(dense)) <= 2.0);
}

static void logit_is_within_four_ulp(void **state)
{
    (void)state;
    const float dense[] = {0.0f, 0.5f, 0.4010f, 0.57f, 0.435f, 1.0f - 0.01f, 1e-30f};
    assert_true(worst_at(kiln_logitf, logit, dense, COUNT(dense)) <= 4.0);
}

static void limits_are_those_of_the_exact_functions(void **state)
{
    (void)state;
    assert_true(kiln_expf(INFINITY) == INFINITY && kiln_expf(88.73f) == INFINITY &&
                kiln_expf(3e38f) == INFINITY);
    assert_true(kiln_expf(-INFINITY) == 0.0f && kiln_expf(-104.0f) == 0.0f &&
                kiln_expf(-103.9f) == 0x1p-149f);
    assert_true(kiln_expf(0.0f) == 1.0f && kiln_expf(-0.0f) == 1.0f && isnan(kiln_expf(NAN)) &&
                isnan(kiln_expf(-NAN)));
    assert_true(kiln_logf(0.0f) == -INFINITY && kiln_logf(-0.0f) == -INFINITY &&
                kiln_logf(INFINITY) == INFINITY);
    assert_true(kiln_logf(1.0f) == 0.0f && isnan(kiln_logf(-1.0f)) && isnan(kiln_logf(-INFINITY)) &&
                isnan(kiln_logf(NAN)));
    assert_true(kiln_sigmoidf(INFINITY) == 1.0f && kiln_sigmoidf(-INFINITY) == 0.0f &&
                kiln_sigmoidf(0.0f) == 0.5f);
    assert_true(isnan(kiln_sigmoidf(NAN)));
    assert_true(kiln_logitf(0.0f) == -INFINITY && kiln_logitf(1.0f) == INFINITY &&
                kiln_logitf(0.5f) == 0.0f);
    assert_true(isnan(kiln_logitf(-0.1f)) && isnan(kiln_logitf(1.1f)) && isnan(kiln_logitf(NAN)));
}

static void the_narrow_exp_has_the_bits_of_the_wide_one(void **state)
{
    (void)state;
    for (uint32_t u = 0; u <= kiln_bits_of(88.0f); u += 101) {
        const float x = kiln_float_of(u);
        assert_int_equal(kiln_bits_of(kiln_expf(x)), kiln_bits_of(kiln_expf_normal(x)));
        if (x <= 87.0f)
            assert_int_equal(kiln_bits_of(kiln_expf(-x)), kiln_bits_of(kiln_expf_normal(-x)));
    }
}

static void the_narrow_log_has_the_bits_of_the_wide_one(void **state)
{
    (void)state;
    for (uint32_t u = kiln_bits_of(1.17549435e-38f); u < kiln_bits_of(INFINITY); u += 101) {
        const float x = kiln_float_of(u);
        assert_int_equal(kiln_bits_of(kiln_logf(x)), kiln_bits_of(kiln_logf_normal(x)));
    }
    for (uint32_t u = kiln_bits_of(1.0f / 255); u <= kiln_bits_of(1.0f); u += 101) {
        const float opacity = kiln_float_of(u);
        assert_int_equal(kiln_bits_of(kiln_power_min(opacity)),
                         kiln_bits_of(kiln_power_min_normal(opacity, 0)));
    }
}

/* FNV-1a over the bits of all functions at x = every 1023rd float; NaNs alike. */
enum { PIECE = 256 };
static inline __attribute__((always_inline)) uint64_t sweep(void)
{
    uint64_t h = 0xcbf29ce484222325ull;
    for (uint64_t u = 0; u < (uint64_t)1 << 32; u += (uint64_t)PIECE * 1023) {
        float y[5][PIECE];
        for (uint32_t i = 0; i < PIECE; i++) {
            const float x = kiln_float_of((uint32_t)u + i * 1023u);
            y[0][i] = kiln_expf(x);
            y[1][i] = kiln_logf(x);
            y[2][i] = kiln_sigmoidf(x);
            y[3][i] = kiln_logitf(x);
            y[4][i] = kiln_power(0.7f, -0.3f, 0.9f, x, 3.0f) + kiln_power_min(x);
        }
        for (uint32_t f = 0; f < 5; f++)
            for (uint32_t i = 0; i < PIECE; i++)
                h = (h ^ (y[f][i] == y[f][i] ? kiln_bits_of(y[f][i]) : 0x7fc00000u)) *
                    0x100000001b3ull;
    }
    return h;
}

static uint64_t sweep_baseline(void) { return sweep(); }
#ifdef __x86_64__
__attribute__((target("avx2,fma"), optimize("O3"))) static uint64_t sweep_vectors(void)
{
    return sweep();
}
#else
__attribute__((optimize("O3"))) static uint64_t sweep_vectors(void) { return sweep(); }
#endif

/* Stored bits rest on these: whoever changes one of the functions on purpose raises the versions of
 * the stages that use it. */
static void bits_are_those_of_the_first_release(void **state)
{
    (void)state;
    assert_true(sweep_baseline() == 0x6fb3cfe988b56113ull);
}

static void scalar_and_vector_code_give_the_same_bits(void **state)
{
    (void)state;
#ifdef __x86_64__
    if (!kiln_isa_avx2()) {
        print_message("skipped: this machine has no AVX2\n");
        skip();
    }
#endif
    assert_true(sweep_baseline() == sweep_vectors());
}

static void power_is_its_hoisted_form(void **state)
{
    (void)state;
    const float a = 0.31f, b = -0.0123f, c = 0.082f, x = 201.37f, y = 97.73f;
    const float half_a = kiln_power_half(a), half_c = kiln_power_half(c);
    for (uint32_t py = 60; py < 130; py++) {
        const float dy = kiln_power_offset(y, py), slope = kiln_power_slope(b, dy),
                    base = kiln_power_base(half_c, dy);
        for (uint32_t px = 160; px < 240; px++) {
            const float dx = kiln_power_offset(x, px), power = kiln_power(a, b, c, dx, dy);
            const double exact =
                -0.5 * ((double)a * dx * dx + (double)c * dy * dy) - (double)b * dx * dy;
            assert_int_equal(kiln_bits_of(power),
                             kiln_bits_of(kiln_power_at(half_a, slope, base, dx)));
            assert_true(fabs(power - exact) <= 4e-7 * (a * dx * dx + c * dy * dy));
        }
    }
}

static void power_min_is_the_log_of_the_margin_over_255_opacity(void **state)
{
    (void)state;
    for (float o = 0.9999f; o > 1e-6f; o *= 0.99f)
        assert_true(fabs(kiln_power_min(o) - log((1.0 - 0x1p-14) / (255.0 * (double)o))) < 1e-6);
    assert_true(kiln_power_min(0.0f) == INFINITY && kiln_power_min(-1.0f) == INFINITY &&
                kiln_power_min(NAN) == INFINITY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_within_one_ulp),
        cmocka_unit_test(log_is_within_one_ulp),
        cmocka_unit_test(sigmoid_is_within_two_ulp),
        cmocka_unit_test(logit_is_within_four_ulp),
        cmocka_unit_test(limits_are_those_of_the_exact_functions),
        cmocka_unit_test(the_narrow_exp_has_the_bits_of_the_wide_one),
        cmocka_unit_test(the_narrow_log_has_the_bits_of_the_wide_one),
        cmocka_unit_test(bits_are_those_of_the_first_release),
        cmocka_unit_test(scalar_and_vector_code_give_the_same_bits),
        cmocka_unit_test(power_is_its_hoisted_form),
        cmocka_unit_test(power_min_is_the_log_of_the_margin_over_255_opacity),
    };
    return cmocka_run_group_tests_name("real", tests, NULL, NULL);
}
