/* voxel_math -- Gaussians in a grid of voxels: what --filter-floaters and --filter-cluster compute
 * of a row. In doubles, with the same bits on every machine.
 *
 * What it means is what splat-transform 3.7.0 publishes; the code is ours.
 *
 *   grid     voxels are cubes with borders at multiples of their size in the scene's coordinates.
 *            4 x 4 x 4 of them are a block, with borders at multiples of four sizes.
 *   box      of a row: the smallest box around its 3-sigma box, whose axes are the Gaussian's own.
 *   density  of a voxel that touches the box: opacity exp(-d^2 / 2), d the distance in standard
 *            deviations from the mean to that point of the voxel that lies nearest to the mean in
 *            scene units. 0 of other voxels.
 *   solid    a voxel is solid if 1 - exp(-sum of densities) is at least OPACITY.
 *   hit      a solid voxel in a block that meets the box, at whose centre the row's own
 *            opacity exp(-d^2 / 2) is at least MIN. Such a voxel may lie outside the box.
 *
 * What differs from splat-transform:
 *   - It sums floats in the order of its GPU and stops at 7. Here densities are counted in 2^-23
 *     and added as integers, so no order changes a sum.
 *   - A row's near box is its box, unless that has more than KILN_VOXEL_ROW_MOST voxels: then it is
 *     cut to KILN_VOXEL_REACH voxels to each side of the mean. Blocks exist that meet the near box
 *     of a row. There sums are of all rows, but nothing is solid elsewhere, and a row hits nothing
 *     elsewhere. So an exploded scale costs what a large Gaussian costs.
 *   - The grid has 2^20 blocks to each side of the block that has the median of the means, an axis
 *     at a time. So a scene may lie far from 0. Voxels count from that block in integers; lengths
 *     do not. So no border and no result depends on where the grid lies. */
#ifndef KILN_STAGES_PRUNE_VOXEL_MATH_H
#define KILN_STAGES_PRUNE_VOXEL_MATH_H

#include "kernels/math/ellipsoid_math.h"
#include "stages/prune/voxel_box.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    KILN_VOXEL_SIDE = 4,        /* voxels of a block along an axis */
    KILN_VOXELS = 64,           /* of a block: x + 4 y + 16 z */
    KILN_VOXEL_UNIT = 1 << 23,  /* a density of 1 */
    KILN_VOXEL_REACH = 16,      /* voxels */
    KILN_VOXEL_BLOCKS = 1 << 20 /* of the grid, to each side */
};
#define KILN_VOXEL_ROW_MOST 0x1p15

typedef struct {
    double size;     /* of a voxel, in scene units */
    double shift[3]; /* added to the layer's means: then 0 is the border of a block */
    double first[3]; /* voxels from there to voxel 0 of the grid; a multiple of 4 */
} kiln_voxel_grid;

typedef struct {
    double mean[3];       /* shifted */
    double reach[3];      /* half of the box */
    double near_reach[3]; /* half of the near box */
    double whiten[9];     /* row-major: from an offset to standard deviations along the axes */
    double alpha;
    int32_t lo[3], hi[3];   /* voxels that touch the box */
    kiln_voxel_box touches; /* blocks that have them */
    kiln_voxel_box meets;   /* blocks that meet the near box */
    bool inside;            /* the grid has the mean; else lo to meets are not set */
} kiln_voxel_row;

/* origin: of the layer's means. middle: the means' median, as the layer has it. */
static inline kiln_voxel_grid kiln_voxel_grid_of(double size, const double origin[3],
                                                 const float middle[3])
{
    const double block = KILN_VOXEL_SIDE * size;
    kiln_voxel_grid g = {.size = size};
    for (int a = 0; a < 3; a++) {
        g.shift[a] = origin[a] - floor(origin[a] / block) * block;
        g.first[a] = KILN_VOXEL_SIDE * floor(((double)middle[a] + g.shift[a]) / block);
    }
    return g;
}

/* x clamped to the grid, where `most` is 2^20 blocks or as many voxels. */
static inline int32_t kiln_voxel_index(double x, int32_t most)
{
    return x < -most ? -most : x > most - 1 ? most - 1 : (int32_t)x;
}

