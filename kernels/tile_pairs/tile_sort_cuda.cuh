/* tile_sort_cuda -- makes lists from (tile, Gaussian) pairs: a stable sort by tile (kernels/sort/radix_cuda.cuh), over the bits
 * that tile numbers need, and then the number of pairs of each tile.
 */
#ifndef KILN_KERNELS_TILE_PAIRS_TILE_SORT_CUDA_CUH
#define KILN_KERNELS_TILE_PAIRS_TILE_SORT_CUDA_CUH

#include "kernels/sort/sort.cuh"
#include "kernels/tile_pairs/tile_capacity_cuda.cuh"

namespace
{

enum { TILE_BLOCK = 256, NARROW_TILES = 65536 }; /* NARROW_TILES: up to so many tiles have 16-bit numbers */

/* Counts the pairs of each tile from the sorted tiles. Where a tile begins, that place is subtracted from its count; where it ends,
 * added, modulo 2^32. Elements behind the listed pairs are ignored. counts must be 0 before; sorted is 16-byte aligned. */
template <typename Tile>
__global__ void __launch_bounds__(TILE_BLOCK) count_by_tile(const Tile *sorted, const capacity_rule rule, uint32_t *counts)
{
    constexpr uint32_t EACH = sizeof(uint4) / sizeof(Tile), STEP = TILE_BLOCK * EACH;
    kiln::launch_before_is_done();
    const uint64_t n = rule.listed();
    for (uint64_t base = static_cast<uint64_t>(blockIdx.x) * STEP; base < n; base += static_cast<uint64_t>(gridDim.x) * STEP) {
        const uint64_t first = base + threadIdx.x * EACH, end = min(first + EACH, n);
        alignas(uint4) Tile tiles[EACH] = {};
        if (first + EACH <= n)
            *reinterpret_cast<uint4 *>(tiles) = *reinterpret_cast<const uint4 *>(&sorted[first]);
        else
            for (uint32_t k = 0; k < EACH; k++)
                if (first + k < n) tiles[k] = sorted[first + k];
        Tile before = static_cast<Tile>(__shfl_up_sync(~0u, static_cast<uint32_t>(tiles[EACH - 1]), 1));
        if (threadIdx.x % 32 == 0 && first > 0 && first < n) before = sorted[first - 1];
#pragma unroll
        for (uint32_t k = 0; k < EACH; k++) {
            const uint64_t i = first + k;
            if (i >= end) break;
            const bool begins = i == 0 || tiles[k] != before;
            if (begins) atomicAdd(&counts[tiles[k]], 0u - static_cast<uint32_t>(i));
            if (begins && i > 0) atomicAdd(&counts[before], static_cast<uint32_t>(i));
            if (i == n - 1) atomicAdd(&counts[tiles[k]], static_cast<uint32_t>(n));
            before = tiles[k];
        }
    }
}

/* ---- launchers ------------------------------------------------------------------------------------------------------- */
template <typename Tile> struct tile_sort {
    kiln::radix_sort<Tile> radix;

    unsigned lists() const { return (radix.plan.passes - 1) % 2; } /* where the last pass writes */
    /* [capacity] each: where pairs are written, which is where the first pass does not write. */
    Tile *tiles() const { return radix.keys[1]; }
    uint32_t *ids() const { return radix.values[1]; }
};

/* What the radix sort reads. */
template <typename Tile> struct tile_input {
    capacity_rule rule;
    const Tile *tiles;
    const uint32_t *ids;

    __device__ uint64_t count() const { return rule.listed(); }
    __device__ Tile key(uint64_t i) const { return tiles[i]; }
    __device__ uint32_t value(uint64_t i) const { return ids[i]; }
};

/* ids [capacity]: where the lists are to be. state: cleared by the caller before the sort. */
template <typename Tile>
void lay_out_tile_sort(tile_sort<Tile> *s, kiln_carve *c, uint64_t capacity, uint64_t n_tiles, uint32_t *ids,
                       kiln::radix_state *state)
{
    unsigned bits = 1;
    while (n_tiles > 1ull << bits) bits++;
    *s = {};
    kiln::lay_out_radix(&s->radix, c, capacity, bits, state);
    for (Tile *&tiles : s->radix.keys) tiles = kiln::take<Tile>(c, capacity);
    s->radix.values[s->lists()] = ids;
    s->radix.values[1 - s->lists()] = kiln::take<uint32_t>(c, capacity);
}

/* Sorts the pairs and counts them in tile_counts, which must be 0. */
template <typename Tile>
kiln_status sort_lists(const kiln_exec *x, const tile_sort<Tile> &s, const capacity_rule &rule, uint32_t *tile_counts,
                       kiln_error *err)
{
    unsigned at;
    CUDA_RUN(kiln::run_radix(s.radix, tile_input<Tile>{rule, s.tiles(), s.ids()}, x->stream, &at));
    LAUNCH_EARLY(count_by_tile<Tile>, kiln::blocks_for(s.radix.n, TILE_BLOCK * sizeof(uint4) / sizeof(Tile)), TILE_BLOCK,
                 s.radix.keys[at], rule, tile_counts);
    return KILN_OK;
}

} // namespace

#endif
