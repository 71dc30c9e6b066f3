/* prune on CUDA: one thread a row; a block adds up what its rules did in shared memory, then adds
 * that to the counts. */
#include "kernels/prune/prune.h"

#include "kernels/cuda.cuh"
#include "kernels/prune/prune_math.h"

namespace
{

enum { BLOCK = 256, N_COUNTS = 2 * KILN_PRUNE_RULES };

__device__ kiln_prune_one load(const kiln_prune_args &a, uint64_t i)
{
    kiln_prune_one one;
    for (int c = 0; c < 3; c++) one.mean[c] = a.means[c * a.n + i];
    for (int c = 0; c < 3; c++) one.log_scale[c] = a.log_scales[c * a.n + i];
    one.opacity_logit = a.opacity_logits[i];
    one.spacing2 = a.spacing2 ? a.spacing2[i] : NAN;
    one.mark = a.drop ? a.drop[i] : static_cast<uint8_t>(KILN_PRUNE_STAY);
    return one;
}

__device__ void apply(const kiln_prune_args &a, const kiln_prune_rules &rules, uint64_t i,
                      unsigned *counts)
{
    kiln_prune_one one = load(a, i);
    const int by = kiln_prune_row(&rules, &one);
    a.keep[i] = by < 0;
    for (int c = 0; c < 3; c++) a.log_scales_out[c * a.n + i] = one.log_scale[c];
    if (by >= 0) atomicAdd(&counts[2 * by], 1u);
    for (int r = 0; one.clamped && r < KILN_PRUNE_RULES; r++)
        if (one.clamped >> r & 1u) atomicAdd(&counts[2 * r + 1], 1u);
}

/* A block sees fewer than 2^32 rows: n is below that. */
__global__ void __launch_bounds__(BLOCK) apply_rules(kiln_prune_args a, kiln_prune_rules rules)
{
    __shared__ unsigned counts[N_COUNTS];
    for (unsigned k = threadIdx.x; k < N_COUNTS; k += BLOCK) counts[k] = 0;
    __syncthreads();
    for (uint64_t i = kiln::thread_index(); i < a.n; i += kiln::thread_count())
        apply(a, rules, i, counts);
    __syncthreads();
    for (unsigned k = threadIdx.x; k < N_COUNTS; k += BLOCK)
        if (counts[k] > 0) kiln::add64(&a.counts[k / 2][k % 2], counts[k]);
}

} // namespace

extern "C" kiln_status kiln_prune_cuda(const kiln_exec *x, const kiln_prune_args *a, void *work,
                                       size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "prune");
    CUDA_ENTER(entry.guard);
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    if (a->n == 0) return KILN_OK;
    LAUNCH(apply_rules, kiln::blocks_for(a->n, BLOCK), BLOCK, 0, *a, *a->rules);
    return KILN_OK;
}
