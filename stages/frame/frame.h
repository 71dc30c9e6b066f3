/* frame -- a camera's view of a layer, for the stages that look through cameras: prune's prediction, tiles, render.
 *
 * A kiln_view_request says everything that a table or a picture depends on besides the Gaussians. A kiln_frame is what the
 * projection of a layer's chunks through a request gives: the visible Gaussians in depth order, and where each came from.
 * The keys here are the one place that says which inputs a table and a picture have, so that kiln-render knows the
 * table that kiln-tiles made for the same inputs.
 */
#ifndef KILN_STAGES_FRAME_H
#define KILN_STAGES_FRAME_H

#include "kernels/draw/draw.h"
#include "schema/layers.h"
#include "stages/engine/engine.h"
#include "stages/frame/canvas.h"

/* ---- options that tiles and render share -------------------------------------------------------------------------- */
typedef struct {
    uint32_t profile;      /* kiln_profile_id */
    uint32_t antialiased;  /* 0 scene, 1 on, 2 off */
    const char *near_text; /* "profile" or a number */
} kiln_view_options;

#define KILN_VIEW_OPTION_ROWS(o)                                                                                                  \
    {"profile", 'p', KILN_OPT_ENUM, &(o).profile, "NAME", "inria", kiln_profile_names + 1, "the renderer whose arithmetic draws", \
     KILN_KEYED},                                                                                                                 \
        {"antialiased", 0,       KILN_OPT_ENUM,  &(o).antialiased,                                                                \
         "WHEN",        "scene", "scene|on|off", "antialiasing (mip compensation): as the scene was trained, on or off",          \
         KILN_KEYED},                                                                                                             \
    {                                                                                                                             \
        "near", 0, KILN_OPT_TEXT, &(o).near_text, "M", "profile", NULL, "near plane in scene units; profile: the renderer's own", \
            KILN_KEYED                                                                                                            \
    }

/* ---- request ----------------------------------------------------------------------------------------------------------- */
typedef struct {
    kiln_view view;
    kiln_profile_id profile;
    bool antialiased;
    double near_m;
} kiln_view_request;

/* KILN_E_USAGE when --near is no number above 0. */
kiln_status kiln_view_request_init(kiln_view_request *s, const kiln_view_options *o, const kiln_scene *scene,
                                   const kiln_camera *camera, kiln_error *err) KILN_MUST_CHECK;
/* Could a Gaussian of this chunk be visible? Conservative; false for an empty chunk. */
bool kiln_view_request_may_see(const kiln_view_request *s, const kiln_chunk *c);

/* ---- keys ----------------------------------------------------------------------------------------------------------- */
/* What a view depends on in each chunk, hashed once for all views of a layer. */
typedef struct {
    const kiln_layer *layer; /* borrowed */
    kiln_hash *geometry;     /* [n_chunks] name and geometry planes */
    kiln_hash *colour;       /* [n_chunks] that and the colour planes */
} kiln_chunk_keys;

