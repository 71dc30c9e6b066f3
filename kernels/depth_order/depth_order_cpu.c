/* depth_order on the CPU: one radix sort of (bits of depth, source row). A depth is above 0, so that its bits order as
 * it does; digits that all keys share cost no pass. */
#include "kernels/depth_order/depth_order.h"

#include "base/carve.h"
#include "kernels/depth_order/depth_order_math.h"
#include "kernels/sort/sort.h"

kiln_depth_order_fn KILN_CPU(depth_order);

/* kiln_depth_order_cpu, kiln_depth_order_cpu_avx2 */
kiln_status KILN_CPU(depth_order)(const kiln_exec *x, const kiln_depth_order_args *a, void *work, size_t *work_bytes,
                                  kiln_error *err)
{
    kiln_carve c = {work, 0};
    KILN_TRY(kiln_sort_check("depth_order", a->n, err));
    uint64_t *keys = kiln_take(&c, a->n, sizeof *keys);
    void *sort_work = kiln_take(&c, kiln_sort_bytes(a->n, x->threads), 1);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    if (*work_bytes < c.used) return kiln_fail(err, KILN_E_CAP, "depth_order needs %zu bytes, was given %zu", c.used, *work_bytes);

    for (uint64_t i = 0; i < a->n; i++) {
        keys[i] = kiln_depth_key(a->depths[i], a->source_rows[i]);
        a->order[i] = (uint32_t)i;
    }
    kiln_sort_pairs(a->n, keys, a->order, x->threads, sort_work);
    return KILN_OK;
}
