/* draw -- draws a camera's picture of a scene that is stored in chunks. For programs other than
 * SplatKiln's own stages, too.
 *
 * Problem. A picture takes four steps: project the Gaussians, sort them by depth, list them for
 * each 16x16 tile, blend them. Each step is an operation (kernels/ops.h). A large scene fits
 * neither into a GPU's memory nor, at times, into the memory of the host.
 *
 * Constraint. A picture has the same bits as one drawn by kiln-render on the same kind of device.
 * The bits do not depend on the memory that is available, nor on the number of chunks. Device
 * memory stays within the runner's cap (runner.h).
 *
 * Layout. The caller hands over chunks through a callback (kiln_draw_scene), and says what it wants
 * and which ways may be taken (kiln_draw_want, both in draw_types.h):
 *
 *   kiln_draw            draws a view: in a single pass, in device memory, in slabs of depth or
 *                        through host memory
 *   kiln_draw_collect    projects and sorts (drawing.h): the result is a "drawing", the visible
 *                        Gaussians, nearest first. A
 * renderer with its own rasteriser needs only this, and the lists that kiln_draw_count and
 * kiln_draw_emit make of it
 *   kiln_draw_picture    lists and blends a drawing, one band of tile rows (tile_pairs.h) after the
 *                        other
 *   kiln_draw_count_all  counts what a view sees (draw_tally.h)
 *
 * Slabs are drawn only if the caller allows them. One with a memory limit compares it with what
 * draw_size.h predicts.
 *
 * This is not an operation and has no arithmetic of its own. It calls the operations through a
 * runner, which computes on the CPU or on a GPU. Without a store, arrays pass through host memory
 * between operations. With a store, a runner of a GPU keeps planes and drawings in device memory,
 * within the runner's cap. It copies only the results to the host. If something does not fit on the
 * device, that step uses host memory, unless the caller forbids it.
 *
 * Memory: draw_size.h predicts host memory before any is allocated. With a store less may be used.
 * Threads: one thread at a time may use a runner and its store. Loops in here run on the runner's
 * threads. Errors: those of the callbacks and of the operations, and KILN_E_NOMEM.
 */
#ifndef KILN_KERNELS_DRAW_H
#define KILN_KERNELS_DRAW_H

#include "kernels/draw/draw_size.h"
#include "kernels/draw/draw_tally.h"
#include "kernels/draw/draw_types.h"
#include "kernels/draw/drawing.h"

KILN_C_BEGIN

/* Draws a view by the first of the allowed ways that can. out may be NULL if one of them always
 * can: KILN_DRAW_HOST, or KILN_DRAW_SLABS with a capacity. Else out->way says whether one could. */
kiln_status kiln_draw(kiln_runner *r, const kiln_draw_scene *s, const kiln_draw_want *want,
                      kiln_draw_stats *out, kiln_error *err) KILN_MUST_CHECK;
/* Lists and blends a drawing that is there: the rest of KILN_DRAW_HOST. s has the view and profile
 * that kiln_draw_collect was given. If lists or pixels do not fit on the device beside the drawing,
 * the drawing is moved to host memory. out may be NULL. */
kiln_status kiln_draw_picture(kiln_runner *r, const kiln_draw_scene *s, kiln_drawing *d,
                              const kiln_draw_want *want, kiln_draw_stats *out,
                              kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
