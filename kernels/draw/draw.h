/* draw -- draws a camera's picture of a scene that is stored in chunks. For programs other than SplatKiln's own stages, too.
 *
 * Problem. A picture takes four steps: project the Gaussians, sort them by depth, list them for each 16x16 tile, blend them. Each
 * step is an operation (kernels/ops.h). A large scene fits neither into a GPU's memory nor, at times, into the memory of the host.
 *
 * Constraint. A picture has the same bits as one drawn by kiln-render on the same kind of device. The bits do not depend on the
 * memory that is available, nor on the number of chunks. Device memory stays within the
 * runner's cap (runner.h).
 *
 * Layout. The caller hands over chunks through a callback and picks the entry point by what it wants to keep:
 *
 *   kiln_draw_collect   projects and sorts: the result is a "drawing", the visible Gaussians, nearest first. A renderer with its
 *                       own rasteriser needs only this, and the lists that kiln_draw_count and kiln_draw_emit make of it.
 *   kiln_draw_picture   lists and blends a drawing, one band of tile rows (tile_pairs.h) after the other
 *   kiln_draw_view      does both in one call and keeps no drawing; the fastest way to a picture on a GPU
 *   kiln_draw_passes    does both for many pictures of a scene, several at a time on a GPU: for small ones
 *   kiln_draw_on_device does both in device memory or not at all, for a caller without host memory for Gaussians
 *   kiln_draw_slabs     does both for a view whose Gaussians do not fit into memory, one range of depth after the other
 *
 * No entry point changes to slabs by itself. A caller with a memory limit compares it with the predictions below, or
 * asks kiln_draw_collect_or_slabs, and then calls kiln_draw_slabs.
 *
 * This is not an operation and has no arithmetic of its own. It calls the operations through a runner, which computes on the CPU or
 * on a GPU. Without a store, arrays pass through host memory between operations. With a store, a runner of a GPU keeps planes
 * and drawings in device memory, within the runner's cap, and copies only the results to the host. If something does not fit on the
 * device, that step uses host memory; the bits are the same.
 *
 * Memory: kiln_draw_collect_bytes, kiln_draw_picture_bytes and kiln_draw_slabs_bytes predict host memory before any is allocated.
 * With a store less may be used.
 * Threads: one thread at a time may use a runner and its store. Loops in here run on the runner's threads.
 * Errors: those of the callbacks and of the operations, and KILN_E_NOMEM.
 */
#ifndef KILN_KERNELS_DRAW_H
#define KILN_KERNELS_DRAW_H

#include "base/extern_c.h"
#include "kernels/pixel_bytes/pixel_bytes.h"
#include "kernels/pixel_hashes/pixel_hashes.h"
#include "kernels/png_rows/png_rows.h"
#include "kernels/project/project.h"
#include "kernels/runner.h"

KILN_C_BEGIN

/* The planes of one chunk, planar and not activated, as in project.h. The callback owns the arrays. They must stay valid until it
 * is called for the next chunk or the drawing call returns. */
typedef struct {
    uint64_t n; /* rows. The callback may set 0 if kiln_project_may_see says that the camera cannot see the chunk: it is skipped */
    const float *means, *log_scales, *quats, *opacity_logits;
    const float *sh0, *shN;      /* sh0 NULL: no colour, which is enough for lists and counts; shN is not read for degree 0 */
    const uint32_t *source_rows; /* [n] order Gaussians of equal depth; each number once in a scene */
} kiln_draw_chunk;

/* Fills *out with chunk number `chunk`. If it fails, the drawing call ends with its status and message. */
typedef kiln_status kiln_draw_chunk_fn(void *context, uint32_t chunk, kiln_draw_chunk *out, kiln_error *err);

/* Describes a chunk before its arrays are asked for. With a store, chunks whose planes are on the device are not read again. */
typedef struct {
    uint64_t n;            /* rows, of hidden chunks too: the store keeps their place for later cameras */
    bool hidden;           /* the chunk's arrays are not asked for: kiln_project_may_see says that the camera cannot see it or, with
                              kiln_draw_scene.apart, it must not count */
    bool colour;           /* the chunk callback will set sh0 */
    unsigned char key[16]; /* a hash of all planes of the chunk, of colour even if `colour` is false. It must not depend on
                              `hidden`: a scene on the device is recognised by the keys of all chunks */
} kiln_draw_chunk_header;

typedef kiln_status kiln_draw_chunk_header_fn(void *context, uint32_t chunk, kiln_draw_chunk_header *out, kiln_error *err);

