/* codec -- how a blob's bytes are made: byte shuffle, then one zstd frame (SCHEMA.md, "Blobs").
 *
 * The shuffle puts all first bytes of the elements together, then all second bytes, and so on: exponents of floats and
 * high bytes of integers become long alike runs, mantissas stay noise that zstd passes over quickly. Level 1 because
 * trained scenes do not reward more: schema/DESIGN.md has the figures. */
#include "schema/codec.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { LEVEL = 1 };

/* Elements are moved in groups that stay in the first-level cache, so that the strided side is read from memory once. */
enum { GROUP = 4096 };

static void shuffle(const unsigned char *restrict raw, unsigned char *restrict out, size_t n, size_t elem)
{
    for (size_t first = 0; first < n; first += GROUP) {
        size_t end = n - first < GROUP ? n : first + GROUP;
        for (size_t b = 0; b < elem; b++) {
            unsigned char *row = out + b * n;
            for (size_t i = first; i < end; i++) row[i] = raw[i * elem + b];
        }
    }
}

static void unshuffle(const unsigned char *restrict in, unsigned char *restrict raw, size_t n, size_t elem)
{
    for (size_t first = 0; first < n; first += GROUP) {
        size_t end = n - first < GROUP ? n : first + GROUP;
        for (size_t b = 0; b < elem; b++) {
            const unsigned char *row = in + b * n;
            for (size_t i = first; i < end; i++) raw[i * elem + b] = row[i];
        }
    }
}

static bool elem_is_known(uint32_t elem) { return elem == 1 || elem == 2 || elem == 4 || elem == 8; }

static kiln_status compress_frame(const void *src, size_t bytes, kiln_blob *b, kiln_error *err)
{
    kiln_status st = KILN_OK;
    unsigned char *packed = NULL;
    ZSTD_CCtx *ctx = ZSTD_createCCtx();
    if (!ctx) return kiln_fail(err, KILN_E_NOMEM, "out of memory: cannot make a zstd compressor");
    size_t z = ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel, LEVEL);
    if (!ZSTD_isError(z)) z = ZSTD_CCtx_setParameter(ctx, ZSTD_c_checksumFlag, 1);
    if (!ZSTD_isError(z)) z = ZSTD_CCtx_setParameter(ctx, ZSTD_c_contentSizeFlag, 1);
    if (ZSTD_isError(z)) {
        st = kiln_fail(err, KILN_E_BUG, "zstd refuses a parameter: %s", ZSTD_getErrorName(z));
        goto done;
    }
    size_t room = ZSTD_compressBound(bytes);
    KILN_GO(KILN_ALLOC(&packed, room, "a compressed blob", err));
    z = ZSTD_compress2(ctx, packed, room, src, bytes);
    if (ZSTD_isError(z)) {
        st = kiln_fail(err, KILN_E_NOMEM, "zstd cannot compress %zu bytes: %s", bytes, ZSTD_getErrorName(z));
        goto done;
    }
    unsigned char *fitted = realloc(packed, z ? z : 1); /* the bound is larger than the raw bytes; give the rest back */
    b->packed = fitted ? fitted : packed;
    b->packed_bytes = z;
    packed = NULL;
done:
    free(packed);
    ZSTD_freeCCtx(ctx);
    return st;
}

kiln_status kiln_blob_pack(const void *raw, size_t raw_bytes, uint32_t elem, kiln_blob *out, kiln_error *err)
{
    *out = (kiln_blob){0};
    if (!elem_is_known(elem) || raw_bytes > KILN_BLOB_MAX || raw_bytes % elem != 0)
        return kiln_fail(err, KILN_E_BUG, "a blob of %zu bytes with elements of %" PRIu32 " cannot be stored: the most is %zu",
                         raw_bytes, elem, KILN_BLOB_MAX);
    unsigned char *shuffled = NULL;
    const void *src = raw ? raw : "";
    if (elem > 1 && raw_bytes > 0) {
        KILN_TRY(KILN_ALLOC(&shuffled, raw_bytes, "a shuffled blob", err));
        shuffle(raw, shuffled, raw_bytes / elem, elem);
        src = shuffled;
    }
    kiln_status st = compress_frame(src, raw_bytes, out, err);
    free(shuffled);
    if (st != KILN_OK) return st;
    out->hash = kiln_hash_of(raw, raw_bytes);
    out->raw_bytes = raw_bytes;
    out->elem = elem;
    return KILN_OK;
}

/* NULL when `packed` is exactly one zstd frame of `raw_bytes`, else the reason. Checked before anything is allocated. */
static const char *frame_fault(const kiln_blob *b)
{
    if (!elem_is_known(b->elem)) return "its element size is not 1, 2, 4 or 8";
    if (b->raw_bytes > KILN_BLOB_MAX) return "it says that it holds more than 64 MiB";
    if (b->raw_bytes % b->elem != 0) return "its size is no multiple of its element size";
    if (ZSTD_getFrameContentSize(b->packed, b->packed_bytes) != b->raw_bytes) return "the zstd frame says another size";
    if (ZSTD_findFrameCompressedSize(b->packed, b->packed_bytes) != b->packed_bytes) return "the zstd frame is cut or has a tail";
    return NULL;
}

kiln_status kiln_blob_unpack(const kiln_blob *b, void *dst, kiln_error *err)
{
    char hex[33];
    const char *fault = frame_fault(b);
    unsigned char *shuffled = NULL;
    size_t bytes = (size_t)b->raw_bytes;
    bool direct = b->elem == 1;
    if (!fault && !direct) KILN_TRY(KILN_ALLOC(&shuffled, bytes, "a blob", err));
    if (!fault) {
        size_t z = ZSTD_decompress(direct ? dst : shuffled, bytes, b->packed, b->packed_bytes);
        if (ZSTD_isError(z))
            fault = ZSTD_getErrorName(z);
        else if (z != bytes)
            fault = "the zstd frame holds another number of bytes";
    }
    if (!fault && !direct) unshuffle(shuffled, dst, bytes / b->elem, b->elem);
    if (!fault && !kiln_hash_equal(kiln_hash_of(dst, bytes), b->hash)) fault = "its content has another hash";
    free(shuffled);
    if (fault) return kiln_fail(err, KILN_E_IO, "blob %s is damaged: %s", kiln_hash_hex(b->hash, hex), fault);
    return KILN_OK;
}
