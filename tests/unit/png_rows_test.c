/* png_rows_test -- the rows of a PNG, by the specification's own words and by every CPU sibling, on
 * any number of threads. */
#include "kernels/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

enum { WIDTH = 301, HEIGHT = 7, STEP = 4, MOST_ROW = 1 + 2 * STEP * WIDTH };

static float data[WIDTH * HEIGHT * STEP];
static const float over[3] = {0.25f, 1.f, 0.f};

/* Every kind of value. */
static int fill_data(void **state)
{
    static const float odd[] = {NAN, INFINITY,   -INFINITY,    -0.f,
                                1.f, 0.5f / 255, 254.5f / 255, 3e38f};
    (void)state;
    for (uint32_t i = 0; i < WIDTH * HEIGHT * STEP; i++)
        data[i] = (float)(i * 2654435761u % 1000003u) / 900000.0f - 0.05f;
    for (size_t i = 0; i < sizeof data / sizeof *data; i += 5)
        data[i] = odd[i / 5 % (sizeof odd / sizeof *odd)];
    return 0;
}

static kiln_png_rows_args args_of(unsigned kind)
{
    kiln_png_rows_args a = {.width = WIDTH,
                            .height = HEIGHT,
                            .step = STEP,
                            .channels = kind < 2   ? 1
                                        : kind < 4 ? 3
                                                   : 4,
                            .bits = kind % 2 ? 16 : 8,
                            .straight = kind >= 6,
                            .n = HEIGHT,
                            .pixels = data};
    memcpy(a.over, over, sizeof a.over);
    return a;
}

/* ---- by the specification -------------------------------------------------------------------- */
/* The byte at that place of a row before the filter; 0 outside of the picture. */
static int byte_at(const kiln_png_rows_args *a, int64_t row, int64_t at)
{
    const int64_t code_bytes = a->bits / 8, pixel = a->channels * code_bytes;
    if (row < 0 || at < 0) return 0;
    const float *p = a->pixels + (row * a->width + at / pixel) * a->step;
    const int64_t c = at % pixel / code_bytes;
    float v = p[c];
    if (a->straight && c < 3) v = p[3] > 0 ? (p[c] - (1.f - p[3]) * a->over[c]) / p[3] : 0.f;
    v = isnan(v) ? 0.f : fminf(fmaxf(v, 0.f), 1.f);
    const int code = (int)floorf(v * (a->bits == 16 ? 65535.f : 255.f) + 0.5f);
    return a->bits == 16 && at % 2 == 0 ? code >> 8 : code & 255;
}

/* 9.4, word for word. */
static int paeth_predictor(int a, int b, int c)
{
    const int p = a + b - c, pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);
    if (pa <= pb && pa <= pc) return a;
    return pb <= pc ? b : c;
}

static void must_be_rows(const kiln_png_rows_args *a)
{
    const int64_t pixel = a->channels * (a->bits / 8), bytes = a->width * pixel;
    const unsigned char *out = a->rows;
    for (int64_t y = a->first; y < a->first + a->n; y++) {
        assert_int_equal(*out++, 4);
        for (int64_t i = 0; i < bytes; i++) {
            const int guess = paeth_predictor(byte_at(a, y, i - pixel), byte_at(a, y - 1, i),
                                              i < pixel ? 0 : byte_at(a, y - 1, i - pixel));
            assert_int_equal(*out++, (byte_at(a, y, i) - guess) & 255);
        }
    }
}

/* ---- tests ----------------------------------------------------------------------------------- */
static void make_rows(const kiln_ops *ops, unsigned threads, kiln_png_rows_args *a,
                      unsigned char *rows)
{
    static unsigned char work[16 * MOST_ROW];
    const kiln_exec x = {.device = -1, .threads = threads};
    size_t bytes = 0;
    kiln_error err = {0};
    a->rows = rows;
    assert_int_equal(ops->png_rows(&x, a, NULL, &bytes, &err), KILN_OK);
    assert_true(bytes <= sizeof work);
    assert_int_equal(ops->png_rows(&x, a, work, &bytes, &err), KILN_OK);
}

static void rows_are_as_specified(void **state)
{
    static unsigned char rows[HEIGHT * MOST_ROW];
    (void)state;
    for (unsigned kind = 0; kind < 8; kind++)
        for (unsigned which = 0; which < 2; which++)
            for (unsigned threads = 1; threads <= 5; threads += 4) {
                kiln_png_rows_args a = args_of(kind);
                make_rows(which ? kiln_ops_cpu_baseline() : kiln_ops_cpu(), threads, &a, rows);
                must_be_rows(&a);
            }
}

/* Some rows are those of the whole picture, and nothing behind them is written. */
static void some_rows_are_those_of_all(void **state)
{
    static unsigned char rows[HEIGHT * MOST_ROW + 1];
    (void)state;
    for (uint32_t first = 0; first < HEIGHT; first += 3)
        for (uint32_t n = 0; n <= HEIGHT - first; n += 2) {
            kiln_png_rows_args a = args_of(2);
            a.first = first;
            a.n = n;
            rows[n * kiln_png_row_bytes(&a)] = 0xA5;
            make_rows(kiln_ops_cpu(), 2, &a, rows);
            must_be_rows(&a);
            assert_int_equal(rows[n * kiln_png_row_bytes(&a)], 0xA5);
        }
}

static void what_makes_no_png_is_refused(void **state)
{
    kiln_error err;
    (void)state;
    for (unsigned what = 0; what < 8; what++) {
        kiln_png_rows_args a = args_of(4);
        if (what == 1) a.width = 0;
        if (what == 2) a.height = (1 << 20) + 1;
        if (what == 3) a.first = 1;
        if (what == 4) a.channels = 2;
        if (what == 5) a.step = 3;
        if (what == 6) a.bits = 12;
        if (what == 7) {
            a.channels = 3;
            a.straight = true;
        }
        assert_int_equal(kiln_png_rows_check(&a, &err), what == 0 ? KILN_OK : KILN_E_INPUT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_as_specified),
        cmocka_unit_test(some_rows_are_those_of_all),
        cmocka_unit_test(what_makes_no_png_is_refused),
    };
    return cmocka_run_group_tests(tests, fill_data, NULL);
}