static inline void kiln_voxel_set_ranges(const kiln_voxel_grid *g, kiln_voxel_row *row)
{
    const double size = g->size, block = KILN_VOXEL_SIDE * size;
    const int32_t most = KILN_VOXEL_SIDE * KILN_VOXEL_BLOCKS;
    for (int a = 0; a < 3; a++) {
        const double mean = row->mean[a], reach = row->reach[a], near = row->near_reach[a],
                     first = g->first[a], first_block = first / KILN_VOXEL_SIDE;
        row->lo[a] = kiln_voxel_index(ceil((mean - reach) / size - 1) - first, most);
        row->hi[a] = kiln_voxel_index(floor((mean + reach) / size) - first, most);
        row->touches.lo[a] = row->lo[a] >> 2;
        row->touches.hi[a] = row->hi[a] >> 2;
        row->meets.lo[a] =
            kiln_voxel_index(floor((mean - near) / block) - first_block, KILN_VOXEL_BLOCKS);
        row->meets.hi[a] =
            kiln_voxel_index(floor((mean + near) / block) - first_block, KILN_VOXEL_BLOCKS);
    }
}

static inline void kiln_voxel_set_near(double size, kiln_voxel_row *row)
{
    const double most = KILN_VOXEL_REACH * size;
    double n = 1;
    for (int a = 0; a < 3; a++) n *= 2 * row->reach[a] / size + 1;
    for (int a = 0; a < 3; a++)
        row->near_reach[a] = n > KILN_VOXEL_ROW_MOST && row->reach[a] > most ? most : row->reach[a];
}

/* mean: of the layer. Numbers as schema/row_check.h lets them pass. */
static inline void kiln_voxel_row_make(const kiln_voxel_grid *g, const float mean[3],
                                       const float log_scale[3], const float quat[4],
                                       float opacity_logit, kiln_voxel_row *out)
{
    const double sigmas = 3, least = -30, most = 30; /* so that no square overflows */
    const double q[4] = {(double)quat[0], (double)quat[1], (double)quat[2], (double)quat[3]};
    double turn[9], scale[3];
    kiln_rotation_of(q, turn);
    for (int k = 0; k < 3; k++) {
        const double s = (double)log_scale[k];
        scale[k] = kiln_exp_f64(s < least ? least : s > most ? most : s);
    }
    out->inside = true;
    for (int a = 0; a < 3; a++) {
        out->mean[a] = (double)mean[a] + g->shift[a];
        out->reach[a] = 0;
        for (int k = 0; k < 3; k++) {
            out->reach[a] += sigmas * fabs(turn[3 * a + k]) * scale[k];
            out->whiten[3 * k + a] = turn[3 * a + k] / scale[k];
        }
        const double blocks =
            out->mean[a] / (KILN_VOXEL_SIDE * g->size) - g->first[a] / KILN_VOXEL_SIDE;
        out->inside = out->inside && blocks >= -KILN_VOXEL_BLOCKS && blocks < KILN_VOXEL_BLOCKS;
    }
    out->alpha = 1 / (1 + kiln_exp_f64(-(double)opacity_logit));
    kiln_voxel_set_near(g->size, out);
    if (out->inside) kiln_voxel_set_ranges(g, out);
}

/* The sum of densities from which on a voxel is solid, in units. 0 < opacity < 1. */
static inline uint32_t kiln_voxel_need(double opacity)
{
    return (uint32_t)ceil(-kiln_log_f64(1 - opacity) * KILN_VOXEL_UNIT);
}

/* exp(x) of -20 <= x <= 0 by its Taylor series to r^11 / 11!, |r| <= ln 2 / 2; relative error below
 * 1e-13. It is most of the search, and kiln_exp_f64 divides 17 times. */
static inline double kiln_voxel_exp(double x)
{
    const int k = (int)(x * 1.4426950408889634 - 0.5); /* 1 / ln 2 */
    const double r = (x - k * KILN_LN2_HI) - k * KILN_LN2_LO;
    const uint64_t bits = (uint64_t)(1023 + k) << 52; /* 2^k */
    double sum = 1.0 / 39916800, power;
    sum = sum * r + 1.0 / 3628800;
    sum = sum * r + 1.0 / 362880;
    sum = sum * r + 1.0 / 40320;
    sum = sum * r + 1.0 / 5040;
    sum = sum * r + 1.0 / 720;
    sum = sum * r + 1.0 / 120;
    sum = sum * r + 1.0 / 24;
    sum = sum * r + 1.0 / 6;
    sum = sum * r + 0.5;
    sum = sum * r + 1;
    sum = sum * r + 1;
    memcpy(&power, &bits, sizeof power);
    return sum * power;
}

static inline uint32_t kiln_voxel_units(double density)
{
    return (uint32_t)(density * KILN_VOXEL_UNIT + 0.5);
}

/* Sums of whiten times an offset: what y and z give, to which x is added. */
static inline double kiln_voxel_distance2(const double whiten[9], double x, const double yz[3])
{
    double d2 = 0;
    for (int k = 0; k < 3; k++) {
        const double d = yz[k] + whiten[3 * k] * x;
        d2 += d * d;
    }
    return d2;
}

