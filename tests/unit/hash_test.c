/* hash: the text form, streaming, and keys whose items cannot be confused. */
#include "schema/hash.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void hash_is_xxh3_128_in_canonical_order(void **state)
{
    (void)state;
    char hex[33];
    /* xxHash 0.8: `printf abc | xxhsum -H2`, and the empty input */
    assert_string_equal(kiln_hash_hex(kiln_hash_of("abc", 3), hex),
                        "06b05ab6733a618578af5f94892f3950");
    assert_string_equal(kiln_hash_hex(kiln_hash_of("", 0), hex),
                        "99aa06d3014798d86001c324468d497f");
}

/* Long inputs are where vector instructions are used; xxHash 0.8 without any of the processor's
 * choice gives these. */
static void hash_of_much_is_the_same_on_every_processor(void **state)
{
    (void)state;
    static const struct {
        size_t bytes;
        const char *hex;
    } known[] = {{1000, "bae798f9321bda6cd1db6a0afea2cc82"},
                 {1048576, "8791ce561b8e4239a7f4639f0ccbfda9"},
                 {1048577, "011d7d37cfffdfc935dbdc3b0c74ec0c"}};
    static unsigned char data[1048577];
    char hex[33];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * 7 + (i >> 8));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_string_equal(kiln_hash_hex(kiln_hash_of(data, known[i].bytes), hex), known[i].hex);
        kiln_hasher *h = kiln_hasher_new();
        kiln_hasher_update(h, data, 777);
        kiln_hasher_update(h, data + 777, known[i].bytes - 777);
        assert_string_equal(kiln_hash_hex(kiln_hasher_end(h), hex), known[i].hex);
    }
}

/* What is short is put together before it is hashed: pieces of all sizes about the room for that
 * give the hash of the whole. */
static void hash_is_of_the_bytes_however_they_come(void **state)
{
    (void)state;
    static unsigned char data[5000];
    static const size_t pieces[] = {1, 7, 333, 999, 1000, 1001, 1999},
                        sizes[] = {0, 1, 999, 1000, 1001, 1007, 2000, 2001, 5000};
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * 13 + (i >> 7));
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
            kiln_hasher *h = kiln_hasher_new();
            for (size_t at = 0, n; at < sizes[k]; at += n) {
                n = sizes[k] - at < pieces[p] ? sizes[k] - at : pieces[p];
                kiln_hasher_update(h, data + at, n);
            }
            assert_true(kiln_hash_equal(kiln_hasher_end(h), kiln_hash_of(data, sizes[k])));
        }
}

static void hash_text_round_trips_and_refuses_the_rest(void **state)
{
    (void)state;
    kiln_hash h = kiln_hash_of("x", 1), back;
    char hex[33], bad[40];
    assert_true(kiln_hash_parse(kiln_hash_hex(h, hex), &back));
    assert_true(kiln_hash_equal(h, back));
    assert_false(kiln_hash_parse("", &back));
    strcpy(bad, hex);
    bad[31] = '\0';
    assert_false(kiln_hash_parse(bad, &back)); /* one digit short */
    strcpy(bad, hex);
    strcat(bad, "0");
    assert_false(kiln_hash_parse(bad, &back)); /* one too many */
    strcpy(bad, hex);
    bad[5] = 'G';
    assert_false(kiln_hash_parse(bad, &back));
    bad[5] = 'A';
    assert_false(kiln_hash_parse(bad, &back)); /* upper case: one text for one hash */
}

static void hash_in_pieces_equals_hash_at_once(void **state)
{
    (void)state;
    unsigned char data[1000];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * 7);
    /* 0, 1; around 16 and 240, where XXH3 changes its method; a prime */
    static const size_t cuts[] = {0, 1, 15, 16, 17, 239, 240, 241, 997, 1000};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        kiln_hasher *h = kiln_hasher_new();
        kiln_hasher_update(h, data, cuts[i]);
        kiln_hasher_update(h, data + cuts[i], sizeof data - cuts[i]);
        assert_true(kiln_hash_equal(kiln_hasher_end(h), kiln_hash_of(data, sizeof data)));
    }
}

