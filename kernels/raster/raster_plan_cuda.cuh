/* raster_plan_cuda -- where each tile's list ends, and in which order the tiles are drawn: the longest lists first, so that
 * no long one is left over when the others are done. The order never shows in the picture.
 *
 * One block does it, in two passes over the counts: 8,192 tiles a step, so 1 step at 1920 x 1080 and 16 at 8K, where the
 * tiles take a hundred times as long as this. The first pass sums in 64 bits and counts tiles by class, four classes for
 * each power of two; the second gives each tile a place among those of its class, in no particular order.
 */
#ifndef KILN_KERNELS_RASTER_PLAN_CUDA_CUH
#define KILN_KERNELS_RASTER_PLAN_CUDA_CUH

#include <cub/block/block_scan.cuh>

#include <stdint.h>

namespace
{

enum : uint32_t {
    PLAN_BLOCK = 1024,
    PLAN_ITEMS = 8, /* tiles of a thread in a step */
    PLAN_STEP = PLAN_BLOCK * PLAN_ITEMS,
    CLASSES = 128,
    COPIES = PLAN_BLOCK / CLASSES, /* counters of a class: few distinct lengths would queue at one */
};

/* 0 for the longest lists. */
__device__ uint32_t class_of(uint32_t count)
{
    if (count < 4) return CLASSES - 1 - count;
    const uint32_t exponent = 31 - static_cast<uint32_t>(__clz(static_cast<int>(count)));
    return CLASSES - 1 - (4 * (exponent - 1) + (count >> (exponent - 2) & 3));
}

/* Lanes of a warp have counters of their own: their tiles are neighbours, whose lists are of much the same length. */
__device__ uint32_t counter_of(uint32_t count) { return class_of(count) * COPIES + threadIdx.x % COPIES; }

/* ends [tiles]: sums of the counts so far; order [tiles]: every tile once. A block of PLAN_BLOCK threads. Tiles have numbers of 32
 * bits, and so many places: a counter of all of them wraps to the place behind the last, which is no tile's. */
__global__ void __launch_bounds__(PLAN_BLOCK) plan_tiles(uint64_t tiles, const uint32_t *counts, uint64_t *ends, uint32_t *order)
{
    using sum_ends = kiln_cub::cub::BlockScan<uint64_t, PLAN_BLOCK, kiln_cub::cub::BLOCK_SCAN_WARP_SCANS>;
    using sum_counters = kiln_cub::cub::BlockScan<uint32_t, PLAN_BLOCK, kiln_cub::cub::BLOCK_SCAN_WARP_SCANS>;
    __shared__ union {
        typename sum_ends::TempStorage ends;
        typename sum_counters::TempStorage counters;
    } scratch;
    __shared__ uint32_t counters[PLAN_BLOCK], staged[PLAN_STEP];
    counters[threadIdx.x] = 0;
    __syncthreads();
    uint64_t before = 0;
    uint32_t items[PLAN_ITEMS];
    for (uint64_t step = 0; step < tiles; step += PLAN_STEP) {
        const uint64_t first = step + threadIdx.x * PLAN_ITEMS;
        uint64_t sum = 0, end, total;
#pragma unroll
        for (uint32_t k = 0; k < PLAN_ITEMS; k++) {
            items[k] = first + k < tiles ? counts[first + k] : 0;
            sum += items[k];
        }
        sum_ends(scratch.ends).ExclusiveSum(sum, end, total);
        end += before;
#pragma unroll
        for (uint32_t k = 0; k < PLAN_ITEMS; k++) {
            end += items[k];
            if (first + k >= tiles) continue;
            ends[first + k] = end;
            atomicAdd(&counters[counter_of(items[k])], 1u);
        }
        before += total;
        __syncthreads();
    }
    uint32_t place = counters[threadIdx.x];
    sum_counters(scratch.counters).ExclusiveSum(place, place);
    counters[threadIdx.x] = place;
    __syncthreads();
    /* The order of few tiles is put together here, and then written in one go. */
    uint32_t *const to = tiles <= PLAN_STEP ? staged : order;
    for (uint64_t step = 0; step < tiles; step += PLAN_STEP) {
        const uint64_t first = step + threadIdx.x * PLAN_ITEMS;
#pragma unroll
        for (uint32_t k = 0; k < PLAN_ITEMS; k++) { /* by the thread that counted it, so from the same counter */
            if (first + k >= tiles) continue;
            const uint32_t count = tiles <= PLAN_STEP ? items[k] : counts[first + k];
            to[atomicAdd(&counters[counter_of(count)], 1u)] = static_cast<uint32_t>(first + k);
        }
    }
    if (to == order) return;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < tiles; i += PLAN_BLOCK) order[i] = staged[i];
}

} // namespace

#endif
