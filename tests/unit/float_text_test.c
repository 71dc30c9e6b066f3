/* Decimal text of floats, and lines of CSV, against libc's own parser and formatter, which round
 * correctly. */
#include "stages/formats/csv/csv_rows.h"
#include "stages/formats/csv/float_text.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static float float_of(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static const char *text_of(float v)
{
    static char text[KILN_FLOAT_TEXT_MAX + 1];
    const size_t n = kiln_float_text(v, text);
    assert_true(n > 0 && n <= KILN_FLOAT_TEXT_MAX);
    text[n] = '\0';
    return text;
}

/* Digits from the first to the last that is not 0. */
static int digits_of(const char *text)
{
    int n = 0, last = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (n == 0 && *text == '0')) continue;
        n++;
        if (*text != '0') last = n;
    }
    return last;
}

/* Reads back as v, through a double too; nothing shorter does; nothing as short is nearer. */
static void check(float v)
{
    const char *text = text_of(v);
    char other[64];
    const int n = digits_of(text);
    if (strtof(text, NULL) != v || (float)strtod(text, NULL) != v)
        fail_msg("%.9g is written as %s", (double)v, text);
    assert_true(n >= 1 && n <= 9);
    snprintf(other, sizeof other, "%.*e", n - 1, (double)v);
    if (strtof(other, NULL) == v && strtod(other, NULL) != strtod(text, NULL))
        fail_msg("%s is nearer than %s", other, text);
    if (n == 1) return;
    snprintf(other, sizeof other, "%.*e", n - 2, (double)v);
    if (strtof(other, NULL) == v) fail_msg("%s is shorter than %s", other, text);
}

static void every_kind_of_float_reads_back(void **state)
{
    (void)state;
    for (uint64_t bits = 1; bits < 0x7f800000u; bits += 50021) check(float_of((uint32_t)bits));
    /* around powers of two, where the distance of floats changes; denormals too */
    for (uint32_t e = 0; e < 255; e++)
        for (uint32_t k = 0; k < 7; k++)
            if (e + k > 3) check(float_of((e << 23) + k - 3));
    for (uint32_t i = 1; i < 100; i++) check(float_of(i));
    for (int e = -44; e < 39; e++)
        for (uint32_t k = 0; k < 5; k++) {
            char power[16];
            uint32_t bits;
            snprintf(power, sizeof power, "1e%d", e);
            const float v = strtof(power, NULL);
            memcpy(&bits, &v, sizeof bits);
            check(float_of(bits + k - 2));
        }
    check(FLT_MAX);
}

static void texts_are_as_people_write_them(void **state)
{
    static const struct {
        float v;
        const char *text;
    } texts[] = {{0, "0"},
                 {-0.0f, "-0"},
                 {1, "1"},
                 {-2, "-2"},
                 {0.1f, "0.1"},
                 {0.3f, "0.3"},
                 {12345.6f, "12345.6"},
                 {100, "100"},
                 {1e8f, "100000000"},
                 {1e9f, "1e+9"},
                 {1e-4f, "0.0001"},
                 {1e-5f, "1e-5"},
                 {16777216, "16777216"},
                 {1.5e10f, "1.5e+10"},
                 {FLT_MAX, "3.4028235e+38"},
                 {NAN, "nan"},
                 {HUGE_VALF, "inf"},
                 {-HUGE_VALF, "-inf"},
                 {1e-45f, "1e-45"},
                 {-1.17549435e-38f, "-1.1754944e-38"}};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_string_equal(text_of(texts[i].v), texts[i].text);
}

static void whole_numbers_have_all_their_digits(void **state)
{
    char text[KILN_U32_TEXT_MAX + 1], expected[16];
    (void)state;
    for (uint64_t v = 0; v <= UINT32_MAX; v = v * 7 / 3 + 1) {
        for (uint64_t k = v ? v - 1 : v; k <= v; k++) {
            text[kiln_u32_text((uint32_t)k, text)] = '\0';
            snprintf(expected, sizeof expected, "%u", (unsigned)k);
            assert_string_equal(text, expected);
        }
    }
    text[kiln_u32_text(UINT32_MAX, text)] = '\0';
    assert_string_equal(text, "4294967295");
}

static void lines_have_each_kind_of_value(void **state)
{
    const float places[] = {0.1f, -2}, values[] = {1e-7f, HUGE_VALF},
                colours[] = {7.0f / 255.0f, 0.3f}, out_of_range[] = {1, -0.25f};
    const uint32_t rows[] = {0, 4294967294u};
    const kiln_csv_column columns[] = {{.kind = KILN_CSV_PLACE, .values = places, .origin = 4.5e6},
                                       {.kind = KILN_CSV_PLACE, .values = places},
                                       {.kind = KILN_CSV_FLOAT, .values = values},
                                       {.kind = KILN_CSV_COLOUR, .values = colours},
                                       {.kind = KILN_CSV_COLOUR, .values = out_of_range},
                                       {.kind = KILN_CSV_WHOLE, .values = rows},
                                       {.kind = KILN_CSV_WHOLE, .values = rows, .first = 7}};
    char text[2 * 7 * KILN_CSV_VALUE_MAX + 1];
    (void)state;
    text[kiln_csv_lines(columns, 7, 0, 2, text)] = '\0';
    assert_string_equal(text, "4500000.1000000015,0.1,1e-7,7,255,0,7\n4499998,-2,inf,76.5,-63.75,"
                              "4294967294,4294967301\n");
    text[kiln_csv_lines(columns + 1, 1, 1, 1, text)] = '\0';
    assert_string_equal(text, "-2\n");
    for (int b = 0; b < 256; b++) {
        char expected[16];
        const float colour = (float)b / 255.0f;
        const kiln_csv_column one = {.kind = KILN_CSV_COLOUR, .values = &colour};
        snprintf(expected, sizeof expected, "%d\n", b);
        text[kiln_csv_lines(&one, 1, 0, 1, text)] = '\0';
        assert_string_equal(text, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_float_reads_back),
        cmocka_unit_test(texts_are_as_people_write_them),
        cmocka_unit_test(whole_numbers_have_all_their_digits),
        cmocka_unit_test(lines_have_each_kind_of_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
