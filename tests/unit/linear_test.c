/* Linear scales, opacities, rotations and codes that writers store: against the formulas in long
 * double, and there and back through what readers make of them. */
#include "stages/formats/linear.h"

#include "stages/formats/clean_rows.h"
#include "stages/formats/codes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { BATCH = 4096 };

static float values[BATCH], stored[BATCH], back[BATCH], again[BATCH];

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
    e = e < -125 ? -125 : e;
    return (double)(fabsl((long double)v - exact) / ldexpl(1, e - 24));
}

/* The next floats of both signs of at most `largest`, with these steps; false: there were none
 * left. */
static bool next_values(uint64_t *bits, float largest)
{
    uint64_t n = 0;
    for (; n < BATCH && float_of((uint32_t)(*bits >> 1)) <= largest; *bits += 2 * 997 + 1)
        values[n++] = float_of((uint32_t)(*bits >> 1) | (*bits & 1 ? 0x80000000u : 0));
    memset(values + n, 0, (BATCH - n) * sizeof *values);
    return n > 0;
}

static void scales_are_the_nearest_floats(void **state)
{
    double worst = 0;
    (void)state;
    for (uint64_t bits = 2; next_values(&bits, 88);) {
        kiln_linear_scales(BATCH, values, stored);
        for (int i = 0; i < BATCH; i++)
            worst = fmax(worst, ulps(stored[i], expl((long double)values[i])));
    }
    print_message("largest error %.6f ulp\n", worst);
    assert_true(worst < 0.501);
    kiln_linear_scales(4, (const float[]){-HUGE_VALF, -1e30f, 1e30f, HUGE_VALF}, stored);
    assert_true(stored[0] == 0 && stored[1] == 0 && stored[2] == HUGE_VALF &&
                stored[3] == HUGE_VALF);
}

static void opacities_are_the_nearest_floats_that_have_a_logit(void **state)
{
    static double alphas[BATCH];
    double worst = 0;
    uint64_t held = 0, ends = 0;
    (void)state;
    for (uint64_t bits = 2; next_values(&bits, 1000);) {
        held += kiln_alphas(BATCH, values, stored);
        for (int i = 0; i < BATCH; i++) {
            alphas[i] = (double)stored[i];
            const long double exact = 1 / (1 + expl(-(long double)values[i]));
            const bool is_end = exact < 0x1p-126L || exact > 1 - 0x1p-25L;
            ends += is_end;
            if (is_end) assert_true(stored[i] == 0x1p-126f || stored[i] == 1 - 0x1p-24f);
            if (!is_end) worst = fmax(worst, ulps(stored[i], exact));
        }
        kiln_alpha_logits(BATCH, alphas, back);
        for (int i = 0; i < BATCH; i++) assert_true(isfinite(back[i]));
    }
    print_message("largest error %.6f ulp, %llu held\n", worst, (unsigned long long)held);
    assert_true(worst < 0.501 && held == ends && held > 0);
}

static void what_was_stored_is_stored_again(void **state)
{
    static double alphas[BATCH];
    (void)state;
    for (uint64_t bits = 2; next_values(&bits, 88);) {
        kiln_linear_scales(BATCH, values, stored);
        kiln_log_scales(BATCH, stored, back);
        kiln_linear_scales(BATCH, back, again);
        assert_memory_equal(stored, again, sizeof stored);
        for (int i = 0; i < BATCH; i++)
            assert_true(fabsf(values[i]) < 1 || back[i] == values[i] || values[i] < -87);
        (void)kiln_alphas(BATCH, values, stored);
        for (int i = 0; i < BATCH; i++) alphas[i] = (double)stored[i];
        kiln_alpha_logits(BATCH, alphas, back);
        (void)kiln_alphas(BATCH, back, again);
        assert_memory_equal(stored, again, sizeof stored);
        for (int i = 0; i < BATCH; i++)
            assert_true(values[i] > -2.5f || values[i] < -87 || back[i] == values[i]);
    }
}

static void rotations_become_unit_ones_once(void **state)
{
    const float quats[4][4] = {
        {2, 0, 0, 1e-30f}, {0, 0, 0, 0.6f}, {0, 3e38f, 0, 0.8f}, {0, 0, 0, 1e-5f}};
    float unit[4][4], twice[4][4];
    (void)state;
    kiln_unit_quats(4, quats[0], unit[0]);
    const float expected[4][4] = {
        {1, 0, 1, 1e-30f}, {0, 0, 0, 0.6f}, {0, 1, 0, 0.8f}, {0, 0, 0, 1e-5f}};
    for (int i = 0; i < 3; i++)
        for (int c = 0; c < 4; c++) assert_true(unit[c][i] == expected[c][i]);
    /* 1 + 1e-10: as near as floats come */
    for (int c = 0; c < 4; c++) assert_true(unit[c][3] == quats[c][3]);
    kiln_unit_quats(4, unit[0], twice[0]);
    assert_memory_equal(unit, twice, sizeof unit);
}

static void codes_come_back(void **state)
{
    float table[256];
    uint8_t codes[256];
    (void)state;
    kiln_code_colours(table);
    assert_int_equal(kiln_colour_codes(256, table, codes), 0);
    for (int b = 0; b < 256; b++) assert_int_equal(codes[b], b);
    assert_int_equal(kiln_colour_codes(2, (const float[]){-1e38f, 3}, codes), 2);
    assert_true(codes[0] == 0 && codes[1] == 255);
    kiln_code_logits(table);
    table[0] = KILN_LOGIT_LOW; /* as import clamps them */
    table[255] = KILN_LOGIT_HIGH;
    kiln_opacity_codes(256, table, codes, 1);
    for (int b = 0; b < 256; b++) assert_int_equal(codes[b], b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales_are_the_nearest_floats),
        cmocka_unit_test(opacities_are_the_nearest_floats_that_have_a_logit),
        cmocka_unit_test(what_was_stored_is_stored_again),
        cmocka_unit_test(rotations_become_unit_ones_once),
        cmocka_unit_test(codes_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
