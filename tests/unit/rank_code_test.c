/* rank_code_test -- what is encoded is decoded; what is damaged is refused with a sentence. */
#include "stages/tiles/rank_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TILES = 5, PAIRS = 12 };
static const uint32_t counts[TILES] = {3, 0, 1, 6, 2};
static const uint32_t ranks[PAIRS] = {0,     1,     127,     4294967293u, 5, 133,
                                      16517, 16518, 2113670, 270549126,   0, 4294967293u};
static const uint64_t n_visible = 4294967294u;

static size_t encode(unsigned char *code, uint32_t *bytes)
{
    return kiln_ranks_encode(TILES, counts, ranks, code, bytes);
}

static kiln_status decode(const uint32_t *bytes, const unsigned char *code, size_t code_bytes,
                          uint64_t visible, uint32_t *back)
{
    kiln_error err;
    const kiln_ranks_code c = {TILES, counts, bytes, code, code_bytes};
    return kiln_ranks_decode(&c, visible, back, &err);
}

static void every_length_of_difference_comes_back(void **state)
{
    (void)state;
    unsigned char code[5 * PAIRS];
    uint32_t bytes[TILES], back[PAIRS];
    size_t n = encode(code, bytes);
    assert_int_equal(decode(bytes, code, n, n_visible, back), KILN_OK);
    assert_memory_equal(back, ranks, sizeof ranks);
    assert_int_equal(bytes[0], 3);
    assert_int_equal(bytes[1], 0);
    assert_int_equal(bytes[2], 5);
}

static void damage_is_refused(void **state)
{
    (void)state;
    unsigned char code[5 * PAIRS + 1] = {0}, bad[5 * PAIRS + 1];
    uint32_t bytes[TILES], back[PAIRS], wrong[TILES];
    size_t n = encode(code, bytes);
    for (size_t cut = 0; cut < n; cut++)
        assert_int_equal(decode(bytes, code, cut, n_visible, back), KILN_E_IO);
    assert_int_equal(decode(bytes, code, n + 1, n_visible, back), KILN_E_IO);
    assert_int_equal(decode(bytes, code, n, n_visible - 1, back), KILN_E_IO); /* a rank too large */
    memcpy(bad, code, sizeof code);
    bad[1] = 0; /* 1 - 0 becomes 0: not increasing */
    assert_int_equal(decode(bytes, bad, n, n_visible, back), KILN_E_IO);
    memcpy(wrong, bytes, sizeof bytes);
    wrong[0]++;
    assert_int_equal(decode(wrong, code, n, n_visible, back), KILN_E_IO);
    memset(bad, 255, sizeof bad); /* a number without an end */
    assert_int_equal(decode(bytes, bad, n, n_visible, back), KILN_E_IO);
}

/* Ranks as far apart as a stride allows take as many bytes as any can: the bound is met, and no
 * random list exceeds it. */
static void no_list_takes_more_than_is_foretold(void **state)
{
    enum { N = 100, LISTS = 3 };
    static const uint32_t strides[] = {1, 127, 128, 16383, 16384, 2097152, 40000000};
    uint32_t tile_counts[LISTS] = {N, N, N}, lengths[LISTS], list[LISTS * N];
    unsigned char code[5 * LISTS * N];
    uint64_t seed = 7;
    (void)state;
    for (size_t k = 0; k < sizeof strides / sizeof *strides; k++) {
        for (uint32_t i = 0; i < LISTS * N; i++) list[i] = (i % N + 1) * strides[k];
        const uint64_t most = kiln_ranks_code_most(LISTS * N, LISTS, (uint64_t)N * strides[k] + 1);
        const size_t bytes = kiln_ranks_encode(LISTS, tile_counts, list, code, lengths);
        /* powers of two: nothing is wasted */
        if ((strides[k] & (strides[k] - 1)) == 0) assert_int_equal(bytes, most);
        assert_true(bytes <= most && most <= sizeof code);
        for (uint32_t i = 0; i < LISTS * N; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u; /* Knuth, MMIX */
            list[i] = (i % N ? list[i - 1] + 1 : 0) + (uint32_t)((seed >> 33) % strides[k]);
        }
        assert_true(kiln_ranks_encode(LISTS, tile_counts, list, code, lengths) <= most);
    }
    /* every other is long */
    for (uint32_t i = 0; i < LISTS * N; i++)
        list[i] = (i % N ? list[i - 1] : 0) + (i % 2 ? 128 : 1);
    assert_int_equal(kiln_ranks_encode(LISTS, tile_counts, list, code, lengths),
                     kiln_ranks_code_most(LISTS * N, LISTS, (uint64_t)list[N - 1] + 1));
    assert_int_equal(kiln_ranks_code_most(0, 5, 0), 0);
    assert_int_equal(kiln_ranks_code_most((uint64_t)1 << 40, (uint64_t)1 << 20, 1),
                     (uint64_t)1 << 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_of_difference_comes_back),
        cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(no_list_takes_more_than_is_foretold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
