/* spatial_order on the CPU: a code for each row, then the stable sort. */
#include "kernels/spatial_order/spatial_order.h"

#include "base/carve.h"
#include "kernels/sort/sort.h"
#include "kernels/spatial_order/spatial_order_math.h"

kiln_spatial_order_fn KILN_CPU(spatial_order);

/* kiln_spatial_order_cpu, kiln_spatial_order_cpu_avx2 */
kiln_status KILN_CPU(spatial_order)(const kiln_exec *x, const kiln_spatial_order_args *a,
                                    void *work, size_t *work_bytes, kiln_error *err)
{
    const size_t need = kiln_sort_bytes(a->n, x->threads);
    KILN_TRY(kiln_sort_check("spatial_order", a->n, err));
    if (!work) {
        *work_bytes = need;
        return KILN_OK;
    }
    if (*work_bytes < need)
        return kiln_fail(err, KILN_E_CAP,
                         "spatial_order needs %zu bytes of work space, but was given %zu", need,
                         *work_bytes);

    const int64_t n = (int64_t)a->n;
    const int threads = (int)x->threads;
    const kiln_hilbert_cube cube = kiln_hilbert_cube_of(a->centre, a->half);
#pragma omp parallel for num_threads(threads) schedule(static) if (n > 4096)
    for (int64_t i = 0; i < n; i++) {
        a->codes[i] =
            kiln_hilbert_code_of(&cube, a->means[i], a->means[n + i], a->means[2 * n + i]);
        a->order[i] = (uint32_t)i;
    }
    kiln_sort_pairs(a->n, a->codes, a->order, x->threads, work);
    return KILN_OK;
}
