/* codec -- blobs: raw bytes -> byte shuffle -> zstd frame with checksum and content size. Pure
 * functions, any thread. SCHEMA.md has the byte level. */
#ifndef KILN_SCHEMA_CODEC_H
#define KILN_SCHEMA_CODEC_H

#include "base/extern_c.h"
#include "base/status.h"
#include "schema/hash.h"

#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

#define KILN_BLOB_MAX ((size_t)64 << 20) /* raw bytes of one blob */

typedef struct {
    kiln_hash hash; /* of the raw bytes */
    uint64_t raw_bytes;
    uint32_t elem; /* element size of the shuffle: 1, 2, 4 or 8 */
    size_t packed_bytes;
    unsigned char *packed; /* owned by the caller of kiln_blob_pack; free() */
} kiln_blob;

/* Packs raw_bytes bytes. KILN_E_BUG: they are more than KILN_BLOB_MAX, or not a multiple of
 * elem. */
kiln_status kiln_blob_pack(const void *raw, size_t raw_bytes, uint32_t elem, kiln_blob *out,
                           kiln_error *err) KILN_MUST_CHECK;
/* Holds what packing needs besides the data: a zstd context and two buffers, together some 1.3 MiB.
 * A caller that packs many blobs keeps one packer, because making one costs many page faults; the
 * packed bytes are the same. One thread at a time may use it. */
typedef struct kiln_packer kiln_packer;
kiln_status kiln_packer_new(kiln_packer **out, kiln_error *err) KILN_MUST_CHECK;
void kiln_packer_free(kiln_packer *p); /* NULL: does nothing */
/* As kiln_blob_pack, but the packed bytes are not kept in memory: they go to the sink, in order, in
 * pieces of some 128 KiB; out->packed stays NULL. After a failure the packer can pack other
 * blobs. */
typedef struct {
    kiln_status (*put)(void *context, const void *data, size_t bytes, kiln_error *err);
    void *context;
} kiln_blob_sink;
kiln_status kiln_blob_stream(kiln_packer *p, const void *raw, size_t raw_bytes, uint32_t elem,
                             const kiln_blob_sink *sink, kiln_blob *out,
                             kiln_error *err) KILN_MUST_CHECK;
/* Unpacks into dst, which has raw_bytes, and checks the frame, the size and the hash. KILN_E_IO:
 * "blob HEX is damaged: ...". */
kiln_status kiln_blob_unpack(const kiln_blob *b, void *dst, kiln_error *err) KILN_MUST_CHECK;
/* Keeps what unpacking needs from blob to blob, for callers that unpack many small ones: making it
 * takes much longer than unpacking a small blob. One thread at a time may use it. kiln_unpacker_new
 * returns NULL if memory is gone. If NULL is passed as an unpacker, one is made and freed for this
 * blob. */
typedef struct kiln_blob_unpacker kiln_blob_unpacker;
kiln_blob_unpacker *kiln_unpacker_new(void);
void kiln_unpacker_free(kiln_blob_unpacker *u); /* accepts NULL */
kiln_status kiln_blob_unpack_by(kiln_blob_unpacker *u, const kiln_blob *b, void *dst,
                                kiln_error *err) KILN_MUST_CHECK;
/* As kiln_blob_unpack, with the caller's buffer for the shuffled bytes. shuffled: as large as dst;
 * its contents are lost. */
kiln_status kiln_blob_unpack_with(const kiln_blob *b, void *shuffled, void *dst,
                                  kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