/* Keeps planes and one drawing in the memory of a runner's device (store.h), within the runner's cap. A runner has at most one
 * store. A store of a CPU runner holds nothing; drawing works as without it. Release the drawing first, then free the store, then
 * the runner. */
typedef struct kiln_draw_store kiln_draw_store;
kiln_status kiln_draw_store_new(kiln_runner *r, kiln_draw_store **out, kiln_error *err) KILN_MUST_CHECK;
void kiln_draw_store_free(kiln_draw_store *s); /* NULL: does nothing */

/* Restricts a view to one slab of depth. kiln_draw_slabs sets it; other callers leave kiln_draw_scene.window NULL. */
typedef struct {
    kiln_visible_window visible;
    uint64_t most; /* upper bound of the Gaussians in the slab */
} kiln_draw_window;

/* What to draw: the scene, the camera, the renderer's profile. The caller owns it and everything it points to. */
typedef struct {
    const kiln_view *view;
    kiln_view_cut cut; /* of the picture that the view is a part of, as in project.h; all 0: it is a whole picture */
    kiln_profile_id profile;
    bool antialiased;
    bool fast;          /* as in raster.h: GPU only (KILN_E_INPUT on a CPU), and a slightly different picture. KILN_E_CAP if a
                           single tile row does not fit on the device */
    uint32_t sh_degree; /* of every chunk's shN; all of it is evaluated */
    uint32_t n_chunks;
    bool apart; /* the caller hides chunks that the camera may see, and they must not count: each chunk is projected by itself.
                   Without it, chunks that the store has in one piece are projected together, hidden or not */
    /* Called by the calling thread for 0 .. n_chunks - 1, in order. With a store it is called only for chunks whose planes are
     * missing on the device; if the drawing turns out not to fit there, it is called again for all chunks. */
    kiln_draw_chunk_fn *chunk;
    void *context;                     /* for both callbacks */
    void *geometry_context;            /* passed instead of `context` when colour is not needed (slabs); NULL: context is */
    kiln_draw_chunk_header_fn *header; /* needed with a store, else ignored; called for 0 .. n_chunks - 1 before `chunk` */
    kiln_draw_store *store;            /* NULL: everything passes through host memory */
    const kiln_draw_window *window;    /* kiln_draw_collect keeps only the Gaussians of this slab; NULL: all */
} kiln_draw_scene;

/* The visible Gaussians of a view, nearest first, equal depths by source row. Release it with kiln_drawing_release. */
typedef struct {
    uint64_t n;
    kiln_splat2d *splats;   /* [n] .row is the Gaussian's row in its chunk */
    uint32_t *chunk;        /* [n] number of the Gaussian's chunk */
    kiln_draw_store *store; /* not NULL: the drawing is in device memory, and both arrays are NULL */
} kiln_drawing;

/* Projects all chunks and sorts the visible Gaussians into *out. If the scene has a store and the drawing fits on its device, the
 * drawing stays there, else it is in host memory. A store holds one drawing at a time; while it does, other drawings are made in
 * host memory. After a failure *out is empty. KILN_E_INPUT: more than 2^32 - 2 Gaussians are visible. */
kiln_status kiln_draw_collect(kiln_runner *r, const kiln_draw_scene *s, kiln_drawing *out, kiln_error *err) KILN_MUST_CHECK;
/* Frees the drawing's memory and sets *d to zero. A drawing of zeros is empty; releasing it does nothing. */
void kiln_drawing_release(kiln_drawing *d);
/* Moves the drawing to host memory and releases its place on the device. If it is in host memory already, does nothing. */
kiln_status kiln_drawing_fetch(kiln_drawing *d, kiln_error *err) KILN_MUST_CHECK;
/* Writes each Gaussian's chunk and its row in that chunk, [d->n] each, to host memory. The drawing stays where it is. */
kiln_status kiln_drawing_names(kiln_runner *r, const kiln_drawing *d, uint32_t *chunk, uint32_t *row,
                               kiln_error *err) KILN_MUST_CHECK;

/* Lists and blends a drawing. rgba [height][width][4] and depth [height][width] (or NULL) are host memory, as in raster.h. *pairs
 * (or NULL) is the number of (tile, Gaussian) pairs. s has the view and profile that kiln_draw_collect was given. If lists or
 * pixels do not fit on the device beside the drawing, the drawing is moved to host memory. */
kiln_status kiln_draw_picture(kiln_runner *r, const kiln_draw_scene *s, kiln_drawing *d, const float background[3], float *rgba,
                              float *depth, uint64_t *pairs, kiln_error *err) KILN_MUST_CHECK;

