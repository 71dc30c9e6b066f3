/* fuzz_blob -- a zstd frame that a stranger put into a manifest. The last byte is the element size,
 * the two or three before it a size; where the frame tells its own, that is taken half of the time,
 * because hardly any guess fits. The first try has a wrong hash: it must be refused, and what it
 * unpacked all the same gives the right one. */
#include "tests/fuzz/fuzz.h"

#include "schema/codec.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

static uint64_t size_of(const kiln_blob *b, uint64_t tail, uint64_t guess)
{
    const unsigned long long declared = ZSTD_getFrameContentSize(b->packed, b->packed_bytes);
    return !(tail & 1) && declared <= KILN_BLOB_MAX ? declared : guess;
}

static void pack_again(const kiln_blob *b, const unsigned char *raw)
{
    kiln_error err = {0};
    kiln_blob packed;
    unsigned char *again = malloc(b->raw_bytes + 1);
    HOLDS(kiln_blob_pack(raw, b->raw_bytes, b->elem, &packed, &err) == KILN_OK);
    HOLDS(kiln_hash_equal(packed.hash, b->hash) && packed.raw_bytes == b->raw_bytes);
    HOLDS(again && kiln_blob_unpack(&packed, again, &err) == KILN_OK);
    HOLDS(memcmp(raw, again, b->raw_bytes) == 0);
    free(packed.packed);
    free(again);
}

/* What is before the last four bytes is the frame. */
static void copy_frame(kiln_blob *b, const uint8_t *data, size_t size)
{
    b->packed_bytes = size > 4 ? size - 4 : 0;
    b->packed = calloc(b->packed_bytes + 1, 1);
    HOLDS(b->packed);
    if (b->packed_bytes) memcpy(b->packed, data, b->packed_bytes);
}

void kiln_fuzz_blob(const void *argument, const uint8_t *data, size_t size)
{
    static const uint32_t elems[] = {1, 2, 4, 8, 3, 0, 16, UINT32_MAX};
    const uint64_t tail = kiln_fuzz_tail(data, size, 0, 1);
    kiln_error err = {0};
    kiln_blob b = {.elem = elems[tail >> 1 & 7]};
    (void)argument;
    copy_frame(&b, data, size);
    b.raw_bytes = size_of(&b, tail, kiln_fuzz_tail(data, size, 1, (tail & 0xf0) == 0xf0 ? 3 : 2));
    unsigned char *raw = calloc(b.raw_bytes + 1, 1);
    HOLDS(raw);
    kiln_status st = kiln_blob_unpack(&b, raw, &err);
    kiln_fuzz_refusal(st, &err); /* the hash is zero */
    b.hash = kiln_hash_of(raw, b.raw_bytes);
    st = kiln_blob_unpack(&b, raw, &err);
    if (st == KILN_OK)
        pack_again(&b, raw);
    else
        kiln_fuzz_refusal(st, &err);
    free(raw);
    free(b.packed);
}