kiln_status kiln_chunk_keys_make(const kiln_layer *layer, kiln_chunk_keys *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_chunk_keys_release(kiln_chunk_keys *k);
/* What a tile table depends on; and a picture (colour planes too). Algorithm versions of the tiles and render stages included. */
kiln_hash kiln_view_request_table_key(const kiln_view_request *s, const kiln_chunk_keys *k);
kiln_hash kiln_view_request_picture_key(const kiln_view_request *s, const kiln_chunk_keys *k, const double background[3],
                                        const char *device_kind);

/* ---- host memory, for kiln_unit.ram --------------------------------------------------------------------------------- */
uint64_t kiln_frame_largest_chunk(const kiln_layer *layer); /* rows */
/* What can be said of a view before a Gaussian is looked at: all rows of the chunks that may be seen, and bands as they are
 * while no single tile row has more pairs than a band should. in_parts is set: clear it where the CPU computes. */
kiln_draw_size kiln_frame_bound(const kiln_view_request *s, const kiln_layer *layer);
/* Decoded planes of the largest chunk, and what decoding takes. */
uint64_t kiln_frame_chunk_bytes(const kiln_layer *layer, bool colour);
/* At most: the counting pass; a frame, and with_frame bytes that its unit takes beside it once it is made. */
uint64_t kiln_frame_count_ram(const kiln_layer *layer, const kiln_view_request *s);
uint64_t kiln_frame_ram(const kiln_layer *layer, const kiln_draw_size *size, bool colour, uint64_t with_frame);
/* What a worker's state keeps at most where there is room: every plane, and connections that read ahead (kiln_unit.ram_cache). */
uint64_t kiln_frame_cache_ram(const kiln_layer *layer);
/* A picture in slabs of size->visible Gaussians, of which a band has at most so many pairs; and what its unit takes beside it. */
uint64_t kiln_frame_slabs_ram(const kiln_layer *layer, const kiln_view_request *s, const kiln_draw_size *size, uint64_t beside);

/* ---- frame (worker) ------------------------------------------------------------------------------------------------- */
typedef kiln_drawing kiln_frame; /* .chunk: index into the layer's chunks */

/* What a worker keeps between units: the layer's description, decoded planes, the last frame. */
typedef struct kiln_frame_state kiln_frame_state;
/* The worker's state, made at first use for this layer (kind, digest). ram: what the unit in
 * hand takes at most, one of the functions above, but for `canvases` bytes of kiln_frame_canvas; what the worker may take besides
 * keeps decoded planes. */
kiln_status kiln_frame_state_get(kiln_worker *w, kiln_layer_kind kind, kiln_hash digest, uint64_t ram, uint64_t canvases,
                                 kiln_frame_state **out, kiln_error *err) KILN_MUST_CHECK;
/* kiln_stage_program.early of stages that draw the newest layer in chunks with its colours: decodes its planes, as far as a quarter
 * of the memory of a unit goes. */
uint64_t kiln_frame_early(kiln_worker *w, const atomic_bool *stop);
const kiln_layer *kiln_frame_layer(const kiln_frame_state *s);
/* Whether frames and pictures of this state are fast ones (kernels/draw) from now on; at first they are exact. */
void kiln_frame_set_fast(kiln_frame_state *s, bool fast);
/* Borrowed until the next call; the same request again costs nothing. Its arrays may be on the worker's GPU: kernels/draw/draw.h.
 */
kiln_status kiln_frame_make(kiln_worker *w, kiln_frame_state *s, const kiln_view_request *request, bool colour, kiln_frame **out,
                            kiln_error *err) KILN_MUST_CHECK;
/* The same; or *room above 0: the frame does not fit on the worker's GPU, and kiln_frame_slabs will, with so much room. */
kiln_status kiln_frame_make_or_room(kiln_worker *w, kiln_frame_state *s, const kiln_view_request *request, bool colour,
                                    kiln_frame **out, uint64_t *room, kiln_error *err) KILN_MUST_CHECK;
/* The picture at once (kiln_draw_single_pass), without a frame; *done false: not so. */
kiln_status kiln_frame_single_pass(kiln_worker *w, kiln_frame_state *s, const kiln_view_request *request, const float background[3],
                                   float *rgba, float *depth, kiln_draw_stats *stats, bool *done, kiln_error *err) KILN_MUST_CHECK;
/* The picture in slabs (kiln_draw_slabs), without a frame. */
kiln_status kiln_frame_slabs(kiln_worker *w, kiln_frame_state *s, const kiln_view_request *request, uint64_t room,
                             const float background[3], float *rgba, float *depth, kiln_draw_stats *stats,
                             kiln_error *err) KILN_MUST_CHECK;
/* Room for a picture of so many pixels, one of `most` that are kept from unit to unit while these numbers stay and what the unit in
 * hand takes leaves room for them beside. Waits where all are taken, for a tail to give one back (kiln_canvas_give). */
kiln_status kiln_frame_canvas(kiln_worker *w, kiln_frame_state *s, uint64_t pixels, unsigned most, kiln_canvas **out,
                              kiln_error *err) KILN_MUST_CHECK;
/* Gives back the memory of the last frame, when nobody will ask for it again. */
void kiln_frame_forget(kiln_frame_state *s);
/* A whole unit: the counting pass in fixed memory, chunk by chunk. Output "row_pairs" u64 [tiles_y]; counters visible, pairs, and
 * box_pairs, those of the renderer's own boxes (project.h). */
kiln_status kiln_frame_count(kiln_worker *w, kiln_frame_state *s, const kiln_view_request *request,
                             kiln_error *err) KILN_MUST_CHECK;
/* What that unit found, for the parent: memory is predicted by it, so numbers that this view of this layer cannot have are
 * refused. free(row_pairs). */
typedef struct {
    uint64_t visible, pairs, box_pairs;
    uint64_t *row_pairs; /* [tiles_y] */
} kiln_frame_counts;
kiln_status kiln_frame_counts_read(kiln_run *r, const kiln_unit *u, const kiln_view_request *request, const kiln_layer *layer,
                                   kiln_frame_counts *out, kiln_error *err) KILN_MUST_CHECK;

/* ---- cameras by name ------------------------------------------------------------------------------------------------- */
/* NAME, or #INDEX from 0 in sorted name order; KILN_E_USAGE names the nearest or the range. */
kiln_status kiln_camera_pick(const kiln_camera *cameras, uint32_t n, const char *text, uint32_t *index,
                             kiln_error *err) KILN_MUST_CHECK;

#endif
