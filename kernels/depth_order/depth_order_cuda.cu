/* depth_order on CUDA: see depth_sort_cuda.cuh. */
#include "kernels/depth_order/depth_order.h"

#include "kernels/cuda.cuh"
#include "kernels/depth_order/depth_sort_cuda.cuh"
#include "kernels/sort/sort.h"

extern "C" kiln_status kiln_depth_order_cuda(const kiln_exec *x, const kiln_depth_order_args *a,
                                             void *work, size_t *work_bytes, kiln_error *err)
{
    KILN_TRY(kiln_sort_check("depth_order", a->n, err));
    const kiln::entry entry(x, "depth_order");
    CUDA_ENTER(entry.guard);
    kiln_carve c = {static_cast<char *>(work), 0};
    kiln::radix_state *const state = kiln::take<kiln::radix_state>(&c, 1);
    depth_sort s;
    lay_out_depth_sort(&s, &c, &c, {{a->n, nullptr}, a->depths, a->source_rows}, a->order, state);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("depth_order", c.used, *work_bytes, err));
    if (a->n == 0) return KILN_OK;
    CUDA_RUN(cudaMemsetAsync(state, 0, sizeof *state, x->stream));
    return run_depth_sort(x, s, err);
}
