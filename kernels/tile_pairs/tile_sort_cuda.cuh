/* tile_sort_cuda -- makes lists from (tile, Gaussian) pairs: CUB's stable sort by tile, over the bits that tile numbers need, and
 * then the number of pairs of each tile.
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
    uint64_t capacity, n_tiles;
    Tile *tiles[2]; /* [capacity] */
    uint32_t *ids[2];
    int tile_bits;
    void *temp;
    size_t temp_bytes;
};

/* ids [capacity]: pairs are written there, and the lists end up there. */
template <typename Tile>
cudaError_t lay_out_tile_sort(tile_sort<Tile> *s, kiln_carve *c, uint64_t capacity, uint64_t n_tiles, uint32_t *ids,
                              cudaStream_t stream)
{
    *s = {};
    s->capacity = capacity;
    s->n_tiles = n_tiles;
    for (s->tile_bits = 1; n_tiles > 1ull << s->tile_bits;) s->tile_bits++;
    s->tiles[0] = kiln::take<Tile>(c, capacity);
    s->tiles[1] = kiln::take<Tile>(c, capacity);
    s->ids[0] = ids;
    s->ids[1] = kiln::take<uint32_t>(c, capacity);
    kiln::sort_pairs<Tile> by_tile = {{s->tiles[0], s->tiles[1]}, {s->ids[0], s->ids[1]}};
    const cudaError_t e = kiln::sort(nullptr, &s->temp_bytes, &by_tile, capacity, s->tile_bits, stream);
    s->temp = kiln_take(c, s->temp_bytes, 1);
    return e;
}

/* Sorts tiles[0] and ids[0] and writes tile_counts. Elements behind the pairs must have the highest tile number (fill_rest). */
template <typename Tile>
kiln_status sort_lists(const kiln_exec *x, const tile_sort<Tile> &s, const capacity_rule &rule, uint32_t *tile_counts,
                       kiln_error *err)
{
    kiln::sort_pairs<Tile> by_tile = {{s.tiles[0], s.tiles[1]}, {s.ids[0], s.ids[1]}};
    size_t temp_bytes = s.temp_bytes;
    CUDA_RUN(kiln::sort(s.temp, &temp_bytes, &by_tile, s.capacity, s.tile_bits, x->stream));
    CUDA_RUN(kiln::bring(s.ids[0], by_tile.values[0], s.capacity, x->stream));
    CUDA_RUN(cudaMemsetAsync(tile_counts, 0, s.n_tiles * sizeof *tile_counts, x->stream));
    LAUNCH(count_by_tile<Tile>, kiln::blocks_for(s.capacity, TILE_BLOCK * sizeof(uint4) / sizeof(Tile)), TILE_BLOCK, 0,
           by_tile.keys[0], rule, tile_counts);
    return KILN_OK;
}

} // namespace

#endif
