/* prune_options_test -- options and statistics become the thresholds that DESIGN.md of
 * kernels/prune says; lists and crops are read strictly; tallies give their quantiles back. */
#include "stages/prune/rules.h"
#include "stages/prune/prune_tally.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double origin[3] = {100, 0, -50};

static kiln_prune_options all_off(void)
{
    kiln_prune_options o = {.crop_box = "off",
                            .crop_sphere = "off",
                            .drop_row = "none",
                            .keep = "off",
                            .outlier_sor = "off",
                            .filter_floaters = "off",
                            .filter_cluster = "off"};
    for (int i = 0; i < KILN_PRUNE_RULES; i++)
        if (kiln_prune_rule_infos[i].kind == KILN_OPT_F64)
            *(double *)((char *)&o + kiln_prune_rule_infos[i].given) = NAN;
    return o;
}

static kiln_prune_stats capacity(void)
{
    return (kiln_prune_stats){.n = 1000,
                              .lo = {-1, -2, -3},
                              .hi = {1, 2, 7},
                              .median_spacing2 = 0.04f,
                              .median_log_scale = -2.302585f};
}

static void off_is_off(void **state)
{
    (void)state;
    kiln_error err;
    kiln_prune_rules r;
    const kiln_prune_options o = all_off();
    const kiln_prune_stats s = capacity();
    assert_int_equal(kiln_prune_rules_make(&o, &s, origin, &r, &err), KILN_OK);
    assert_true(isnan(r.min_opacity) && isnan(r.crop_sphere[3]) && isnan(r.outlier) &&
                isnan(r.min_scale));
    assert_true(isnan(r.max_scale) && isnan(r.max_extent) && isnan(r.max_spacing[0]) &&
                isnan(r.max_needle));
    for (int a = 0; a < 3; a++) assert_true(isnan(r.crop_box[a]) && isnan(r.crop_box[3 + a]));
}

static void thresholds_come_from_the_statistics(void **state)
{
    (void)state;
    kiln_error err;
    kiln_prune_rules r;
    kiln_prune_options o = all_off();
    kiln_prune_stats s = capacity();
    o.min_opacity = 1.0 / 255;
    o.max_extent = 0.5;
    o.outlier = 3;
    o.crop_box = "99,-1,-52,101,1,-48";
    assert_int_equal(kiln_prune_rules_make(&o, &s, origin, &r, &err), KILN_OK);
    assert_true(fabs((double)r.min_opacity + log(254)) < 1e-5);
    assert_true(fabs((double)kiln_prune_extent(&s) - (10 + 6 * 0.1)) < 1e-5);
    assert_true(fabs((double)r.max_extent - log(5.3)) < 1e-5);
    assert_true(fabs((double)r.outlier - 9 * 0.04) < 1e-6);
    /* 0.2 is more than the median axis of 0.1 */
    assert_true(r.max_spacing[1] == s.median_spacing2);
    assert_true(r.crop_box[0] == -1 && r.crop_box[3] == 1 && r.crop_box[2] == -2 &&
                r.crop_box[5] == 2);
    s.median_spacing2 = 0; /* more than half are duplicates */
    assert_int_equal(kiln_prune_rules_make(&o, &s, origin, &r, &err), KILN_OK);
    assert_true(fabs((double)r.max_spacing[1] - 0.01) < 1e-7);
}

static void crops_are_read_strictly(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "1,2,3",
                                      "0,0,0,1,1",
                                      "0,0,0,1,1,1,1",
                                      "1,0,0,0,1,1",
                                      "0,0,0,1,1,nan",
                                      "0,0,0,1,1,1e999",
                                      "0,0,0, 1,1,1",
                                      "0,0,0,1,1,1 ",
                                      "a,b,c,d,e,f"};
    kiln_error err;
    kiln_prune_options o = all_off();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        o.crop_box = bad[i];
        assert_int_equal(kiln_prune_options_check(&o, &err), KILN_E_USAGE);
    }
    o.crop_box = "-1,-1,-1,1.5,1e3,1";
    assert_int_equal(kiln_prune_options_check(&o, &err), KILN_OK);
    o.crop_sphere = "0,0,0,-1";
    assert_int_equal(kiln_prune_options_check(&o, &err), KILN_E_USAGE);
    o.crop_sphere = "0,0,0,2";
    assert_int_equal(kiln_prune_options_check(&o, &err), KILN_OK);
}

static void rows_are_sorted_and_once(void **state)
{
    (void)state;
    kiln_error err;
    uint32_t *rows;
    uint64_t n;
    static const uint32_t want[] = {0, 3, 17, 4294967294u};
    assert_int_equal(kiln_prune_rows_parse("--x", "17,3,4294967294,3,0,17", &rows, &n, &err),
                     KILN_OK);
    assert_int_equal(n, 4);
    assert_memory_equal(rows, want, sizeof want);
    free(rows);
    assert_int_equal(kiln_prune_rows_parse("--x", "none", &rows, &n, &err), KILN_OK);
    assert_int_equal(n, 0);
    free(rows);
    static const char *const bad[] = {"",     ",",    "1,",         ",1",
                                      "-1",   "1;2",  "4294967295", "99999999999999999999",
                                      "0x10", "1, 2", "one"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(kiln_prune_rows_parse("--x", bad[i], &rows, &n, &err), KILN_E_USAGE);
    char *text = calloc(5001, 1);
    assert_non_null(text);
    memset(text, '1', 5000);
    assert_int_equal(kiln_prune_rows_parse("--x", text, &rows, &n, &err), KILN_E_USAGE);
    free(text);
}

static void tallies_give_quantiles(void **state)
{
    (void)state;
    enum { N = 1000 };
    static float log_scales[3 * N], logits[N];
    static uint8_t keep[N];
    static kiln_tally t, sum;
    for (int i = 0; i < N; i++) {
        log_scales[i] = log_scales[N + i] = -20;
        log_scales[2 * N + i] = logf((float)(i + 1)); /* scales 1 to 1000 */
        logits[i] = i < 250 ? -80.0f : 80.0f;
        keep[i] = i < 100;
    }
    kiln_tally_rows(&t, 0, N, log_scales, logits, NULL);
    kiln_tally_rows(&t, 1, N, log_scales, logits, keep);
    kiln_tally_add(&sum, &t);
    kiln_tally_add(&sum, &t);
    assert_true(fabs(log(kiln_tally_scale_at(t.scales[0], 0.5) / 500)) < 0.05);
    assert_true(fabs(log(kiln_tally_scale_at(t.scales[0], 1) / 1000)) < 0.05);
    assert_true(fabs(log(kiln_tally_scale_at(t.scales[1], 1) / 100)) < 0.05);
    assert_true(fabs(log(kiln_tally_scale_at(sum.scales[0], 0) / 1)) < 0.05);
    assert_int_equal(t.opacities[0][0], 250);
    assert_int_equal(t.opacities[0][KILN_TALLY_OPACITIES - 1], 750);
    assert_int_equal(sum.opacities[1][0], 200);
    memset(&t, 0, sizeof t);
    assert_true(kiln_tally_scale_at(t.scales[0], 0.5) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(off_is_off),
        cmocka_unit_test(thresholds_come_from_the_statistics),
        cmocka_unit_test(crops_are_read_strictly),
        cmocka_unit_test(rows_are_sorted_and_once),
        cmocka_unit_test(tallies_give_quantiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
