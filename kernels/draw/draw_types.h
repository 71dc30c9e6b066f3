/* draw_types -- what the functions of draw.h, drawing.h, draw_size.h and draw_tally.h take and
 * give: a scene in chunks, a camera, and what is wanted of its view. */
#ifndef KILN_KERNELS_DRAW_TYPES_H
#define KILN_KERNELS_DRAW_TYPES_H

#include "base/extern_c.h"
#include "kernels/pixel_bytes/pixel_bytes.h"
#include "kernels/pixel_hashes/pixel_hashes.h"
#include "kernels/png_rows/png_rows.h"
#include "kernels/project/project.h"
#include "kernels/runner.h"

KILN_C_BEGIN

/* ---- a scene --------------------------------------------------------------------------------- */
/* The planes of one chunk, planar and not activated, as in project.h. The callback owns the arrays.
 * They must stay valid until it is called for the next chunk or the drawing call returns. */
typedef struct {
    /* rows. The callback may set 0 if kiln_project_may_see says that the camera cannot see the
     * chunk: it is skipped */
    uint64_t n;
    const float *means, *log_scales, *quats, *opacity_logits;
    /* sh0 NULL: no colour, which is enough for lists and counts; shN is not read for degree 0 */
    const float *sh0, *shN;
    /* [n] order Gaussians of equal depth; each number once in a scene */
    const uint32_t *source_rows;
} kiln_draw_chunk;

/* Fills *out with chunk number `chunk`. If it fails, the drawing call ends with its status and
 * message. */
typedef kiln_status kiln_draw_chunk_fn(void *context, uint32_t chunk, kiln_draw_chunk *out,
                                       kiln_error *err);

/* Describes a chunk before its arrays are asked for. With a store, chunks whose planes are on the
 * device are not read again. */
typedef struct {
    /* rows, of hidden chunks too: the store keeps their place for later cameras */
    uint64_t n;
    /* the chunk's arrays are not asked for: kiln_project_may_see says that the camera cannot see it
     * or, with kiln_draw_scene.apart, it must not count */
    bool hidden;
    bool colour; /* the chunk callback will set sh0 */
    /* a hash of all planes of the chunk, of colour even if `colour` is false. It must not depend on
     * `hidden`: a scene on the device is recognised by the keys of all chunks */
    unsigned char key[16];
} kiln_draw_chunk_header;

typedef kiln_status kiln_draw_chunk_header_fn(void *context, uint32_t chunk,
                                              kiln_draw_chunk_header *out, kiln_error *err);

/* Keeps planes and one drawing in the memory of a runner's device (kernels/draw/DESIGN.md), within
 * the runner's cap. A runner has at most one store. A store of a CPU runner holds nothing; drawing
 * works as without it. Release the drawing first, then free the store, then the runner. */
typedef struct kiln_draw_store kiln_draw_store;
kiln_status kiln_draw_store_new(kiln_runner *r, kiln_draw_store **out,
                                kiln_error *err) KILN_MUST_CHECK;
void kiln_draw_store_free(kiln_draw_store *s); /* NULL: does nothing */

/* Restricts a view to one slab of depth. kiln_draw sets it; callers leave kiln_draw_scene.window
 * NULL. */
typedef struct {
    kiln_visible_window visible;
    uint64_t most; /* upper bound of the Gaussians in the slab */
} kiln_draw_window;

/* What to draw: the scene, the camera, the renderer's profile. The caller owns it and everything it
 * points to. */
