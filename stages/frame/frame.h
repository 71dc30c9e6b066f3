/* frame -- a camera's view of a layer, for the stages that look through cameras: the prediction of prune, tiles, render.
 *
 * A frame (kiln_frame) is the projection of a layer for a view request (view_request.h): the visible Gaussians in depth order, each
 * with its chunk and row. Which chunks a view draws, of the layer and of its levels of detail, is a list (drawn.h).
 *
 * The keys of tables and pictures are made here and nowhere else. So kiln-render can compute the key of the table that it needs,
 * and use the table that kiln-tiles made from the same inputs.
 *
 * Functions with a kiln_worker run in a worker, on the thread of the unit. The others are for parent and worker.
 */
#ifndef KILN_STAGES_FRAME_H
#define KILN_STAGES_FRAME_H

#include "kernels/draw/draw.h"
#include "schema/layers.h"
#include "stages/engine/engine.h"
#include "stages/engine/memory/plane_cache.h"
#include "stages/frame/canvas.h"
#include "stages/frame/drawn.h"

/* ---- keys ----------------------------------------------------------------------------------------------------------- */
/* Hashes of everything that a view depends on in each chunk, made once for all views of a layer. */
typedef struct {
    const kiln_layer *layer; /* borrowed */
    kiln_hash *geometry;     /* [n_chunks] of the chunk's name and geometry planes */
    kiln_hash *colour;       /* [n_chunks] of these and the colour planes */
} kiln_chunk_keys;

