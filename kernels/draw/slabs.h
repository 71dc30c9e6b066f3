/* slabs -- draws a view whose Gaussians do not fit into memory, one range of depth after the other.
 *
 * The view is cut into slabs of ascending depth with at most `capacity` Gaussians each. (More only
 * if the caller breaks the rule that source rows are unique.) A first look at the geometry of all
 * chunks decides where to cut. Each slab then asks for the chunks that have Gaussians in it, so a
 * chunk is asked for twice or more. Host memory: kiln_draw_slabs_bytes.
 */
#ifndef KILN_KERNELS_SLABS_H
#define KILN_KERNELS_SLABS_H

#include "kernels/draw/draw_types.h"

KILN_C_BEGIN

/* Draws the picture that `a` describes: all rows, their rgba and depth, without lists. *stats is
 * zero before. */
kiln_status kiln_slabs_draw(kiln_runner *r, const kiln_draw_scene *s, uint64_t capacity,
                            const kiln_raster_args *a, kiln_draw_stats *stats,
                            kiln_error *err) KILN_MUST_CHECK;
/* Adds each Gaussian's share (shares.h) to the sums of its row instead. */
kiln_status kiln_slabs_weigh(kiln_runner *r, const kiln_draw_scene *s, uint64_t capacity,
                             const kiln_draw_want *want, kiln_draw_stats *stats,
                             kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
