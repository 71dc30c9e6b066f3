/* Numbers of texts: the short way gives what strtod and strtof give, bit for bit. Rows of texts:
 * records and sentences do not depend on threads, nor on where windows and pieces are cut. */
#include "stages/files/text_lines.h"
#include "stages/formats/text_rows.h"

#include "tests/unit/manifest_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t seed = 1;
static uint64_t any(uint64_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 20) % below;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void check_number(const char *text)
{
    double d, d_true = strtod(text, NULL);
    float f, f_true = strtof(text, NULL);
    const kiln_number rd = kiln_parse_f64(text, strlen(text), &d),
                      rf = kiln_parse_f32(text, strlen(text), &f);
    assert_int_equal(rd, d_true - d_true == 0 ? KILN_NUMBER_OK : KILN_NUMBER_TOO_LARGE);
    assert_int_equal(rf, f_true - f_true == 0 ? KILN_NUMBER_OK : KILN_NUMBER_TOO_LARGE);
    if (rd == KILN_NUMBER_OK && memcmp(&d, &d_true, sizeof d) != 0)
        fail_msg("%s: %a, strtod %a", text, d, d_true);
    if (rf == KILN_NUMBER_OK && memcmp(&f, &f_true, sizeof f) != 0)
        fail_msg("%s: %a, strtof %a", text, (double)f, (double)f_true);
}

static void numbers_like_strtod(void **state)
{
    char text[128];
    (void)state;
    for (int i = 0; i < 300000; i++) {
        const int digits = 1 + (int)any(20), point = (int)any((uint64_t)digits + 1);
        int at = 0;
        if (any(3) == 0) text[at++] = any(4) ? '-' : '+';
        for (int k = 0; k < digits; k++) {
            if (k == point) text[at++] = '.';
            text[at++] = (char)('0' + any(10));
        }
        if (any(3) == 0) at += sprintf(text + at, "%c%d", any(2) ? 'e' : 'E', (int)any(90) - 50);
        text[at] = 0;
        check_number(text);
    }
}

/* Written out in full, halfway between two floats, and a little off it. */
static void halfway_between_floats(void **state)
{
    static const char *const odd[] = {"0",
                                      "-0",
                                      "0.0",
                                      "-0.000",
                                      "1e22",
                                      "1e23",
                                      "9007199254740993",
                                      "1.17549435e-38",
                                      "1e-45",
                                      "3.5e38",
                                      "1e309",
                                      "7e-46",
                                      ".5",
                                      "5.",
                                      "1.e2",
                                      "000000000000000000000000012.5",
                                      "16777217",
                                      "16777219",
                                      "0.1",
                                      "123456789012345678901234567890"};
    char text[128];
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) check_number(odd[i]);
    for (int i = 0; i < 100000; i++) {
        const uint32_t bits = (uint32_t)((100 + any(60)) << 23 | any(1 << 23));
        float f;
        memcpy(&f, &bits, sizeof f);
        double d = (double)f, next;
        uint64_t wide;
        memcpy(&wide, &d, sizeof wide);
        wide += (UINT64_C(1) << 28) - 6 + any(13);
        memcpy(&next, &wide, sizeof next);
        (void)snprintf(text, sizeof text, "%.17g", next);
        check_number(text);
        (void)snprintf(text, sizeof text, "%.9g", (double)f);
        check_number(text);
    }
}

static void no_numbers(void **state)
{
    static const char *const texts[] = {"",      ".",   "-",    "+",    "e5",  "1e",  "1e+",
                                        "1.2.3", "1,5", "0x10", "1e5x", "--1", "1-2", "nano"};
    double d;
    float f;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(kiln_parse_f64(texts[i], strlen(texts[i]), &d), KILN_NUMBER_NOT_ONE);
        assert_int_equal(kiln_parse_f32(texts[i], strlen(texts[i]), &f), KILN_NUMBER_NOT_ONE);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

enum { ROWS = 120000 };

/* A record is the row's number and the sum of its words. */
static kiln_status parse(const void *context, uint64_t row, const char *line, size_t size,
                         unsigned char *record, kiln_error *err)
{
    kiln_token_line words = {line, line + size};
    const char *w;
    size_t n;
    uint64_t sum = 0, v;
    (void)context;
    while (kiln_token_next(&words, &w, &n)) {
        if (kiln_parse_u64(w, n, &v) != KILN_NUMBER_OK)
            return kiln_fail(err, KILN_E_INPUT, "row %llu", (unsigned long long)row);
        sum += v;
    }
    memcpy(record, &row, 8);
    memcpy(record + 8, &sum, 8);
    return KILN_OK;
}

/* Rows of very different lengths, blank lines, comments, both ends of lines, no end of the last;
 * sums[i] of row i. */
static int make_text(uint64_t *sums, uint64_t bad_row)
{
    const int fd = memfd_create("text", MFD_CLOEXEC);
    FILE *f = fdopen(dup(fd), "w");
    assert_non_null(f);
    for (uint64_t i = 0; i < ROWS; i++) {
        const uint64_t words = any(1000) == 0 ? 1 + any(40000) : 1 + any(8);
        if (any(10) == 0) fprintf(f, "%s", any(2) ? " \t\r\n" : "# a comment\n");
        sums[i] = 0;
        for (uint64_t k = 0; k < words; k++) {
            const uint64_t v = any(1000);
            sums[i] += v;
            fprintf(f, "%s%llu", k ? " " : "", (unsigned long long)v);
        }
        if (i == bad_row) fprintf(f, " bad");
        fprintf(f, "%s", i + 1 == ROWS ? "" : any(2) ? "\n" : "\r\n");
    }
    assert_int_equal(fclose(f), 0);
    return fd;
}

static kiln_text_rows job_of(int fd)
{
    return (kiln_text_rows){.fd = fd,
                            .path = "text",
                            .n_rows = UINT64_MAX,
                            .comment = '#',
                            .record_bytes = 16,
                            .parse = parse};
}

static void check_records(int out, const uint64_t *sums, uint64_t skip, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t record[2];
        assert_int_equal(pread(out, record, 16, (off_t)(16 * i)), 16);
        assert_int_equal(record[0], i);
        assert_int_equal(record[1], sums[skip + i]);
    }
    assert_int_equal(lseek(out, 0, SEEK_END), (off_t)(16 * n));
}

