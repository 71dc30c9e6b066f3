/* The digest of a picture, as SCHEMA.md defines it, whoever makes it. */
#include "stages/render/pixels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { PIECE = 65536 }; /* SCHEMA.md's own number, not the header's */

static float *make_picture(uint64_t pixels)
{
    float *rgba = malloc((size_t)pixels * 4 * sizeof *rgba + 1); /* 1: for no pixels */
    assert_non_null(rgba);
    for (uint64_t i = 0; i < 4 * pixels; i++)
        rgba[i] = (float)(i * 2654435761u % 1000003u) / 1000003.0f;
    return rgba;
}

static kiln_hash by_hand(const float *rgba, uint64_t pixels)
{
    unsigned char pieces[16 * 4];
    size_t n = 0;
    for (uint64_t at = 0; at < pixels; at += PIECE, n++) {
        const uint64_t count = pixels - at < PIECE ? pixels - at : PIECE;
        const kiln_hash h = kiln_hash_of(rgba + 4 * at, (size_t)count * 16);
        assert_true(n < 4);
        memcpy(pieces + 16 * n, h.bytes, 16);
    }
    return kiln_hash_of(pieces, 16 * n);
}

static void is_as_defined_for_any_threads(void **state)
{
    static const uint64_t sizes[] = {0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 17};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        float *rgba = make_picture(sizes[i]);
        const kiln_hash want = by_hand(rgba, sizes[i]);
        for (unsigned threads = 1; threads <= 5; threads += 2) {
            kiln_error err = {0};
            kiln_hash got;
            assert_int_equal(kiln_pixels_hash(rgba, sizes[i], threads, &got, &err), KILN_OK);
            assert_true(kiln_hash_equal(got, want));
        }
        free(rgba);
    }
}

static void one_bit_shows_in_every_piece(void **state)
{
    const uint64_t pixels = 2 * PIECE + 5;
    float *rgba = make_picture(pixels);
    kiln_error err = {0};
    kiln_hash whole, other;
    (void)state;
    assert_int_equal(kiln_pixels_hash(rgba, pixels, 2, &whole, &err), KILN_OK);
    for (uint64_t at = 3; at < 4 * pixels; at += 4 * PIECE) {
        rgba[at] = -rgba[at];
        assert_int_equal(kiln_pixels_hash(rgba, pixels, 2, &other, &err), KILN_OK);
        assert_false(kiln_hash_equal(whole, other));
        rgba[at] = -rgba[at];
    }
    free(rgba);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_as_defined_for_any_threads),
        cmocka_unit_test(one_bit_shows_in_every_piece),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