typedef struct {
    const kiln_view *view;
    /* of the picture that the view is a part of, as in project.h; all 0: it is a whole picture */
    kiln_view_cut cut;
    kiln_profile_id profile;
    bool antialiased;
    /* as in raster.h: GPU only (KILN_E_INPUT on a CPU), and a slightly different picture.
     * KILN_E_CAP if a single tile row does not fit on the device */
    bool fast;
    uint32_t sh_degree; /* of every chunk's shN; all of it is evaluated */
    uint32_t n_chunks;
    /* the caller hides chunks that the camera may see, and they must not count: each chunk is
     * projected by itself. Without it, chunks that the store has in one piece are projected
     * together, hidden or not */
    bool apart;
    /* Called by the calling thread for 0 .. n_chunks - 1, in order. With a store it is called only
     * for chunks whose planes are missing on the device; if the drawing turns out not to fit there,
     * it is called again for all chunks. */
    kiln_draw_chunk_fn *chunk;
    void *context; /* for both callbacks */
    /* passed instead of `context` when colour is not needed (slabs); NULL: context is */
    void *geometry_context;
    /* needed with a store, else ignored; called for 0 .. n_chunks - 1 before `chunk` */
    kiln_draw_chunk_header_fn *header;
    kiln_draw_store *store; /* NULL: everything passes through host memory */
    /* kiln_draw_collect keeps only the Gaussians of this slab; NULL: all */
    const kiln_draw_window *window;
} kiln_draw_scene;

/* The visible Gaussians of a view, nearest first, equal depths by source row. Release it with
 * kiln_drawing_release. */
typedef struct {
    uint64_t n;
    kiln_splat2d *splats; /* [n] .row is the Gaussian's row in its chunk */
    uint32_t *chunk;      /* [n] number of the Gaussian's chunk */
    /* not NULL: the drawing is in device memory, and both arrays are NULL */
    kiln_draw_store *store;
} kiln_drawing;

/* ---- what is wanted of a view ---------------------------------------------------------------- */
/* Ways to draw a view; the picture's bits do not depend on them. They are tried in this order. */
typedef enum {
    /* In device memory, with no count read back before the picture: of a scene that was drawn
     * before, with any camera. Buffers have the size that its last pictures needed, plus a
     * sixteenth. If they are too small, it is drawn once more with larger ones. */
    KILN_DRAW_SINGLE_PASS = 1,
    /* A drawing, its lists and its pixels in device memory. If lists or pixels do not fit beside
     * the drawing, it moves to host memory where KILN_DRAW_HOST is allowed, too. Where it is not,
     * the way is given up: no Gaussian comes to host memory. */
    KILN_DRAW_DEVICE = 2,
    /* Draws one range of depth after the other. Needs `capacity`, or a device that has told how
     * many Gaussians of a slab it can hold. The state of every pixel is kept in host memory in
     * between. Gaussians whose tiles are all finished are left out. */
    KILN_DRAW_SLABS = 4,
    /* A drawing in host memory, from which a runner of a device gets what each operation needs. Can
     * always be. */
    KILN_DRAW_HOST = 8
} kiln_draw_way;

/* What a single pass copies to host memory. NULL: not wanted, so it is not copied. */
typedef struct {
    float *rgba;  /* [height][width][4], as in raster.h */
    float *depth; /* [height][width] */
    /* [kiln_pixel_pieces][KILN_PIXEL_HASH_BYTES] of rgba; only if kiln_pixel_hashes_can */
    unsigned char *hashes;
    /* The rows of a PNG of the picture: arguments of png_rows for all rows, whose `pixels` the
     * device sets. */
    const kiln_png_rows_args *png;
    /* The colours as bytes: arguments of pixel_bytes for a part of the picture or all of it, whose
     * `pixels` the device sets. */
    const kiln_pixel_bytes_args *bytes;
} kiln_draw_outputs;

/* Stored tile lists, which are read instead of being computed. */
typedef struct {
    /* Called once the number of visible Gaussians is known: sets the bands, as kiln_tile_bands cuts
     * them, whose arrays stay the caller's. *n_bands stays 0: lists are computed after all. */
    kiln_status (*open)(void *context, uint64_t visible, uint32_t *n_bands, const uint32_t **starts,
                        const uint64_t **pairs, kiln_error *err);
    /* Fills the lists of a band: tile_counts of its tiles, and ranks, indices into the drawing. */
    kiln_status (*read)(void *context, uint32_t band, uint32_t *tile_counts, uint32_t *ranks,
                        kiln_error *err);
    void *context;
} kiln_draw_lists;

/* Asked for the memory of rgba, [height][width][4], before floats are written: behind the drawing,
 * which takes more memory while it is made, but before it if it is made in device memory alone. */
