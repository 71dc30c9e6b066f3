/* radix_test -- the radix sort of the CUDA siblings against a counting sort on the host: keys of
 * every size, widths of one to eight passes, all ways to cut a pass and what lies around their
 * borders, both ways to rank, few digits and many, fewer pairs than there is room for. */
#include "kernels/device.h"
#include "tests/gpu/radix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BYTE = 256 };

typedef enum { MIXED, EQUAL, FEW, ASCENDING, KINDS } key_kind;

static uint64_t mixed(uint64_t i)
{
    uint64_t z = (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    return z ^ (z >> 31);
}

static uint64_t key_of(key_kind kind, uint64_t i)
{
    switch (kind) {
    case EQUAL:
        return 0x1234567812345678u;
    case FEW:
        return mixed(mixed(i) % 3);
    case ASCENDING:
        return i * 0x100000001u;
    default:
        return mixed(i);
    }
}

/* By the lowest bits, stably; one byte at a time. */
static void sort_on_host(const radix_call *c)
{
    uint64_t *keys = malloc((c->n + 1) * sizeof *keys);
    uint32_t *values = malloc((c->n + 1) * sizeof *values);
    assert_true(keys && values);
    for (unsigned bit = 0; bit < c->bits; bit += 8) {
        const unsigned width = c->bits - bit < 8 ? c->bits - bit : 8;
        uint64_t places[BYTE + 1] = {0};
        for (uint64_t i = 0; i < c->n; i++) places[(c->keys[i] >> bit & ((1u << width) - 1)) + 1]++;
        for (unsigned d = 0; d < BYTE; d++) places[d + 1] += places[d];
        for (uint64_t i = 0; i < c->n; i++) {
            const uint64_t to = places[c->keys[i] >> bit & ((1u << width) - 1)]++;
            keys[to] = c->keys[i];
            values[to] = c->values[i];
        }
        memcpy(c->keys, keys, c->n * sizeof *keys);
        memcpy(c->values, values, c->n * sizeof *values);
    }
    free(keys);
    free(values);
}

static radix_call make(uint64_t n, uint64_t capacity, unsigned key_bytes, unsigned bits,
                       key_kind kind)
{
    radix_call c = {.n = n, .capacity = capacity, .key_bytes = key_bytes, .bits = bits};
    c.keys = malloc(capacity * sizeof *c.keys + 1);
    c.values = malloc(capacity * sizeof *c.values + 1);
    assert_true(c.keys && c.values);
    for (uint64_t i = 0; i < capacity; i++) {
        c.keys[i] = key_of(kind, i) & (key_bytes == 8 ? UINT64_MAX : (1ull << (8 * key_bytes)) - 1);
        c.values[i] = (uint32_t)mixed(i + capacity);
    }
    return c;
}

static void check_ranks(uint64_t n, uint64_t capacity, unsigned key_bytes, unsigned bits,
                        key_kind kind, bool wide, bool masks)
{
    radix_call got = make(n, capacity, key_bytes, bits, kind),
               want = make(n, capacity, key_bytes, bits, kind);
    kiln_error err = {0};
    got.wide = wide;
    got.masks = masks;
    if (radix_on_device(0, &got, &err) != KILN_OK) fail_msg("%s", err.msg);
    sort_on_host(&want);
    for (uint64_t i = 0; i < capacity; i++)
        if (got.keys[i] != want.keys[i] || got.values[i] != want.values[i])
            fail_msg(
                "%llu of %llu pairs, keys of %u bytes, %u bits, kind %d%s%s: pair %llu differs",
                (unsigned long long)n, (unsigned long long)capacity, key_bytes, bits, (int)kind,
                wide ? ", wide" : "", masks ? ", by masks" : "", (unsigned long long)i);
    free(got.keys);
    free(got.values);
    free(want.keys);
    free(want.values);
}

static void check(uint64_t n, uint64_t capacity, unsigned key_bytes, unsigned bits, key_kind kind,
                  bool wide)
{
    check_ranks(n, capacity, key_bytes, bits, kind, wide, false);
    check_ranks(n, capacity, key_bytes, bits, kind, wide, true);
}

static bool is_small(void) { return getenv("KILN_GPU_SMALL") != NULL; }

/* Around the tiles of each cut (radix_cuda.cuh). */
static void every_size_is_sorted(void **state)
{
    static const uint64_t sizes[] = {0,    1,      2,      31,     33,      1023,    1024,   1025,
                                     5000, 199999, 200000, 204801, 1999999, 2000000, 2007041};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && (!is_small() || sizes[i] <= 5000); i++)
        check(sizes[i], sizes[i], 4, 32, MIXED, false);
}

static void every_key_is_sorted(void **state)
{
    const uint64_t n = is_small() ? 3000 : 30000;
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        for (unsigned bits = 1; bits <= 16; bits += 3) check(n, n, 2, bits, (key_kind)kind, false);
        for (unsigned bits = 17; bits <= 32; bits += 5) check(n, n, 4, bits, (key_kind)kind, false);
        for (unsigned bits = 40; bits <= 64; bits += 8) check(n, n, 8, bits, (key_kind)kind, false);
    }
    if (!is_small()) check(300000, 300000, 8, 63, FEW, false);
}

static void what_is_behind_the_pairs_is_left_out(void **state)
{
    static const uint64_t counts[] = {0, 1, 1024, 2999};
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        check(counts[i], 3000, 4, 32, MIXED, false);
    if (!is_small()) check(900000, 2100000, 2, 13, MIXED, false);
}

static void counts_of_64_bits_give_the_same(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        check(20000, 20000, 2, 13, (key_kind)kind, true);
        check(20000, 30000, 4, 32, (key_kind)kind, true);
        check(9000, 9000, 8, 64, (key_kind)kind, true);
    }
    if (!is_small()) check(2500000, 2500000, 4, 32, MIXED, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_is_sorted),
        cmocka_unit_test(every_key_is_sorted),
        cmocka_unit_test(what_is_behind_the_pairs_is_left_out),
        cmocka_unit_test(counts_of_64_bits_give_the_same),
    };
    return cmocka_run_group_tests_name("radix", tests, NULL, NULL);
}
