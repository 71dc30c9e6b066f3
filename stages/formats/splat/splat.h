/* splat -- the layout of .splat of antimatter15's viewer, for reader and writer: rows of 32 bytes
 * and nothing else, little-endian (antimatter15/splat convert.py and main.js).
 *
 *   0  3 f32 x y z     12  3 f32 scale, linear     24  4 u8 red green blue alpha     28  4 u8
 *       quaternion w x y z, 128 q + 128
 */
#ifndef KILN_STAGES_FORMATS_SPLAT_SPLAT_H
#define KILN_STAGES_FORMATS_SPLAT_SPLAT_H

enum {
    KILN_SPLAT_SCALE_AT = 12,
    KILN_SPLAT_COLOUR_AT = 24,
    KILN_SPLAT_ALPHA_AT = 27,
    KILN_SPLAT_QUAT_AT = 28,
    KILN_SPLAT_ROW_BYTES = 32,
};
#define KILN_SPLAT_QUAT_STEPS 128.0f /* codes to 1; the code of 0 too */

#endif
