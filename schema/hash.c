/* hash -- libxxhash behind our own type, so that no other file depends on its layout.
 *
 * A key item is written as  u64 length of name, name, one tag byte, u64 length of value, value  (lengths little-endian).
 * Every part is preceded by its length and every value by its kind, so two different sequences of
 * items never give the same bytes: ("ab", "c") and ("a", "bc") differ, and so do the text "1" and
 * the number 1. */
#include "schema/hash.h"

#include "base/endian.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
/* the same functions, by AVX2 or AVX-512 where the processor has them: half the time */
#include <xxh_x86dispatch.h>
#endif

static kiln_hash from_xxh(XXH128_hash_t x)
{
    XXH128_canonical_t c;
    XXH128_canonicalFromHash(&c, x);
    kiln_hash h;
    memcpy(h.bytes, c.digest, sizeof h.bytes);
    return h;
}

kiln_hash kiln_hash_of(const void *data, size_t bytes)
{
    return from_xxh(XXH3_128bits(data, bytes));
}

bool kiln_hash_equal(kiln_hash a, kiln_hash b)
{
    return memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

bool kiln_hash_is_zero(kiln_hash h) { return kiln_hash_equal(h, (kiln_hash){{0}}); }

const char *kiln_hash_hex(kiln_hash h, char buf[33])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 16; i++) {
        buf[2 * i] = digits[h.bytes[i] >> 4];
        buf[2 * i + 1] = digits[h.bytes[i] & 15];
    }
    buf[32] = '\0';
    return buf;
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

bool kiln_hash_parse(const char *hex, kiln_hash *out)
{
    kiln_hash h;
    for (int i = 0; i < 16; i++) {
        int high = digit_value(hex[2 * i]);
        if (high < 0) return false;
        int low = digit_value(hex[2 * i + 1]);
        if (low < 0) return false;
        h.bytes[i] = (unsigned char)(high * 16 + low);
    }
    if (hex[32] != '\0') return false;
    *out = h;
    return true;
}

/* A key is some ten items of a few bytes each, and there are several for each camera: they are put
 * together here, and of what fits no state of XXH3 is made. The hash is the same: XXH3's is of the
 * bytes, however they come. */
struct kiln_hasher {
    XXH3_state_t
        /* of what was before `held`; NULL: nothing was. It asks for 64-byte alignment;
         * XXH3_createState gives it */
        *state;
    bool failed;
    size_t n;
    unsigned char held[1000];
};

kiln_hasher *kiln_hasher_new(void)
{
    kiln_hasher *h = malloc(sizeof *h);
    if (!h) return NULL;
    h->state = NULL;
    h->failed = false;
    h->n = 0;
    return h;
}

static void hash_now(kiln_hasher *h, const void *data, size_t bytes)
{
    if (!h->state && !h->failed) {
        h->state = XXH3_createState();
        h->failed = !h->state || XXH3_128bits_reset(h->state) != XXH_OK;
    }
    if (!h->failed) h->failed = XXH3_128bits_update(h->state, data, bytes) != XXH_OK;
}

void kiln_hasher_update(kiln_hasher *h, const void *data, size_t bytes)
{
    if (!h || bytes == 0) return;
    if (bytes > sizeof h->held - h->n) {
        if (h->n) hash_now(h, h->held, h->n);
        h->n = 0;
    }
    if (bytes > sizeof h->held) {
        hash_now(h, data, bytes);
        return;
    }
    memcpy(h->held + h->n, data, bytes);
    h->n += bytes;
}

/* Of a failure zero, which no one takes for a hash. */
kiln_hash kiln_hasher_end(kiln_hasher *h)
{
    kiln_hash out = {{0}};
    if (!h) return out;
    if (h->state && h->n) hash_now(h, h->held, h->n);
    if (!h->failed)
        out = h->state ? from_xxh(XXH3_128bits_digest(h->state)) : kiln_hash_of(h->held, h->n);
    if (h->state) XXH3_freeState(h->state);
    free(h);
    return out;
}

static void put_item(kiln_hasher *h, const char *name, char tag, const void *value, size_t bytes)
{
    enum { NAME_MOST = 64 };
    unsigned char head[8 + NAME_MOST + 1 + 8];
    const size_t length = strlen(name);
    size_t n = (size_t)(kiln_put_u64(head, length) - head);
    if (length > NAME_MOST) {
        kiln_hasher_update(h, head, n);
        kiln_hasher_update(h, name, length);
        n = 0;
    } else {
        memcpy(head + n, name, length);
        n += length;
    }
    head[n++] = (unsigned char)tag;
    n = (size_t)(kiln_put_u64(head + n, bytes) - head);
    kiln_hasher_update(h, head, n);
    kiln_hasher_update(h, value, bytes);
}

kiln_hasher *kiln_key_begin(const char *stage, uint32_t algorithm_version)
{
    kiln_hasher *h = kiln_hasher_new();
    kiln_key_text(h, "kiln-key", "1"); /* of this layout: a change of it makes every unit due */
    kiln_key_text(h, "stage", stage);
    kiln_key_u64(h, "version", algorithm_version);
    return h;
}

void kiln_key_text(kiln_hasher *h, const char *name, const char *value)
{
    put_item(h, name, 't', value, strlen(value));
}

static void put_number(kiln_hasher *h, const char *name, char tag, uint64_t bits)
{
    unsigned char le[8];
    for (int i = 0; i < 8; i++) le[i] = (unsigned char)(bits >> (8 * i));
    put_item(h, name, tag, le, sizeof le);
}

void kiln_key_u64(kiln_hasher *h, const char *name, uint64_t value)
{
    put_number(h, name, 'u', value);
}

void kiln_key_f64(kiln_hasher *h, const char *name, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value)) bits = UINT64_C(0x7ff8000000000000);
    put_number(h, name, 'f', bits);
}

void kiln_key_bytes(kiln_hasher *h, const char *name, const void *data, size_t bytes)
{
    put_item(h, name, 'b', data, bytes);
}

void kiln_key_hash(kiln_hasher *h, const char *name, kiln_hash value)
{
    put_item(h, name, 'h', value.bytes, sizeof value.bytes);
}
