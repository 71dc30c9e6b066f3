/* prune_rules_test -- each rule fires where its text says, in the order of the map, and counts what
 * it did. */
#include "kernels/ops.h"
#include "kernels/prune/prune_math.h"
#include "stages/generate/inputs.h"
#include "stages/prune/rules.h"
#include "tests/unit/prune_off.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 12 };

typedef struct {
    float means[3 * N], log_scales[3 * N], opacity_logits[N], spacing2[N];
    uint8_t drop[N];
} block;

typedef struct {
    uint8_t keep[N];
    float log_scales[3 * N];
    uint64_t counts[KILN_PRUNE_RULES][2];
} pruned;

/* rows at x = row, unit scales, opacity 1/2, spacing 1 */
static block plain(void)
{
    block b;
    memset(&b, 0, sizeof b);
    for (int i = 0; i < N; i++) {
        b.means[i] = (float)i;
        b.spacing2[i] = 1.0f;
    }
    return b;
}

static pruned run(const block *b, const kiln_prune_rules *rules)
{
    kiln_error err;
    size_t bytes = 0;
    pruned p;
    memset(&p, 0, sizeof p);
    const kiln_exec x = {.device = -1, .threads = 2};
    const kiln_prune_args a = {.n = N,
                               .means = b->means,
                               .log_scales = b->log_scales,
                               .opacity_logits = b->opacity_logits,
                               .spacing2 = b->spacing2,
                               .drop = b->drop,
                               .rules = rules,
                               .keep = p.keep,
                               .log_scales_out = p.log_scales,
                               .counts = p.counts};
    assert_int_equal(kiln_ops_cpu()->prune(&x, &a, &p, &bytes, &err), KILN_OK);
    pruned q;
    memset(&q, 0, sizeof q);
    kiln_prune_args other = a;
    other.keep = q.keep;
    other.log_scales_out = q.log_scales;
    other.counts = q.counts;
    assert_int_equal(kiln_ops_cpu_baseline()->prune(&x, &other, &q, &bytes, &err), KILN_OK);
    assert_memory_equal(&p, &q, sizeof p);
    return p;
}

/* Exactly this row is dropped, by that rule; -1: none. */
static void expect_dropped(const pruned *p, int row, int rule)
{
    for (int i = 0; i < N; i++) assert_int_equal(p->keep[i], i != row);
    for (int r = 0; r < KILN_PRUNE_RULES; r++)
        assert_int_equal(p->counts[r][0], r == rule && row >= 0);
}

static void expect_clamped(const pruned *p, int rule, uint64_t rows)
{
    for (int r = 0; r < KILN_PRUNE_RULES; r++)
        assert_int_equal(p->counts[r][1], r == rule ? rows : 0);
}

static void without_rules_nothing_changes(void **state)
{
    (void)state;
    block b = plain();
    b.log_scales[3] = 80;
    b.log_scales[4] = -87;
    b.opacity_logits[5] = -80;
    const kiln_prune_rules r = prune_rules_off();
    const pruned p = run(&b, &r);
    expect_dropped(&p, -1, 0);
    expect_clamped(&p, 0, 0);
    assert_memory_equal(p.log_scales, b.log_scales, sizeof b.log_scales);
}

/* Thresholds of a rule alone, and a row that it is about. A rule without a case here touches no
 * row. */
