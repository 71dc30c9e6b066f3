/* resident -- lists and pictures of a drawing that is in the memory of a runner's device; only what
 * the caller asked for comes to host memory. resident_collect.h makes the drawing.
 *
 * The arithmetic and its input are those of fit.c, so the bits are the same.
 *
 * Each function sets *done. If it is false, the work does not fit within the runner's cap: nothing
 * has changed, and the caller takes the path through host memory. All work is finished when a
 * function returns, after a failure, too.
 */
#ifndef KILN_KERNELS_RESIDENT_H
#define KILN_KERNELS_RESIDENT_H

#include "kernels/draw/blend_totals.h"
#include "kernels/draw/draw_types.h"

KILN_C_BEGIN

/* The operations on a drawing that is on the device (d->store is set). Arrays of `a` are host
 * memory; n and splats of `a` are ignored. */
kiln_status kiln_resident_count(const kiln_drawing *d, const kiln_tile_pairs_count_args *a,
                                bool *done, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_resident_emit(const kiln_drawing *d, const kiln_tile_pairs_emit_args *a,
                               bool *done, kiln_error *err) KILN_MUST_CHECK;
/* If a->ranks is NULL, the lists are made first, of a->n_pairs pairs. */
kiln_status kiln_resident_raster(const kiln_drawing *d, const kiln_raster_args *a, bool *done,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Makes the lists of a->n_pairs pairs and adds each Gaussian's share of the picture (blend_weights)
 * to totals. These are device memory if `there` is set, else host memory. Of `a` only view,
 * profile, tile rows, n_pairs and state are used. mask: of the tile rows of `a`, host memory; or
 * NULL. */
typedef struct {
    const kiln_blend_totals *totals;
    bool there;
    const uint8_t *mask;
} kiln_resident_blend;
kiln_status kiln_resident_weights(const kiln_drawing *d, const kiln_raster_args *a,
                                  const kiln_resident_blend *to, bool *done,
                                  kiln_error *err) KILN_MUST_CHECK;
/* Copies parts of a drawing to host memory, [d->n] each. Any of them may be NULL, but chunks needs
 * splats or rows. */
kiln_status kiln_resident_read(const kiln_drawing *d, kiln_splat2d *splats, uint32_t *chunks,
                               uint32_t *rows, kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
