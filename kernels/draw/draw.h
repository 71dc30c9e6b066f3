/* draw -- a camera's picture of Gaussians that come chunk by chunk, for programs that are no stage of ours: project,
 * put into drawing order, list by tile, blend. Not an operation: it calls the operations through a runner,
 * so a picture has the bits that kiln-render's has on the same kind of device.
 *
 *   kiln_draw_collect   what the camera sees, nearest first; a renderer of its own may want just this, and the lists that
 *                       tile_pairs_count and tile_pairs_emit make of it
 *   kiln_draw_picture   lists band by band (tile_pairs.h), blended as the profile says
 *   kiln_draw_view      both, for who wants the picture alone: on a device the fastest
 *
 * Arrays are host memory, and pass through it between operations. Where a scene has a store, a runner of a device keeps planes and
 * drawings in the device's memory, under its cap, and only what is asked for comes to host memory; what does not fit goes the other
 * way, with the same bits. Host memory: kiln_draw_collect_bytes and kiln_draw_picture_bytes say it before a byte is taken; with a
 * store it may be less. One caller for each runner and its store; loops here run on the runner's threads. Errors are those of the
 * callbacks and of the operations; KILN_E_NOMEM.
 */
#ifndef KILN_KERNELS_DRAW_H
#define KILN_KERNELS_DRAW_H

#include "base/extern_c.h"
#include "kernels/project/project.h"
#include "kernels/runner.h"

KILN_C_BEGIN

/* Planar and raw as in project.h; borrowed until the next chunk is asked for. */
typedef struct {
    uint64_t n; /* 0: nothing of it can be seen (kiln_project_may_see); no array is looked at */
    const float *means, *log_scales, *quats, *opacity_logits;
    const float *sh0, *shN;      /* sh0 NULL: no colour, for lists and counts alone; shN is not read for degree 0 */
    const uint32_t *source_rows; /* [n] decide between equal depths */
} kiln_draw_chunk;

typedef kiln_status kiln_draw_chunk_fn(void *context, uint32_t chunk, kiln_draw_chunk *out, kiln_error *err);

/* What a chunk is, said before its arrays are asked for, so that those which are on a device already are not. */
typedef struct {
    uint64_t n;            /* rows; said of hidden ones, too */
    bool hidden;           /* nothing of it can be seen (kiln_project_may_see): its arrays are not asked for */
    bool colour;           /* sh0 comes with it */
    unsigned char key[16]; /* a hash of all that it has, its colour included even where that is not asked for; the same whether
                              it is hidden or not, or the scene on the device is taken for another */
} kiln_draw_chunk_header;

typedef kiln_status kiln_draw_chunk_header_fn(void *context, uint32_t chunk, kiln_draw_chunk_header *out, kiln_error *err);

/* Keeps planes and drawings in the memory of a runner's device (store.h), under the runner's cap; one for a runner. */
typedef struct kiln_draw_store kiln_draw_store;
kiln_status kiln_draw_store_new(kiln_runner *r, kiln_draw_store **out, kiln_error *err) KILN_MUST_CHECK;
void kiln_draw_store_free(kiln_draw_store *s); /* before its runner, behind its drawings; NULL: nothing */

/* A part of a view, for slabs.c. */
typedef struct {
    kiln_visible_window visible;
    uint64_t most; /* no more Gaussians than that are in it */
} kiln_draw_window;

/* What is drawn, from where, and as whom. */
typedef struct {
    const kiln_view *view;
    kiln_profile_id profile;
    bool antialiased;
    bool fast; /* as in raster.h: by a GPU, and not the same picture; KILN_E_CAP where a row of tiles finds no room there */
    uint32_t sh_degree; /* of every chunk */
    uint32_t n_chunks;
    kiln_draw_chunk_fn *chunk; /* called for 0 .. n_chunks - 1, in order, by the calling thread; with a store for those that are
                                  missing, and for all of them anew where the drawing does not fit on the device after all */
    void *context;
    void *geometry_context;            /* a context of the same chunks without colour, for looks that need none; NULL: context */
    kiln_draw_chunk_header_fn *header; /* with a store; called as chunk is, before it */
    kiln_draw_store *store;            /* NULL: everything passes through host memory */
    const kiln_draw_window *window;    /* kiln_draw_collect gives these alone; NULL: all */
} kiln_draw_scene;