/* Makes the hashes. The layer must outlive them. Release also after a failure. KILN_E_NOMEM. */
kiln_status kiln_chunk_keys_make(const kiln_layer *layer, kiln_chunk_keys *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_chunk_keys_release(kiln_chunk_keys *k);
/* Return the key of a tile table, and of a picture, which depends on the colour planes too: of the chunks c that the view draws,
 * and of no others. How they came to be chosen is in no key. The algorithm versions of the stages tiles and render are part of
 * them. device_kind: "cpu", "cuda" or "cuda-fast". */
kiln_hash kiln_view_request_table_key(const kiln_view_request *s, const kiln_chunk_keys *k, const kiln_view_chunks *c);
kiln_hash kiln_view_request_picture_key(const kiln_view_request *s, const kiln_chunk_keys *k, const kiln_view_chunks *c,
                                        const double background[3], const char *device_kind);

/* ---- host memory in bytes, for kiln_unit.ram --------------------------------------------------------------------------------- */
uint64_t kiln_frame_largest_chunk(const kiln_layer *layer); /* its number of rows */
/* Returns an upper bound of a frame's size before any Gaussian is read: all rows of its chunks, and bands of at most
 * KILN_BAND_PAIRS pairs. A single tile row with more pairs exceeds the bound. in_parts is set; clear it if the CPU computes. */
kiln_draw_size kiln_frame_bound(const kiln_view_request *s, const kiln_layer *layer, const kiln_view_chunks *c);
/* The decoded planes of a row. */
uint64_t kiln_frame_row_bytes(const kiln_layer *layer, bool colour);
/* The decoded planes of the largest chunk, and the memory to decode them. */
uint64_t kiln_frame_chunk_bytes(const kiln_layer *layer, bool colour);
/* The counting pass (kiln_frame_count), at most. */
uint64_t kiln_frame_count_ram(const kiln_layer *layer, const kiln_view_request *s);
/* A frame, at most, and with_frame bytes that its unit takes in addition once the frame is made. */
uint64_t kiln_frame_ram(const kiln_layer *layer, const kiln_draw_size *size, bool colour, uint64_t with_frame);
/* What a worker keeps between units if there is room, for kiln_unit.ram_cache: every plane, the connections that decode ahead, and
 * on the CPU what a unit has freed of its `ram` bytes. */
uint64_t kiln_frame_cache_ram(const kiln_layer *layer, uint64_t ram);
/* The last of these. More than `ram`: malloc gives all back as soon as so much is free, and at the end of a unit all of it is. */
uint64_t kiln_frame_kept_free(uint64_t ram);
/* A picture in slabs of size->visible Gaussians, whose bands have at most size->band_pairs pairs, and `beside` bytes that its unit
 * takes in addition. */
uint64_t kiln_frame_slabs_ram(const kiln_layer *layer, const kiln_view_request *s, const kiln_draw_size *size, uint64_t beside);

/* ---- frame (worker) ------------------------------------------------------------------------------------------------- */
typedef kiln_drawing kiln_frame; /* `chunk` of a splat is an index into the layer's chunks */

/* Fills *out with the planes of a chunk, which the cache owns: for kiln_draw_chunk_fn. colour false: without those of colour. Fails
 * as kiln_plane_cache_get. Needs no worker. */
kiln_status kiln_chunk_to_draw(kiln_plane_cache *planes, kiln_manifest *m, const kiln_chunk *c, uint32_t sh_degree, bool colour,
                               kiln_draw_chunk *out, kiln_error *err) KILN_MUST_CHECK;

/* What a worker keeps between units: the layer's description, decoded planes, the last frame, canvases. It is the worker's state
 * (kiln_worker_state), which owns it. */
typedef struct kiln_frame_state kiln_frame_state;
/* Gives the worker's state for what is drawn; makes it if the worker has none, or one of other layers. colour: frames and pictures
 * will have colours. ram: what the unit takes at most, by one of the functions above, without canvases. largest: the same of the
 * largest unit of the list, as far as it is known: what is freed is kept where that has room, too. canvases: bytes of all
 * canvases of kiln_frame_canvas. The rest of what the worker may take is used to decode ahead and to keep decoded planes.
 * KILN_E_IO, KILN_E_INPUT: the layer cannot be read. */
kiln_status kiln_frame_state_get(kiln_worker *w, const kiln_drawn_name *name, bool colour, uint64_t ram, uint64_t largest,
                                 uint64_t canvases, kiln_frame_state **out, kiln_error *err) KILN_MUST_CHECK;
/* Says whether the worker has drawn a picture in its GPU's memory (kiln_frame_on_device) of the layer of its state. */
bool kiln_frame_has_drawn(kiln_worker *w);
/* From now on the unit takes another `ram`. Planes for which this leaves no room are dropped; canvases stay. */
void kiln_frame_state_share(kiln_worker *w, kiln_frame_state *s, uint64_t ram, uint64_t largest, uint64_t canvases);
/* A kiln_stage_program.early for stages that draw the newest layer in chunks in full and with its colours. Decodes its planes into
 * a quarter of a unit's memory. */
uint64_t kiln_frame_early(kiln_worker *w, const atomic_bool *stop);
/* Returns what the state draws, as kiln_drawn.chunks: borrowed. */
const kiln_layer *kiln_frame_layer(const kiln_frame_state *s);
/* From now on the state's views are of these levels, instead of those of the last kiln_frame_state_get. */
void kiln_frame_set_wish(kiln_frame_state *s, const kiln_level_wish *wish);
/* kiln_frame_bound of a view. */
kiln_status kiln_frame_state_bound(kiln_frame_state *s, const kiln_view_request *request, kiln_draw_size *out,
                                   kiln_error *err) KILN_MUST_CHECK;
/* From now on frames and pictures of this state are fast (kernels/draw), or exact again. A new state is exact. */
void kiln_frame_set_fast(kiln_frame_state *s, bool fast);
/* Makes the frame of a view request, with colours if `colour` is set. *out is borrowed until the next call that makes or forgets a
 * frame. The same request again gives the kept frame at no cost. The arrays can be in the memory of the worker's GPU
 * (kernels/draw/draw.h). Fails as kiln_draw_collect. */
kiln_status kiln_frame_make(kiln_worker *w, kiln_frame_state *s, const kiln_view_request *request, bool colour, kiln_frame **out,
                            kiln_error *err) KILN_MUST_CHECK;
/* The same. But if the frame does not fit on the worker's GPU, the call succeeds without a frame and *room is above 0: it is the
 * `room` with which kiln_frame_slabs fits. */
kiln_status kiln_frame_make_or_room(kiln_worker *w, kiln_frame_state *s, const kiln_view_request *request, bool colour,
                                    kiln_frame **out, uint64_t *room, kiln_error *err) KILN_MUST_CHECK;
/* Draws the picture in a single pass (kiln_draw_single_pass), without a frame. If *done is false, it could not: the outputs are
 * undefined and the caller makes a frame. */
kiln_status kiln_frame_single_pass(kiln_worker *w, kiln_frame_state *s, const kiln_view_request *request, const float background[3],
                                   const kiln_draw_outputs *to, kiln_draw_stats *stats, bool *done,
                                   kiln_error *err) KILN_MUST_CHECK;
/* Draws the picture in the memory of the worker's GPU or not at all (kiln_draw_on_device), without a frame. *room: its `capacity`.
 */
kiln_status kiln_frame_on_device(kiln_worker *w, kiln_frame_state *s, const kiln_view_request *request, const float background[3],
                                 float *rgba, float *depth, kiln_draw_stats *stats, bool *done, uint64_t *room,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Draws the picture in slabs of at most `room` Gaussians (kiln_draw_slabs), without a frame. The bits are the same. */
kiln_status kiln_frame_slabs(kiln_worker *w, kiln_frame_state *s, const kiln_view_request *request, uint64_t room,
                             const float background[3], float *rgba, float *depth, kiln_draw_stats *stats,
                             kiln_error *err) KILN_MUST_CHECK;
/* Takes memory for a picture of `pixels` pixels, one of `most` canvases that are kept from unit to unit. They are made anew if
 * pixels or most change, or if an earlier unit needed their memory. If all are taken, waits until deferred work gives one back. The
 * caller gives it back with kiln_canvas_give. KILN_E_NOMEM. */
kiln_status kiln_frame_canvas(kiln_worker *w, kiln_frame_state *s, uint64_t pixels, unsigned most, kiln_canvas **out,
                              kiln_error *err) KILN_MUST_CHECK;
/* Frees the kept frame, if no later unit will ask for it. */
void kiln_frame_forget(kiln_frame_state *s);
/* Counts the Gaussians and pairs of a view, chunk by chunk in fixed memory (kiln_draw_count_all). t->row_pairs: [tiles_y], the
 * caller's. */
kiln_status kiln_frame_tally(kiln_worker *w, kiln_frame_state *s, const kiln_view_request *request, kiln_draw_tally *t,
                             kiln_error *err) KILN_MUST_CHECK;
/* Does a whole unit: the same count. Output: "row_pairs" u64 [tiles_y].
 * Counters: visible, pairs, and box_pairs, the pairs of the renderer's own boxes (project.h). */
kiln_status kiln_frame_count(kiln_worker *w, kiln_frame_state *s, const kiln_view_request *request,
                             kiln_error *err) KILN_MUST_CHECK;
/* The result of that unit, for the parent. */
typedef struct {
    uint64_t visible, pairs, box_pairs;
    uint64_t *row_pairs; /* [tiles_y]; free() */
} kiln_frame_counts;
/* Reads the result. Memory is predicted from it, so numbers that this view of these chunks cannot have are refused
 * (kiln_unit_refuse): KILN_E_IO. */
kiln_status kiln_frame_counts_read(kiln_run *r, const kiln_unit *u, const kiln_view_request *request, const kiln_view_chunks *c,
                                   kiln_frame_counts *out, kiln_error *err) KILN_MUST_CHECK;

#endif
