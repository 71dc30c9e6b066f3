/* tile_capacity_cuda -- turns the sums of groups into places, and checks whether the pairs that
 * were found fit the capacity. Both happen on the device, so that the host reads nothing back
 * between finding and listing.
 */
#ifndef KILN_KERNELS_TILE_CAPACITY_CUDA_CUH
#define KILN_KERNELS_TILE_CAPACITY_CUDA_CUH

#include "kernels/cuda.cuh"

namespace
{

constexpr unsigned WIDE_BLOCK = 1024,
                   /* of kernels with a single block, or two for each multiprocessor */
    WIDE_WARPS = WIDE_BLOCK / 32;

/* Returns the sum over the threads before this one. Called by a whole block of WIDE_BLOCK
 * threads. */
template <typename T> __device__ T sum_before(T v, T (&sums)[WIDE_WARPS])
{
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    T sum = v;
    for (unsigned d = 1; d < 32; d *= 2) {
        const T other = __shfl_up_sync(~0u, sum, d);
        if (lane >= d) sum += other;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    T of_warps = sums[lane];
    for (unsigned d = 1; d < 32; d *= 2) {
        const T other = __shfl_up_sync(~0u, of_warps, d);
        if (lane >= d) of_warps += other;
    }
    const T before = __shfl_sync(~0u, of_warps, warp > 0 ? warp - 1 : 0);
    __syncthreads();
    return (warp > 0 ? before : 0) + sum - v;
}

/* Sets to[i] to the sum of from[0 .. i - 1]; both may be the same array. Called by a whole block of
 * WIDE_BLOCK threads; complete when it returns. */
template <typename T> __device__ void scan_by_block(const T *from, T *to, uint64_t n)
{
    __shared__ T sums[WIDE_WARPS];
    const uint64_t each = (n + WIDE_BLOCK - 1) / WIDE_BLOCK, first = min(threadIdx.x * each, n),
                   end = min(first + each, n);
    T sum = 0;
#pragma unroll 8
    for (uint64_t i = first; i < end; i++) sum += from[i];
    T place = sum_before(sum, sums);
    for (uint64_t i = first; i < end; i++) {
        const T v = from[i];
        to[i] = place;
        place += v;
    }
    __syncthreads();
}

struct capacity_rule {
    const uint64_t *found; /* number of pairs found, in device memory */
    uint64_t capacity;
    bool is_bound; /* capacity is an upper bound; else it must be exactly *found */

    __device__ bool holds() const { return is_bound ? *found <= capacity : *found == capacity; }
    __device__ uint64_t listed() const { return holds() ? *found : 0; }
};

/* Turns the sums into places. The last element, 0 before, becomes the total, which r.found points
 * to. Writes n_pairs if it is given; a capacity that must be exact and is not leaves a
 * violation. */
__global__ void __launch_bounds__(WIDE_BLOCK)
    scan_groups(uint64_t *sums, uint64_t n, const capacity_rule r, uint64_t *n_pairs,
                uint64_t *violation)
{
    scan_by_block(sums, sums, n);
    if (threadIdx.x != 0) return;
    if (!r.is_bound && !r.holds())
        kiln::leave_violation(violation, KILN_VIOLATION(KILN_VIOLATION_EMIT_PAIRS, *r.found));
    if (n_pairs) {
        n_pairs[0] = r.listed();
        n_pairs[1] = *r.found;
    }
}

} // namespace

#endif
