/* tile_record_cuda -- the pairs of one Gaussian in one word. The records of 3.6 M Gaussians are 29 MB, which stay in the L2 cache
 * until they are fetched in drawing order.
 *
 *            MASK: a box of at most 64 tiles       LISTED: a wide or odd Gaussian
 *   0 .. 31  bit k: tile k of the box is reached   0 .. 55  number of pairs; later the place of the next pair
 *            (tiles are counted row by row)
 *  32 .. 55  first tile of the box, from row0 on
 *  56 .. 62  width of the box in tiles, 1 to 64    56 .. 63  all 1
 *  63        the box has more than 32 tiles; bits
 *            32 .. 63 are in records.more
 *
 * A word of 0 means no pairs.
 */
#ifndef KILN_KERNELS_TILE_RECORD_CUDA_CUH
#define KILN_KERNELS_TILE_RECORD_CUDA_CUH

#include "kernels/cuda.cuh"

namespace
{

struct record {
    static constexpr uint64_t LISTED = 0xffull << 56, LONG = 1ull << 63, FIRST_TILES = 1ull << 24;
    uint64_t bits;

    __device__ static record of_box(uint64_t mask, uint64_t first_tile, uint32_t w, bool is_long)
    {
        return {(is_long ? LONG : 0) | static_cast<uint64_t>(w) << 56 | first_tile << 32 | (mask & UINT32_MAX)};
    }
    __device__ static record of_listed(uint64_t count) { return {LISTED | count}; }

    __device__ bool is_listed() const { return bits >= LISTED; }
    __device__ bool is_long() const { return bits >= LONG && !is_listed(); }
    __device__ uint64_t count() const { return bits & ~LISTED; } /* of LISTED */
    __device__ uint32_t low() const { return static_cast<uint32_t>(bits); }
    __device__ uint32_t first_tile() const { return static_cast<uint32_t>(bits >> 32) & (FIRST_TILES - 1); }
    __device__ uint32_t w() const { return static_cast<uint32_t>(bits >> 56) & 127; }
};
static_assert(sizeof(record) == sizeof(uint64_t), "one word");

/* [n] each. more: the upper halves of masks; only those of boxes with more than 32 tiles are set. */
struct records {
    record *words;
    uint32_t *more;

    __device__ uint64_t mask(uint32_t id, const record &r) const
    {
        if (r.is_listed()) return 0;
        return r.is_long() ? static_cast<uint64_t>(more[id]) << 32 | r.low() : r.low();
    }
    __device__ uint64_t pairs(const record &r, uint64_t mask) const { return r.is_listed() ? r.count() : __popcll(mask); }
    /* For a LISTED record: adds pairs that were found, or takes places for pairs. Returns the value before. */
    __device__ uint64_t add(uint32_t id, uint64_t count) const
    {
        return record{atomicAdd(reinterpret_cast<unsigned long long *>(&words[id].bits), count)}.count();
    }
};

} // namespace

#endif