typedef struct {
    uint64_t n;
    kiln_splat2d *splats;   /* [n] nearest first; .row is the row in its chunk */
    uint32_t *chunk;        /* [n] which chunk it is of */
    kiln_draw_store *store; /* not NULL: the drawing is on its device, and the arrays are NULL */
} kiln_drawing;

/* *out is empty after a failure. KILN_E_INPUT also when more than 2^32 - 2 Gaussians are visible. kiln_drawing_release. */
kiln_status kiln_draw_collect(kiln_runner *r, const kiln_draw_scene *s, kiln_drawing *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_drawing_release(kiln_drawing *d);
/* Brings the arrays to host memory, for good; nothing to do where they are there. */
kiln_status kiln_drawing_fetch(kiln_drawing *d, kiln_error *err) KILN_MUST_CHECK;
/* [d->n] each: the chunk of each Gaussian, and its row there. */
kiln_status kiln_drawing_names(kiln_runner *r, const kiln_drawing *d, uint32_t *chunk, uint32_t *row,
                               kiln_error *err) KILN_MUST_CHECK;

/* The picture as in raster.h: rgba [height][width][4]; depth [height][width] or NULL; *pairs, if not NULL: how many (tile,
 * Gaussian) pairs were listed. s: view and profile of kiln_draw_collect. A drawing on a device comes to host memory where what is
 * to be made of it does not fit there beside it. */
kiln_status kiln_draw_picture(kiln_runner *r, const kiln_draw_scene *s, kiln_drawing *d, const float background[3], float *rgba,
                              float *depth, uint64_t *pairs, kiln_error *err) KILN_MUST_CHECK;

/* ---- without a drawing ------------------------------------------------------------------------------------------------- */
/* What was drawn. */
typedef struct {
    uint64_t visible, pairs; /* of the whole view, as a drawing has them */
    uint64_t listed;         /* pairs that slabs did list: fewer where tiles were finished */
    uint32_t slabs, drawn;   /* until all was finished; 0 of a picture in one piece */
} kiln_draw_stats;
/* kiln_draw_collect and kiln_draw_picture in one, with the same bits: on a device that has drawn this scene before without a wait
 * in between, as far as the room is that the last picture had. stats may be NULL. */
kiln_status kiln_draw_view(kiln_runner *r, const kiln_draw_scene *s, const float background[3], float *rgba, float *depth,
                           kiln_draw_stats *stats, kiln_error *err) KILN_MUST_CHECK;
/* The same where it can be done so; *done false: nothing is drawn, rgba and depth hold nothing. Takes no host memory. */
kiln_status kiln_draw_single_pass(const kiln_draw_scene *s, const float background[3], float *rgba, float *depth,
                                  kiln_draw_stats *stats, bool *done, kiln_error *err) KILN_MUST_CHECK;

/* ---- in slabs ---------------------------------------------------------------------------------------------------------- */
/* As kiln_draw_collect with *room 0; or, where the drawing does not fit into the device's memory but slabs do, *out is empty and
 * *room how many Gaussians of a slab there is room for. */
kiln_status kiln_draw_collect_or_slabs(kiln_runner *r, const kiln_draw_scene *s, kiln_drawing *out, uint64_t *capacity,
                                       kiln_error *err) KILN_MUST_CHECK;
/* For views whose Gaussians do not fit into memory: the picture of kiln_draw_collect and kiln_draw_picture, bit for bit, drawn in
 * slabs of ascending depth of at most `room` Gaussians each. What the slabs before left of each pixel is carried on in host memory;
 * a Gaussian all of whose tiles are finished is left out, and with the last tile the slabs end. A first look at all chunks, at
 * their geometry alone, decides where to cut; a slab then asks for the chunks that have Gaussians in it. Every chunk is therefore
 * asked for at least twice. Host memory: kiln_draw_slabs_bytes. */
kiln_status kiln_draw_slabs(kiln_runner *r, const kiln_draw_scene *s, uint64_t capacity, const float background[3], float *rgba,
                            float *depth, kiln_draw_stats *stats, kiln_error *err) KILN_MUST_CHECK;

/* ---- counted before it is drawn ---------------------------------------------------------------------------------------- */
typedef struct {
    uint64_t visible, pairs;
    uint64_t box_pairs;  /* those of the renderer's own boxes (project.h) */
    uint64_t *row_pairs; /* [tiles_y]; the caller's */
} kiln_draw_tally;
/* Geometry alone: chunks need no colour. Host memory: the projection of one chunk, 64 bytes a row. */
kiln_status kiln_draw_count_all(kiln_runner *r, const kiln_draw_scene *s, kiln_draw_tally *t, kiln_error *err) KILN_MUST_CHECK;

/* ---- its parts --------------------------------------------------------------------------------------------------------- */
/* tile_pairs_count, tile_pairs_emit and raster of a drawing, under the runner's cap: arguments as the operations have them, but for
 * the Gaussians, which are the drawing's. */
kiln_status kiln_draw_count(kiln_runner *r, kiln_drawing *d, const kiln_tile_pairs_count_args *a, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_draw_emit(kiln_runner *r, kiln_drawing *d, const kiln_tile_pairs_emit_args *a, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_draw_raster(kiln_runner *r, kiln_drawing *d, const kiln_raster_args *a, kiln_error *err) KILN_MUST_CHECK;
/* Emit and raster of one band: a is raster's but for the lists, of which n_pairs were counted; counts [tiles] and ranks [n_pairs]
 * are room for them and hold afterwards what means nothing to the caller. */
kiln_status kiln_draw_band(kiln_runner *r, kiln_drawing *d, const kiln_raster_args *a, uint32_t *counts, uint32_t *ranks,
                           kiln_error *err) KILN_MUST_CHECK;

/* ---- host memory, predicted ------------------------------------------------------------------------------------------- */
/* What is known of a view before it is drawn. */
typedef struct {
    uint64_t visible;                /* Gaussians */
    uint64_t largest_chunk;          /* rows of the largest chunk that is asked for */
    uint64_t band_pairs, band_tiles; /* of the bands that have the most */
    bool in_parts;                   /* the runner is of a device whose cap may be too small (fit.h) */
} kiln_draw_size;

/* The band_ fields, from the pairs of each tile row as tile_pairs_count gives them. */
void kiln_draw_size_bands(kiln_draw_size *s, const kiln_view *view, const uint64_t *row_pairs);
/* At most what kiln_draw_collect takes, the drawing included and the callback's arrays not; and what the drawing keeps. */
uint64_t kiln_draw_collect_bytes(const kiln_draw_size *s);
uint64_t kiln_draw_kept_bytes(const kiln_draw_size *s);
/* At most what kiln_draw_picture takes besides the drawing and its own rgba and depth; the lists of a band alone need no
 * more. */
uint64_t kiln_draw_picture_bytes(const kiln_draw_size *s, const kiln_view *view);
/* At most what kiln_draw_slabs takes besides its own rgba and depth, with room for s->visible; band_pairs and band_tiles are of a
 * slab. The callback's arrays are not in it. */
uint64_t kiln_draw_slabs_bytes(const kiln_draw_size *s, const kiln_view *view, uint32_t n_chunks);

KILN_C_END

#endif
