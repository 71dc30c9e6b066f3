/* codec -- how a blob's bytes are made: byte shuffle, then one zstd frame (SCHEMA.md, "Blobs").
 *
 * The shuffle puts all first bytes of the elements together, then all second bytes, and so on:
 * exponents of floats and high bytes of integers become long alike runs, mantissas stay noise that
 * zstd passes over quickly. Level 1 because trained scenes do not reward more: schema/DESIGN.md,
 * Constants. */
#include "schema/codec.h"

#include "base/memory.h"
#include "schema/shuffle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { LEVEL = 1 };

/* Of elem > 1 the byte planes are gathered piece by piece, so that no second copy of the raw bytes
 * is needed. */
enum { PIECE = 64 << 10 };

static bool elem_is_known(uint32_t elem)
{
    return elem == 1 || elem == 2 || elem == 4 || elem == 8;
}

struct kiln_packer {
    ZSTD_CCtx *ctx;
    unsigned char *piece, *packed; /* packed[capacity] */
    size_t capacity;
};

void kiln_packer_free(kiln_packer *p)
{
    if (!p) return;
    free(p->packed);
    free(p->piece);
    (void)ZSTD_freeCCtx(p->ctx); /* accepts NULL, cannot fail */
    free(p);
}

static kiln_status set(kiln_packer *p, ZSTD_cParameter what, int value, kiln_error *err)
{
    const size_t z = ZSTD_CCtx_setParameter(p->ctx, what, value);
    if (!ZSTD_isError(z)) return KILN_OK;
    return kiln_fail(err, KILN_E_BUG, "zstd refuses a parameter: %s", ZSTD_getErrorName(z));
}

kiln_status kiln_packer_new(kiln_packer **out, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_packer *p = NULL;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&p, 1, "a packer of blobs", err));
    p->capacity = ZSTD_CStreamOutSize();
    p->ctx = ZSTD_createCCtx();
    if (!p->ctx)
        KILN_GO(kiln_fail(err, KILN_E_NOMEM, "out of memory: cannot make a zstd compressor"));
    KILN_GO(kiln_alloc_unset((void **)&p->piece, PIECE, 1, "a shuffled piece", err));
    KILN_GO(kiln_alloc_unset((void **)&p->packed, p->capacity, 1, "a compressed piece", err));
    KILN_GO(set(p, ZSTD_c_compressionLevel, LEVEL, err));
    KILN_GO(set(p, ZSTD_c_checksumFlag, 1, err));
    *out = p;
    return KILN_OK;
done:
    kiln_packer_free(p);
    return st;
}

/* One blob on its way through a packer. */
typedef struct {
    kiln_packer *p;
    const kiln_blob_sink *sink;
    size_t packed_bytes;
} stream;

/* What a failed blob has left in the context is dropped here, so a packer works on after any
 * failure. */
static kiln_status begin_frame(kiln_packer *p, size_t raw_bytes, kiln_error *err)
{
    size_t z = ZSTD_CCtx_reset(p->ctx, ZSTD_reset_session_only);
    /* the frame tells its content size */
    if (!ZSTD_isError(z)) z = ZSTD_CCtx_setPledgedSrcSize(p->ctx, raw_bytes);
    if (!ZSTD_isError(z)) return KILN_OK;
    return kiln_fail(err, KILN_E_BUG, "zstd cannot begin a frame: %s", ZSTD_getErrorName(z));
}

static kiln_status compress(stream *c, const void *src, size_t bytes, ZSTD_EndDirective end,
                            kiln_error *err)
{
    ZSTD_inBuffer in = {src, bytes, 0};
    size_t left = 1;
    while (in.pos < in.size || (end == ZSTD_e_end && left > 0)) {
        ZSTD_outBuffer out = {c->p->packed, c->p->capacity, 0};
        left = ZSTD_compressStream2(c->p->ctx, &out, &in, end);
        if (ZSTD_isError(left))
            return kiln_fail(err, KILN_E_NOMEM, "zstd cannot compress %zu bytes: %s", bytes,
                             ZSTD_getErrorName(left));
        if (out.pos) KILN_TRY(c->sink->put(c->sink->context, c->p->packed, out.pos, err));
        c->packed_bytes += out.pos;
    }
    return KILN_OK;
}

static kiln_status compress_planes(stream *c, const unsigned char *raw, size_t raw_bytes,
                                   size_t elem, kiln_error *err)
{
    const kiln_shuffle *shuffle = kiln_shuffle_best();
    const size_t n = raw_bytes / elem;
    for (size_t b = 0; b < elem; b++)
        for (size_t first = 0; first < n; first += PIECE) {
            const size_t some = n - first < PIECE ? n - first : PIECE;
            shuffle->gather(raw + first * elem, some, elem, b, c->p->piece);
            KILN_TRY(compress(c, c->p->piece, some, ZSTD_e_continue, err));
        }
    return compress(c, "", 0, ZSTD_e_end, err);
}

