/* plot -- histograms as text: they fit any terminal, lose no count, and no number makes them
 * fail. */
#include "stages/info/plot.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static kiln_error err;

static kiln_plot plot_of(const double *values, uint64_t n)
{
    kiln_plot p = {.title = "Numbers", .unit = "dB", .what = "views"};
    double copy[64], least, most;
    for (uint64_t i = 0; i < n; i++) copy[i] = values[i];
    if (kiln_plot_range(copy, n, &least, &most)) kiln_plot_add_values(&p, "", copy, n, least, most);
    return p;
}
#define PLOT_OF(...) \
    plot_of((const double[]){__VA_ARGS__}, sizeof(double[]){__VA_ARGS__} / sizeof(double))

/* The caller frees it. */
static char *text_of(const kiln_plot *p, int columns, bool ascii)
{
    kiln_buffer b = {0};
    assert_int_equal(kiln_plot_text(p, columns, ascii, &b, &err), KILN_OK);
    assert_int_equal(kiln_buffer_put(&b, NULL, 1, &err), KILN_OK);
    return (char *)b.data;
}

static void assert_text(const kiln_plot *p, int columns, bool ascii, const char *want)
{
    char *text = text_of(p, columns, ascii);
    assert_string_equal(text, want);
    free(text);
}

/* Characters, not bytes. */
static int widest_line(const char *text)
{
    int widest = 0, n = 0;
    for (; *text; text++) {
        n = *text == '\n' ? 0 : n + (((unsigned char)*text & 0xC0) != 0x80);
        if (n > widest) widest = n;
    }
    return widest;
}

static uint64_t bars_sum(const kiln_plot *p, int series)
{
    uint64_t sum = 0;
    for (int i = 0; i < p->n_bars; i++) sum += p->series[series].bars[i];
    return sum;
}

static void bars_are_eighths_of_blocks(void **state)
{
    (void)state;
    kiln_plot p = {.title = "Numbers",
                   .unit = "dB",
                   .what = "views",
                   .n_bars = 4,
                   .n_series = 1,
                   .borders = {0, 1, 2, 3, 4}};
    p.series[0] = (kiln_plot_series){.name = "",
                                     .n = 211,
                                     .of = 250,
                                     .least = 0.5,
                                     .median = 1.5,
                                     .most = 3.5,
                                     .bars = {144, 66, 0, 1}};
    assert_text(&p, 28, false,
                "Numbers (dB)\n211 of 250 views, median\n1.5, from 0.5 to 3.5\n"
                "from\n   0  "
                "\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88\xE2\x96"
                "\x88\xE2\x96\x88\xE2\x96\x88"
                "\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88\xE2\x96"
                "\x88\xE2\x96\x88\xE2\x96\x88 144\n"
                "   1  "
                "\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88\xE2\x96"
                "\x88\xE2\x96\x88\xE2\x96\x8E        "
                "   66\n"
                /* 8 1/4 blocks; the least is an eighth */
                "   2                       0\n   3  \xE2\x96\x8F                    1\nto 4\n");
    assert_text(&p, 28, true,
                "Numbers (dB)\n211 of 250 views, median\n1.5, from 0.5 to 3.5\n"
                "from\n   0  ################## 144\n   1  ########            66\n   2            "
                "           0\n   3  .              "
                "      1\nto 4\n");
}

static void borders_are_round_and_no_number_is_lost(void **state)
{
    (void)state;
    const kiln_plot p = PLOT_OF(31.4, 33, 33.9, 34, 36.05, NAN, -INFINITY, INFINITY);
    assert_int_equal(p.n_series, 1);
    assert_int_equal(p.series[0].n, 5);
    assert_int_equal(p.series[0].of, 8);
    assert_int_equal(bars_sum(&p, 0), 5);
    assert_true(fabs(p.series[0].median - 33.9) < 1e-9);
    const kiln_plot even = PLOT_OF(4, 1, 2, 3);
    assert_true(even.series[0].median == 2); /* the lower one, as everywhere */
    assert_true(fabs(p.borders[0] - 31) < 1e-9);
    assert_true(fabs(p.borders[1] - 31.5) < 1e-9);
    assert_true(fabs(p.borders[p.n_bars] - 36.5) < 1e-9);
    assert_int_equal(p.series[0].bars[6], 1); /* 34 belongs to the bar that it begins */
    assert_int_equal(p.series[0].bars[5], 1);
}

static void one_number_and_equal_ones_are_one_bar(void **state)
{
    (void)state;
    const kiln_plot one = PLOT_OF(34.5), equal = PLOT_OF(7, 7, 7);
    assert_int_equal(one.n_bars, 1);
    assert_text(&one, 40, true,
                "Numbers (dB)\n1 view, median 34.5, from 34.5 to 34.5\nfrom\n34.5  "
                "################################ 1\n");
    assert_int_equal(equal.n_bars, 1);
    assert_int_equal(equal.series[0].bars[0], 3);
    const kiln_plot zero = PLOT_OF(0, 0);
    assert_int_equal(bars_sum(&zero, 0), 2);
}

static void what_is_no_number_makes_no_plot(void **state)
{
    (void)state;
    const kiln_plot p = PLOT_OF(NAN, INFINITY, -INFINITY);
    assert_int_equal(p.n_series, 0);
    assert_int_equal(plot_of(NULL, 0).n_series, 0);
}

