/* spatial_order on CUDA: a code for each row, then the stable sort, which starts in the arrays it
 * has to end in. */
#include "kernels/spatial_order/spatial_order.h"

#include "kernels/cuda.cuh"
#include "kernels/sort/sort.cuh"
#include "kernels/sort/sort.h"
#include "kernels/spatial_order/spatial_order_math.h"

namespace
{

enum { BLOCK = 256, CODE_BITS = 3 * KILN_HILBERT_BITS };

__global__ void __launch_bounds__(BLOCK)
    find_codes(kiln_spatial_order_args a, kiln_hilbert_cube cube)
{
    for (uint64_t i = kiln::thread_index(); i < a.n; i += kiln::thread_count()) {
        a.codes[i] =
            kiln_hilbert_code_of(&cube, a.means[i], a.means[a.n + i], a.means[2 * a.n + i]);
        a.order[i] = static_cast<uint32_t>(i);
    }
}

} // namespace

extern "C" kiln_status kiln_spatial_order_cuda(const kiln_exec *x, const kiln_spatial_order_args *a,
                                               void *work, size_t *work_bytes, kiln_error *err)
{
    KILN_TRY(kiln_sort_check("spatial_order", a->n, err));
    const kiln::entry entry(x, "spatial_order");
    CUDA_ENTER(entry.guard);
    kiln_carve c = {static_cast<char *>(work), 0};
    kiln::sort_pairs<uint64_t> s = {{a->codes, kiln::take<uint64_t>(&c, a->n)},
                                    {a->order, kiln::take<uint32_t>(&c, a->n)}};
    size_t temp_bytes = 0;
    CUDA_TRY(kiln::sort(nullptr, &temp_bytes, &s, a->n, CODE_BITS, x->stream));
    void *const temp = kiln_take(&c, temp_bytes, 1);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("spatial_order", c.used, *work_bytes, err));
    if (a->n == 0) return KILN_OK;

    LAUNCH(find_codes, kiln::blocks_for(a->n, BLOCK), BLOCK, 0, *a,
           kiln_hilbert_cube_of(a->centre, a->half));
    CUDA_RUN(kiln::sort(temp, &temp_bytes, &s, a->n, CODE_BITS, x->stream));
    CUDA_RUN(kiln::bring(a->codes, s.keys[0], a->n, x->stream));
    CUDA_RUN(kiln::bring(a->order, s.values[0], a->n, x->stream));
    return KILN_OK;
}
