/* ksplat -- the layout of .ksplat of mkkellogg's viewer, version 0.1, for reader and writers.
 * Little-endian (mkkellogg/GaussianSplats3D src/loaders/SplatBuffer.js).
 *
 * The header, 4096 bytes:
 *   0  u8 0, u8 1: version 0.1     4  u32 room for sections, u32 sections     12  u32 room for
 *       rows, u32 rows     20  u16 level
 *   24 3 f32 centre of the scene   36 f32 least, f32 greatest SH coefficient: what the codes 0 and
 *                                  255 of level 2 stand for; 0
 *      means -1.5 and 1.5
 *
 * 1024 bytes for each section that there is room for:
 *   0  u32 rows, u32 room for rows     8  u32 rows of a full bucket, u32 buckets     16  f32 block
 *       size
 *   20 u16 bytes of a centre     24  u32 range of positions (0 means 32767), u32 bytes of its data
 *   32 u32 full buckets, u32 others     40  u16 SH degree
 *
 * Then section by section:
 *   u32 rows of each bucket that is not full, 3 f32 centre of each bucket (the full ones first; level 0 has neither of these), and
 *   records, as many as there is room for:
 *
 *   level 0      3 f32 position, 3 f32 scale, 4 f32 rotation w x y z, 4 u8 colour and alpha, SH as
 *                f32
 *   level 1, 2   3 u16 position in the bucket, 3 half, 4 half, 4 u8, SH as half (1) or u8 (2)
 *
 * Positions of levels 1 and 2 are centre + (code - range) block size / 2 / range, codes 0 .. 2
 * range. Scales are linear. SH stands band by band, channel-major in each.
 */
#ifndef KILN_STAGES_FORMATS_KSPLAT_KSPLAT_H
#define KILN_STAGES_FORMATS_KSPLAT_KSPLAT_H

#include "base/harmonics.h"

#include <stdint.h>

/* ---- headers --------------------------------------------------------------------------------- */

enum { KILN_KSPLAT_MAJOR = 0, KILN_KSPLAT_MINOR = 1, KILN_KSPLAT_LEVEL_MAX = 2 };

enum {
    KILN_KSPLAT_SECTIONS_CAPACITY_AT = 4,
    KILN_KSPLAT_SECTIONS_AT = 8,
    KILN_KSPLAT_ROWS_CAPACITY_AT = 12,
    KILN_KSPLAT_ROWS_AT = 16,
    KILN_KSPLAT_LEVEL_AT = 20,
    KILN_KSPLAT_SH_LEAST_AT = 36,
    KILN_KSPLAT_SH_MOST_AT = 40,
    KILN_KSPLAT_FIELDS = 44, /* bytes of them; what follows is 0 */
    KILN_KSPLAT_HEADER = 4096,
};

enum {
    KILN_KSPLAT_SECTION_ROWS_AT = 0,
    KILN_KSPLAT_SECTION_CAPACITY_AT = 4,
    KILN_KSPLAT_BUCKET_ROWS_AT = 8,
    KILN_KSPLAT_BUCKETS_AT = 12,
    KILN_KSPLAT_BLOCK_SIZE_AT = 16,
    KILN_KSPLAT_CENTRE_BYTES_AT = 20,
    KILN_KSPLAT_RANGE_AT = 24,
    KILN_KSPLAT_SECTION_BYTES_AT = 28,
    KILN_KSPLAT_FULL_AT = 32,
    KILN_KSPLAT_PARTIAL_AT = 36,
    KILN_KSPLAT_DEGREE_AT = 40,
    KILN_KSPLAT_SECTION = 1024,
};

enum { KILN_KSPLAT_LENGTH = 4, KILN_KSPLAT_CENTRE = 12 }; /* bytes, of a bucket */
/* Spark takes this one whatever the file says */
enum { KILN_KSPLAT_RANGE = 32767 };
#define KILN_KSPLAT_SH_RANGE 1.5

/* ---- records --------------------------------------------------------------------------------- */

/* Bytes of a number and of an SH coefficient, and where a record's fields begin; positions are the
 * first. */
typedef struct {
    uint32_t real, coefficient;
    uint32_t scales, quats, colours, alpha, sh;
} kiln_ksplat_record;

static inline kiln_ksplat_record kiln_ksplat_record_of(uint32_t level)
{
    const uint32_t real = level ? 2 : 4;
    return (kiln_ksplat_record){.real = real,
                                .coefficient = level < 2 ? real : 1,
                                .scales = 3 * real,
                                .quats = 6 * real,
                                .colours = 10 * real,
                                .alpha = 10 * real + 3,
                                .sh = 10 * real + 4};
}

static inline uint32_t kiln_ksplat_row_bytes(uint32_t level, uint32_t degree)
{
    const kiln_ksplat_record r = kiln_ksplat_record_of(level);
    return r.sh + r.coefficient * kiln_sh_components(degree);
}

/* The plane of shN that value v of a row's SH goes to: bands of 9, 15, 21 values, of which each
 * channel has a third. */
static inline uint32_t kiln_ksplat_sh_plane(uint32_t v)
{
    uint32_t first = 0, width = 3, coefficient = 0; /* of the band */
    while (v >= first + 3 * width) {
        first += 3 * width;
        coefficient += width;
        width += 2;
    }
    return 3 * (coefficient + (v - first) % width) + (v - first) / width;
}

#endif
