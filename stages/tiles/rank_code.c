/* rank_code -- LEB128 of rank differences. Median difference in real scenes is below 128 for busy
 * tiles, so a pair takes a byte or two before zstd sees it. */
#include "stages/tiles/rank_code.h"

/* A code of k + 1 bytes stands for 128^k or more, and the numbers of one tile add up to less than
 * n_visible. */
uint64_t kiln_ranks_code_most(uint64_t pairs, uint64_t n_tiles, uint64_t n_visible)
{
    uint64_t bytes = pairs;
    for (uint64_t least = 128; least < n_visible; least *= 128) {
        const uint64_t longer = n_tiles * ((n_visible - 1) / least);
        bytes += longer < pairs ? longer : pairs;
    }
    return bytes;
}

size_t kiln_ranks_encode(uint32_t n_tiles, const uint32_t *tile_counts, const uint32_t *ranks,
                         unsigned char *out, uint32_t *tile_bytes)
{
    unsigned char *p = out;
    for (uint32_t t = 0; t < n_tiles; t++) {
        const unsigned char *start = p;
        uint32_t before = 0;
        for (uint32_t i = 0; i < tile_counts[t]; i++) {
            uint32_t v = *ranks - before;
            before = *ranks++;
            for (; v >= 128; v >>= 7) *p++ = (unsigned char)(v | 128);
            *p++ = (unsigned char)v;
        }
        tile_bytes[t] = (uint32_t)(p - start);
    }
    return (size_t)(p - out);
}

/* One number; *p moves behind it. False when the bytes end or it does not fit 32 bits. */
static int leb128(const unsigned char **p, const unsigned char *end, uint32_t *out)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
        if (*p == end) return 0;
        unsigned char b = *(*p)++;
        v |= (uint64_t)(b & 127) << shift;
        if (b & 128) continue;
        *out = (uint32_t)v;
        return v <= UINT32_MAX;
    }
    return 0;
}

static kiln_status decode_tile(uint32_t tile, uint32_t count, const unsigned char *p,
                               const unsigned char *end, uint64_t n_visible, uint32_t *ranks,
                               kiln_error *err)
{
    uint64_t rank = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t step;
        if (!leb128(&p, end, &step))
            return kiln_fail(err, KILN_E_IO, "tile %u: its rank code is truncated", tile);
        rank += step;
        if (rank >= n_visible || (i > 0 && step == 0))
            return kiln_fail(err, KILN_E_IO, "tile %u: rank %llu is out of order or not below %llu",
                             tile, (unsigned long long)rank, (unsigned long long)n_visible);
        ranks[i] = (uint32_t)rank;
    }
    if (p != end)
        return kiln_fail(err, KILN_E_IO, "tile %u: its rank code is longer than its count", tile);
    return KILN_OK;
}

kiln_status kiln_ranks_decode(const kiln_ranks_code *c, uint64_t n_visible, uint32_t *ranks,
                              kiln_error *err)
{
    const unsigned char *at = c->code, *const end = c->code + c->code_bytes;
    for (uint32_t t = 0; t < c->n_tiles; t++) {
        const uint32_t bytes = c->tile_bytes[t];
        if (bytes > (size_t)(end - at))
            return kiln_fail(err, KILN_E_IO, "tile %u: the band's rank code is too short", t);
        KILN_TRY(decode_tile(t, c->tile_counts[t], at, at + bytes, n_visible, ranks, err));
        at += bytes;
        ranks += c->tile_counts[t];
    }
    if (at != end)
        return kiln_fail(err, KILN_E_IO, "the band's rank code is longer than its tiles say");
    return KILN_OK;
}
