/* spatial_order_math -- the Hilbert curve of 21 levels as a table-driven state machine: cell ->
 * code, code -> cell, and the walk down from a cell to its children.
 *
 * A state is one of the 12 orientations in which the curve passes through a cube. In it the cube's
 * children are visited in the order digit 0 .. 7, child `digit` is octant o (bit 0: upper half in
 * x, bit 1: y, bit 2: z) and is itself passed in another state. A code is the digits from the root
 * down, 3 bits a level: the codes of an octree cell of level L are one contiguous range, those that
 * share their top 3 L bits; neighbouring codes are cells with a common face.
 *
 * Tables: derived from entry point and direction of the curve in each child after C. Hamilton,
 * "Compact Hilbert Indices", Dalhousie University CS-2006-07, for 3 dimensions; the 12 orientations
 * that are reached from the root's.
 */
#ifndef KILN_KERNELS_SPATIAL_ORDER_MATH_H
#define KILN_KERNELS_SPATIAL_ORDER_MATH_H

#include "base/hd.h"
#include "kernels/spatial_order/spatial_order.h"

#include <stdint.h>

enum { KILN_HILBERT_ROOT = 0, KILN_HILBERT_STATES = 12 };

/* state * 8 + digit -> the child's state * 8 + its octant */
static inline KILN_HD uint32_t kiln_hilbert_child(uint32_t state, uint32_t digit)
{
    static const uint8_t table[KILN_HILBERT_STATES * 8] = {
        8,  18, 22, 28, 29, 39, 35, 41, 16, 4,  5,  49, 51, 63, 62, 66, 0,  9,  11, 74,
        78, 87, 85, 92, 86, 68, 64, 2,  3,  73, 77, 55, 93, 52, 54, 71, 67, 42, 40, 1,
        75, 63, 62, 82, 80, 4,  5,  33, 37, 89, 88, 12, 14, 26, 27, 79, 43, 73, 77, 95,
        94, 68, 64, 10, 30, 87, 85, 36, 32, 9,  11, 58, 59, 42, 40, 17, 21, 52, 54, 31,
        70, 26, 27, 47, 45, 89, 88, 20, 53, 39, 35, 57, 56, 18, 22, 84,
    };
    return table[state * 8 + digit];
}

/* state * 8 + octant -> the child's state * 8 + its digit */
static inline KILN_HD uint32_t kiln_hilbert_digit(uint32_t state, uint32_t octant)
{
    static const uint8_t table[KILN_HILBERT_STATES * 8] = {
        8,  47, 17, 38, 27, 28, 18, 37, 16, 51, 71, 52, 1,  2,  62, 61, 0,  9,  75, 10,
        95, 86, 76, 85, 66, 77, 3,  4,  65, 78, 80, 55, 46, 7,  45, 68, 49, 88, 50, 67,
        84, 39, 83, 72, 5,  6,  58, 57, 90, 89, 29, 30, 11, 32, 12, 79, 70, 73, 15, 40,
        69, 74, 92, 91, 36, 13, 63, 14, 35, 82, 24, 81, 42, 19, 41, 56, 53, 20, 54, 31,
        94, 93, 25, 26, 23, 44, 64, 43, 60, 59, 21, 34, 87, 48, 22, 33,
    };
    return table[state * 8 + octant];
}

/* cell: three coordinates of KILN_HILBERT_BITS bits */
static inline KILN_HD uint64_t kiln_hilbert_code(const uint32_t cell[3])
{
    uint64_t code = 0;
    uint32_t state = KILN_HILBERT_ROOT;
    for (int bit = KILN_HILBERT_BITS - 1; bit >= 0; bit--) {
        const uint32_t octant =
            (cell[0] >> bit & 1u) | (cell[1] >> bit & 1u) << 1 | (cell[2] >> bit & 1u) << 2;
        const uint32_t next = kiln_hilbert_digit(state, octant);
        code = code << 3 | (next & 7u);
        state = next >> 3;
    }
    return code;
}

static inline KILN_HD void kiln_hilbert_cell(uint64_t code, uint32_t cell[3])
{
    uint32_t state = KILN_HILBERT_ROOT;
    cell[0] = cell[1] = cell[2] = 0;
    for (int bit = KILN_HILBERT_BITS - 1; bit >= 0; bit--) {
        const uint32_t next = kiln_hilbert_child(state, (uint32_t)(code >> (3 * bit)) & 7u);
        for (int a = 0; a < 3; a++) cell[a] = cell[a] << 1 | (next >> a & 1u);
        state = next >> 3;
    }
}

/* Cell of one coordinate; lo = centre - half, scale = 2^20 / half (a power of two: the product is
 * exact). */
static inline KILN_HD uint32_t kiln_hilbert_coordinate(float x, double lo, double scale)
{
    const double v = ((double)x - lo) * scale;
    const uint32_t last = (1u << KILN_HILBERT_BITS) - 1;
    if (!(v > 0)) return 0;
    return v >= (double)last ? last : (uint32_t)v;
}

/* The root cube as cells need it. */
typedef struct {
    double lo[3], scale;
} kiln_hilbert_cube;

static inline kiln_hilbert_cube kiln_hilbert_cube_of(const double centre[3], double half)
{
    const double scale = (double)(1u << (KILN_HILBERT_BITS - 1)) / half;
    const kiln_hilbert_cube cube = {{centre[0] - half, centre[1] - half, centre[2] - half}, scale};
    return cube;
}

static inline KILN_HD uint64_t kiln_hilbert_code_of(const kiln_hilbert_cube *cube, float x, float y,
                                                    float z)
{
    const uint32_t cell[3] = {kiln_hilbert_coordinate(x, cube->lo[0], cube->scale),
                              kiln_hilbert_coordinate(y, cube->lo[1], cube->scale),
                              kiln_hilbert_coordinate(z, cube->lo[2], cube->scale)};
    return kiln_hilbert_code(cell);
}

#endif
