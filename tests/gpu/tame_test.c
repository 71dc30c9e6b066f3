/* tame_test -- divisions, roots and exponentials without special cases (kernels/math/tame_math.h)
 * have the bits of the ordinary ones, on a GPU: all that have one operand for every float of their
 * range, quotients for billions of pairs. */
#include "tests/gpu/tame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void tame_arithmetic_has_the_bits_of_the_ordinary(void **state)
{
    tame_misses m;
    kiln_error err = {0};
    (void)state;
    if (tame_on_device(0, (uint64_t)1 << 32, &m, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_int_equal(m.inverse, 0);
    assert_int_equal(m.root, 0);
    assert_int_equal(m.exp, 0);
    assert_int_equal(m.sigmoid, 0);
    assert_int_equal(m.quotient, 0);
    assert_int_equal(m.product, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tame_arithmetic_has_the_bits_of_the_ordinary)};
    return cmocka_run_group_tests_name("tame", tests, NULL, NULL);
}
