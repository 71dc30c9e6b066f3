/* adam on CUDA: a thread a row for the geometry, one a row and colour plane for the colours. */
#include "kernels/adam/adam.h"

#include "kernels/adam/adam_math.h"
#include "kernels/cuda.cuh"

namespace
{

enum { BLOCK = 128 };

/* Part 0 is the geometry, part 1 + k colour plane k. */
__global__ void __launch_bounds__(BLOCK) step_rows(const kiln_adam_args a, uint64_t parts)
{
    for (uint64_t i = kiln::thread_index(); i < a.n * parts; i += kiln::thread_count()) {
        const uint64_t part = i / a.n, row = i % a.n;
        if (part == 0)
            kiln_adam_geometry(&a, row);
        else
            kiln_adam_colour(&a, part - 1, row);
    }
}

} // namespace

extern "C" kiln_status kiln_adam_cuda(const kiln_exec *x, const kiln_adam_args *a, void *work,
                                      size_t *work_bytes, kiln_error *err)
{
    KILN_TRY(kiln_adam_check(a, err));
    const kiln::entry entry(x, "adam");
    CUDA_ENTER(entry.guard);
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    if (a->n == 0) return KILN_OK;
    const uint64_t parts = 1 + kiln_gradient_planes(a->sh_degree) - KILN_GRADIENT_SH;
    LAUNCH(step_rows, kiln::blocks_for(a->n * parts, BLOCK), BLOCK, 0, *a, parts);
    return KILN_OK;
}
