/* ssim_sum_cuda -- sums of what a map falls short of 1, block by block, and the mean that one more
 * launch makes of them. */
#ifndef KILN_KERNELS_SSIM_SUM_CUDA_CUH
#define KILN_KERNELS_SSIM_SUM_CUDA_CUH

#include "kernels/early_cuda.cuh"
#include "kernels/ssim/ssim_math.h"

namespace kiln
{
namespace
{

enum { SSIM_LANES = 32, SSIM_MEAN_THREADS = 256 };

/* Of a block: the sum is low + 2^32 high. */
struct ssim_sum {
    uint64_t low, high, bad; /* bad: warps that have met a value that is no number */
};

/* Makes a block's sum, in shared memory, 0. Every thread calls these three; a barrier is in the
 * first and the last. */
__device__ inline void ssim_begin_sum(ssim_sum *of_block)
{
    if (threadIdx.x == 0) *of_block = {};
    __syncthreads();
}

/* Adds a thread's sum of at most 2^13 fixed-point values, 2^20 times at most. */
__device__ inline void ssim_add(ssim_sum *of_block, int64_t sum, bool bad)
{
    uint64_t low = static_cast<uint64_t>(sum) & 0xffffffffu,
             high = static_cast<uint64_t>(sum >> 32);
    const bool any = __any_sync(0xffffffffu, bad);
    for (int step = SSIM_LANES / 2; step > 0; step /= 2) {
        low += __shfl_down_sync(0xffffffffu, low, step);
        high += __shfl_down_sync(0xffffffffu, high, step);
    }
    if (threadIdx.x % SSIM_LANES != 0) return;
    add64(&of_block->low, low);
    add64(&of_block->high, high);
    if (any) add64(&of_block->bad, 1);
}

__device__ inline void ssim_leave_sum(const ssim_sum &of_block, ssim_sum *to)
{
    __syncthreads();
    if (threadIdx.x == 0)
        *to = {of_block.low & 0xffffffffu, of_block.high + (of_block.low >> 32), of_block.bad};
}

__global__ void __launch_bounds__(SSIM_MEAN_THREADS)
    ssim_make_mean(uint64_t count, unsigned n_sums, const ssim_sum *sums, float *mean)
{
    __shared__ ssim_sum all;
    uint64_t low = 0, high = 0, bad = 0;
    ssim_begin_sum(&all);
    launch_before_is_done();
    for (unsigned i = threadIdx.x; i < n_sums; i += SSIM_MEAN_THREADS) {
        low += sums[i].low;
        high += sums[i].high;
        bad += sums[i].bad;
    }
    add64(&all.low, low);
    add64(&all.high, high);
    add64(&all.bad, bad);
    __syncthreads();
    if (threadIdx.x != 0) return;
    const kiln_fixed_total sum =
        static_cast<kiln_fixed_total>(static_cast<int64_t>(all.high)) * ((int64_t)1 << 32) +
        all.low;
    *mean = kiln_ssim_mean(sum, count, all.bad != 0);
}

} // namespace
} // namespace kiln

#endif
