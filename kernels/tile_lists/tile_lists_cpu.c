/* tile_lists on the CPU: the definition. It runs depth_order, then tile_pairs_emit on the splats
 * where they lie, in that order. */
#include "kernels/tile_lists/tile_lists.h"

#include "base/carve.h"
#include "kernels/depth_order/depth_order.h"
#include "kernels/tile_pairs/tile_emit.h"

#include <string.h>

kiln_tile_lists_fn KILN_CPU(tile_lists);
kiln_depth_order_fn KILN_CPU(depth_order); /* kiln_depth_order_cpu, kiln_depth_order_cpu_avx2 */

typedef struct {
    uint32_t *order; /* [n] */
    void *step;      /* work space of both operations */
    size_t step_bytes, bytes;
} workspace;

/* Arguments of the two operations for n Gaussians. Their work space is largest for a->n. */
static kiln_depth_order_args order_of(const kiln_tile_lists_args *a, const workspace *w, uint64_t n)
{
    return (kiln_depth_order_args){
        .n = n, .depths = a->depths, .source_rows = a->source_rows, .order = w->order};
}

static kiln_tile_pairs_emit_args pairs_of(const kiln_tile_lists_args *a, uint64_t n)
{
    return (kiln_tile_pairs_emit_args){.n = n,
                                       .splats = a->splats,
                                       .view = a->view,
                                       .row0 = a->row0,
                                       .row1 = a->row1,
                                       .capacity = a->capacity,
                                       .tile_counts = a->tile_counts,
                                       .ranks = a->ids,
                                       .n_pairs = a->stats};
}

static kiln_status lay_out_lists(const kiln_exec *x, const kiln_tile_lists_args *a, void *work,
                                 workspace *w, kiln_error *err)
{
    kiln_carve c = {work, 0};
    size_t order_bytes = 0, pairs_bytes = 0;
    *w = (workspace){0};
    w->order = kiln_take(&c, a->n, sizeof *w->order);
    const kiln_depth_order_args order = order_of(a, w, a->n);
    const kiln_tile_pairs_emit_args pairs = pairs_of(a, a->n);
    KILN_TRY(KILN_CPU(depth_order)(x, &order, NULL, &order_bytes, err));
    KILN_TRY(KILN_CPU(tile_emit)(x, &pairs, w->order, NULL, &pairs_bytes, err));
    w->step_bytes = order_bytes > pairs_bytes ? order_bytes : pairs_bytes;
    w->step = kiln_take(&c, w->step_bytes, 1);
    w->bytes = c.used;
    return KILN_OK;
}

static kiln_status list_tiles(const kiln_exec *x, const kiln_tile_lists_args *a, workspace *w,
                              kiln_error *err)
{
    const uint64_t n = *a->n_visible;
    const kiln_depth_order_args order = order_of(a, w, n);
    const kiln_tile_pairs_emit_args pairs = pairs_of(a, n);
    KILN_TRY(KILN_CPU(depth_order)(x, &order, w->step, &w->step_bytes, err));
    return KILN_CPU(tile_emit)(x, &pairs, w->order, w->step, &w->step_bytes, err);
}

/* kiln_tile_lists_cpu, kiln_tile_lists_cpu_avx2 */
kiln_status KILN_CPU(tile_lists)(const kiln_exec *x, const kiln_tile_lists_args *a, void *work,
                                 size_t *work_bytes, kiln_error *err)
{
    workspace w;
    KILN_TRY(kiln_tile_lists_check(a, err));
    KILN_TRY(lay_out_lists(x, a, work, &w, err));
    if (!work) {
        *work_bytes = w.bytes;
        return KILN_OK;
    }
    if (*work_bytes < w.bytes)
        return kiln_fail(err, KILN_E_CAP,
                         "tile_lists needs %zu bytes of work space, but was given %zu", w.bytes,
                         *work_bytes);
    a->stats[2] = *a->n_visible;
    if (*a->n_visible <= a->n) return list_tiles(x, a, &w, err);
    memset(a->tile_counts, 0,
           (size_t)(a->row1 - a->row0) * kiln_view_tiles_x(a->view) * sizeof *a->tile_counts);
    a->stats[0] = a->stats[1] = 0;
    return KILN_OK;
}
