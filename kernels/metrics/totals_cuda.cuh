/* totals_cuda -- the sums of blocks, and the means that one more launch makes of them. */
#ifndef KILN_KERNELS_METRICS_TOTALS_CUDA_CUH
#define KILN_KERNELS_METRICS_TOTALS_CUDA_CUH

#include "kernels/cuda.cuh"
#include "kernels/metrics/metrics_math.h"

namespace
{

enum { LANES = 32, TOTALS = KILN_METRICS_TOTALS };

/* Of 128 bits: the value is low + 2^32 high. A thread's sum adds less than 2^32 to low and 2^28 to high, and there are less
 * than 2^30 of those. */
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
        add_total(&t, {__shfl_down_sync(0xffffffffu, t.low, step), __shfl_down_sync(0xffffffffu, t.high, step)});
    return t;
}

__device__ kiln_fixed_total value_of(const total &t)
{
    return static_cast<kiln_fixed_total>(static_cast<int64_t>(t.high)) * ((int64_t)1 << 32) + t.low;
}

/* A warp adds up one of the totals of all blocks and makes its mean. */
__global__ void __launch_bounds__(TOTALS *LANES)
    make_means(uint32_t width, uint32_t height, unsigned blocks, const total *totals, kiln_metrics *out)
{
    __shared__ double means[TOTALS];
    const unsigned which = threadIdx.x / LANES;
    total sum = {};
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
    for (unsigned b = threadIdx.x % LANES; b < blocks; b += LANES) add_total(&sum, totals[b * TOTALS + which]);
    sum = warp_sum(sum);
    if (threadIdx.x % LANES == 0) means[which] = kiln_fixed_mean(value_of(sum), kiln_metrics_values(width, height, which));
    __syncthreads();
    if (threadIdx.x == 0) *out = kiln_metrics_of_means(means);
}

/* From Hopper on it is put on the device while the blocks still run, and waits there for their end. */
kiln_status launch_means(const kiln_exec *x, const kiln_metrics_args *a, unsigned blocks, const total *totals, kiln_error *err)
{
    int major = 0;
    CUDA_TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, x->device));
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3(1);
    launch.blockDim = dim3(TOTALS * LANES);
    launch.stream = x->stream;
    launch.attrs = &early;
    launch.numAttrs = major >= 9 ? 1 : 0;
    CUDA_RUN(cudaLaunchKernelEx(&launch, make_means, a->width, a->height, blocks, totals, a->out));
    return KILN_OK;
}

} // namespace

#endif
