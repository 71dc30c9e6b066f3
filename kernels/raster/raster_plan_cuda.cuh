/* raster_plan_cuda -- makes a plan (raster_plan.h). The longest lists of a part come first, so that
 * no long one is left over when the others are done.
 *
 * Tiles have classes by their part and the lengths of their lists, four for each power of two. A
 * block places 1,024 tiles: it counts the tiles of each class, all of them and those before its
 * own, and sums the lengths before its own in 64 bits. So no block waits for another, and one
 * launch does it, or blocks of a launch that has other work (plan_rider). Each reads all counts, 32
 * KB at 1920 x 1080, 0.5 MB at 8K.
 */
#ifndef KILN_KERNELS_RASTER_PLAN_CUDA_CUH
#define KILN_KERNELS_RASTER_PLAN_CUDA_CUH

#include "kernels/early_cuda.cuh"
#include "kernels/raster/raster_plan.h"

#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include <stdint.h>

namespace
{

enum : uint32_t {
    PLAN_BLOCK = 1024,
    PLAN_TILES = 1024, /* of a block */
    CLASSES = 128,
    COPIES = 2, /* counters of a class: few distinct lengths would queue at one */
    PLAN_COUNTERS = KILN_PLAN_PARTS * CLASSES * COPIES,
    /* neighbours with the same counters: they stay near each other, as their Gaussians are the
     * same */
    RUN = 32,
};

/* What is planned. */
struct plan_job {
    uint64_t tiles;
    uint64_t starts[KILN_PLAN_PARTS - 1]; /* tiles that the parts behind the first begin with */
    const uint32_t *counts;
    uint64_t *ends;
    uint32_t *order;
};

/* 0 for the longest lists. */
__device__ uint32_t class_of(uint32_t count)
{
    if (count < 4) return CLASSES - 1 - count;
    const uint32_t exponent = 31 - static_cast<uint32_t>(__clz(static_cast<int>(count)));
    return CLASSES - 1 - (4 * (exponent - 1) + (count >> (exponent - 2) & 3));
}

/* A tile's counter, whichever block asks. */
__device__ uint32_t counter_of(const plan_job &p, uint64_t tile, uint32_t count)
{
    uint32_t part = 0;
#pragma unroll
    for (const uint64_t start : p.starts) part += tile >= start ? 1 : 0;
    return (part * CLASSES + class_of(count)) * COPIES + tile / RUN % COPIES;
}

/* Shared memory of a block of THREADS that plans. */
template <uint32_t THREADS> struct plan_memory {
    static constexpr auto SCANS = kiln_cub::cub::BLOCK_SCAN_WARP_SCANS;
    using sum_ends = kiln_cub::cub::BlockScan<uint64_t, THREADS, SCANS>;
    using sum_counters = kiln_cub::cub::BlockScan<uint32_t, THREADS, SCANS>;
    using sum_before = kiln_cub::cub::BlockReduce<uint64_t, THREADS>;
    union {
        typename sum_ends::TempStorage ends;
        typename sum_counters::TempStorage counters;
    } scratch;
    typename sum_before::TempStorage before_scratch;
    uint32_t all[PLAN_COUNTERS], places[PLAN_COUNTERS];
    uint64_t before;
};

/* Plans the tiles of block number `block`. Called by a whole block of THREADS. Tiles have numbers
 * of 32 bits, and so have places. */
template <uint32_t THREADS>
__device__ void plan_some_tiles(plan_memory<THREADS> &m, uint32_t block, const plan_job &p)
{
    using memory = plan_memory<THREADS>;
    constexpr uint32_t EACH = PLAN_TILES / THREADS; /* tiles of a thread, and counters */
    static_assert(EACH * THREADS == PLAN_TILES && PLAN_TILES == PLAN_COUNTERS, "as many each");
    const uint64_t first = uint64_t(block) * PLAN_TILES, own = first + threadIdx.x * EACH;
#pragma unroll
    for (uint32_t k = threadIdx.x; k < PLAN_COUNTERS; k += THREADS) m.all[k] = m.places[k] = 0;
    __syncthreads();
    uint64_t sum = 0;
#pragma unroll 8
    for (uint64_t tile = threadIdx.x; tile < p.tiles; tile += THREADS) {
        const uint32_t count = p.counts[tile], counter = counter_of(p, tile, count);
        atomicAdd(&m.all[counter], 1u);
        if (tile >= first) continue;
        atomicAdd(&m.places[counter], 1u);
        sum += count;
    }
    sum = typename memory::sum_before(m.before_scratch).Sum(sum);
    if (threadIdx.x == 0) m.before = sum;
    uint32_t counts[EACH], places[EACH];
    uint64_t ends[EACH];
#pragma unroll
    for (uint32_t k = 0; k < EACH; k++)
        ends[k] = counts[k] = own + k < p.tiles ? p.counts[own + k] : 0;
    typename memory::sum_ends(m.scratch.ends).InclusiveSum(ends, ends);
    __syncthreads();
#pragma unroll
    for (uint32_t k = 0; k < EACH; k++) {
        if (own + k < p.tiles) p.ends[own + k] = m.before + ends[k];
        places[k] = m.all[threadIdx.x * EACH + k];
    }
    typename memory::sum_counters(m.scratch.counters).ExclusiveSum(places, places);
#pragma unroll
    for (uint32_t k = 0; k < EACH; k++) m.places[threadIdx.x * EACH + k] += places[k];
    __syncthreads();
#pragma unroll
    for (uint32_t k = 0; k < EACH; k++)
        if (own + k < p.tiles)
            p.order[atomicAdd(&m.places[counter_of(p, own + k, counts[k])], 1u)] =
                static_cast<uint32_t>(own + k);
}

/* In blocks of PLAN_BLOCK threads, plan_blocks() of them. */
__global__ void __launch_bounds__(PLAN_BLOCK) plan_tiles(const plan_job p)
{
    __shared__ plan_memory<PLAN_BLOCK> memory;
    kiln::launch_before_is_done();
    plan_some_tiles(memory, blockIdx.x, p);
}

inline __host__ __device__ uint32_t plan_blocks(uint64_t tiles)
{
    return static_cast<uint32_t>((tiles + PLAN_TILES - 1) / PLAN_TILES);
}

/* ---- launchers ------------------------------------------------------------------------------- */
/* In one part. */
inline plan_job plan_of(uint64_t tiles, const uint32_t *counts, uint64_t *ends, uint32_t *order)
{
    plan_job p = {tiles, {}, counts, ends, order};
    for (uint64_t &start : p.starts) start = tiles;
    return p;
}

/* In the parts of `plan`, which is one; row0, row1: tile rows that have lists. */
inline plan_job plan_of(const kiln_raster_plan &plan, const uint32_t *counts, uint32_t row0,
                        uint32_t row1, uint32_t tiles_x)
{
    plan_job p = plan_of(uint64_t(row1 - row0) * tiles_x, counts, plan.ends, plan.order);
    for (uint32_t k = 1; k < plan.parts && k < KILN_PLAN_PARTS; k++)
        p.starts[k - 1] = uint64_t(kiln_plan_row(row0, row1, plan.parts, k) - row0) * tiles_x;
    return p;
}

/* Makes a plan, if there is one to make, beside a pass of a sort (kernels/sort/radix_cuda.cuh). */
struct plan_rider {
    plan_job job;

    __host__ __device__ uint32_t blocks() const { return job.ends ? plan_blocks(job.tiles) : 0; }
    template <unsigned THREADS> using memory = plan_memory<THREADS>;
    template <unsigned THREADS> __device__ void ride(plan_memory<THREADS> &m, uint32_t block) const
    {
        plan_some_tiles<THREADS>(m, block, job);
    }
};

} // namespace

#endif
