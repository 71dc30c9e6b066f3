/* tile_write_cuda -- writes what tile_find_cuda.cuh has found as (tile, Gaussian) pairs, Gaussian
 * by Gaussian. Masks come from the records; wide and odd Gaussians are asked again unless their
 * runs were kept. The pairs of one wide or odd Gaussian are written in random order, which does not
 * show: no two are of the same tile, and the pairs are then sorted by tile.
 */
#ifndef KILN_KERNELS_TILE_WRITE_CUDA_CUH
#define KILN_KERNELS_TILE_WRITE_CUDA_CUH

#include "kernels/tile_pairs/tile_find_cuda.cuh"
#include "kernels/tile_pairs/tile_capacity_cuda.cuh"

#include <type_traits>

namespace
{

/* ---- masks ----------------------------------------------------------------------------------- */
/* Where pairs are written. */
template <typename Tile> struct pairs_out {
    Tile *tiles;
    uint32_t *ids; /* ranks, or positions in splats (tile_lists) */
    uint32_t tiles_x;
    capacity_rule rule;
};

/* A Gaussian whose pairs are written: the tile at its box's corner, step_of() and mask, or the
 * first tile of a run. Aligned, so that one load fetches it. */
struct alignas(16) written_box {
    uint32_t id, tile, step, mask;
};

/* Shared memory of a warp. */
struct writing {
    written_box boxes[WARP];
    uint64_t places[WARP];
    uint32_t firsts[WARP];
};

/* Places among the pairs of a group: 256 Gaussians have 2^24 pairs at most where tiles are of 16
 * bits. */
template <typename Tile>
using place_in_group =
    typename std::conditional<sizeof(Tile) == sizeof(uint16_t), uint32_t, uint64_t>::type;

/* Returns the sum over the threads of the group before this one. Called by a whole block; sums are
 * those of the warps, and may be used again after a barrier. */
template <typename T> __device__ T sum_in_group(T v, T (&sums)[GROUP / WARP])
{
    T total;
    T before = sum_below(v, &total);
    if (lane_index() == 0) sums[threadIdx.x / WARP] = total;
    __syncthreads();
#pragma unroll
    for (unsigned w = 0; w < GROUP / WARP; w++) before += w < threadIdx.x / WARP ? sums[w] : 0;
    return before;
}

/* place: of the lane's first pair. */
template <typename Tile>
__device__ void write_masks_of_warp(writing &scratch, const record &r, uint32_t id, uint64_t place,
                                    const pairs_out<Tile> &out)
{
    const uint32_t mask = r.mask();
    question_row row(scratch.firsts, static_cast<uint32_t>(32 - __clz(static_cast<int>(mask))));
    if (mask) {
        scratch.boxes[row.slot()] = {id, r.first_tile(), step_of(r.w()), mask};
        scratch.places[row.slot()] = place;
    }
    __syncwarp();
    for (uint32_t at = 0; at < row.total(); at += WARP) {
        uint32_t slot, k;
        const bool asks = row.next(at, &slot, &k);
        const written_box b = scratch.boxes[slot];
        if (!asks || !(b.mask >> k & 1)) continue;
        const uint32_t down = k * (b.step & 0xffff) >> 12;
        const uint64_t to = scratch.places[slot] + __popc(b.mask & ((1u << k) - 1));
        out.tiles[to] = static_cast<Tile>(b.tile + down * out.tiles_x + k - down * (b.step >> 16));
        out.ids[to] = b.id;
    }
    __syncwarp();
}

/* Writes the pairs of all masks. f.group_pairs says where each group's pairs begin; its last
 * element is the total. The record of a listed Gaussian gets the place of its pairs. */
template <typename Tile>
__global__ void __launch_bounds__(GROUP)
    write_masks(const job j, const found f, pairs_out<Tile> out)
{
    __shared__ writing warp_scratch[GROUP / WARP];
    __shared__ place_in_group<Tile> sums[GROUP / WARP];
    if (!out.rule.holds()) return;
    const uint64_t n = j.count.get();
    for (uint64_t group = blockIdx.x; group * GROUP < n; group += gridDim.x) {
        const uint64_t i = group * GROUP + threadIdx.x;
        const uint32_t id = static_cast<uint32_t>(i);
        const record r = i < n ? f.records[i] : record{};
        const uint64_t place =
            f.group_pairs[group] + sum_in_group(static_cast<place_in_group<Tile>>(r.pairs()), sums);
        if (r.is_listed()) f.records[i] = record::of_listed(place);
        write_masks_of_warp(warp_scratch[threadIdx.x / WARP], r, id, place, out);
        __syncthreads();
    }
}

/* Writes a run of each lane: n tiles from `tile` on. Called by a whole warp, which writes the tiles
 * of all runs in one sequence. */
template <typename Tile>
__device__ void write_runs(writing &scratch, const found &f, uint32_t id, uint32_t tile, uint32_t n,
                           const pairs_out<Tile> &out)
{
    const uint64_t place = n > 0 ? add_to_listed(&f.records[id], n) : 0;
    question_row row(scratch.firsts, n);
    if (n > 0) {
        scratch.boxes[row.slot()] = {id, tile, 0, 0};
        scratch.places[row.slot()] = place;
    }
    __syncwarp();
    for (uint32_t at = 0; at < row.total(); at += WARP) {
        uint32_t slot, k;
        if (!row.next(at, &slot, &k)) continue;
        const uint64_t to = scratch.places[slot] + k;
        out.tiles[to] = static_cast<Tile>(scratch.boxes[slot].tile + k);
        out.ids[to] = scratch.boxes[slot].id;
    }
    __syncwarp();
}

/* Writes the runs that were kept. */
template <typename Tile>
__device__ void write_kept(writing &scratch, const found &f, const pairs_out<Tile> &out)
{
    const uint64_t n = *f.n_kept;
    for (uint64_t at = kiln::thread_index() / WARP * WARP; at < n; at += kiln::thread_count()) {
        const kept_run r = at + lane_index() < n ? f.kept[at + lane_index()] : kept_run{};
        write_runs(scratch, f, r.id, r.tile, r.n, out);
    }
}

/* blocks of a multiprocessor that write listed Gaussians: 64 registers a thread */
constexpr int REST_AT_ONCE = 4;

/* Writes the pairs of listed Gaussians. Called by the whole grid after all masks are written. */
template <typename Tile>
__device__ void write_listed(const job &j, const found &f, const pairs_out<Tile> &out)
{
    __shared__ writing warp_scratch[GROUP / WARP];
    writing &scratch = warp_scratch[threadIdx.x / WARP];
    if (f.kept && *f.n_kept <= f.kept_capacity)
        write_kept(scratch, f, out);
    else
        for_wide(
            j, f, [](uint32_t) { return uint64_t(0); },
            [&](const wide_run &r) { write_runs(scratch, f, r.id, r.tile(j), r.n(), out); });
    for_odd(j, f, [&](const row_group &g, uint32_t id, uint32_t row, int32_t at, uint64_t bits) {
        uint64_t place = 0;
        if (g.thread_rank() == 0) place = add_to_listed(&f.records[id], __popcll(bits));
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

template <typename Tile>
__global__ void __launch_bounds__(GROUP, REST_AT_ONCE)
    write_rest(const job j, const found f, pairs_out<Tile> out)
{
    kiln::launch_before_is_done();
    if (out.rule.holds()) write_listed(j, f, out);
}

} // namespace

#endif
