/* visible_math -- decides whether a Gaussian belongs to a slab; shared by both siblings. */
#ifndef KILN_KERNELS_VISIBLE_MATH_H
#define KILN_KERNELS_VISIBLE_MATH_H

#include "kernels/depth_order/depth_order_math.h"
#include "kernels/visible/visible.h"

/* Returns the number of live tiles in a Gaussian's box: four look-ups in the summed-area table. */
static inline KILN_HD uint32_t kiln_visible_live(const kiln_visible_window *w,
                                                 const kiln_splat2d *s)
{
    const uint64_t step = (uint64_t)w->tiles_x + 1;
    const uint32_t *above = w->live + (uint64_t)s->tile_y0 * step,
                   *below = w->live + (uint64_t)s->tile_y1 * step;
    return below[s->tile_x1] - below[s->tile_x0] - above[s->tile_x1] + above[s->tile_x0];
}

static inline KILN_HD int kiln_visible_wanted(const kiln_visible_window *w, const kiln_splat2d *s,
                                              uint32_t source_row)
{
    const uint64_t key = kiln_depth_key(s->depth, source_row);
    return key >= w->from && key < w->to && kiln_visible_live(w, s) != 0;
}

#endif
