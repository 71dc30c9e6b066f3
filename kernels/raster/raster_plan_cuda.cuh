/* raster_plan_cuda -- where each tile's list ends, and in which order the tiles are drawn: the
 * longest lists first, so that no long one is left over when the others are done. The order never
 * shows in the picture.
 *
 * Tiles have classes by the lengths of their lists, four for each power of two. A block places
 * 1,024 tiles: it counts the tiles of each class, all of them and those before its own, and sums
 * the lengths before its own in 64 bits. So no block waits for another, and one launch does it.
 * Each reads all counts, 32 KB at 1920 x 1080, 0.5 MB at 8K.
 */
#ifndef KILN_KERNELS_RASTER_PLAN_CUDA_CUH
#define KILN_KERNELS_RASTER_PLAN_CUDA_CUH

#include "kernels/early_cuda.cuh"

#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include <stdint.h>

namespace
{

enum : uint32_t {
    PLAN_BLOCK = 1024, /* also tiles of a block */
    CLASSES = 128,
    /* counters of a class: few distinct lengths would queue at one */
    COPIES = PLAN_BLOCK / CLASSES,
    /* neighbours with the same counters: they stay near each other, as their Gaussians are the
     * same */
    RUN = 32,
};

/* 0 for the longest lists. */
__device__ uint32_t class_of(uint32_t count)
{
    if (count < 4) return CLASSES - 1 - count;
    const uint32_t exponent = 31 - static_cast<uint32_t>(__clz(static_cast<int>(count)));
    return CLASSES - 1 - (4 * (exponent - 1) + (count >> (exponent - 2) & 3));
}

/* A tile's counter, whichever block asks. */
__device__ uint32_t counter_of(uint64_t tile, uint32_t count)
{
    return class_of(count) * COPIES + tile / RUN % COPIES;
}

/* Tiles that are drawn. */
struct tile_range {
    uint64_t from, to;
    __device__ bool has(uint64_t tile) const { return tile >= from && tile < to; }
};

/* ends [tiles]: sums of the counts so far; order [tiles]: every tile that is drawn once. A block of
 * PLAN_BLOCK threads for as many tiles. Tiles have numbers of 32 bits, and so have places. */
__global__ void __launch_bounds__(PLAN_BLOCK)
    plan_tiles(uint64_t tiles, tile_range drawn, const uint32_t *counts, uint64_t *ends,
               uint32_t *order)
{
    using sum_ends =
        kiln_cub::cub::BlockScan<uint64_t, PLAN_BLOCK, kiln_cub::cub::BLOCK_SCAN_WARP_SCANS>;
    using sum_before = kiln_cub::cub::BlockReduce<uint64_t, PLAN_BLOCK>;
    using sum_counters =
        kiln_cub::cub::BlockScan<uint32_t, PLAN_BLOCK, kiln_cub::cub::BLOCK_SCAN_WARP_SCANS>;
    __shared__ union {
        typename sum_ends::TempStorage ends;
        typename sum_counters::TempStorage counters;
    } scratch;
    __shared__ typename sum_before::TempStorage before_scratch;
    __shared__ uint32_t all[PLAN_BLOCK], places[PLAN_BLOCK];
    __shared__ uint64_t before;
    const uint64_t first = uint64_t(blockIdx.x) * PLAN_BLOCK, own = first + threadIdx.x;
    all[threadIdx.x] = places[threadIdx.x] = 0;
    kiln::launch_before_is_done();
    __syncthreads();
    uint64_t sum = 0;
#pragma unroll 8
    for (uint64_t tile = threadIdx.x; tile < tiles; tile += PLAN_BLOCK) {
        const uint32_t count = counts[tile], counter = counter_of(tile, count);
        const bool counts_here = drawn.has(tile);
        if (counts_here) atomicAdd(&all[counter], 1u);
        if (tile >= first) continue;
        if (counts_here) atomicAdd(&places[counter], 1u);
        sum += count;
    }
    sum = sum_before(before_scratch).Sum(sum);
    if (threadIdx.x == 0) before = sum;
    const uint32_t count = own < tiles ? counts[own] : 0;
    uint64_t end;
    sum_ends(scratch.ends).InclusiveSum(count, end);
    __syncthreads();
    if (own < tiles) ends[own] = before + end;
    uint32_t place;
    sum_counters(scratch.counters).ExclusiveSum(all[threadIdx.x], place);
    places[threadIdx.x] += place;
    __syncthreads();
    if (drawn.has(own))
        order[atomicAdd(&places[counter_of(own, count)], 1u)] = static_cast<uint32_t>(own);
}

} // namespace

#endif
