/* codec: what goes in comes out, and no damaged byte goes unseen. */
#include "schema/codec.h"
#include "schema/shuffle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Half regular, half noise: what float planes look like. */
static unsigned char *sample(size_t bytes)
{
    unsigned char *p = malloc(bytes + 1);
    assert_non_null(p);
    uint32_t x = 12345;
    for (size_t i = 0; i < bytes; i++) {
        x = x * 1664525u + 1013904223u; /* Numerical Recipes */
        p[i] = i % 4 < 2 ? (unsigned char)(x >> 24) : (unsigned char)(i >> 8);
    }
    return p;
}

static void assert_round_trip(size_t bytes, uint32_t elem)
{
    kiln_error err = {0};
    kiln_blob b;
    unsigned char *raw = sample(bytes), *back = malloc(bytes + 1);
    assert_non_null(back);
    assert_int_equal(kiln_blob_pack(raw, bytes, elem, &b, &err), KILN_OK);
    assert_int_equal(b.raw_bytes, bytes);
    assert_int_equal(b.elem, elem);
    assert_true(kiln_hash_equal(b.hash, kiln_hash_of(raw, bytes)));
    back[bytes] = 0x5a;
    assert_int_equal(kiln_blob_unpack(&b, back, &err), KILN_OK);
    assert_memory_equal(raw, back, bytes);
    assert_int_equal(back[bytes], 0x5a); /* nothing behind the end is written */
    free(b.packed);
    free(raw);
    free(back);
}

static void blob_round_trips_at_every_size(void **state)
{
    (void)state;
    /* empty, one, around the shuffle's group of 4096 elements, a prime, a few blocks of zstd's 128
     * KiB */
    static const size_t counts[] = {0, 1, 2, 3, 31, 4095, 4096, 4097, 8192, 10007, 300000};
    static const uint32_t elems[] = {1, 2, 4, 8};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (size_t e = 0; e < 4; e++) assert_round_trip(counts[i] * elems[e], elems[e]);
}

/* Both sets of the shuffle against the page's own words, around the widths of vectors and away from
 * their alignment. */
