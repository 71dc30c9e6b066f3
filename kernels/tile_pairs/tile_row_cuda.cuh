/* tile_row_cuda -- finds which tiles of one tile row a Gaussian reaches. Half a warp does it: each
 * lane has one pixel row of the tile row. Tile columns are handled in windows of 64, as bits of a
 * word.
 *
 * Results go to `put(at, bits)`: bit k is tile column at + k. All lanes of the group call it
 * together, and only if bits is not 0. The tiles are those of tile_pairs_cpu.c; which pixels are
 * evaluated to find them may differ.
 */
#ifndef KILN_KERNELS_TILE_ROW_CUDA_CUH
#define KILN_KERNELS_TILE_ROW_CUDA_CUH

#include "kernels/tile_pairs/tile_pairs_math.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <stdint.h>

namespace
{

namespace cg = cooperative_groups;
using row_group = cg::thread_block_tile<KILN_TILE>;

constexpr int32_t WINDOW = 64;

/* The pixel row of one lane. */
struct pixel_row {
    float x, half_a, slope, base, power_min;
    bool inside; /* the picture, and the rows that may be reached */

    __device__ pixel_row(const kiln_splat2d &s, const kiln_tile_row &r, uint32_t i)
    {
        const float dy = kiln_power_offset(s.y, r.py0 + i);
        x = s.x;
        half_a = kiln_power_half(s.conic[0]);
        slope = kiln_power_slope(s.conic[1], dy);
        base = kiln_power_base(kiln_power_half(s.conic[2]), dy);
        power_min = s.power_min;
        inside = i >= r.begin && i < r.end;
    }
    __device__ float offset(int32_t px) const
    {
        return kiln_power_offset(x, static_cast<uint32_t>(px));
    }
    __device__ bool reaches(int32_t px) const
    {
        return kiln_power_at(half_a, slope, base, offset(px)) >= power_min;
    }
};

/* Returns the columns [first, last] as bits of the window that begins at column `at`. */
__device__ uint64_t columns_of(int32_t first, int32_t last, int32_t at)
{
    const int32_t from = max(first - at, 0), to = min(last - at, WINDOW - 1);
    return from <= to ? ~0ull << from & ~0ull >> (WINDOW - 1 - to) : 0;
}

/* Adds the tiles of the window in which a pixel of [first, last] is reached. Tiles that are set in
 * `bits` already are skipped. */
__device__ uint64_t add_pixels(const pixel_row &p, int32_t first, int32_t last, int32_t at,
                               uint64_t bits)
{
    last = min(last, (at + WINDOW) * KILN_TILE - 1);
    for (int32_t px = max(first, at * KILN_TILE); px <= last;) {
        const int32_t column = px / KILN_TILE;
        if (bits >> (column - at) & 1)
            px = (column + 1) * KILN_TILE;
        else if (p.reaches(px))
            bits |= 1ull << (column - at);
        else
            px++;
    }
    return bits;
}

/* For KILN_REACH_INTERVAL: first the proven columns, then the pixels that the proof leaves open. */
template <typename Put>
__device__ void put_intervals(const row_group &g, const pixel_row &p, const kiln_tile_row &r,
                              const Put &put)
{
    kiln_row_span span = {0, -1, 0, -1};
    if (p.inside)
        span = kiln_row_reach(p.x, p.half_a, p.slope, p.base, p.power_min, r.column * KILN_TILE,
                              r.px1);
    const bool may = span.may_first <= span.may_last, sure = span.sure_first <= span.sure_last;
    const int32_t from =
        cg::reduce(g, may ? span.may_first / KILN_TILE : INT32_MAX, cg::less<int32_t>());
    const int32_t to = cg::reduce(g, may ? span.may_last / KILN_TILE : -1, cg::greater<int32_t>());
    /* if nothing is sure, all columns are left */
    const int32_t left_last = sure ? span.sure_first - 1 : span.may_last;
    const int32_t right_first = sure ? span.sure_last + 1 : span.may_last + 1;
    for (int32_t at = from; at <= to; at += WINDOW) {
        uint64_t bits =
            sure ? columns_of(span.sure_first / KILN_TILE, span.sure_last / KILN_TILE, at) : 0;
        bits = cg::reduce(g, bits, cg::bit_or<uint64_t>());
        bits = add_pixels(p, span.may_first, left_last, at, bits);
        bits = add_pixels(p, right_first, span.may_last, at, bits);
        bits = cg::reduce(g, bits, cg::bit_or<uint64_t>());
        if (bits) put(at, bits);
    }
}

/* Returns true if this lane's pixel row reaches the threshold within the tile. */
__device__ bool tile_reached(const pixel_row &p, const kiln_tile_row &r, int32_t column)
{
    const int32_t first = column * KILN_TILE, last = min(first + KILN_TILE - 1, r.px1);
    if (!p.inside) return false;
    if (r.reach == KILN_REACH_ENDS &&
        kiln_ends_miss(p.half_a, p.slope, p.base, p.power_min, p.offset(first), p.offset(last)))
        return false;
    for (int32_t px = first; px <= last; px++)
        if (p.reaches(px)) return true;
    return false;
}

/* Goes tile by tile: for Gaussians without proven intervals, and for rows with few tiles. There a
 * square root in double costs more than the pixels, because graphics GPUs compute doubles
 * slowly. */
template <typename Put>
__device__ void put_tiles(const row_group &g, const pixel_row &p, const kiln_tile_row &r,
                          const Put &put)
{
    for (int32_t first = 0; first < r.n; first += WINDOW) {
        const int32_t at = r.column + first, n = min(r.n - first, WINDOW);
        uint64_t bits = 0;
        for (int32_t k = 0; k < n; k++)
            if (g.any(tile_reached(p, r, at + k))) bits |= 1ull << k;
        if (bits) put(at, bits);
    }
}

/* Finds the tiles of one Gaussian in one tile row. Arguments are the same in all lanes. */
template <typename Put>
__device__ void put_row(const row_group &g, const kiln_splat2d &s, const kiln_tile_row &r,
                        const Put &put)
{
    const pixel_row p(s, r, g.thread_rank());
    if (r.reach == KILN_REACH_INTERVAL && r.n > KILN_FEW_TILES)
        put_intervals(g, p, r, put);
    else
        put_tiles(g, p, r, put);
}

} // namespace

#endif