/* ---- without a drawing ------------------------------------------------------------------------------------------------- */
/* Counts of one picture. */
typedef struct {
    uint64_t visible, pairs; /* visible Gaussians and (tile, Gaussian) pairs of the whole view, however it was drawn */
    uint64_t listed;         /* pairs that were listed; with slabs fewer than `pairs` if tiles were finished early */
    uint32_t slabs, drawn;   /* number of slabs that the view was cut into, and of those drawn before all tiles were finished. Both
                                are 0 except after kiln_draw_slabs */
} kiln_draw_stats;

/* Collects and draws in one call; the bits are those of kiln_draw_collect and kiln_draw_picture. If the store has drawn this scene
 * before, with any camera, the host reads nothing back in between: buffers have the size that the last pictures needed, plus a
 * sixteenth. If they are too small, the picture is drawn once more with larger ones, or else by the two calls. stats may be
 * NULL. */
kiln_status kiln_draw_view(kiln_runner *r, const kiln_draw_scene *s, const float background[3], float *rgba, float *depth,
                           kiln_draw_stats *stats, kiln_error *err) KILN_MUST_CHECK;
/* What a single pass copies to host memory. NULL: not wanted, so it is not copied. */
typedef struct {
    float *rgba;           /* [height][width][4], as in raster.h */
    float *depth;          /* [height][width] */
    unsigned char *hashes; /* [kiln_pixel_pieces][KILN_PIXEL_HASH_BYTES] of rgba; only if kiln_pixel_hashes_can */
    /* The rows of a PNG of the picture: arguments of png_rows for all rows, whose `pixels` the device sets. */
    const kiln_png_rows_args *png;
    /* The colours as bytes: arguments of pixel_bytes for a part of the picture or all of it, whose `pixels` the device sets. */
    const kiln_pixel_bytes_args *bytes;
} kiln_draw_outputs;

/* Tries only the single pass of kiln_draw_view: no count is read back before the picture. *done is false if it cannot be used:
 * there is no store on a device, the store holds a drawing, no picture of this scene was drawn before, or the buffers are too
 * small. Then the outputs and *stats are undefined. Allocates no host memory for Gaussians or pairs. */
kiln_status kiln_draw_single_pass(const kiln_draw_scene *s, const float background[3], const kiln_draw_outputs *to,
                                  kiln_draw_stats *stats, bool *done, kiln_error *err) KILN_MUST_CHECK;
/* One of several pictures. */
typedef struct {
    const kiln_draw_scene *scene;
    const float *background; /* [3] */
    kiln_draw_outputs to;
    kiln_draw_stats stats; /* out, */
    bool done;             /* out: as of kiln_draw_single_pass */
} kiln_draw_pass;

/* Draws each as kiln_draw_single_pass does, with the same bits, but up to six at a time on a device: while one sorts, which a few
 * blocks do, another is drawn. That is for small pictures, as a large one keeps a device busy by itself. All have one store. Device
 * memory: as of one picture, for each of them; if there is not so much, fewer are drawn at a time. Outputs must be different
 * memory, and page-locked (kiln_device_pin): a copy to other memory is waited for. KILN_E_USAGE: not one store, or no headers. */
kiln_status kiln_draw_passes(kiln_draw_pass *passes, uint32_t n, kiln_error *err) KILN_MUST_CHECK;
/* As kiln_draw_view, but draws in device memory or not at all: allocates no host memory for Gaussians or pairs, so it is for a
 * caller whose memory has no room for them. Also draws the first picture of a scene, for which there is no single pass. *done is
 * false if there is no store on a device, the store holds a drawing, or something does not fit there. Then the picture and *stats
 * are undefined, and *capacity is the number of Gaussians that a slab on the device can have (kiln_draw_slabs); 0: slabs there are
 * not worth it. */
kiln_status kiln_draw_on_device(const kiln_draw_scene *s, const float background[3], float *rgba, float *depth,
                                kiln_draw_stats *stats, bool *done, uint64_t *capacity, kiln_error *err) KILN_MUST_CHECK;

/* ---- in slabs ---------------------------------------------------------------------------------------------------------- */
/* As kiln_draw_collect, but prefers slabs on the device to a drawing in host memory. If the drawing does not fit on the device and
 * slabs do, *out is empty and *capacity is the number of Gaussians that one slab can hold: pass it to kiln_draw_slabs. Else
 * *capacity is 0, and *out is a drawing as of kiln_draw_collect. */
kiln_status kiln_draw_collect_or_slabs(kiln_runner *r, const kiln_draw_scene *s, kiln_drawing *out, uint64_t *capacity,
                                       kiln_error *err) KILN_MUST_CHECK;