kiln_status kiln_blob_stream(kiln_packer *p, const void *raw, size_t raw_bytes, uint32_t elem,
                             const kiln_blob_sink *sink, kiln_blob *out, kiln_error *err)
{
    stream c = {.p = p, .sink = sink};
    *out = (kiln_blob){0};
    if (!elem_is_known(elem) || raw_bytes > KILN_BLOB_MAX || raw_bytes % elem != 0)
        return kiln_fail(err, KILN_E_BUG,
                         "a blob of %zu bytes with elements of %" PRIu32
                         " cannot be stored: the most is %zu",
                         raw_bytes, elem, KILN_BLOB_MAX);
    KILN_TRY(begin_frame(p, raw_bytes, err));
    if (elem > 1)
        KILN_TRY(compress_planes(&c, raw, raw_bytes, elem, err));
    else
        KILN_TRY(compress(&c, raw ? raw : "", raw_bytes, ZSTD_e_end, err));
    *out = (kiln_blob){.hash = kiln_hash_of(raw, raw_bytes),
                       .raw_bytes = raw_bytes,
                       .elem = elem,
                       .packed_bytes = c.packed_bytes};
    return KILN_OK;
}

static kiln_status append_to_buffer(void *context, const void *data, size_t bytes, kiln_error *err)
{
    return kiln_buffer_put(context, data, bytes, err);
}

kiln_status kiln_blob_pack(const void *raw, size_t raw_bytes, uint32_t elem, kiln_blob *out,
                           kiln_error *err)
{
    kiln_buffer packed = {0};
    kiln_packer *p;
    KILN_TRY(kiln_packer_new(&p, err));
    const kiln_status st = kiln_blob_stream(p, raw, raw_bytes, elem,
                                            &(kiln_blob_sink){append_to_buffer, &packed}, out, err);
    kiln_packer_free(p);
    if (st != KILN_OK) {
        kiln_buffer_release(&packed);
        return st;
    }
    /* the buffer doubles; give the rest back. A frame is never empty */
    unsigned char *fitted = realloc(packed.data, packed.size);
    out->packed = fitted ? fitted : packed.data;
    return KILN_OK;
}

/* NULL when `packed` is exactly one zstd frame of `raw_bytes`, else the reason. Checked before
 * anything is allocated. */
static const char *frame_fault(const kiln_blob *b)
{
    if (!elem_is_known(b->elem)) return "its element size is not 1, 2, 4 or 8";
    if (b->raw_bytes > KILN_BLOB_MAX) return "it says that it holds more than 64 MiB";
    if (b->raw_bytes % b->elem != 0) return "its size is not a multiple of its element size";
    if (ZSTD_getFrameContentSize(b->packed, b->packed_bytes) != b->raw_bytes)
        return "the zstd frame states another size";
    if (ZSTD_findFrameCompressedSize(b->packed, b->packed_bytes) != b->packed_bytes)
        return "the zstd frame is cut or has a tail";
    return NULL;
}

kiln_blob_unpacker *kiln_unpacker_new(void) { return (kiln_blob_unpacker *)ZSTD_createDCtx(); }
void kiln_unpacker_free(kiln_blob_unpacker *u) { (void)ZSTD_freeDCtx((ZSTD_DCtx *)u); }

static size_t decompress(kiln_blob_unpacker *u, const kiln_blob *b, void *dst)
{
    const size_t bytes = (size_t)b->raw_bytes;
    return u ? ZSTD_decompressDCtx((ZSTD_DCtx *)u, dst, bytes, b->packed, b->packed_bytes)
             : ZSTD_decompress(dst, bytes, b->packed, b->packed_bytes);
}

static kiln_status unpack(kiln_blob_unpacker *u, const kiln_blob *b, void *shuffled, void *dst,
                          kiln_error *err)
{
    char hex[33];
    const char *damage = frame_fault(b);
    size_t bytes = (size_t)b->raw_bytes;
    bool direct = b->elem == 1;
    if (!damage) {
        size_t z = decompress(u, b, direct ? dst : shuffled);
        if (ZSTD_isError(z))
            damage = ZSTD_getErrorName(z);
        else if (z != bytes)
            damage = "the zstd frame holds another number of bytes";
    }
    if (!damage && !direct) kiln_shuffle_best()->join(shuffled, bytes / b->elem, b->elem, dst);
    if (!damage && !kiln_hash_equal(kiln_hash_of(dst, bytes), b->hash))
        damage = "its content has another hash";
    if (damage)
        return kiln_fail(err, KILN_E_IO, "blob %s is damaged: %s", kiln_hash_hex(b->hash, hex),
                         damage);
    return KILN_OK;
}

kiln_status kiln_blob_unpack_with(const kiln_blob *b, void *shuffled, void *dst, kiln_error *err)
{
    return unpack(NULL, b, shuffled, dst, err);
}

kiln_status kiln_blob_unpack(const kiln_blob *b, void *dst, kiln_error *err)
{
    return kiln_blob_unpack_by(NULL, b, dst, err);
}

kiln_status kiln_blob_unpack_by(kiln_blob_unpacker *u, const kiln_blob *b, void *dst,
                                kiln_error *err)
{
    void *shuffled = NULL;
    /* a size that the frame belies is refused before it is used */
    if (b->elem != 1 && !frame_fault(b))
        KILN_TRY(kiln_alloc_unset(&shuffled, b->raw_bytes, 1, "a blob", err));
    const kiln_status st = unpack(u, b, shuffled, dst, err);
    free(shuffled);
    return st;
}
