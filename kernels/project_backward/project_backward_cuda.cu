/* project_backward on CUDA: one thread a splat. */
#include "kernels/project_backward/project_backward.h"

#include "kernels/cuda.cuh"
#include "kernels/project_backward/project_backward_math.h"

namespace
{

enum { BLOCK = 128 };

__global__ void __launch_bounds__(BLOCK)
    take_splats(const kiln_project_backward_args a, const kiln_projection lens)
{
    for (uint64_t i = kiln::thread_index(); i < a.n_splats; i += kiln::thread_count())
        if (a.splats[i].row < a.n) kiln_project_backward_row(&a, &lens, &a.splats[i]);
}

} // namespace

extern "C" kiln_status kiln_project_backward_cuda(const kiln_exec *x,
                                                  const kiln_project_backward_args *a, void *work,
                                                  size_t *work_bytes, kiln_error *err)
{
    KILN_TRY(kiln_project_backward_check(a, err));
    const kiln::entry entry(x, "project_backward");
    CUDA_ENTER(entry.guard);
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    const uint64_t values = kiln_gradient_planes(a->sh_degree) * a->n;
    if (values == 0) return KILN_OK;
    CUDA_RUN(cudaMemsetAsync(a->gradients, 0, values * sizeof *a->gradients, x->stream));
    if (a->n_splats == 0) return KILN_OK;
    kiln_projection lens;
    kiln_project_projection(&lens, a->view, &a->cut, a->profile, a->antialiased);
    LAUNCH(take_splats, kiln::blocks_for(a->n_splats, BLOCK), BLOCK, 0, *a, lens);
    return KILN_OK;
}
