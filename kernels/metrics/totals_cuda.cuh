/* totals_cuda -- the sums of blocks, and the means that one more launch makes of them. */
#ifndef KILN_KERNELS_METRICS_TOTALS_CUDA_CUH
#define KILN_KERNELS_METRICS_TOTALS_CUDA_CUH

#include "kernels/early_cuda.cuh"
#include "kernels/metrics/metrics_math.h"

namespace
{

enum { LANES = 32, TOTALS = KILN_METRICS_TOTALS, COUNTERS = 256, COUNTER_THREADS = 256 };

/* Of 128 bits: the value is low + 2^32 high. A thread's sum adds less than 2^32 to low and 2^28 to
 * high, and there are at most 2^30 of those. */
struct total {
    uint64_t low, high;
};

__device__ void add_total(total *to, const total &t)
{
    to->low += t.low;
    to->high += t.high;
}

__device__ void add_value(total *to, int64_t v)
{
    add_total(to, {static_cast<uint64_t>(v) & 0xffffffffu, static_cast<uint64_t>(v >> 32)});
}

/* The sum over a warp, in its first lane. */
__device__ total warp_sum(total t)
{
    for (int step = LANES / 2; step > 0; step /= 2)
        add_total(&t, {__shfl_down_sync(0xffffffffu, t.low, step),
                       __shfl_down_sync(0xffffffffu, t.high, step)});
    return t;
}

__device__ kiln_fixed_total value_of_total(const total &t)
{
    return static_cast<kiln_fixed_total>(static_cast<int64_t>(t.high)) * ((int64_t)1 << 32) + t.low;
}

/* Pixels that the mask leaves in, one count for each block. */
__global__ void __launch_bounds__(COUNTER_THREADS)
    count_pixels(uint32_t width, uint32_t height, const uint8_t *mask, kiln_metrics_pixels *counts)
{
    __shared__ uint64_t same[COUNTER_THREADS / LANES], valid[COUNTER_THREADS / LANES];
    uint64_t n = 0, n_valid = 0;
    const int64_t pixels = static_cast<int64_t>(width) * height;
    for (int64_t i = kiln::thread_index(); i < pixels; i += kiln::thread_count()) {
        if (mask[i] == 0) continue;
        n++;
        n_valid += kiln_metrics_in_valid(width, height, i % width, i / width);
    }
    for (int step = LANES / 2; step > 0; step /= 2) {
        n += __shfl_down_sync(0xffffffffu, n, step);
        n_valid += __shfl_down_sync(0xffffffffu, n_valid, step);
    }
    if (threadIdx.x % LANES == 0) {
        same[threadIdx.x / LANES] = n;
        valid[threadIdx.x / LANES] = n_valid;
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    kiln_metrics_pixels sum = {0, 0};
    for (int w = 0; w < COUNTER_THREADS / LANES; w++) {
        sum.same += same[w];
        sum.valid += valid[w];
    }
    counts[blockIdx.x] = sum;
}

/* Of all counters; counts NULL: there is no mask. */
__device__ kiln_metrics_pixels pixels_of(uint32_t width, uint32_t height,
                                         const kiln_metrics_pixels *counts)
{
    if (!counts) return kiln_metrics_all_pixels(width, height);
    kiln_metrics_pixels sum = {0, 0};
    for (int i = 0; i < COUNTERS; i++) {
        sum.same += counts[i].same;
        sum.valid += counts[i].valid;
    }
    return sum;
}

/* A warp adds up one of the totals of all blocks and makes its mean. */
__global__ void __launch_bounds__(TOTALS *LANES)
    make_means(uint32_t width, uint32_t height, unsigned blocks, const total *totals,
               const kiln_metrics_pixels *counts, kiln_metrics *out)
{
    __shared__ double means[TOTALS];
    const unsigned which = threadIdx.x / LANES;
    total sum = {};
    kiln::launch_before_is_done();
    for (unsigned b = threadIdx.x % LANES; b < blocks; b += LANES)
        add_total(&sum, totals[b * TOTALS + which]);
    sum = warp_sum(sum);
    if (threadIdx.x % LANES == 0)
        means[which] = kiln_fixed_mean(
            value_of_total(sum), kiln_metrics_values(pixels_of(width, height, counts), which));
    __syncthreads();
    if (threadIdx.x == 0) *out = kiln_metrics_of_means(means);
}

} // namespace

#endif
