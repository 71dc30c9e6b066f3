/* depth_order on CUDA: one radix sort of (bits of depth, source row). */
#include "kernels/depth_order/depth_order.h"

#include "kernels/cuda.cuh"
#include "kernels/depth_order/depth_order_math.h"
#include "kernels/sort/sort.cuh"
#include "kernels/sort/sort.h"

namespace
{

enum { BLOCK = 256, KEY_BITS = 64 };

__global__ void __launch_bounds__(BLOCK) make_keys(kiln_depth_order_args a, uint64_t *keys)
{
    for (uint64_t i = kiln::thread_index(); i < a.n; i += kiln::thread_count()) {
        keys[i] = kiln_depth_key(a.depths[i], a.source_rows[i]);
        a.order[i] = static_cast<uint32_t>(i);
    }
}

} // namespace

extern "C" kiln_status kiln_depth_order_cuda(const kiln_exec *x, const kiln_depth_order_args *a, void *work, size_t *work_bytes,
                                             kiln_error *err)
{
    KILN_TRY(kiln_sort_check("depth_order", a->n, err));
    const kiln::entry entry(x, "depth_order");
    CUDA_ENTER(entry.guard);
    kiln_carve c = {static_cast<char *>(work), 0};
    kiln::sort_pairs<uint64_t> s = {{kiln::take<uint64_t>(&c, a->n), kiln::take<uint64_t>(&c, a->n)},
                                    {a->order, kiln::take<uint32_t>(&c, a->n)}};
    size_t temp_bytes = 0;
    CUDA_TRY(kiln::sort(nullptr, &temp_bytes, &s, a->n, KEY_BITS, x->stream));
    void *const temp = kiln_take(&c, temp_bytes, 1);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("depth_order", c.used, *work_bytes, err));
    if (a->n == 0) return KILN_OK;

    LAUNCH(make_keys, kiln::blocks_for(a->n, BLOCK), BLOCK, 0, *a, s.keys[0]);
    CUDA_RUN(kiln::sort(temp, &temp_bytes, &s, a->n, KEY_BITS, x->stream));
    CUDA_RUN(kiln::bring(a->order, s.values[0], a->n, x->stream));
    return KILN_OK;
}
