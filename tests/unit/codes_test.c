/* Codes of bytes and linear scales, against the formulas in long double. */
#include "stages/formats/codes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { BATCH = 4096 };

static float float_of(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* In units of the last place of a float as large as `exact`. */
static double ulps(float v, long double exact)
{
    int e;
    (void)frexpl(exact, &e);
    return (double)(fabsl((long double)v - exact) / ldexpl(1, e - 24));
}

static void tables_hold_the_nearest_floats(void **state)
{
    float logits[256], colours[256];
    (void)state;
    kiln_code_logits(logits);
    kiln_code_colours(colours);
    for (int b = 0; b < 256; b++) {
        /* C0 = 1 / (2 sqrt pi) */
        const long double a = (long double)b / 255, colour = (a - 0.5L) * 2 * sqrtl(acosl(-1));
        if (b > 0 && b < 255) assert_true(ulps(logits[b], logl(a / (1 - a))) < 0.51);
        assert_true(ulps(colours[b], colour) < 0.51);
    }
    assert_true(logits[0] == -HUGE_VALF && logits[255] == HUGE_VALF);
    assert_true(logits[127] == -logits[128] && colours[0] == -colours[255]);
}

static void scales_become_the_nearest_logarithms(void **state)
{
    static float linear[BATCH], logs[BATCH];
    double worst = 0;
    (void)state;
    /* every positive float with these steps, denormals too */
    for (uint64_t bits = 1; bits < 0x7f800000u;) {
        uint64_t n = 0;
        for (; n < BATCH && bits<0x7f800000u; bits += bits> 0x3f7f0000u && bits < 0x3f810000u ? 1
                                                                                              : 997)
            linear[n++] = float_of((uint32_t)bits);
        kiln_log_scales(n, linear, logs);
        for (uint64_t i = 0; i < n; i++) {
            const double d = linear[i] == 1 ? (logs[i] == 0 ? 0 : HUGE_VAL)
                                            : ulps(logs[i], logl((long double)linear[i]));
            worst = d <= worst ? worst : d;
        }
    }
    print_message("largest error %.6f ulp\n", worst);
    assert_true(worst < 0.501);
}

static void what_is_no_scale_is_no_number(void **state)
{
    float v[7] = {0, -0.0f, -1, -1e-40f, NAN, HUGE_VALF, -HUGE_VALF};
    (void)state;
    kiln_log_scales(7, v, v);
    assert_true(v[0] == -HUGE_VALF && v[1] == -HUGE_VALF && v[5] == HUGE_VALF);
    assert_true(isnan(v[2]) && isnan(v[3]) && isnan(v[4]) && isnan(v[6]));
}

static void opacities_become_the_nearest_logits(void **state)
{
    static double alphas[BATCH];
    static float logits[BATCH];
    double worst = 0;
    (void)state;
    /* every positive float below 1 with these steps */
    for (uint64_t bits = 1; bits < 0x3f800000u;) {
        uint64_t n = 0;
        for (; n < BATCH && bits<0x3f800000u; bits += bits> 0x3efffff0u && bits < 0x3f000010u ? 1
                                                                                              : 997)
            alphas[n++] = (double)float_of((uint32_t)bits);
        kiln_alpha_logits(n, alphas, logits);
        for (uint64_t i = 0; i < n; i++) {
            const long double a = (long double)alphas[i];
            worst = fmax(worst, alphas[i] == 0.5 ? (double)fabsf(logits[i])
                                                 : ulps(logits[i], logl(a / (1 - a))));
        }
    }
    print_message("largest error %.6f ulp\n", worst);
    assert_true(worst < 0.501);
    const double ends[6] = {0, -1, 1, 2, (double)NAN, -(double)HUGE_VALF};
    kiln_alpha_logits(6, ends, logits);
    assert_true(logits[0] == -HUGE_VALF && logits[1] == -HUGE_VALF && logits[2] == HUGE_VALF &&
                logits[3] == HUGE_VALF);
    assert_true(isnan(logits[4]) && logits[5] == -HUGE_VALF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_hold_the_nearest_floats),
        cmocka_unit_test(scales_become_the_nearest_logarithms),
        cmocka_unit_test(what_is_no_scale_is_no_number),
        cmocka_unit_test(opacities_become_the_nearest_logits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
