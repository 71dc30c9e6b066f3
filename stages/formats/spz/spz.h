/* spz -- the layout of SPZ (Niantic), versions 1 to 4, for reader and writers. Little-endian.
 *
 * The header, 16 bytes:
 *   0  "NGSP"             4  u32 version              8  u32 Gaussians     12  u8 degree of the
 *       harmonics
 *   13 u8 fractional bits of positions     14  u8 flags     15  u8 streams of a file of version 4,
 *                                                               else 0
 *
 * Six planes, each of all Gaussians:
 *
 *   plane        bytes a row   code
 *   positions    9             x, y, z: round(v 2^fraction) in 24 bits; version 1: 3 halves, 6
 *                              bytes
 *   alphas       1             round(255 sigmoid(logit))
 *   colours      3             round(255 (0.15 sh0 + 0.5))
 *   scales       3             round(16 (log scale + 10))
 *   rotations    4             smallest three: which of x, y, z, w is largest, then sign and 9 bits
 *                              of each of the others;
 *                3             versions 1 and 2: round(127.5 c + 127.5) of x, y, z, with w made
 *                              positive
 *   sh           3 K           128 + round(128 v); coefficient-major, colours inside. Writers keep
 *                              a few bits of it
 *
 * Versions 1 to 3 are one gzip stream: header, planes and, if the flag says so, extension records,
 * which are
 *   0  u32 type           4  u32 bytes                8  value; of the type KILN_SPZ_RECORD_AXES a
 *                                                        u32, see spz_axes.h
 *
 * Version 4 is a file of zstd frames, one a plane:
 *   0  the header        16  u32 where the table of contents begins      20  12 bytes, 0      32
 *       extension records
 *   table: a row (u64 compressed, u64 uncompressed) for each stream; then the streams, in the order of the planes, to the file's
 *   end. A plane of no bytes (harmonics of degree 0) has no stream.
 *
 * Source: nianticlabs/spz, src/cc/load-spz.cc and splat-types.h (state 21715c3).
 */
#ifndef KILN_STAGES_FORMATS_SPZ_SPZ_H
#define KILN_STAGES_FORMATS_SPZ_SPZ_H

#include "base/harmonics.h"

#include <stdint.h>

#define KILN_SPZ_MAGIC "NGSP"

enum {
    KILN_SPZ_VERSION_AT = 4,
    KILN_SPZ_COUNT_AT = 8,
    KILN_SPZ_DEGREE_AT = 12,
    KILN_SPZ_FRACTION_AT = 13,
    KILN_SPZ_FLAGS_AT = 14,
    KILN_SPZ_N_STREAMS_AT = 15,
    KILN_SPZ_HEADER = 16, /* bytes of it */
    KILN_SPZ_TOC_AT = 16, /* version 4, from here on */
    KILN_SPZ_STREAMS_HEADER = 32,
    KILN_SPZ_TOC_ROW = 16,
    KILN_SPZ_RECORD_HEADER = 8,
};
#define KILN_SPZ_RECORD_AXES 0xadbe0003u

/* Flags. */
enum {
    KILN_SPZ_ANTIALIASED = 1,
    KILN_SPZ_EXTENDED = 2,
    KILN_SPZ_LEVELS = 0x80 /* Spark's tree of levels, with codes of its own */
};

typedef enum {
    KILN_SPZ_POSITIONS,
    KILN_SPZ_ALPHAS,
    KILN_SPZ_COLOURS,
    KILN_SPZ_SCALES,
    KILN_SPZ_ROTATIONS,
    KILN_SPZ_SH,
    KILN_SPZ_PLANES
} kiln_spz_plane;

/* Bytes a row of each plane, at most 92 together. */
static inline void kiln_spz_strides(uint32_t version, uint32_t sh_degree,
                                    uint32_t stride[KILN_SPZ_PLANES])
{
    stride[KILN_SPZ_POSITIONS] = version == 1 ? 6 : 9;
    stride[KILN_SPZ_ALPHAS] = 1;
    stride[KILN_SPZ_COLOURS] = stride[KILN_SPZ_SCALES] = 3;
    stride[KILN_SPZ_ROTATIONS] = version < 3 ? 3 : 4;
    stride[KILN_SPZ_SH] = kiln_sh_components(sh_degree);
}
/* Of all planes together. */
static inline uint64_t kiln_spz_row_bytes(const uint32_t stride[KILN_SPZ_PLANES])
{
    uint64_t bytes = 0;
    for (int p = 0; p < KILN_SPZ_PLANES; p++) bytes += stride[p];
    return bytes;
}
/* Planes that are streams in a file of version 4. */
static inline int kiln_spz_n_streams(uint32_t sh_degree)
{
    return sh_degree ? KILN_SPZ_PLANES : KILN_SPZ_PLANES - 1;
}

/* ---- codes ----------------------------------------------------------------------------------- */

enum { KILN_SPZ_POSITION_MOST = (1 << 23) - 1 }; /* and -2^23 */
#define KILN_SPZ_COLOUR_SCALE 0.15
#define KILN_SPZ_SCALE_STEPS 16.0f    /* codes to 1 of a logarithm */
#define KILN_SPZ_SCALE_LEAST (-10.0f) /* code 0; 255: 5.9375 */
#define KILN_SPZ_FIRST_THREE 127.5f
#define KILN_SPZ_SH_STEPS 128.0f /* codes to 1; the code of 0 too */
enum { KILN_SPZ_SH_ZERO = 128 };

/* Smallest three, from the highest bit on: 2 bits, the largest of x, y, z, w; then 10 bits each of
 * the others in this order. */
enum {
    KILN_SPZ_LARGEST_SHIFT = 30,
    KILN_SPZ_SMALLEST_BITS = 10,
    KILN_SPZ_SMALLEST_SIGN = 1 << 9,
    KILN_SPZ_SMALLEST_MOST = 511
};
/* what the code 511 stands for: no other component is larger */
#define KILN_SPZ_SQRT_HALF 0.70710678118654752440

#endif
