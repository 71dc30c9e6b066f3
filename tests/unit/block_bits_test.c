/* The bits of the blocks that chunks read: their bytes, pieces and names, and what a stranger's manifest may say. */
#include "stages/chunk/block_bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void a_bit_is_where_the_manifest_has_it(void **state)
{
    (void)state;
    unsigned char bits[3] = {0};
    kiln_bits_set(bits, 0);
    kiln_bits_set(bits, 9);
    kiln_bits_set(bits, 16);
    assert_int_equal(bits[0], 1);
    assert_int_equal(bits[1], 2);
    assert_int_equal(bits[2], 1);
    for (uint32_t b = 0; b < 24; b++) assert_int_equal(kiln_bits_has(bits, b), b == 0 || b == 9 || b == 16);
}

static void a_piece_is_bounded_whatever_the_scene(void **state)
{
    static const uint32_t blocks[] = {1, 8, 9, 763, 45777, 65536};
    (void)state;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        const uint64_t bytes = kiln_bits_bytes(blocks[i]), chunks = kiln_bits_chunks(blocks[i]);
        assert_true(8 * bytes >= blocks[i] && 8 * (bytes - 1) < blocks[i]);
        assert_true(chunks >= 64 && chunks * bytes <= KILN_BITS_PIECE);
        assert_true((chunks + 1) * bytes > KILN_BITS_PIECE);
    }
    assert_true(kiln_bits_chunks(0) > 0);
    assert_int_equal(kiln_bits_chunks(UINT32_MAX), 64);
}

static void pieces_have_names_of_their_own(void **state)
{
    char name[KILN_BITS_NAME];
    (void)state;
    kiln_bits_name(0, name);
    assert_string_equal(name, "blocks 0");
    kiln_bits_name(UINT64_MAX, name);
    assert_string_equal(name, "blocks 18446744073709551615");
}

static void bits_behind_the_last_block_are_not_sound(void **state)
{
    (void)state;
    const unsigned char bits[4] = {0xff, 0x07, 0xff, 0x08};
    assert_true(kiln_bits_are_sound(bits, 1, 11));
    assert_false(kiln_bits_are_sound(bits, 2, 11));
    assert_true(kiln_bits_are_sound(bits, 2, 12));
    assert_true(kiln_bits_are_sound(bits, 2, 16));
    assert_true(kiln_bits_are_sound(bits, 0, 3));
    assert_false(kiln_bits_are_sound(bits, 1, 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bit_is_where_the_manifest_has_it),
        cmocka_unit_test(a_piece_is_bounded_whatever_the_scene),
        cmocka_unit_test(pieces_have_names_of_their_own),
        cmocka_unit_test(bits_behind_the_last_block_are_not_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
