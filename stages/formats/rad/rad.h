/* rad -- the layout of RAD of Spark, for the writer and for what reads its files again.
 * Little-endian. Source: sparkjsdev/spark, rust/spark-lib/src/rad.rs and splat_encode.rs; no other
 * description exists.
 *
 *   "RAD0"  u32 bytes of the text   text, JSON; up to a multiple of 8 zeros
 *   chunk after chunk:
 *     "RADC"  u32 bytes of the text   text, JSON; up to a multiple of 8 zeros   u64 bytes of the payload   payload
 *
 * The file's text says where the chunks are, counted from its own end; a chunk's has its rows,
 * "base" and "count", and where its properties are in the payload, each a raw DEFLATE stream that
 * is filled up to a multiple of 8. A property is planes of all rows, value after value, but for
 * centres, which are cut into planes of bytes, and rotations, whose three bytes stay together.
 *
 *   property      encoding      values of a row
 *   center        f32_lebytes   x y z
 *   alpha         f16           opacity: below 1 as it is; above, (d + 3) / 4 with d = sqrt(1 + e
 *                               ln o), where o is the weight of a merged row over its own surface
 *                               (Spark draws such a row as wide as o of its kind that lie over each
 *                               other), at most 2
 *   rgb           f16           0.5 + C0 sh0
 *   scales        ln_f16        logarithms
 *   orientation   oct88r8       axis in two bytes of an octahedron, angle in one
 *   sh1 sh2 sh3   s8            coefficients of a degree, -127 .. 127 of the property's "max";
 *                               colours inside
 *   child_count   u16           number of rows below
 *   child_start   u32           place of the first of them
 */
#ifndef KILN_STAGES_FORMATS_RAD_RAD_H
#define KILN_STAGES_FORMATS_RAD_RAD_H

#include <stdint.h>

enum {
    KILN_RAD_CHUNK = 65536 /* rows; the last one may have fewer */,
    KILN_RAD_DEGREE_MAX = 3,
    KILN_RAD_SH_MOST = 127
};

#define KILN_RAD_FILE "RAD0"
#define KILN_RAD_CHUNK_MARK "RADC"
enum { KILN_RAD_TEXT_AT = 8, KILN_RAD_ALIGN = 8, KILN_RAD_DEFLATE = -15 /* zlib's windowBits */ };

static inline uint64_t kiln_rad_padded(uint64_t bytes)
{
    return (bytes + KILN_RAD_ALIGN - 1) / KILN_RAD_ALIGN * KILN_RAD_ALIGN;
}

#define KILN_RAD_KEY_CHUNKS "chunks"
#define KILN_RAD_KEY_OFFSET "offset" /* of a chunk, of a property */
#define KILN_RAD_KEY_BYTES "bytes"
#define KILN_RAD_KEY_DEGREE "maxSh"
#define KILN_RAD_KEY_BASE "base" /* number of a chunk's first row */
#define KILN_RAD_KEY_COUNT "count"
#define KILN_RAD_KEY_PAYLOAD "payloadBytes"
#define KILN_RAD_KEY_PROPERTIES "properties"
#define KILN_RAD_KEY_PROPERTY "property"
#define KILN_RAD_KEY_MIN "min"
#define KILN_RAD_KEY_MAX "max"

enum {
    KILN_RAD_CENTRE,
    KILN_RAD_ALPHA,
    KILN_RAD_RGB,
    KILN_RAD_SCALES,
    KILN_RAD_ROTATION,
    KILN_RAD_SH1, /* and those of the higher degrees */
    KILN_RAD_BELOW = KILN_RAD_SH1 + KILN_RAD_DEGREE_MAX,
    KILN_RAD_FIRST_BELOW,
    KILN_RAD_PROPERTIES
};

typedef struct {
    const char *name, *encoding;
    uint32_t n, size; /* values of a row, bytes of each */
} kiln_rad_property;

static inline const kiln_rad_property *kiln_rad_property_of(int which)
{
    static const kiln_rad_property all[KILN_RAD_PROPERTIES] = {
        [KILN_RAD_CENTRE] = {"center", "f32_lebytes", 3, 4},
        [KILN_RAD_ALPHA] = {"alpha", "f16", 1, 2},
        [KILN_RAD_RGB] = {"rgb", "f16", 3, 2},
        [KILN_RAD_SCALES] = {"scales", "ln_f16", 3, 2},
        [KILN_RAD_ROTATION] = {"orientation", "oct88r8", 3, 1},
        [KILN_RAD_SH1] = {"sh1", "s8", 9, 1},
        [KILN_RAD_SH1 + 1] = {"sh2", "s8", 15, 1},
        [KILN_RAD_SH1 + 2] = {"sh3", "s8", 21, 1},
        [KILN_RAD_BELOW] = {"child_count", "u16", 1, 2},
        [KILN_RAD_FIRST_BELOW] = {"child_start", "u32", 1, 4},
    };
    return &all[which];
}

#endif