/* Draws a view whose Gaussians do not fit into memory. The picture is that of kiln_draw_collect and kiln_draw_picture, bit for bit.
 *
 * The view is cut into slabs of ascending depth with at most `capacity` Gaussians each. (More only if the caller breaks the rule
 * that source rows are unique.) Without a device, choose the largest capacity for which kiln_draw_slabs_bytes is within the
 * caller's memory limit. A first look at the geometry of all chunks decides where to cut. Each slab then asks for the chunks that
 * have Gaussians in it, so a chunk is asked for twice or more. The state of every pixel is kept in host memory between
 * slabs. Gaussians whose tiles are all finished are left out, and drawing ends with the last unfinished tile.
 *
 * Host memory: kiln_draw_slabs_bytes. stats must not be NULL. */
kiln_status kiln_draw_slabs(kiln_runner *r, const kiln_draw_scene *s, uint64_t capacity, const float background[3], float *rgba,
                            float *depth, kiln_draw_stats *stats, kiln_error *err) KILN_MUST_CHECK;

/* ---- counted before it is drawn ---------------------------------------------------------------------------------------- */
typedef struct {
    uint64_t visible, pairs; /* Gaussians; (tile, Gaussian) pairs */
    uint64_t box_pairs;      /* pairs that the renderer itself would list, by its own boxes (project.h) */
    uint64_t *row_pairs;     /* [tiles_y] pairs of each tile row; the caller's array */
} kiln_draw_tally;
/* Counts the visible Gaussians and pairs of a view without drawing it. Chunks need no colour. Host memory: 64 bytes for each row of
 * the largest chunk. */
kiln_status kiln_draw_count_all(kiln_runner *r, const kiln_draw_scene *s, kiln_draw_tally *t, kiln_error *err) KILN_MUST_CHECK;

/* ---- its parts --------------------------------------------------------------------------------------------------------- */
/* Run tile_pairs_count, tile_pairs_emit and raster on a drawing, within the runner's cap. Arguments are those of the operations,
 * with arrays in host memory, but n and splats are the drawing's: those in *a are ignored. Ranks are indices into the drawing. If
 * the operation does not fit on the device beside the drawing, the drawing is moved to host memory. */
kiln_status kiln_draw_count(kiln_runner *r, kiln_drawing *d, const kiln_tile_pairs_count_args *a, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_draw_emit(kiln_runner *r, kiln_drawing *d, const kiln_tile_pairs_emit_args *a, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_draw_raster(kiln_runner *r, kiln_drawing *d, const kiln_raster_args *a, kiln_error *err) KILN_MUST_CHECK;
/* Lists and blends one band. a is as for raster, without tile_counts and ranks; a->n_pairs is the number of pairs that were
 * counted. counts [tiles of the band] and ranks [n_pairs] are work space; their contents afterwards are undefined. */
kiln_status kiln_draw_band(kiln_runner *r, kiln_drawing *d, const kiln_raster_args *a, uint32_t *counts, uint32_t *ranks,
                           kiln_error *err) KILN_MUST_CHECK;

/* ---- host memory, predicted ------------------------------------------------------------------------------------------- */
/* What a counting pass (kiln_draw_count_all) knows of a view. The functions below compute bounds from it. */
typedef struct {
    uint64_t visible;                /* Gaussians; for slabs: of one slab */
    uint64_t largest_chunk;          /* rows of the largest chunk that may be visible */
    uint64_t band_pairs, band_tiles; /* of the band with the most pairs, and of the one with the most tiles */
    bool in_parts;                   /* the runner has a device; operations may be cut into parts to fit its cap (fit.h) */
} kiln_draw_size;

/* Sets band_pairs and band_tiles from the pairs of each tile row, as tile_pairs_count gives them. */
void kiln_draw_size_bands(kiln_draw_size *s, const kiln_view *view, const uint64_t *row_pairs);
/* Upper bound of what kiln_draw_collect allocates, with the drawing, without the callback's arrays. */
uint64_t kiln_draw_collect_bytes(const kiln_draw_size *s);
/* Size of the drawing itself. */
uint64_t kiln_draw_kept_bytes(const kiln_draw_size *s);
/* Upper bound of what kiln_draw_picture allocates, without the drawing, rgba and depth. It also covers kiln_draw_emit of one band.
 */
uint64_t kiln_draw_picture_bytes(const kiln_draw_size *s, const kiln_view *view);
/* Upper bound of what kiln_draw_slabs allocates with capacity s->visible, without rgba, depth and the callback's arrays. band_pairs
 * and band_tiles are those of a slab. */
uint64_t kiln_draw_slabs_bytes(const kiln_draw_size *s, const kiln_view *view, uint32_t n_chunks);

KILN_C_END

#endif
