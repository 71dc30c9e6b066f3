/* ranks on CUDA: counts go straight to the table in device memory. Values of a scene share few
 * exponents, so the lanes of a warp often want the same bin: those that do add together, with one
 * atomic for all of them. */
#include "kernels/ranks/ranks.h"

#include "kernels/cuda.cuh"

namespace
{

enum { BLOCK = 256 };

__device__ void count_rank(uint64_t *counts, uint32_t bin, unsigned lanes)
{
    const unsigned same = __match_any_sync(lanes, bin);
    const unsigned lane = threadIdx.x % warpSize;
    if ((same & ((1u << lane) - 1)) == 0)
        kiln::add64(&counts[bin], static_cast<uint64_t>(__popc(same)));
}

__global__ void __launch_bounds__(BLOCK) count_keys(kiln_ranks_args a)
{
    for (uint64_t i = kiln::thread_index(); i < a.n; i += kiln::thread_count()) {
        const uint32_t key = kiln_rank_key(a.values[i]);
        if (a.pass == 0)
            count_rank(a.counts, key >> 16, __activemask());
        else if (key >> 16 == a.high)
            count_rank(a.counts, key & 0xffffu, __activemask());
    }
}

} // namespace

extern "C" kiln_status kiln_ranks_cuda(const kiln_exec *x, const kiln_ranks_args *a, void *work,
                                       size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "ranks");
    CUDA_ENTER(entry.guard);
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    KILN_TRY(kiln_ranks_check(a, err));
    if (a->n == 0) return KILN_OK;
    LAUNCH(count_keys, kiln::blocks_for(a->n, BLOCK), BLOCK, 0, *a);
    return KILN_OK;
}
