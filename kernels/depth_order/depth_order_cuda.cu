/* depth_order on CUDA: see depth_sort_cuda.cuh. */
#include "kernels/depth_order/depth_order.h"

#include "kernels/cuda.cuh"
#include "kernels/depth_order/depth_sort_cuda.cuh"
#include "kernels/sort/sort.h"

extern "C" kiln_status kiln_depth_order_cuda(const kiln_exec *x, const kiln_depth_order_args *a, void *work, size_t *work_bytes,
                                             kiln_error *err)
{
    KILN_TRY(kiln_sort_check("depth_order", a->n, err));
    const kiln::entry entry(x, "depth_order");
    CUDA_ENTER(entry.guard);
    kiln_carve c = {static_cast<char *>(work), 0};
    uint32_t *const positions[] = {a->order, kiln::take<uint32_t>(&c, a->n)};
    depth_sort s;
    CUDA_TRY(lay_out_depth_sort(&s, &c, {{a->n, nullptr}, a->depths, a->source_rows}, positions, x->stream));
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("depth_order", c.used, *work_bytes, err));
    if (a->n == 0) return KILN_OK;
    KILN_TRY(run_depth_sort(x, &s, err));
    CUDA_RUN(kiln::bring(a->order, s.pairs.values[0], a->n, x->stream));
    return KILN_OK;
}