static void hasher_that_is_null_gives_zero(void **state)
{
    (void)state;
    kiln_hasher_update(NULL, "x", 1);
    kiln_key_text(NULL, "name", "value");
    kiln_key_u64(NULL, "name", 1);
    assert_true(kiln_hash_is_zero(kiln_hasher_end(NULL)));
}

static kiln_hash key_of_texts(const char *const texts[4])
{
    kiln_hasher *h = kiln_key_begin("stage", 1);
    for (int i = 0; i < 4; i += 2) kiln_key_text(h, texts[i], texts[i + 1]);
    return kiln_key_end(h);
}

static void key_keeps_the_borders_of_its_items(void **state)
{
    (void)state;
    static const char *const variants[][4] = {
        {"a", "bc", "d", "e"}, {"ab", "c", "d", "e"}, {"a", "b", "cd", "e"},
        {"a", "bc", "de", ""}, {"d", "e", "a", "bc"},
    };
    enum { N = sizeof variants / sizeof *variants };
    for (int i = 0; i < N; i++)
        for (int k = 0; k < i; k++)
            assert_false(kiln_hash_equal(key_of_texts(variants[i]), key_of_texts(variants[k])));
    assert_true(kiln_hash_equal(key_of_texts(variants[0]), key_of_texts(variants[0])));
}

static void key_keeps_the_kinds_of_its_items(void **state)
{
    (void)state;
    kiln_hash keys[6], zero = {{0}};
    for (int i = 0; i < 6; i++) {
        kiln_hasher *h = kiln_key_begin("stage", 1);
        if (i == 0) kiln_key_u64(h, "v", 0);
        if (i == 1) kiln_key_f64(h, "v", 0.0);
        if (i == 2) kiln_key_text(h, "v", "");
        if (i == 3) kiln_key_bytes(h, "v", "", 0);
        if (i == 4) kiln_key_hash(h, "v", zero);
        if (i == 5) kiln_key_bytes(h, "v", zero.bytes, 16);
        keys[i] = kiln_key_end(h);
        for (int k = 0; k < i; k++) assert_false(kiln_hash_equal(keys[i], keys[k]));
    }
}

static void key_depends_on_stage_and_version(void **state)
{
    (void)state;
    kiln_hash a = kiln_key_end(kiln_key_begin("knn", 1)),
              b = kiln_key_end(kiln_key_begin("knn", 2)), c = kiln_key_end(kiln_key_begin("kn", 1));
    assert_false(kiln_hash_equal(a, b));
    assert_false(kiln_hash_equal(a, c));
}

static kiln_hash key_of_f64(double v)
{
    kiln_hasher *h = kiln_key_begin("stage", 1);
    kiln_key_f64(h, "v", v);
    return kiln_key_end(h);
}

static void key_of_a_double_goes_by_bits_but_nans_are_alike(void **state)
{
    (void)state;
    uint64_t bits = UINT64_C(0xfff8000000001234);
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    assert_true(kiln_hash_equal(key_of_f64((double)NAN), key_of_f64(odd)));
    assert_false(kiln_hash_equal(key_of_f64(0.0), key_of_f64(-0.0)));
    assert_false(kiln_hash_equal(key_of_f64(0.1), key_of_f64(nextafter(0.1, 1))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_is_xxh3_128_in_canonical_order),
        cmocka_unit_test(hash_of_much_is_the_same_on_every_processor),
        cmocka_unit_test(hash_is_of_the_bytes_however_they_come),
        cmocka_unit_test(hash_text_round_trips_and_refuses_the_rest),
        cmocka_unit_test(hash_in_pieces_equals_hash_at_once),
        cmocka_unit_test(hasher_that_is_null_gives_zero),
        cmocka_unit_test(key_keeps_the_borders_of_its_items),
        cmocka_unit_test(key_keeps_the_kinds_of_its_items),
        cmocka_unit_test(key_depends_on_stage_and_version),
        cmocka_unit_test(key_of_a_double_goes_by_bits_but_nans_are_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
