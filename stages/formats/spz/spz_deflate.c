/* spz_deflate -- see the header. */
#include "stages/formats/spz/spz_deflate.h"

#include "base/endian.h"
#include "base/minmax.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    RAW_DEFLATE = -15,
    MEMORY_LEVEL = 9,
    SAMPLE_BYTES = 1 << 14,
    GZIP_HEAD = 10,
    STORED_HEAD = 5
};

/* What deflate makes of so many bytes at most: stored, with the ends of blocks. */
size_t kiln_spz_deflate_bound(size_t plain) { return plain + plain / 1024 + 128; }

uint64_t kiln_spz_pieces(size_t plane) { return (plane + KILN_SPZ_PIECE - 1) / KILN_SPZ_PIECE; }

static bool deflate_as(int level, int strategy, const unsigned char *plain, size_t bytes,
                       unsigned char *out, size_t capacity, size_t *packed)
{
    z_stream z = {0};
    if (deflateInit2(&z, level, Z_DEFLATED, RAW_DEFLATE, MEMORY_LEVEL, strategy) != Z_OK)
        return false;
    z.next_in = (unsigned char *)(uintptr_t)plain; /* zlib's type; it only reads */
    z.avail_in = (unsigned)bytes;
    z.next_out = out;
    z.avail_out = (unsigned)capacity;
    const bool done = deflate(&z, Z_SYNC_FLUSH) == Z_OK && z.avail_in == 0 && z.avail_out > 0;
    *packed = capacity - z.avail_out;
    (void)deflateEnd(&z); /* says that the stream is not ended */
    return done;
}

bool kiln_spz_deflate(int plane, const unsigned char *plain, size_t bytes, unsigned char *out,
                      size_t capacity, size_t *packed)
{
    const size_t sample = bytes < SAMPLE_BYTES ? bytes : SAMPLE_BYTES;
    size_t runs, matches;
    if (plane == KILN_SPZ_POSITIONS)
        return deflate_as(1, Z_DEFAULT_STRATEGY, plain, bytes, out, capacity, packed);
    if (plane == KILN_SPZ_SH) {
        if (!deflate_as(1, Z_RLE, plain, sample, out, capacity, &runs)) return false;
        if (!deflate_as(6, Z_FILTERED, plain, sample, out, capacity, &matches)) return false;
        if (matches < runs - runs / 32)
            return deflate_as(6, Z_FILTERED, plain, bytes, out, capacity, packed);
    }
    return deflate_as(1, Z_RLE, plain, bytes, out, capacity, packed);
}

void kiln_spz_front(const unsigned char header[KILN_SPZ_HEADER], unsigned char out[KILN_SPZ_FRONT])
{
    /* deflate; no name, no time; Unix */
    static const unsigned char gzip[GZIP_HEAD] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
    static const unsigned char stored[STORED_HEAD] = {0, KILN_SPZ_HEADER, 0,
                                                      (unsigned char)~KILN_SPZ_HEADER, 0xff};
    memcpy(out, gzip, sizeof gzip);
    memcpy(out + GZIP_HEAD, stored, sizeof stored);
    memcpy(out + GZIP_HEAD + STORED_HEAD, header, KILN_SPZ_HEADER);
}

void kiln_spz_back(uint32_t crc, uint64_t bytes, unsigned char out[KILN_SPZ_BACK])
{
    out[0] = 3; /* the last block: fixed codes, of which only the end is there */
    out[1] = 0;
    kiln_put_u32(kiln_put_u32(out + 2, crc), bytes);
}

static kiln_status pack_plane(int plane, const unsigned char *plain, size_t bytes,
                              unsigned char *piece, size_t capacity, kiln_buffer *out,
                              kiln_error *err)
{
    for (size_t at = 0, packed; at < bytes; at += KILN_SPZ_PIECE) {
        if (!kiln_spz_deflate(plane, plain + at, kiln_min_u64(bytes - at, KILN_SPZ_PIECE), piece,
                              capacity, &packed))
            return kiln_fail(err, KILN_E_NOMEM, "out of memory: cannot compress a plane of SPZ");
        KILN_TRY(kiln_buffer_put(out, piece, packed, err));
    }
    return KILN_OK;
}

kiln_status kiln_spz_pack(const unsigned char header[KILN_SPZ_HEADER],
                          unsigned char *const planes[KILN_SPZ_PLANES],
                          const size_t bytes[KILN_SPZ_PLANES], kiln_buffer *out, kiln_error *err)
{
    unsigned char front[KILN_SPZ_FRONT], back[KILN_SPZ_BACK], *piece = NULL;
    const size_t capacity = kiln_spz_deflate_bound(KILN_SPZ_PIECE);
    uint64_t all = KILN_SPZ_HEADER;
    uint32_t crc = (uint32_t)crc32_z(crc32(0, NULL, 0), header, KILN_SPZ_HEADER);
    kiln_status st = KILN_OK;
    kiln_spz_front(header, front);
    KILN_GO(kiln_alloc_unset((void **)&piece, capacity, 1, "a packed plane", err));
    KILN_GO(kiln_buffer_put(out, front, sizeof front, err));
    for (int p = 0; p < KILN_SPZ_PLANES; p++) {
        KILN_GO(pack_plane(p, planes[p], bytes[p], piece, capacity, out, err));
        crc = (uint32_t)crc32_z(crc, planes[p], bytes[p]);
        all += bytes[p];
    }
    kiln_spz_back(crc, all, back);
    KILN_GO(kiln_buffer_put(out, back, sizeof back, err));
done:
    free(piece);
    return st;
}
