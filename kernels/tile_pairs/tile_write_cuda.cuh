/* tile_write_cuda -- what tile_find_cuda.cuh has found is written as (tile, rank) pairs, Gaussian by Gaussian: masks from the
 * records, others from their words. In which order the pairs of one of those are written is left to chance; no two are of one
 * tile.
 */
#ifndef KILN_KERNELS_TILE_WRITE_CUDA_CUH
#define KILN_KERNELS_TILE_WRITE_CUDA_CUH

#include "kernels/tile_pairs/tile_find_cuda.cuh"
#include "kernels/tile_pairs/tile_room_cuda.cuh"

namespace
{

/* ---- masks --------------------------------------------------------------------------------------------------------- */
/* Where (tile, rank) pairs go. */
template <typename Tile> struct pairs_out {
    Tile *tiles;
    uint32_t *ranks;
    uint32_t tiles_x;
    room_rule room;
};

/* Places behind the pairs are sorted too: the highest number leaves them behind, as a stable sort does even where a tile has
 * it. The pairs that were counted but are not those found are nobody's. */
template <typename Tile> __device__ void fill_rest(const pairs_out<Tile> &out)
{
    for (uint64_t i = out.room.listed() + kiln::thread_index(); i < out.room.room; i += kiln::thread_count()) {
        out.tiles[i] = static_cast<Tile>(UINT32_MAX);
        out.ranks[i] = UINT32_MAX;
    }
}

/* A warp's part of shared memory. */
struct writing {
    uint32_t firsts[WARP], tiles[WARP], steps[WARP], ids[WARP]; /* tile: of the box's corner */
    uint64_t masks[WARP], places[WARP];
};

/* The sum of what the threads of the group before this one have. */
__device__ uint64_t sum_in_group(uint64_t v, uint64_t (&sums)[GROUP / WARP])
{
    uint64_t total;
    uint64_t before = sum_below(v, &total);
    if (lane_index() == 0) sums[threadIdx.x / WARP] = total;
    __syncthreads();
    for (unsigned w = 0; w < threadIdx.x / WARP; w++) before += sums[w];
    __syncthreads();
    return before;
}

template <typename Tile>
__device__ void write_masks_of_warp(const job &j, writing &room, const record &r, uint32_t id, uint64_t place,
                                    const pairs_out<Tile> &out)
{
    const uint64_t mask = r.kind == RECORD_MASK ? r.pairs : 0;
    question_row row(room.firsts, static_cast<uint32_t>(64 - __clzll(static_cast<long long>(mask))));
    if (mask) {
        const uint32_t slot = row.slot();
        room.tiles[slot] = (r.row - j.row0) * out.tiles_x + r.column;
        room.steps[slot] = step_of(r.w);
        room.ids[slot] = id;
        room.masks[slot] = mask;
        room.places[slot] = place;
    }
    __syncwarp();
    for (uint32_t at = 0; at < row.total(); at += WARP) {
        uint32_t slot, k;
        const bool asks = row.next(at, &slot, &k);
        const uint64_t bits = room.masks[slot];
        if (!asks || !(bits >> k & 1)) continue;
        const uint32_t step = room.steps[slot];
        const uint64_t to = room.places[slot] + __popcll(bits & ((1ull << k) - 1));
        out.tiles[to] = static_cast<Tile>(room.tiles[slot] + down(k, step) * out.tiles_x + along(k, step));
        out.ranks[to] = room.ids[slot];
    }
    __syncwarp();
}

/* group_pairs: where each group's pairs begin; the last is how many there are. Listed Gaussians get their place in the record. */
template <typename Tile> __global__ void __launch_bounds__(GROUP) write_masks(const job j, const found f, pairs_out<Tile> out)
{
    __shared__ writing rooms[GROUP / WARP];
    __shared__ uint64_t sums[GROUP / WARP];
    fill_rest(out);
    if (!out.room.holds()) return;
    for (uint64_t group = blockIdx.x; group < j.n_groups; group += gridDim.x) {
        const uint64_t i = group * GROUP + threadIdx.x;
        const record r = i < j.n ? f.records[i] : record{};
        const uint64_t pairs = r.kind == RECORD_MASK ? static_cast<uint64_t>(__popcll(r.pairs)) : r.pairs;
        const uint64_t place = f.group_pairs[group] + sum_in_group(pairs, sums);
        if (r.kind == RECORD_LISTED) f.records[i].pairs = place;
        write_masks_of_warp(j, rooms[threadIdx.x / WARP], r, static_cast<uint32_t>(i), place, out);
    }
}

/* Pieces of listed Gaussians, from their words or found again. */
template <bool ODD, typename Tile>
__device__ void write_listed(const job &j, const found &f, asking &ask_room, writing &room, const pairs_out<Tile> &out)
{
    for_listed<ODD>(j, f, [&](const lane_piece &p) {
        const bool kept = __all_sync(ALL, !p.is_one || p.place != NOWHERE);
        const uint32_t word = !kept ? find_words<ODD>(j, ask_room, p) : p.is_one ? f.words[p.place] : 0;
        record r = {};
        r.pairs = word;
        r.column = static_cast<uint16_t>(p.box.column);
        r.row = static_cast<uint16_t>(p.box.row);
        r.w = PIECE_W;
        r.kind = RECORD_MASK;
        uint64_t place = 0;
        if (word) place = atomicAdd(reinterpret_cast<unsigned long long *>(&f.records[p.id].pairs), __popc(word));
        write_masks_of_warp(j, room, r, p.id, place, out);
    });
}

template <typename Tile>
__global__ void __launch_bounds__(GROUP, 4)
    write_rest(const __grid_constant__ job j, const __grid_constant__ found f, const __grid_constant__ pairs_out<Tile> out)
{
    __shared__ asking ask_rooms[GROUP / WARP];
    __shared__ writing rooms[GROUP / WARP];
    if (!out.room.holds()) return;
    const unsigned warp = threadIdx.x / WARP;
    write_listed<false>(j, f, ask_rooms[warp], rooms[warp], out);
    write_listed<true>(j, f, ask_rooms[warp], rooms[warp], out);
}

} // namespace

#endif
