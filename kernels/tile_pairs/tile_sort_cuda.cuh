/* tile_sort_cuda -- from (tile, Gaussian) pairs to lists: CUB's stable sort by tile alone, over the bits that the tiles need, and
 * how many pairs each tile then has.
 */
#ifndef KILN_KERNELS_TILE_PAIRS_TILE_SORT_CUDA_CUH
#define KILN_KERNELS_TILE_PAIRS_TILE_SORT_CUDA_CUH

#include "kernels/sort/sort.cuh"
#include "kernels/tile_pairs/tile_room_cuda.cuh"

namespace
{

enum { TILE_BLOCK = 256, NARROW_TILES = 65536 }; /* up to so many are numbered with 16 bits */

/* How many of the sorted numbers are less than v. */
template <typename Tile> __device__ uint64_t count_less(const Tile *sorted, uint64_t n, uint64_t v)
{
    uint64_t low = 0, high = n;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (sorted[middle] < v)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A block finds where its tiles begin, and where the next one does. What lies behind the listed pairs is no tile's. */
template <typename Tile>
__global__ void __launch_bounds__(TILE_BLOCK)
    count_by_tile(const Tile *sorted, const room_rule room, uint32_t *tile_counts, uint64_t n_tiles)
{
    __shared__ uint64_t begins[TILE_BLOCK + 1];
    const uint64_t n = room.listed();
    for (uint64_t first = static_cast<uint64_t>(blockIdx.x) * TILE_BLOCK; first < n_tiles; first += kiln::thread_count()) {
        begins[threadIdx.x] = count_less(sorted, n, first + threadIdx.x);
        if (threadIdx.x == TILE_BLOCK - 1) begins[TILE_BLOCK] = count_less(sorted, n, first + TILE_BLOCK);
        __syncthreads();
        if (first + threadIdx.x < n_tiles)
            tile_counts[first + threadIdx.x] = static_cast<uint32_t>(begins[threadIdx.x + 1] - begins[threadIdx.x]);
        __syncthreads();
    }
}

/* ---- launchers ------------------------------------------------------------------------------------------------------- */
template <typename Tile> struct tile_sort {
    uint64_t room, n_tiles;
    Tile *tiles[2]; /* [room] */
    uint32_t *ids[2];
    int tile_bits;
    void *temp;
    size_t temp_bytes;
};

/* ids [room]: where pairs are written and lists are wanted. */
template <typename Tile>
cudaError_t lay_out_tile_sort(tile_sort<Tile> *s, kiln_carve *c, uint64_t room, uint64_t n_tiles, uint32_t *ids,
                              cudaStream_t stream)
{
    *s = {};
    s->room = room;
    s->n_tiles = n_tiles;
    for (s->tile_bits = 1; n_tiles > 1ull << s->tile_bits;) s->tile_bits++;
    s->tiles[0] = kiln::take<Tile>(c, room);
    s->tiles[1] = kiln::take<Tile>(c, room);
    s->ids[0] = ids;
    s->ids[1] = kiln::take<uint32_t>(c, room);
    kiln::sort_pairs<Tile> by_tile = {{s->tiles[0], s->tiles[1]}, {s->ids[0], s->ids[1]}};
    const cudaError_t e = kiln::sort(nullptr, &s->temp_bytes, &by_tile, room, s->tile_bits, stream);
    s->temp = kiln_take(c, s->temp_bytes, 1);
    return e;
}

/* Of tiles[0] and ids[0]; what is behind the pairs has the highest number. */
template <typename Tile>
kiln_status sort_lists(const kiln_exec *x, const tile_sort<Tile> &s, const room_rule &room, uint32_t *tile_counts, kiln_error *err)
{
    kiln::sort_pairs<Tile> by_tile = {{s.tiles[0], s.tiles[1]}, {s.ids[0], s.ids[1]}};
    size_t temp_bytes = s.temp_bytes;
    CUDA_RUN(kiln::sort(s.temp, &temp_bytes, &by_tile, s.room, s.tile_bits, x->stream));
    CUDA_RUN(kiln::bring(s.ids[0], by_tile.values[0], s.room, x->stream));
    LAUNCH(count_by_tile<Tile>, kiln::blocks_for(s.n_tiles, TILE_BLOCK), TILE_BLOCK, 0, by_tile.keys[0], room, tile_counts,
           s.n_tiles);
    return KILN_OK;
}

} // namespace

#endif
