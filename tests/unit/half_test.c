/* half_test -- half precision (kernels/math/half_math.h): every half is its own nearest, and what
 * lies between two goes to the nearer. */
#include "kernels/math/half_math.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { LARGEST = 0x7bff, SIGN = 0x8000 };

/* By the definition: sign, 5 bits of exponent, 10 of fraction. */
static double value_of(uint32_t half)
{
    const int exponent = (int)(half >> 10 & 31);
    const double size = exponent ? ldexp(1024.0 + (double)(half & 1023), exponent - 25)
                                 : ldexp((double)(half & 1023), -24);
    return half & SIGN ? -size : size;
}

static void values_are_those_of_the_definition(void **state)
{
    (void)state;
    for (uint32_t sign = 0; sign <= SIGN; sign += SIGN)
        for (uint32_t size = 0; size <= LARGEST; size++) {
            const float v = kiln_half_value((uint16_t)(sign | size));
            assert_true((double)v == value_of(sign | size));
            assert_int_equal(signbit(v) != 0, sign != 0);
            assert_int_equal(kiln_half_of(v), sign | size);
        }
}

/* Between each two neighbours: just below the middle, the middle, which goes to the even one, and
 * just above it. */
static void floats_go_to_the_nearest_half(void **state)
{
    (void)state;
    for (uint32_t size = 0; size < LARGEST; size++) {
        const float middle = (float)((value_of(size) + value_of(size + 1)) / 2);
        assert_int_equal(kiln_half_of(nextafterf(middle, 0.0f)), size);
        assert_int_equal(kiln_half_of(middle), size + size % 2);
        assert_int_equal(kiln_half_of(nextafterf(middle, 1e9f)), size + 1);
        assert_int_equal(kiln_half_of(-nextafterf(middle, 1e9f)), SIGN | (size + 1));
    }
}

static void there_is_no_infinity_and_nothing_else_than_numbers(void **state)
{
    (void)state;
    assert_int_equal(kiln_half_of(65504.0f), LARGEST);
    assert_int_equal(kiln_half_of(65505.0f), LARGEST);
    assert_int_equal(kiln_half_of(1e30f), LARGEST);
    assert_int_equal(kiln_half_of(INFINITY), LARGEST);
    assert_int_equal(kiln_half_of(-INFINITY), SIGN | LARGEST);
    assert_int_equal(kiln_half_of(NAN), 0);
    assert_int_equal(kiln_half_of(-NAN), 0);
    assert_int_equal(kiln_half_of(1e-30f), 0);
    assert_int_equal(kiln_half_of(-1e-40f), SIGN);
}

static void a_word_holds_two(void **state)
{
    const uint32_t word = kiln_halves_of(1.5f, -0.1f);
    (void)state;
    assert_true(kiln_halves_value(word, 0) == 1.5f);
    assert_true(kiln_halves_value(word, 1) == kiln_half_round(-0.1f));
    assert_true(fabsf(kiln_half_round(-0.1f) + 0.1f) < 0.1f * 0x1p-11f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_the_definition),
        cmocka_unit_test(floats_go_to_the_nearest_half),
        cmocka_unit_test(there_is_no_infinity_and_nothing_else_than_numbers),
        cmocka_unit_test(a_word_holds_two),
    };
    return cmocka_run_group_tests_name("half", tests, NULL, NULL);
}