typedef kiln_status kiln_draw_place_fn(void *context, float **rgba, kiln_error *err);

/* What a counting pass (kiln_draw_count_all) knows of a view. The functions of draw_size.h compute
 * bounds from it. */
typedef struct {
    uint64_t visible;       /* Gaussians; for slabs: of one slab */
    uint64_t largest_chunk; /* rows of the largest chunk that may be visible */
    /* of the band with the most pairs, and of the one with the most tiles */
    uint64_t band_pairs, band_tiles;
    /* the runner has a device; operations may be cut into parts to fit its cap (fit.h) */
    bool in_parts;
} kiln_draw_size;

/* What is wanted, and by which ways it may be drawn. Of zeros but for rgba: a picture over
 * black. */
typedef struct {
    unsigned ways;           /* set of kiln_draw_way; 0: all but slabs */
    const float *background; /* [3]; NULL: black */
    /* host memory, [height][width][4] and [height][width], as in raster.h; depth NULL: not
     * wanted */
    float *rgba, *depth;
    kiln_draw_place_fn *place; /* NULL: rgba is set */
    void *place_context;
    const kiln_draw_outputs *single_pass; /* what a single pass gives; NULL: rgba and depth */
    const kiln_draw_lists *lists;         /* for drawings; NULL: lists are computed */
    /* KILN_E_CAP if a band of a drawing lists more; 0: any number */
    uint64_t most_band_pairs;
    /* most Gaussians of a slab; 0: as many as the device has room for. Without a device, the
     * largest for which kiln_draw_slabs_bytes is within the caller's memory */
    uint64_t capacity;
    /* of the view, at most; NULL: host memory is not limited */
    const kiln_draw_size *size;
    /* with `size`: a way that takes more host memory is passed over if another one is allowed */
    uint64_t ram;
    /* Not a picture but each visible Gaussian's share of it, the sum of alpha T in the units of
     * blend_weights, is wanted: added to sums[chunk][row]. [n_chunks], each with an element for
     * each row of the chunk; NULL for a chunk that gives no rows to this view. The caller's, host
     * memory. Needs no colour; beside a drawing KILN_DRAW_SHARE_BYTES a Gaussian. After a failure
     * the sums are undefined. NULL: a picture. */
    uint64_t *const *sums;
    /* With sums, likewise: each Gaussian's largest alpha T of a pixel, and the sum of its alpha
     * (peaks and alphas of blend_weights): raised, and added, where the view shows the row. NULL:
     * not wanted. */
    uint32_t *const *peaks;
    uint64_t *const *alphas;
    const uint8_t *mask; /* with sums: [height][width], a pixel of 0 counts nowhere; NULL: all do */
} kiln_draw_want;

/* What has been drawn, and how. */
typedef struct {
    /* that has drawn it; 0: none of those that were allowed could, and the picture is undefined */
    kiln_draw_way way;
    /* visible Gaussians and (tile, Gaussian) pairs of the whole view, however it was drawn */
    uint64_t visible, pairs;
    /* pairs that were listed; with slabs fewer than `pairs` if tiles were finished early */
    uint64_t listed;
    /* number of slabs that the view was cut into, and of those drawn before all tiles were
     * finished. Both are 0 with other ways */
    uint32_t slabs, drawn;
    uint64_t band_pairs; /* of a drawing: those of the band that lists most */
    /* Gaussians that a slab on the device can have, where the device has refused the view and that
     * was asked for: by KILN_DRAW_SLABS, or without KILN_DRAW_HOST. 0: slabs there are not worth
     * it */
    uint64_t device_capacity;
} kiln_draw_stats;

/* ---- counts ---------------------------------------------------------------------------------- */
typedef struct {
    uint64_t visible, pairs; /* Gaussians; (tile, Gaussian) pairs */
    /* pairs that the renderer itself would list, by its own boxes (project.h) */
    uint64_t box_pairs;
    uint64_t *row_pairs; /* [tiles_y] pairs of each tile row; the caller's array */
} kiln_draw_tally;

KILN_C_END

#endif