static const struct {
    float thresholds[6];
    kiln_prune_one row;
} cases[KILN_PRUNE_RULES] = {
    [KILN_PRUNE_merge] = {.row.mark = KILN_PRUNE_MERGED},
    [KILN_PRUNE_drop_row] = {.row.mark = KILN_PRUNE_NAMED},
    [KILN_PRUNE_min_opacity] = {{-5.5f}, {.opacity_logit = -5.6f}},
    [KILN_PRUNE_crop_box] = {{-1, -1, -1, N, 1, 1}, {.mean = {0, 2, 0}}},
    [KILN_PRUNE_crop_sphere] = {{0, 0, 0, N}, {.mean = {0, 0, -N - 1}}},
    [KILN_PRUNE_outlier] = {{4}, {.spacing2 = 4.5f}},
    [KILN_PRUNE_min_scale] = {{-20}, {.log_scale = {0, -50, 0}}},
    [KILN_PRUNE_max_spacing] = {{8, 0}, {.log_scale = {0, 0, 3}, .spacing2 = 1}},
    [KILN_PRUNE_max_scale] = {{2}, {.log_scale = {3, 0, 0}}},
    [KILN_PRUNE_max_extent] = {{2}, {.log_scale = {3, 0, 0}}},
    [KILN_PRUNE_max_needle] = {{10}, {.log_scale = {0, 3, 0}}},
    [KILN_PRUNE_min_contribution] = {.row.mark = KILN_PRUNE_FAINT},
    [KILN_PRUNE_min_visibility] = {.row.mark = KILN_PRUNE_HIDDEN},
    [KILN_PRUNE_keep] = {.row.mark = KILN_PRUNE_UNCHOSEN},
    [KILN_PRUNE_outlier_sor] = {.row.mark = KILN_PRUNE_STRAY},
    [KILN_PRUNE_filter_floaters] = {.row.mark = KILN_PRUNE_FLOATER},
    [KILN_PRUNE_filter_cluster] = {.row.mark = KILN_PRUNE_APART},
};

static block with_row(int at, const kiln_prune_one *row)
{
    block b = plain();
    for (int a = 0; a < 3; a++) b.means[a * N + at] = row->mean[a];
    for (int a = 0; a < 3; a++) b.log_scales[a * N + at] = row->log_scale[a];
    b.opacity_logits[at] = row->opacity_logit;
    b.spacing2[at] = row->spacing2;
    b.drop[at] = row->mark;
    return b;
}

static void each_rule_drops_or_clamps_a_row(void **state)
{
    (void)state;
    enum { ROW = 7 };
    for (int rule = 0; rule < KILN_PRUNE_RULES; rule++) {
        const kiln_prune_rule_info *info = &kiln_prune_rule_infos[rule];
        const block b = with_row(ROW, &cases[rule].row);
        kiln_prune_rules r = prune_rules_off();
        memcpy((char *)&r + info->floats, cases[rule].thresholds, info->n_floats * sizeof(float));
        if (info->policy) {
            const pruned p = run(&b, &r);
            if (p.counts[rule][1] == 0) fail_msg("%s clamps nothing", info->option);
            expect_dropped(&p, -1, rule);
            expect_clamped(&p, rule, 1);
            assert_memory_not_equal(p.log_scales, b.log_scales, sizeof b.log_scales);
            *(kiln_prune_policy *)((char *)&r + info->policy) = KILN_PRUNE_DROP;
        }
        const pruned p = run(&b, &r);
        if (p.counts[rule][0] == 0) fail_msg("%s drops nothing", info->option);
        expect_dropped(&p, ROW, rule);
        expect_clamped(&p, rule, 0);
    }
}

static void crops_have_two_sides_and_a_limit_is_inside(void **state)
{
    (void)state;
    kiln_prune_rules r = prune_rules_off();
    block b = plain();
    r.crop_box[3] = N - 1.5f;
    pruned p = run(&b, &r);
    expect_dropped(&p, N - 1, KILN_PRUNE_crop_box);
    r = prune_rules_off();
    r.crop_box[0] = 0.5f;
    p = run(&b, &r);
    expect_dropped(&p, 0, KILN_PRUNE_crop_box);

    r = prune_rules_off();
    memcpy(r.crop_sphere, (const float[4]){0, 0, 0, N - 2}, sizeof r.crop_sphere);
    p = run(&b, &r);
    expect_dropped(&p, N - 1, KILN_PRUNE_crop_sphere);

    r = prune_rules_off();
    r.outlier = 4;
    b.spacing2[5] = 4;
    b.spacing2[6] = 4.5f;
    p = run(&b, &r);
    expect_dropped(&p, 6, KILN_PRUNE_outlier);
}

static void axes_are_moved_to_the_limit(void **state)
{
    (void)state;
    kiln_prune_rules r = prune_rules_off();
    block b = plain();
    b.log_scales[1] = 3;
    b.log_scales[N + 2] = 2;
    b.log_scales[5] = -50;
    r.max_scale = 2;
    r.min_scale = -20;
    const pruned p = run(&b, &r);
    assert_true(p.log_scales[1] == 2 && p.log_scales[N + 2] == 2 && p.log_scales[N + 1] == 0 &&
                p.log_scales[5] == -20);
    assert_true(p.counts[KILN_PRUNE_max_scale][1] == 1 && p.counts[KILN_PRUNE_min_scale][1] == 1);
}