static void extreme_numbers_have_bars(void **state)
{
    (void)state;
    const kiln_plot all[] = {PLOT_OF(-DBL_MAX, DBL_MAX),    PLOT_OF(0, DBL_MAX),
                             PLOT_OF(DBL_MIN, 4 * DBL_MIN), PLOT_OF(0, 4.9e-324),
                             PLOT_OF(1, nextafter(1, 2)),   PLOT_OF(1e300, 1e300 * (1 + 1e-15)),
                             PLOT_OF(-1e-9, 1e9),           PLOT_OF(123456789, 123456790, 3e15)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_in_range(all[i].n_bars, 1, KILN_PLOT_BARS);
        assert_int_equal(bars_sum(&all[i], 0), all[i].series[0].n);
        for (int columns = 20; columns <= 80; columns += 20) {
            char *text = text_of(&all[i], columns, i % 2);
            assert_in_range(widest_line(text), 1, columns);
            free(text);
        }
    }
}

/* Two series with the counts of a hostile manifest, from the narrowest terminal to one that is
 * wider than any plot. */
static void any_width_is_kept(void **state)
{
    (void)state;
    const uint64_t most[] = {9, 120000, 1999999999, INT64_MAX, UINT64_MAX};
    for (size_t m = 0; m < sizeof most / sizeof *most; m++)
        for (int n_series = 1; n_series <= 2; n_series++)
            for (int columns = 0; columns <= 200; columns++) {
                kiln_plot p = {.title = "Spacing",
                               .unit = "scene units, to the nearest neighbours",
                               .what = "Gaussians"};
                p.n_bars = 3;
                p.n_series = n_series;
                for (int i = 0; i <= p.n_bars; i++) p.borders[i] = 1e-300 * (i - 5.2345);
                for (int s = 0; s < n_series; s++)
                    p.series[s] = (kiln_plot_series){.name = s ? "after" : "before",
                                                     .n = most[m],
                                                     .of = most[m],
                                                     .median = -1e-300,
                                                     .bars = {most[m], 1, 0}};
                const int capacity = columns < 20 ? 20 : columns > 80 ? 80 : columns;
                char *blocks = text_of(&p, columns, false), *ascii = text_of(&p, columns, true);
                assert_in_range(widest_line(blocks), 1, capacity);
                assert_in_range(widest_line(ascii), 1, capacity);
                /* a bar is never so short that it says nothing */
                assert_non_null(strstr(blocks, "\xE2\x96\x88\xE2\x96\x88"));
                for (const char *c = ascii; *c; c++) assert_in_range(*c, '\n', '~');
                free(blocks);
                free(ascii);
            }
}

static void narrow_plots_have_short_counts_and_stand_below_each_other(void **state)
{
    (void)state;
    kiln_plot p = {
        .title = "T", .unit = "u", .what = "rows", .n_bars = 1, .n_series = 2, .borders = {0, 1}};
    p.series[0] =
        (kiln_plot_series){.name = "before", .n = 1234567, .of = 1234567, .bars = {1234567}};
    p.series[1] = (kiln_plot_series){.name = "after", .n = 1000, .of = 1000, .bars = {1000}};
    char *wide = text_of(&p, 60, true), *middle = text_of(&p, 36, true),
         *narrow = text_of(&p, 24, true);
    assert_non_null(strstr(wide, "# 1234567  ."));
    assert_non_null(strstr(middle, "# 1.2M  ."));
    assert_non_null(strstr(narrow, "from  before\n   0  ########## 1234567\nto 1\nfrom  after\n   "
                                   "0  .             1000\nto 1\n"));
    free(wide);
    free(middle);
    free(narrow);
}

static void json_and_back_is_the_same(void **state)
{
    (void)state;
    kiln_plot p = PLOT_OF(1, 2, 2.5, 7, NAN), back;
    double more[] = {3, 4};
    kiln_plot_add_values(&p, "more", more, 2, 1, 7);
    json_t *json = kiln_plot_json(&p);
    assert_true(kiln_plot_of_json(json, &back));
    char *a = text_of(&p, 80, false), *b = text_of(&back, 80, false);
    assert_string_equal(a, b);
    free(a);
    free(b);
    /* what is not of ours is refused, whatever it is */
    const char *const wrong[] = {"{}", "[]", "{\"title\": \"t\", \"unit\": 1}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        json_t *w = json_loads(wrong[i], 0, NULL);
        assert_false(kiln_plot_of_json(w, &back));
        json_decref(w);
    }
    json_array_append_new(json_object_get(json, "borders"), json_integer(1));
    assert_false(kiln_plot_of_json(json, &back)); /* more borders than counts */
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bars_are_eighths_of_blocks),
        cmocka_unit_test(borders_are_round_and_no_number_is_lost),
        cmocka_unit_test(one_number_and_equal_ones_are_one_bar),
        cmocka_unit_test(what_is_no_number_makes_no_plot),
        cmocka_unit_test(extreme_numbers_have_bars),
        cmocka_unit_test(any_width_is_kept),
        cmocka_unit_test(narrow_plots_have_short_counts_and_stand_below_each_other),
        cmocka_unit_test(json_and_back_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
