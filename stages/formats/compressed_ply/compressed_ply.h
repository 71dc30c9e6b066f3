/* compressed_ply -- the layout of PLY as PlayCanvas packs it, for reader and writer: little-endian,
 * 256 rows of vertex to a row of chunk, whose bounds the fields of 11, 10 or 8 bits lie between
 * (splat-transform compressed-chunk.ts, SuperSplat).
 *
 *   element chunk     a group of 256 rows, the last one may be shorter: 18 f32
 *     min_x min_y min_z max_x max_y max_z, the same of scale_x scale_y scale_z, and since 2024 of r g b (before: 0 .. 1)
 *   element vertex    16 bytes a row, 4 u32
 *     packed_position   [31..21] x, [20..11] y, [10..0] z: steps of 1/2047, 1/1023, 1/2047 between
 *                       the group's bounds
 *     packed_rotation   [31..30] which of w x y z is the largest, [29..20] [19..10] [9..0] the
 *                       others: steps of sqrt(2)/1023
 *     packed_scale      as packed_position
 *     packed_color      [31..24] r, [23..16] g, [15..8] b: steps of 1/255 between bounds; [7..0]
 *                       alpha: steps of 1/255
 *   element sh        may be absent or empty: 3K u8 a row, f_rest_i, channel-major: steps of 1/32
 *                     between -4 and 4
 *
 * Properties may stand in any order where they are read. Values between bounds are computed in
 * double and rounded once. */
#ifndef KILN_STAGES_FORMATS_COMPRESSED_PLY_COMPRESSED_PLY_H
#define KILN_STAGES_FORMATS_COMPRESSED_PLY_COMPRESSED_PLY_H

#include <stdint.h>

enum {
    KILN_PACKED_GROUP = 256, /* rows that share bounds */
    KILN_PACKED_BOUNDS = 18, /* numbers of them */
    KILN_PACKED_BOUNDS_BYTES = 4 * KILN_PACKED_BOUNDS,
    KILN_PACKED_SH_MAX = 45, /* of a row: degree 3 */
};

/* The properties of chunk: bound i is of KILN_PACKED_... i / 6, the least or greatest i / 3 % 2,
 * along axis i % 3. */
enum { KILN_PACKED_POSITIONS, KILN_PACKED_SCALES, KILN_PACKED_COLOURS };
static inline const char *kiln_packed_bound_name(int i)
{
    static const char *const names[KILN_PACKED_BOUNDS] = {
        "min_x",       "min_y",       "min_z",       "max_x",       "max_y",       "max_z",
        "min_scale_x", "min_scale_y", "min_scale_z", "max_scale_x", "max_scale_y", "max_scale_z",
        "min_r",       "min_g",       "min_b",       "max_r",       "max_g",       "max_b"};
    return names[i];
}

/* The properties of vertex. */
enum {
    KILN_PACKED_POSITION,
    KILN_PACKED_ROTATION,
    KILN_PACKED_SCALE,
    KILN_PACKED_COLOUR,
    KILN_PACKED_FIELDS
};
enum { KILN_PACKED_ROW_BYTES = 4 * KILN_PACKED_FIELDS };
static inline const char *kiln_packed_field_name(int i)
{
    static const char *const names[KILN_PACKED_FIELDS] = {"packed_position", "packed_rotation",
                                                          "packed_scale", "packed_color"};
    return names[i];
}

/* Where the codes of x, y, z and of r, g, b, alpha stand in their fields, and their bits. */
enum {
    KILN_PACKED_X_AT = 21,
    KILN_PACKED_Y_AT = 11,
    KILN_PACKED_Z_AT = 0,
    KILN_PACKED_XZ_BITS = 11,
    KILN_PACKED_Y_BITS = 10
};
enum {
    KILN_PACKED_RED_AT = 24,
    KILN_PACKED_GREEN_AT = 16,
    KILN_PACKED_BLUE_AT = 8,
    KILN_PACKED_COLOUR_BITS = 8
};
/* Of a rotation: which component is left out, and the codes of the other three from the highest
 * on. */
enum { KILN_PACKED_LARGEST_AT = 30, KILN_PACKED_PART_BITS = 10 };

/* The largest code of so many bits. */
#define KILN_PACKED_MOST(bits) ((1u << (bits)) - 1)

/* A component of a rotation by its code, which ends at bit `at`. */
static inline double kiln_packed_part(uint32_t rotation, int at)
{
    const double most = KILN_PACKED_MOST(KILN_PACKED_PART_BITS);
    return ((double)(int32_t)(rotation >> at & KILN_PACKED_MOST(KILN_PACKED_PART_BITS)) / most -
            0.5) *
           1.41421356237309505; /* sqrt(2) */
}

/* Codes of SH 1 .. 254 stand for the middles of steps, (code - 127.5) / 32; 0 and 255 for -4 and 4,
 * half a step further out. */
#define KILN_PACKED_SH_LIMIT 4.0f
#define KILN_PACKED_SH_STEPS 32.0f

#endif
