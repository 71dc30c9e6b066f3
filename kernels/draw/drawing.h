/* drawing -- the visible Gaussians of a view in drawing order. They are in the memory of a device
 * if they fit there, else in host memory. A renderer with its own rasteriser needs only this. */
#ifndef KILN_KERNELS_DRAWING_H
#define KILN_KERNELS_DRAWING_H

#include "kernels/draw/draw_types.h"

KILN_C_BEGIN

/* Projects all chunks and sorts the visible Gaussians into *out. If the scene has a store and the
 * drawing fits on its device, the drawing stays there, else it is in host memory. A store holds one
 * drawing at a time; while it does, other drawings are made in host memory. After a failure *out is
 * empty. KILN_E_INPUT: more than 2^32 - 2 Gaussians are visible. */
kiln_status kiln_draw_collect(kiln_runner *r, const kiln_draw_scene *s, kiln_drawing *out,
                              kiln_error *err) KILN_MUST_CHECK;
/* Frees the drawing's memory and sets *d to zero. A drawing of zeros is empty; releasing it does
 * nothing. */
void kiln_drawing_release(kiln_drawing *d);
/* Moves the drawing to host memory and releases its place on the device. If it is in host memory
 * already, does nothing. */
kiln_status kiln_drawing_fetch(kiln_drawing *d, kiln_error *err) KILN_MUST_CHECK;
/* Writes each Gaussian's chunk and its row in that chunk, [d->n] each, to host memory. The drawing
 * stays where it is. */
kiln_status kiln_drawing_names(kiln_runner *r, const kiln_drawing *d, uint32_t *chunk,
                               uint32_t *row, kiln_error *err) KILN_MUST_CHECK;

/* ---- operations on it ------------------------------------------------------------------------ */
/* Run tile_pairs_count, tile_pairs_emit and raster on a drawing, within the runner's cap. Arguments
 * are those of the operations, with arrays in host memory, but n and splats are the drawing's:
 * those in *a are ignored. Ranks are indices into the drawing. If the operation does not fit on the
 * device beside the drawing, the drawing is moved to host memory. */
kiln_status kiln_draw_count(kiln_runner *r, kiln_drawing *d, const kiln_tile_pairs_count_args *a,
                            kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_draw_emit(kiln_runner *r, kiln_drawing *d, const kiln_tile_pairs_emit_args *a,
                           kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_draw_raster(kiln_runner *r, kiln_drawing *d, const kiln_raster_args *a,
                             kiln_error *err) KILN_MUST_CHECK;
KILN_C_END

#endif
