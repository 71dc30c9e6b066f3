/* pixel_hashes_test -- the arithmetic by which a GPU hashes pictures gives the hashes of
 * libxxhash. */
#include "kernels/ops.h"
#include "schema/hash.h"
#include "stages/render/pixels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PIECE = 65536, MOST_PIECES = 4 }; /* SCHEMA.md's own number, not the header's */

static kiln_status hash_by(const kiln_ops *ops, unsigned threads, const float *rgba,
                           uint64_t pixels, unsigned char *out, kiln_error *err)
{
    const kiln_exec x = {.device = -1, .threads = threads};
    const kiln_pixel_hashes_args a = {.pixels = pixels, .rgba = rgba, .hashes = out};
    size_t bytes = 0;
    char none;
    assert_int_equal(ops->pixel_hashes(&x, &a, NULL, &bytes, err), KILN_OK);
    assert_int_equal(bytes, 0);
    return ops->pixel_hashes(&x, &a, &none, &bytes, err);
}

/* Whole blocks and stripes, a word more or less, pieces that end in a block's first stripe and in
 * its last. */
static void hashes_are_those_of_libxxhash(void **state)
{
    static const uint64_t sizes[] = {
        16,         17,        19,    20,         63,         64,        65,
        67,         68,        127,   128,        129,        1000,      PIECE - 64,
        PIECE - 63, PIECE - 1, PIECE, PIECE + 16, PIECE + 64, 2 * PIECE, 3 * PIECE + 4099};
    float *rgba = malloc((size_t)(3 * PIECE + 4099) * 16);
    (void)state;
    assert_non_null(rgba);
    for (uint32_t i = 0; i < 4 * (3 * PIECE + 4099); i++) {
        const uint32_t bits = i * 2654435761u ^ i >> 3; /* of any kind, NaN too */
        memcpy(rgba + i, &bits, sizeof bits);
    }
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        unsigned char out[2][KILN_PIXEL_HASH_BYTES * MOST_PIECES + 1];
        const uint64_t pieces = kiln_pixel_pieces(sizes[k]);
        kiln_error err = {0};
        kiln_hash whole, of_pieces;
        assert_int_equal(pieces, (sizes[k] + PIECE - 1) / PIECE);
        assert_true(kiln_pixel_hashes_can(sizes[k]));
        out[0][KILN_PIXEL_HASH_BYTES * pieces] = 0xA5;
        assert_int_equal(hash_by(kiln_ops_cpu(), 3, rgba, sizes[k], out[0], &err), KILN_OK);
        assert_int_equal(hash_by(kiln_ops_cpu_baseline(), 1, rgba, sizes[k], out[1], &err),
                         KILN_OK);
        assert_int_equal(out[0][KILN_PIXEL_HASH_BYTES * pieces], 0xA5);
        for (uint64_t i = 0; i < pieces; i++) {
            const uint64_t count = sizes[k] - i * PIECE < PIECE ? sizes[k] - i * PIECE : PIECE;
            const kiln_hash want = kiln_hash_of(rgba + 4 * i * PIECE, (size_t)count * 16);
            assert_memory_equal(out[0] + KILN_PIXEL_HASH_BYTES * i, want.bytes, sizeof want.bytes);
            assert_memory_equal(out[1] + KILN_PIXEL_HASH_BYTES * i, want.bytes, sizeof want.bytes);
        }
        assert_int_equal(kiln_pixels_hash(rgba, sizes[k], 2, &whole, &err), KILN_OK);
        of_pieces = kiln_pixels_hash_of_pieces(out[0], pieces);
        assert_true(kiln_hash_equal(whole, of_pieces));
    }
    free(rgba);
}

static void a_last_piece_that_is_too_short_is_refused(void **state)
{
    static const uint64_t sizes[] = {1, 15, PIECE + 1, PIECE + 15};
    static float rgba[4];
    unsigned char out[1];
    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        kiln_error err = {0};
        assert_false(kiln_pixel_hashes_can(sizes[k]));
        assert_int_equal(hash_by(kiln_ops_cpu(), 1, rgba, sizes[k], out, &err), KILN_E_INPUT);
        assert_non_null(strstr(err.msg, "the last of"));
    }
    assert_true(kiln_pixel_hashes_can(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_are_those_of_libxxhash),
        cmocka_unit_test(a_last_piece_that_is_too_short_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
