/* visible on the CPU: see visible.h. */
#include "kernels/visible/visible.h"

#include "kernels/visible/visible_math.h"

kiln_visible_gather_fn KILN_CPU(visible_gather);
kiln_visible_window_fn KILN_CPU(visible_window);
kiln_visible_order_fn KILN_CPU(visible_order);

/* kiln_visible_gather_cpu, kiln_visible_gather_cpu_avx2 */
kiln_status KILN_CPU(visible_gather)(const kiln_exec *x, const kiln_visible_gather_args *a,
                                     void *work, size_t *work_bytes, kiln_error *err)
{
    (void)err;
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    const uint64_t first = *a->total, n = *a->n_visible < a->n ? *a->n_visible : a->n;
    const uint64_t left = first < a->capacity ? a->capacity - first : 0, end = n < left ? n : left;
#pragma omp parallel for num_threads(x->threads)
    for (uint64_t i = 0; i < end; i++) {
        a->all[first + i] = a->splats[i];
        a->depths[first + i] = a->splats[i].depth;
        a->rows[first + i] = a->source_rows[a->splats[i].row];
        a->chunks[first + i] = a->chunk;
    }
    *a->total = first + n;
    return KILN_OK;
}

/* One thread keeps the order. It has one chunk at a time, and moving a splat costs little compared
 * with projecting it. */
/* kiln_visible_window_cpu, kiln_visible_window_cpu_avx2 */
kiln_status KILN_CPU(visible_window)(const kiln_exec *x, const kiln_visible_window_args *a,
                                     void *work, size_t *work_bytes, kiln_error *err)
{
    (void)x, (void)err;
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    const uint64_t n = *a->n_visible < a->n ? *a->n_visible : a->n;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < n; i++)
        if (kiln_visible_wanted(&a->window, &a->splats[i], a->source_rows[a->splats[i].row]))
            a->kept[kept++] = a->splats[i];
    *a->n_kept = kept;
    return KILN_OK;
}

/* kiln_visible_order_cpu, kiln_visible_order_cpu_avx2 */
kiln_status KILN_CPU(visible_order)(const kiln_exec *x, const kiln_visible_order_args *a,
                                    void *work, size_t *work_bytes, kiln_error *err)
{
    (void)err;
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
#pragma omp parallel for num_threads(x->threads)
    for (uint64_t i = 0; i < a->n; i++) {
        const kiln_splat2d *s = &a->splats[a->order[i]];
        a->ordered[i] = *s;
        if (a->chunks) a->ordered_chunks[i] = a->chunks[a->order[i]];
        a->ordered_rows[i] = s->row;
    }
    return KILN_OK;
}