static void shuffle_is_as_the_page_says_in_both_sets(void **state)
{
    (void)state;
    static const size_t counts[] = {0,  1,  2,  15, 16,  17,  31,  32,
                                    33, 63, 64, 65, 127, 128, 129, 1009};
    static const size_t elems[] = {2, 4, 8};
    enum { MOST = 1009 * 8 };
    const kiln_shuffle *const sets[] = {kiln_shuffle_baseline(), kiln_shuffle_best()};
    unsigned char *raw = sample(MOST + 1) + 1, planes[MOST + 1], back[MOST + 1];
    for (size_t s = 0; s < 2; s++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (size_t e = 0; e < 3; e++) {
                const size_t n = counts[c], elem = elems[e];
                planes[n * elem] = back[n * elem] = 0x5a;
                for (size_t b = 0; b < elem; b++) sets[s]->gather(raw, n, elem, b, planes + b * n);
                for (size_t i = 0; i < n * elem; i++)
                    assert_int_equal(planes[i % elem * n + i / elem], raw[i]);
                sets[s]->join(planes, n, elem, back);
                assert_memory_equal(back, raw, n * elem);
                assert_int_equal(planes[n * elem], 0x5a); /* nothing behind the end is written */
                assert_int_equal(back[n * elem], 0x5a);
            }
    free(raw - 1);
}

static void blob_of_the_largest_size_round_trips_and_one_more_is_refused(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_blob b;
    assert_round_trip(KILN_BLOB_MAX, 4);
    unsigned char *raw = calloc(1, KILN_BLOB_MAX + 4);
    assert_non_null(raw);
    assert_int_equal(kiln_blob_pack(raw, KILN_BLOB_MAX + 4, 4, &b, &err), KILN_E_BUG);
    assert_null(b.packed);
    free(raw);
}

static void blob_with_a_wrong_element_size_is_refused(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_blob b;
    unsigned char raw[24] = {0};
    assert_int_equal(kiln_blob_pack(raw, 24, 3, &b, &err), KILN_E_BUG);
    assert_int_equal(kiln_blob_pack(raw, 24, 0, &b, &err), KILN_E_BUG);
    assert_int_equal(kiln_blob_pack(raw, 22, 4, &b, &err), KILN_E_BUG);
}

/* The bytes that schema/SCHEMA.md ("Blobs") walks through. */
static void worked_example_of_the_page_unpacks(void **state)
{
    (void)state;
    kiln_error err = {0};
    unsigned char page[] = {0x28, 0xb5, 0x2f, 0xfd, 0x24, 0x10, 0x81, 0x00, 0x00, 0x00,
                            0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x00, 0x40,
                            0x80, 0x3f, 0x40, 0x40, 0x40, 0xb4, 0x93, 0x6d, 0xf8};
    kiln_blob b = {.raw_bytes = 16, .elem = 4, .packed_bytes = sizeof page, .packed = page};
    float v[4];
    assert_true(kiln_hash_parse("2babafcad3709c7ce3b3073547aa9dc3", &b.hash));
    assert_int_equal(kiln_blob_unpack(&b, v, &err), KILN_OK);
    for (int i = 0; i < 4; i++) assert_true(v[i] == (float)(i + 1));
}

/* RFC 8878 3.1.1.1.1: bit 2 of the byte behind the magic. Other programs check it where they do not
 * check our hash. */
static void frame_carries_a_checksum(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_blob b;
    assert_int_equal(kiln_blob_pack("content", 7, 1, &b, &err), KILN_OK);
    assert_true(b.packed[4] & 4);
    free(b.packed);
}

static void shuffle_pays_for_smooth_floats(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_blob as_floats, as_bytes;
    float v[4096];
    for (int i = 0; i < 4096; i++) v[i] = 1.0f + (float)i / 4096.0f;
    assert_int_equal(kiln_blob_pack(v, sizeof v, 4, &as_floats, &err), KILN_OK);
    assert_int_equal(kiln_blob_pack(v, sizeof v, 1, &as_bytes, &err), KILN_OK);
    assert_true(as_floats.packed_bytes * 2 < as_bytes.packed_bytes);
    assert_true(kiln_hash_equal(as_floats.hash, as_bytes.hash)); /* named by the raw bytes */
    free(as_floats.packed);
    free(as_bytes.packed);
}

static void every_flipped_byte_of_a_blob_is_found(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_blob b;
    unsigned char *raw = sample(400), back[400];
    assert_int_equal(kiln_blob_pack(raw, 400, 4, &b, &err), KILN_OK);
    for (size_t i = 0; i < b.packed_bytes; i++) {
        b.packed[i] ^= 0xff;
        err.msg[0] = '\0';
        assert_int_equal(kiln_blob_unpack(&b, back, &err), KILN_E_IO);
        assert_non_null(strstr(err.msg, "is damaged: "));
        b.packed[i] ^= 0xff;
    }
    assert_int_equal(kiln_blob_unpack(&b, back, &err), KILN_OK);
    free(b.packed);
    free(raw);
}

static void every_cut_and_every_tail_of_a_blob_is_found(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_blob b;
    unsigned char *raw = sample(400), back[400];
    assert_int_equal(kiln_blob_pack(raw, 400, 4, &b, &err), KILN_OK);
    size_t whole = b.packed_bytes;
    for (b.packed_bytes = 0; b.packed_bytes < whole; b.packed_bytes++)
        assert_int_equal(kiln_blob_unpack(&b, back, &err), KILN_E_IO);
    unsigned char *longer = calloc(1, whole + 1);
    assert_non_null(longer);
    memcpy(longer, b.packed, whole);
    kiln_blob tail = b;
    tail.packed = longer;
    tail.packed_bytes = whole + 1;
    assert_int_equal(kiln_blob_unpack(&tail, back, &err), KILN_E_IO);
    free(longer);
    free(b.packed);
    free(raw);
}

/* ---- packers --------------------------------------------------------------------------------- */
typedef struct {
    unsigned char data[2 << 20];
    size_t size, most; /* more is refused */
} kept;

static kiln_status keep(void *context, const void *data, size_t bytes, kiln_error *err)
{
    kept *k = context;
    if (k->size + bytes > k->most) return kiln_fail(err, KILN_E_IO, "the disk is full");
    memcpy(k->data + k->size, data, bytes);
    k->size += bytes;
    return KILN_OK;
}

/* Packed bytes must not tell what a worker packed before: small after large, another element size,
 * other contents, one that was broken off. ZSTD_CCtx_reset promises it (zstd.h); tables that the
 * context keeps are the risk. */
static void kept_packer_gives_the_bytes_of_a_new_one(void **state)
{
    (void)state;
    static const size_t sizes[] = {1600000, 8, 0, 400000, 1600000, 65536, 200, 999992};
    static const uint32_t elems[] = {4, 1, 4, 8, 2, 4};
    kiln_error err = {0};
    kiln_packer *p;
    kiln_blob alone, b;
    kept *k = malloc(sizeof *k);
    unsigned char *all = sample(1600000 + 48 * 8 * 777);
    assert_non_null(k);
    memset(all + 100000, 0, 60000);
    memcpy(all + 700000, all + 50000, 40000); /* what an earlier blob had, at another place */
    assert_int_equal(kiln_packer_new(&p, &err), KILN_OK);
    for (size_t i = 0; i < 48; i++) {
        const size_t bytes = sizes[i % 8];
        const uint32_t elem = elems[i % 6];
        const unsigned char *const raw = all + i * 8 * 777;
        assert_int_equal(kiln_blob_pack(raw, bytes, elem, &alone, &err), KILN_OK);
        k->size = 0;
        k->most = i % 5 == 3 ? alone.packed_bytes / 2 : sizeof k->data;
        const kiln_status st =
            kiln_blob_stream(p, raw, bytes, elem, &(kiln_blob_sink){keep, k}, &b, &err);
        assert_int_equal(st, i % 5 == 3 ? KILN_E_IO : KILN_OK);
        if (st == KILN_OK) {
            assert_int_equal(b.packed_bytes, alone.packed_bytes);
            assert_int_equal(k->size, alone.packed_bytes);
            assert_memory_equal(k->data, alone.packed, alone.packed_bytes);
            assert_true(kiln_hash_equal(b.hash, alone.hash));
            assert_null(b.packed);
        }
        free(alone.packed);
    }
    kiln_packer_free(p);
    kiln_packer_free(NULL);
    free(all);
    free(k);
}

static void wrong_words_about_a_sound_frame_are_found(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_blob b;
    unsigned char *raw = sample(400), back[800];
    assert_int_equal(kiln_blob_pack(raw, 400, 4, &b, &err), KILN_OK);
    kiln_blob lie = b;
    lie.raw_bytes = 404;
    assert_int_equal(kiln_blob_unpack(&lie, back, &err), KILN_E_IO);
    lie = b;
    lie.raw_bytes = UINT64_MAX; /* ZSTD_CONTENTSIZE_UNKNOWN */
    assert_int_equal(kiln_blob_unpack(&lie, back, &err), KILN_E_IO);
    lie = b;
    lie.elem = 2;
    assert_int_equal(kiln_blob_unpack(&lie, back, &err), KILN_E_IO);
    lie = b;
    lie.elem = 0;
    assert_int_equal(kiln_blob_unpack(&lie, back, &err), KILN_E_IO);
    lie = b;
    lie.hash.bytes[7] ^= 1;
    assert_int_equal(kiln_blob_unpack(&lie, back, &err), KILN_E_IO);
    assert_non_null(strstr(err.msg, "another hash"));
    free(b.packed);
    free(raw);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blob_round_trips_at_every_size),
        cmocka_unit_test(shuffle_is_as_the_page_says_in_both_sets),
        cmocka_unit_test(blob_of_the_largest_size_round_trips_and_one_more_is_refused),
        cmocka_unit_test(blob_with_a_wrong_element_size_is_refused),
        cmocka_unit_test(worked_example_of_the_page_unpacks),
        cmocka_unit_test(frame_carries_a_checksum),
        cmocka_unit_test(shuffle_pays_for_smooth_floats),
        cmocka_unit_test(every_flipped_byte_of_a_blob_is_found),
        cmocka_unit_test(every_cut_and_every_tail_of_a_blob_is_found),
        cmocka_unit_test(wrong_words_about_a_sound_frame_are_found),
        cmocka_unit_test(kept_packer_gives_the_bytes_of_a_new_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
