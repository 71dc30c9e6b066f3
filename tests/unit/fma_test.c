/* fma_test -- the fused multiply-add in double arithmetic against libm's, bit for bit. SEED=n
 * changes the draws. */
#include "kernels/math/fma_math.h"

#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static uint64_t state;

static uint32_t next(void)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull; /* Knuth, MMIX */
    return (uint32_t)(state >> 32);
}

static float of_bits(uint32_t u)
{
    float v;
    memcpy(&v, &u, sizeof v);
    return v;
}

static uint32_t bits_of(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

static void assert_same(float a, float b, float c)
{
    volatile float x = a, y = b, z = c; /* libm at run time, not the compiler's constant */
    float want = fmaf(x, y, z), got = kiln_fma_by_double(a, b, c);
    if (isnan(want) ? isnan(got) : bits_of(want) == bits_of(got)) return;
    fail_msg("fma(%a, %a, %a) is %a, not %a", (double)a, (double)b, (double)c, (double)got,
             (double)want);
}

static float between_1_and_2(uint32_t u) { return of_bits((u & 0x807fffffu) | 0x3f800000u); }

static void fma_of_any_bits_is_libms(void **unused)
{
    (void)unused;
    for (int i = 0; i < 2000000; i++)
        assert_same(of_bits(next()), of_bits(next()), of_bits(next()));
}

/* The sum lies half way between two floats, or beside it by less than a double shows: a second
 * rounding would show. */
static void fma_rounds_once(void **unused)
{
    (void)unused;
    for (int i = 0; i < 2000000; i++) {
        float a = between_1_and_2(next() & 0xfffff000u), b = between_1_and_2(next() & 0xfffff800u);
        /* a b has 25 digits */
        assert_same(a, b, of_bits((next() & 0x80000001u) | ((next() % 80 + 30) << 23)));
        /* what the product lost */
        assert_same(a, b, -(a * b));
        assert_same(between_1_and_2(next()), between_1_and_2(next()),
                    of_bits((next() & 0x807fffffu) | ((next() % 60 + 100) << 23)));
        /* denormals */
        assert_same(of_bits(next() & 0x80ffffffu), between_1_and_2(next()) * 0.5f,
                    of_bits(next() & 0x80ffffffu));
    }
}

static void fma_of_special_values_is_libms(void **unused)
{
    (void)unused;
    static const float menu[] = {0.0f,     -0.0f,        1.0f,          -1.0f,
                                 FLT_MIN,  FLT_TRUE_MIN, -FLT_TRUE_MIN, FLT_MAX,
                                 -FLT_MAX, INFINITY,     -INFINITY,     NAN};
    const int n = sizeof menu / sizeof *menu;
    for (int i = 0; i < n * n * n; i++) assert_same(menu[i % n], menu[i / n % n], menu[i / n / n]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fma_of_any_bits_is_libms),
        cmocka_unit_test(fma_rounds_once),
        cmocka_unit_test(fma_of_special_values_is_libms),
    };
    const char *seed = getenv("SEED");
    state = seed ? strtoull(seed, NULL, 10) : 1;
    print_message("SEED=%llu\n", (unsigned long long)state);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
