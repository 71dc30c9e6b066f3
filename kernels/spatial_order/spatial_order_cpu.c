/* spatial_order on the CPU: a code for each row, then the stable sort. */
#include "kernels/spatial_order/spatial_order.h"

#include "base/carve.h"
#include "kernels/sort/sort.h"
#include "kernels/spatial_order/spatial_order_math.h"

#include <inttypes.h>

kiln_spatial_order_fn KILN_CPU(spatial_order);

kiln_status KILN_CPU(spatial_order)(const kiln_exec *x, const kiln_spatial_order_args *a, void *work, size_t *work_bytes,
                                    kiln_error *err)
{
    const size_t need = kiln_sort_bytes(a->n, x->threads);
    if (a->n > UINT32_MAX - 1) return kiln_fail(err, KILN_E_INPUT, "spatial_order: %" PRIu64 " rows; the most is 4294967294", a->n);
    if (!work) {
        *work_bytes = need;
        return KILN_OK;
    }
    if (*work_bytes < need) return kiln_fail(err, KILN_E_CAP, "spatial_order needs %zu bytes, was given %zu", need, *work_bytes);

    const int64_t n = (int64_t)a->n;
    const int threads = (int)x->threads;
    const double scale = (double)(1u << (KILN_HILBERT_BITS - 1)) / a->half;
    const double lo[3] = {a->centre[0] - a->half, a->centre[1] - a->half, a->centre[2] - a->half};
#pragma omp parallel for num_threads(threads) schedule(static) if (n > 4096)
    for (int64_t i = 0; i < n; i++) {
        uint32_t cell[3];
        for (int c = 0; c < 3; c++) cell[c] = kiln_hilbert_coordinate(a->means[(size_t)c * (size_t)n + (size_t)i], lo[c], scale);
        a->codes[i] = kiln_hilbert_code(cell);
        a->order[i] = (uint32_t)i;
    }
    kiln_sort_pairs(a->n, a->codes, a->order, x->threads, work);
    return KILN_OK;
}
