/* draw_weights -- each Gaussian's share of a camera's picture, for a scene in chunks: the sum of alpha T over its pixels, in the
 * units of blend_weights. For what weighs Gaussians by how much of them cameras see.
 *
 * The shares are those of the picture that kiln_draw_view draws, and their bits depend on neither memory, device, slabs nor
 * threads. No colour is needed: the chunk callback may leave sh0 NULL.
 *
 * Host memory: as for a picture by kiln_draw_collect and kiln_draw_picture, or in slabs, and KILN_DRAW_SHARE_BYTES for each
 * Gaussian of the drawing or slab; no rgba, no depth.
 * Threads, errors: as in draw.h.
 */
#ifndef KILN_KERNELS_DRAW_WEIGHTS_H
#define KILN_KERNELS_DRAW_WEIGHTS_H

#include "base/extern_c.h"
#include "kernels/draw/draw.h"

KILN_C_BEGIN

enum { KILN_DRAW_SHARE_BYTES = 8 + 4 + 4 }; /* a share, and the chunk and row that it belongs to */

/* Adds the share of each visible Gaussian to sums[chunk][row]. sums [n_chunks], each with an element for each row of the chunk;
 * NULL for a chunk that gives no rows to this view. The caller's, host memory. capacity: 0, or the most Gaussians of a slab
 * (kiln_draw_slabs), for a caller without memory for the whole drawing. With 0 slabs are used where only they keep the drawing on
 * the device of s->store. stats may be NULL. After a failure the sums are undefined. */
kiln_status kiln_draw_weights(kiln_runner *r, const kiln_draw_scene *s, uint64_t capacity, uint64_t *const *sums,
                              kiln_draw_stats *stats, kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
