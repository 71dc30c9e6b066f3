/* resident -- drawings, lists and pictures that are made in the memory of a runner's device; only what the caller asked for comes
 * to host memory. resident_collect.c makes drawings, resident.c uses them, single_pass.c makes pictures without a drawing.
 *
 * The arithmetic and its input are those of draw.c and fit.c, so the bits are the same.
 *
 * Each function sets *done. If it is false, the work does not fit within the runner's cap: nothing has changed, and the caller
 * takes the path through host memory. All work is finished when a function returns, after a failure, too.
 *
 * Device memory: a drawing has 72 bytes for each visible Gaussian. While it is made, 100 more for each Gaussian of the capacity,
 * and the planes of the largest chunk.
 */
#ifndef KILN_KERNELS_RESIDENT_H
#define KILN_KERNELS_RESIDENT_H

#include "kernels/draw/store.h"

KILN_C_BEGIN

/* As kiln_draw_collect. s->store and s->header must be set. */
kiln_status kiln_resident_collect(const kiln_draw_scene *s, kiln_drawing *out, bool *done, kiln_error *err) KILN_MUST_CHECK;
/* Sets *capacity to the number of Gaussians that one slab (kiln_draw_slabs) can have; 0 if slabs would be too small to be worth it.
 */
kiln_status kiln_resident_slab_capacity(const kiln_draw_scene *s, uint64_t *capacity, kiln_error *err) KILN_MUST_CHECK;
/* As kiln_draw_count_all, except that t->pairs is left to the caller. The other members of t must be zero; t is unchanged unless
 * *done. */
kiln_status kiln_resident_count_all(const kiln_draw_scene *s, kiln_draw_tally *t, bool *done, kiln_error *err) KILN_MUST_CHECK;
/* The operations on a drawing that is on the device (d->store is set). Arrays of `a` are host memory; n and splats of `a` are
 * ignored. */
kiln_status kiln_resident_count(const kiln_drawing *d, const kiln_tile_pairs_count_args *a, bool *done,
                                kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_resident_emit(const kiln_drawing *d, const kiln_tile_pairs_emit_args *a, bool *done,
                               kiln_error *err) KILN_MUST_CHECK;
/* If a->ranks is NULL, the lists are made first, of a->n_pairs pairs. */
kiln_status kiln_resident_raster(const kiln_drawing *d, const kiln_raster_args *a, bool *done, kiln_error *err) KILN_MUST_CHECK;
/* Makes the lists of a->n_pairs pairs and adds each Gaussian's share of the picture (blend_weights) to `there` [d->n], device
 * memory, or, if that is NULL, to weights [d->n], host memory. Of `a` only view, profile, tile rows, n_pairs and state are used. */
kiln_status kiln_resident_weights(const kiln_drawing *d, const kiln_raster_args *a, uint64_t *there, uint64_t *weights, bool *done,
                                  kiln_error *err) KILN_MUST_CHECK;
/* Draws a view without a drawing, if a picture of the same scene was drawn before (single_pass.c). a is as for raster, without
 * lists and Gaussians, with the rgba and depth of *to. *done is also false if more is visible than the last pictures let expect;
 * *stats is zero then. Device memory: 72 bytes for each row of the scene in one piece, else for each visible Gaussian; tile_lists'
 * work space; 4 bytes for each pair; the picture and what is made of it. */
kiln_status kiln_resident_picture(const kiln_draw_scene *s, const kiln_raster_args *a, const kiln_draw_outputs *to,
                                  kiln_draw_stats *stats, bool *done, kiln_error *err) KILN_MUST_CHECK;
/* Returns the arguments of raster for the whole picture of a scene, without lists and Gaussians (draw.c). */
kiln_raster_args kiln_draw_whole(const kiln_draw_scene *s, const float background[3], float *rgba, float *depth);
/* Copies parts of a drawing to host memory, [d->n] each. Any of them may be NULL, but chunks needs splats or rows. */
kiln_status kiln_resident_read(const kiln_drawing *d, kiln_splat2d *splats, uint32_t *chunks, uint32_t *rows,
                               kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
