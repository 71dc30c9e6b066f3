/* frame -- a camera's view of a layer, for the stages that look through cameras: the prediction of
 * prune, tiles, render.
 *
 * A frame (kiln_frame) is the projection of a layer for a view request (view_request.h): the
 * visible Gaussians in depth order, each with its chunk and row. Which chunks a view draws, of the
 * layer and of its levels of detail, is a list (drawn.h).
 *
 * Functions with a kiln_worker run in a worker, on the thread of the unit. The others are for
 * parent and worker.
 */
#ifndef KILN_STAGES_FRAME_H
#define KILN_STAGES_FRAME_H

#include "kernels/draw/draw.h"
#include "schema/layers.h"
#include "stages/engine/engine.h"
#include "stages/engine/memory/plane_cache.h"
#include "stages/frame/canvas.h"
#include "stages/frame/drawn.h"
#include "stages/frame/frame_size.h"
#include "stages/frame/view_keys.h"

/* ---- frame (worker) -------------------------------------------------------------------------- */
typedef kiln_drawing kiln_frame; /* `chunk` of a splat is an index into the layer's chunks */

/* Fills *out with the planes of a chunk, which the cache owns: for kiln_draw_chunk_fn. colour
 * false: without those of colour. Fails as kiln_plane_cache_get. Needs no worker. */
kiln_status kiln_chunk_to_draw(kiln_plane_cache *planes, kiln_manifest *m, const kiln_chunk *c,
                               uint32_t sh_degree, bool colour, kiln_draw_chunk *out,
                               kiln_error *err) KILN_MUST_CHECK;

/* What a worker keeps between units: the layer's description, decoded planes, the last frame,
 * canvases. It is the worker's state (kiln_worker_state), which owns it. */
typedef struct kiln_frame_state kiln_frame_state;
/* How a unit divides the worker's memory. The rest of it is used to decode ahead and to keep
 * decoded planes. */
typedef struct {
    uint64_t ram; /* what the unit takes at most (frame_size.h), without canvases */
    /* the same of the largest unit of the list, as far as it is known: what is freed is kept where
     * that has room, too */
    uint64_t largest;
    uint64_t canvases; /* bytes of all canvases of kiln_frame_canvas */
} kiln_frame_share;
/* Gives the worker's state for what is drawn; makes it if the worker has none, or one of other
 * layers. colour: frames and pictures will have colours. KILN_E_IO, KILN_E_INPUT: the layer cannot
 * be read. */
kiln_status kiln_frame_state_get(kiln_worker *w, const kiln_drawn_name *name, bool colour,
                                 const kiln_frame_share *share, kiln_frame_state **out,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Says whether the worker has drawn a picture in its GPU's memory alone, without host memory for
 * Gaussians, of the layer of its state. */
bool kiln_frame_has_drawn(kiln_worker *w);
/* From now on the unit takes another share. Planes for which this leaves no room are dropped;
 * canvases stay. */
void kiln_frame_state_share(kiln_worker *w, kiln_frame_state *s, const kiln_frame_share *share);
/* A kiln_stage_program.early for stages that draw the newest layer in chunks in full and with its
 * colours. Decodes its planes into a quarter of a unit's memory. */
uint64_t kiln_frame_early(kiln_worker *w, const atomic_bool *stop);
/* Returns what the state draws, as kiln_drawn.chunks: borrowed. */
const kiln_layer *kiln_frame_layer(const kiln_frame_state *s);
/* From now on the state's views are of these levels, instead of those of the last
 * kiln_frame_state_get. */
void kiln_frame_set_wish(kiln_frame_state *s, const kiln_level_wish *wish);
/* kiln_frame_bound of a view. */
kiln_status kiln_frame_state_bound(kiln_frame_state *s, const kiln_view_request *request,
                                   kiln_draw_size *out, kiln_error *err) KILN_MUST_CHECK;
/* From now on frames and pictures of this state are fast (kernels/draw), or exact again. A new
 * state is exact. */
void kiln_frame_set_fast(kiln_frame_state *s, bool fast);
/* Makes the frame of a view request, with colours if `colour` is set. *out is borrowed until the
 * next call that makes or forgets a frame. The same request again gives the kept frame at no cost.
 * The arrays can be in the memory of the worker's GPU (kernels/draw/draw.h). Fails as
 * kiln_draw_collect. */
kiln_status kiln_frame_make(kiln_worker *w, kiln_frame_state *s, const kiln_view_request *request,
                            bool colour, kiln_frame **out, kiln_error *err) KILN_MUST_CHECK;
/* Draws the picture of a view request by the ways that are wanted (kiln_draw). The kept frame is
 * forgotten. out: not NULL. */
kiln_status kiln_frame_draw(kiln_worker *w, kiln_frame_state *s, const kiln_view_request *request,
                            const kiln_draw_want *want, kiln_draw_stats *out,
                            kiln_error *err) KILN_MUST_CHECK;
/* Takes memory for a picture of `pixels` pixels, one of `most` canvases that are kept from unit to
 * unit. They are made anew if pixels or most change, or if an earlier unit needed their memory. If
 * all are taken, waits until deferred work gives one back. The caller gives it back with
 * kiln_canvas_give. KILN_E_NOMEM. */
kiln_status kiln_frame_canvas(kiln_worker *w, kiln_frame_state *s, uint64_t pixels, unsigned most,
                              kiln_canvas **out, kiln_error *err) KILN_MUST_CHECK;
/* Frees the kept frame, if no later unit will ask for it. */
void kiln_frame_forget(kiln_frame_state *s);
/* Counts the Gaussians and pairs of a view, chunk by chunk in fixed memory (kiln_draw_count_all).
 * t->row_pairs: [tiles_y], the caller's. */
kiln_status kiln_frame_tally(kiln_worker *w, kiln_frame_state *s, const kiln_view_request *request,
                             kiln_draw_tally *t, kiln_error *err) KILN_MUST_CHECK;
/* Does a whole unit: the same count. Output: "row_pairs" u64 [tiles_y].
 * Counters: visible, pairs, and box_pairs, the pairs of the renderer's own boxes (project.h). */
kiln_status kiln_frame_count(kiln_worker *w, kiln_frame_state *s, const kiln_view_request *request,
                             kiln_error *err) KILN_MUST_CHECK;
/* The result of that unit, for the parent. */
typedef struct {
    uint64_t visible, pairs, box_pairs;
    uint64_t *row_pairs; /* [tiles_y]; free() */
} kiln_frame_counts;
/* Reads the result. Memory is predicted from it, so numbers that this view of these chunks cannot
 * have are refused (kiln_unit_refuse): KILN_E_IO. */
kiln_status kiln_frame_counts_read(kiln_run *r, const kiln_unit *u,
                                   const kiln_view_request *request, const kiln_view_chunks *c,
                                   kiln_frame_counts *out, kiln_error *err) KILN_MUST_CHECK;

#endif
