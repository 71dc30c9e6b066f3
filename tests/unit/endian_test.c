/* endian: numbers go to bytes and come back, at odd addresses too, in the order that the name
 * says. */
#include "base/endian.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void little_endian_is_lowest_byte_first(void **state)
{
    static const unsigned char expected[] = {0x02, 0x01, 0x06, 0x05, 0x04, 0x03, 0x0e, 0x0d, 0x0c,
                                             0x0b, 0x0a, 0x09, 0x08, 0x07, 0,    0,    0x80, 0x3f,
                                             0,    0,    0,    0,    0,    0,    0,    0xc0};
    unsigned char bytes[1 + sizeof expected];
    unsigned char *at = kiln_put_u16(bytes + 1, 0xff0102);
    (void)state;
    at = kiln_put_u32(at, 0xff03040506);
    at = kiln_put_u64(at, 0x0708090a0b0c0d0e);
    at = kiln_put_f64(kiln_put_f32(at, 1), -2);
    assert_ptr_equal(at, bytes + sizeof bytes);
    assert_memory_equal(bytes + 1, expected, sizeof expected);
    assert_int_equal(kiln_get_u16(bytes + 1), 0x0102);
    assert_int_equal(kiln_get_u32(bytes + 3), 0x03040506);
    assert_true(kiln_get_u64(bytes + 7) == 0x0708090a0b0c0d0e);
    assert_true(kiln_get_f32(bytes + 15) == 1 && kiln_get_f64(bytes + 19) == -2);
}

static void big_endian_is_highest_byte_first(void **state)
{
    static const unsigned char expected[] = {1, 2, 3, 4};
    unsigned char bytes[5];
    (void)state;
    assert_ptr_equal(kiln_put_u32_be(bytes + 1, 0x01020304), bytes + 5);
    assert_memory_equal(bytes + 1, expected, sizeof expected);
    assert_int_equal(kiln_get_u32_be(bytes + 1), 0x01020304);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(little_endian_is_lowest_byte_first),
        cmocka_unit_test(big_endian_is_highest_byte_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
