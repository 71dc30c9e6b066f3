/* tile_write_cuda -- writes what tile_find_cuda.cuh has found as (tile, Gaussian) pairs, Gaussian by Gaussian. Masks come from the
 * records; wide and odd Gaussians are asked again unless their runs were kept. The pairs of one wide or odd Gaussian are written
 * in random order, which does not show: no two are of the same tile, and the pairs are then sorted by tile.
 */
#ifndef KILN_KERNELS_TILE_WRITE_CUDA_CUH
#define KILN_KERNELS_TILE_WRITE_CUDA_CUH

#include "kernels/tile_pairs/tile_find_cuda.cuh"
#include "kernels/tile_pairs/tile_capacity_cuda.cuh"

namespace
{

/* ---- masks --------------------------------------------------------------------------------------------------------- */
/* Where pairs are written. */
template <typename Tile> struct pairs_out {
    Tile *tiles;
    uint32_t *ids; /* ranks, or positions in splats (tile_lists) */
    uint32_t tiles_x;
    capacity_rule rule;
};

/* Shared memory of a warp. */
struct writing {
    uint32_t firsts[WARP], tiles[WARP], steps[WARP], ids[WARP]; /* tiles: the tile at the box's corner */
    uint64_t masks[WARP], places[WARP];
};

/* Returns the sum over the threads of the group before this one. Called by a whole block; sums are those of the warps, and may be
 * used again after a barrier. */
__device__ uint64_t sum_in_group(uint64_t v, uint64_t (&sums)[GROUP / WARP])
{
    uint64_t total;
    uint64_t before = sum_below(v, &total);
    if (lane_index() == 0) sums[threadIdx.x / WARP] = total;
    __syncthreads();
    for (unsigned w = 0; w < threadIdx.x / WARP; w++) before += sums[w];
    return before;
}

/* place: of the lane's first pair, from first() on, which is called by the whole warp when all else is prepared. */
template <typename Tile, typename First>
__device__ void write_masks_of_warp(writing &scratch, const record &r, uint64_t mask, uint32_t id, uint64_t place,
                                    const First &first, const pairs_out<Tile> &out)
{
    question_row row(scratch.firsts, static_cast<uint32_t>(64 - __clzll(static_cast<long long>(mask))));
    if (mask) {
        const uint32_t slot = row.slot();
        scratch.tiles[slot] = r.first_tile();
        scratch.steps[slot] = step_of(r.w());
        scratch.ids[slot] = id;
        scratch.masks[slot] = mask;
        scratch.places[slot] = place;
    }
    __syncwarp();
    const uint64_t begin = first();
    for (uint32_t at = 0; at < row.total(); at += WARP) {
        uint32_t slot, k;
        const bool asks = row.next(at, &slot, &k);
        const uint64_t bits = scratch.masks[slot];
        if (!asks || !(bits >> k & 1)) continue;
        const uint32_t step = scratch.steps[slot], down = k * (step & 0xffff) >> 12;
        const uint64_t to = begin + scratch.places[slot] + __popcll(bits & ((1ull << k) - 1));
        if (to >= out.rule.capacity) continue; /* then nothing will be listed, but this kernel may not know yet */
        out.tiles[to] = static_cast<Tile>(scratch.tiles[slot] + down * out.tiles_x + k - down * (step >> 16));
        out.ids[to] = scratch.ids[slot];
    }
    __syncwarp();
}

/* Writes the pairs of all masks. f.group_pairs says where each group's pairs begin; its last element is the total. The record of a
 * listed Gaussian gets the place of its pairs. */
template <typename Tile> __global__ void __launch_bounds__(GROUP) write_masks(const job j, const found f, pairs_out<Tile> out)
{
    __shared__ writing warp_scratch[GROUP / WARP];
    __shared__ uint64_t sums[GROUP / WARP];
    if (!out.rule.holds()) return;
    const uint64_t n = j.count.get();
    for (uint64_t group = blockIdx.x; group * GROUP < n; group += gridDim.x) {
        const uint64_t i = group * GROUP + threadIdx.x;
        const uint32_t id = static_cast<uint32_t>(i);
        const record r = i < n ? f.r.words[i] : record{};
        const uint64_t mask = f.r.mask(id, r), place = f.group_pairs[group] + sum_in_group(f.r.pairs(r, mask), sums);
        if (r.is_listed()) f.r.words[i] = record::of_listed(place);
        write_masks_of_warp(
            warp_scratch[threadIdx.x / WARP], r, mask, id, place, [] { return uint64_t(0); }, out);
        __syncthreads();
    }
}

/* Writes a run of each lane: n tiles from `tile` on. Called by a whole warp. */
template <typename Tile>
__device__ void write_runs(const found &f, uint32_t id, uint32_t tile, uint32_t n, const pairs_out<Tile> &out)
{
    const uint64_t place = n > 0 ? f.r.add(id, n) : 0;
    for (unsigned left = __ballot_sync(ALL, n > 0); left; left &= left - 1) {
        const int lane = __ffs(left) - 1;
        const uint64_t to = __shfl_sync(ALL, place, lane);
        const uint32_t whose = __shfl_sync(ALL, id, lane), first = __shfl_sync(ALL, tile, lane), end = __shfl_sync(ALL, n, lane);
        for (uint32_t k = lane_index(); k < end; k += WARP) {
            out.tiles[to + k] = static_cast<Tile>(first + k);
            out.ids[to + k] = whose;
        }
    }
}

/* Writes the runs that were kept. A warp takes a few of them: their places are asked for at once, then they are written one after
 * another. */
template <typename Tile> __device__ void write_kept(const found &f, const pairs_out<Tile> &out)
{
    constexpr uint32_t FEW = 8;
    const uint64_t n = *f.n_kept;
    for (uint64_t at = kiln::thread_index() / WARP * FEW; at < n; at += kiln::thread_count() / WARP * FEW) {
        const kept_run r = lane_index() < FEW && at + lane_index() < n ? f.kept[at + lane_index()] : kept_run{};
        write_runs(f, r.id, r.tile, r.n, out);
    }
}

/* Writes the pairs of listed Gaussians. Called by the whole grid after all masks are written. */
template <typename Tile> __device__ void write_listed(const job &j, const found &f, const pairs_out<Tile> &out)
{
    if (f.kept && *f.n_kept <= f.kept_capacity)
        write_kept(f, out);
    else
        for_wide(j, f, [&](const wide_run &r) { write_runs(f, r.id, r.tile(j), r.n(), out); });
    for_odd(j, f, [&](const row_group &g, uint32_t id, uint32_t row, int32_t at, uint64_t bits) {
        uint64_t place = 0;
        if (g.thread_rank() == 0) place = f.r.add(id, __popcll(bits));
        place = g.shfl(place, 0);
        const uint32_t tile = (row - j.row0) * out.tiles_x + static_cast<uint32_t>(at);
        for (unsigned k = g.thread_rank(); k < WINDOW; k += g.size()) {
            if (!(bits >> k & 1)) continue;
            const uint64_t to = place + __popcll(bits & ((1ull << k) - 1));
            out.tiles[to] = static_cast<Tile>(tile + k);
            out.ids[to] = id;
        }
    });
}

template <typename Tile> __global__ void __launch_bounds__(GROUP) write_rest(const job j, const found f, pairs_out<Tile> out)
{
    kiln::launch_before_is_done();
    if (out.rule.holds()) write_listed(j, f, out);
}

} // namespace

#endif