static inline void kiln_voxel_plane(const double whiten[9], double y, double z, double yz[3])
{
    for (int k = 0; k < 3; k++) yz[k] = whiten[3 * k + 1] * y + whiten[3 * k + 2] * z;
}

/* The row's densities of the voxels of a block that are wanted, in units. Returns which are above
 * 0; others are not set. */
static inline uint64_t kiln_voxel_densities(const kiln_voxel_grid *g, const kiln_voxel_row *row,
                                            const int32_t block[3], uint64_t wanted,
                                            uint32_t out[KILN_VOXELS])
{
    const double none = 34.66; /* exp(-d2 / 2) is below half a unit */
    double off[3][KILN_VOXEL_SIDE], yz[3];
    int from[3], to[3];
    uint64_t some = 0;
    for (int a = 0; a < 3; a++) {
        const int32_t first = KILN_VOXEL_SIDE * block[a];
        from[a] = row->lo[a] > first ? row->lo[a] - first : 0;
        to[a] = row->hi[a] - first < KILN_VOXEL_SIDE - 1 ? row->hi[a] - first : KILN_VOXEL_SIDE - 1;
        for (int i = from[a]; i <= to[a]; i++) {
            const double lower = (g->first[a] + first + i) * g->size - row->mean[a],
                         upper = (g->first[a] + first + i + 1) * g->size - row->mean[a];
            off[a][i] = lower > 0 ? lower : upper < 0 ? upper : 0;
        }
    }
    for (int z = from[2]; z <= to[2]; z++)
        for (int y = from[1]; y <= to[1]; y++) {
            kiln_voxel_plane(row->whiten, off[1][y], off[2][z], yz);
            for (int x = from[0]; x <= to[0]; x++) {
                const int at = 16 * z + 4 * y + x;
                if (!(wanted >> at & 1)) continue;
                const double d2 = kiln_voxel_distance2(row->whiten, off[0][x], yz);
                if (!(d2 < none)) continue;
                out[at] = kiln_voxel_units(row->alpha * kiln_voxel_exp(-0.5 * d2));
                some |= (uint64_t)(out[at] > 0) << at;
            }
        }
    return some;
}

/* The squared distance up to which alpha exp(-d2 / 2) is at least `min`; negative: nowhere. */
static inline double kiln_voxel_limit2(double alpha, double min)
{
    return min > 0 ? 2 * kiln_log_f64(alpha / min) : HUGE_VAL;
}

/* Which of a block's solid voxels the row hits. */
static inline uint64_t kiln_voxel_hits(const kiln_voxel_grid *g, const kiln_voxel_row *row,
                                       const int32_t block[3], uint64_t solid, double limit2)
{
    double off[3][KILN_VOXEL_SIDE], yz[3];
    uint64_t hits = 0;
    for (int a = 0; a < 3; a++)
        for (int i = 0; i < KILN_VOXEL_SIDE; i++)
            off[a][i] =
                (g->first[a] + KILN_VOXEL_SIDE * block[a] + i + 0.5) * g->size - row->mean[a];
    for (int at = 0; at < KILN_VOXELS; at++) {
        if (!(solid >> at & 1)) continue;
        kiln_voxel_plane(row->whiten, off[1][at >> 2 & 3], off[2][at >> 4], yz);
        const double d2 = kiln_voxel_distance2(row->whiten, off[0][at & 3], yz);
        hits |= (uint64_t)(d2 <= limit2) << at;
    }
    return hits;
}

/* The voxel of the row's mean: its block, and which of the block's. */
static inline int kiln_voxel_centre(const kiln_voxel_grid *g, const kiln_voxel_row *row,
                                    int32_t block[3])
{
    int at = 0;
    for (int a = 0; a < 3; a++) {
        const int32_t v = kiln_voxel_index(floor(row->mean[a] / g->size) - g->first[a],
                                           KILN_VOXEL_SIDE * KILN_VOXEL_BLOCKS);
        block[a] = (v - (v & (KILN_VOXEL_SIDE - 1))) / KILN_VOXEL_SIDE;
        at |= (v & (KILN_VOXEL_SIDE - 1)) << 2 * a;
    }
    return at;
}

/* Of --filter-cluster: how many voxels a row has to hit. If its near box is longer than two voxels,
 * a tenth of what that box holds, else one. */
static inline uint32_t kiln_voxel_hits_needed(double size, const kiln_voxel_row *row)
{
    double volume = 1, longest = 0;
    for (int a = 0; a < 3; a++) {
        volume *= 2 * row->near_reach[a] / size;
        longest = row->near_reach[a] > longest ? row->near_reach[a] : longest;
    }
    const double hits = longest > size ? ceil(0.1 * volume) : 1;
    return hits > 1 ? (uint32_t)hits : 1;
}

#endif
