/* resident -- drawings that stay on the device: records of the visible Gaussians, lists and pictures are made where they are, and
 * only what a caller asked for comes to host memory; and pictures without a drawing. The same arithmetic on the same inputs as
 * draw.c and fit.c, so the same bits.
 *
 * Each says with *done whether it did it. false: it does not fit under the runner's cap; nothing has changed, and the way through
 * host memory is open. Device memory of a drawing: 72 bytes a visible Gaussian; while it is made 100 more for each that there is
 * room for, and the planes of the largest chunk. All is done when they return, after a failure, too.
 */
#ifndef KILN_KERNELS_RESIDENT_H
#define KILN_KERNELS_RESIDENT_H

#include "kernels/draw/store.h"

KILN_C_BEGIN

/* s->store and s->header are there. */
kiln_status kiln_resident_collect(const kiln_draw_scene *s, kiln_drawing *out, bool *done, kiln_error *err) KILN_MUST_CHECK;
/* How many Gaussians of a slab (kiln_draw_slabs) there is room for; 0: of too few to be worth it. */
kiln_status kiln_resident_slab_capacity(const kiln_draw_scene *s, uint64_t *capacity, kiln_error *err) KILN_MUST_CHECK;
/* As kiln_resident_collect, of no drawing: adds to t, which is zero, but for the sum of pairs. Undone unless *done. */
kiln_status kiln_resident_count_all(const kiln_draw_scene *s, kiln_draw_tally *t, bool *done, kiln_error *err) KILN_MUST_CHECK;
/* d->store is there. Arrays of a are host memory; its Gaussians are the drawing's. */
kiln_status kiln_resident_count(const kiln_drawing *d, const kiln_tile_pairs_count_args *a, bool *done,
                                kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_resident_emit(const kiln_drawing *d, const kiln_tile_pairs_emit_args *a, bool *done,
                               kiln_error *err) KILN_MUST_CHECK;
/* Without lists (a->ranks NULL): they are made. */
kiln_status kiln_resident_raster(const kiln_drawing *d, const kiln_raster_args *a, bool *done, kiln_error *err) KILN_MUST_CHECK;
/* A picture of all that the camera sees, behind another one of this scene (single_pass.c): a is raster's but for lists and
 * Gaussians. *done false also where more is to be seen than there is room for by the last picture; stats is 0 then. Device memory:
 * 72 bytes a row of the scene in one piece, else a visible Gaussian; tile_lists' work and 4 bytes a pair; the picture. */
kiln_status kiln_resident_picture(const kiln_draw_scene *s, const kiln_raster_args *a, kiln_draw_stats *stats, bool *done,
                                  kiln_error *err) KILN_MUST_CHECK;
/* [d->n] each; splats or rows may be NULL, and chunks. */
kiln_status kiln_resident_read(const kiln_drawing *d, kiln_splat2d *splats, uint32_t *chunks, uint32_t *rows,
                               kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