static void records_in_their_places(void **state)
{
    static uint64_t sums[ROWS];
    static const unsigned threads[] = {1, 2, 3, 7};
    const int fd = make_text(sums, UINT64_MAX);
    kiln_error err = {0};
    uint64_t found;
    (void)state;
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        kiln_text_rows t = job_of(fd);
        int out = memfd_create("records", MFD_CLOEXEC);
        assert_int_equal(kiln_text_rows_spool(&t, out, threads[i], &found, &err), KILN_OK);
        assert_int_equal(found, ROWS);
        check_records(out, sums, 0, ROWS);
        (void)close(out);
        out = memfd_create("records", MFD_CLOEXEC);
        t.skip = 5001;
        t.n_rows = 70003;
        assert_int_equal(kiln_text_rows_spool(&t, out, threads[i], &found, &err), KILN_OK);
        assert_int_equal(found, 5001 + 70003 + 1);
        check_records(out, sums, 5001, 70003);
        (void)close(out);
    }
    const kiln_text_rows t = job_of(fd);
    assert_int_equal(kiln_text_rows_count(&t, &found, &err), KILN_OK);
    assert_int_equal(found, ROWS);
    (void)close(fd);
}

static void the_first_bad_row(void **state)
{
    static uint64_t sums[ROWS];
    const int fd = make_text(sums, 77777), out = memfd_create("records", MFD_CLOEXEC);
    (void)state;
    for (unsigned threads = 1; threads < 6; threads++) {
        const kiln_text_rows t = job_of(fd);
        uint64_t found;
        kiln_error err = {0};
        assert_int_equal(kiln_text_rows_spool(&t, out, threads, &found, &err), KILN_E_INPUT);
        assert_string_equal(err.msg, "row 77777");
    }
    (void)close(out);
    (void)close(fd);
}

static void a_line_has_a_bound(void **state)
{
    const int fd = memfd_create("text", MFD_CLOEXEC), out = memfd_create("records", MFD_CLOEXEC);
    char *ones = malloc(8 << 20);
    (void)state;
    assert_non_null(ones);
    memset(ones, '1', 8 << 20);
    for (size_t extra = 0; extra < 2; extra++) { /* of a MiB, and a byte more */
        const size_t n = (size_t)KILN_LINE_MAX + extra;
        uint64_t found;
        kiln_error err = {0};
        for (size_t i = 1; i < n; i += 2) ones[i] = ' ';
        assert_int_equal(pwrite(fd, "5\n", 2, 0), 2);
        assert_int_equal(pwrite(fd, ones, n, 2), (ssize_t)n);
        const kiln_text_rows t = job_of(fd);
        assert_int_equal(kiln_text_rows_spool(&t, out, 2, &found, &err),
                         extra ? KILN_E_INPUT : KILN_OK);
        if (extra) assert_non_null(strstr(err.msg, "offset 2: a line of more than"));
    }
    assert_int_equal(pwrite(fd, ones, 8 << 20, 2), 8 << 20); /* longer than a window */
    uint64_t found;
    kiln_error err = {0};
    const kiln_text_rows t = job_of(fd);
    assert_int_equal(kiln_text_rows_spool(&t, out, 2, &found, &err), KILN_E_INPUT);
    free(ones);
    (void)close(out);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_like_strtod), cmocka_unit_test(halfway_between_floats),
        cmocka_unit_test(no_numbers),          cmocka_unit_test(records_in_their_places),
        cmocka_unit_test(the_first_bad_row),   cmocka_unit_test(a_line_has_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
