/* tile_record_cuda -- the pairs of one Gaussian in one word. The records of 3.6 M Gaussians are 29
 * MB, which stay in the L2 cache until they are fetched in drawing order.
 *
 *            MASK: a box of at most 32 tiles       LISTED: a wide or odd Gaussian
 *   0 .. 31  bit k: tile k of the box is reached   0 .. 55  number of pairs; later the place of the
 *                                                           next pair
 *            (tiles are counted row by row)
 *  32 .. 55  first tile of the box, from row0 on
 *  56 .. 61  width of the box in tiles, 1 to 32    56 .. 63  all 1
 *
 * A word of 0 means no pairs.
 */
#ifndef KILN_KERNELS_TILE_PAIRS_TILE_RECORD_CUDA_CUH
#define KILN_KERNELS_TILE_PAIRS_TILE_RECORD_CUDA_CUH

#include "kernels/cuda.cuh"

namespace
{

constexpr uint32_t MASK_TILES = 32;

struct record {
    static constexpr uint64_t LISTED = 0xffull << 56, FIRST_TILES = 1ull << 24;
    uint64_t bits;

    __device__ static record of_box(uint32_t mask, uint64_t first_tile, uint32_t w)
    {
        return {static_cast<uint64_t>(w) << 56 | first_tile << 32 | mask};
    }
    __device__ static record of_listed(uint64_t count) { return {LISTED | count}; }

    __device__ bool is_listed() const { return bits >= LISTED; }
    __device__ uint64_t count() const { return bits & ~LISTED; } /* of LISTED */
    __device__ uint32_t mask() const { return is_listed() ? 0 : static_cast<uint32_t>(bits); }
    __device__ uint64_t pairs() const
    {
        return is_listed() ? count() : __popc(static_cast<uint32_t>(bits));
    }
    __device__ uint32_t first_tile() const
    {
        return static_cast<uint32_t>(bits >> 32) & (FIRST_TILES - 1);
    }
    __device__ uint32_t w() const { return static_cast<uint32_t>(bits >> 56) & 63; }
};
static_assert(sizeof(record) == sizeof(uint64_t), "one word");

/* For a LISTED record: adds pairs that were found, or takes places for pairs. Returns the value
 * before. */
__device__ inline uint64_t add_to_listed(record *r, uint64_t count)
{
    return record{atomicAdd(reinterpret_cast<unsigned long long *>(&r->bits), count)}.count();
}

} // namespace

#endif