static void spacing_is_local_but_not_below_its_floor(void **state)
{
    (void)state;
    kiln_prune_rules r = prune_rules_off();
    block b = plain();
    r.max_spacing[0] = 8;
    r.max_spacing[1] = 0;
    r.max_spacing_policy = KILN_PRUNE_DROP;
    b.spacing2[4] = 1e-6f; /* limit 8 * 0.001 */
    pruned p = run(&b, &r);
    expect_dropped(&p, 4, KILN_PRUNE_max_spacing);
    r.max_spacing[1] = 1.0f / 49;
    p = run(&b, &r);
    expect_dropped(&p, -1, 0);
    r.max_spacing[1] = 0;
    b.spacing2[4] = 0; /* duplicates say nothing */
    p = run(&b, &r);
    expect_dropped(&p, -1, 0);
    b.spacing2[4] = 1e-6f;
    r.max_spacing_policy = KILN_PRUNE_CLAMP;
    p = run(&b, &r);
    expect_clamped(&p, KILN_PRUNE_max_spacing, 1);
    for (int a = 0; a < 3; a++)
        assert_true(fabs((double)p.log_scales[a * N + 4] - log(0.008)) < 1e-5);
}

static void needles_are_cut_to_their_middle_axis(void **state)
{
    (void)state;
    kiln_prune_rules r = prune_rules_off();
    block b = plain();
    r.max_needle = 10;
    for (int longest = 0; longest < 3; longest++) {
        /* e^3 = 20 times */
        for (int row = longest; row < N; row += 3) b.log_scales[longest * N + row] = 3;
        /* the middle axis may be */
        b.log_scales[(longest + 1) % 3 * N + 6 + longest] = -5;
        /* either of the others */
        b.log_scales[(longest + 2) % 3 * N + 9 + longest] = -5;
    }
    /* a disc is no needle */
    for (int c = 0; c < 3; c++) b.log_scales[c * N + 5] = c < 2 ? 3.0f : 0.0f;
    pruned p = run(&b, &r);
    expect_clamped(&p, KILN_PRUNE_max_needle, N - 1);
    for (int i = 0; i < N; i++)
        if (i != 5) assert_true(fabs((double)p.log_scales[i % 3 * N + i] - log(10)) < 1e-6);
    assert_true(p.log_scales[5] == 3);
}

static void a_row_counts_until_a_rule_drops_it(void **state)
{
    (void)state;
    kiln_prune_rules r = prune_rules_off();
    block b = plain();
    r.min_scale = -20;
    r.max_scale = 2;
    r.max_extent = 1;
    r.max_extent_policy = KILN_PRUNE_DROP;
    r.max_needle = 2;
    b.log_scales[3] = 5;
    b.log_scales[N + 3] = -30;
    const pruned p = run(&b, &r);
    expect_dropped(&p, 3, KILN_PRUNE_max_extent);
    assert_int_equal(p.counts[KILN_PRUNE_min_scale][1], 1);
    assert_int_equal(p.counts[KILN_PRUNE_max_scale][1], 1);
    assert_int_equal(p.counts[KILN_PRUNE_max_needle][1], 0);
}

static void histogram_puts_the_rest_in_the_end_bins(void **state)
{
    (void)state;
    uint64_t bins[4] = {0};
    const float values[] = {-100, 0, 0.99f, 1, 2.5f, 3.999f, 4, 1e30f, NAN};
    kiln_histogram_add(bins, 4, 0, 4, values, sizeof values / sizeof *values);
    assert_true(bins[0] == 3 && bins[1] == 1 && bins[2] == 1 && bins[3] == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_rules_nothing_changes),
        cmocka_unit_test(each_rule_drops_or_clamps_a_row),
        cmocka_unit_test(crops_have_two_sides_and_a_limit_is_inside),
        cmocka_unit_test(axes_are_moved_to_the_limit),
        cmocka_unit_test(spacing_is_local_but_not_below_its_floor),
        cmocka_unit_test(needles_are_cut_to_their_middle_axis),
        cmocka_unit_test(a_row_counts_until_a_rule_drops_it),
        cmocka_unit_test(histogram_puts_the_rest_in_the_end_bins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
