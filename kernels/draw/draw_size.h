/* draw_size -- the host memory that drawing takes, predicted before any is allocated. */
#ifndef KILN_KERNELS_DRAW_SIZE_H
#define KILN_KERNELS_DRAW_SIZE_H

#include "kernels/draw/draw_types.h"

KILN_C_BEGIN

enum {
    /* a share of a Gaussian, and the chunk and row that it belongs to */
    KILN_DRAW_SHARE_BYTES = 8 + 4 + 4,
    KILN_DRAW_PEAK_BYTES = 4,  /* where peaks are wanted, too */
    KILN_DRAW_ALPHA_BYTES = 8, /* where alphas are */
};

/* Sets band_pairs and band_tiles from the pairs of each tile row, as tile_pairs_count gives
 * them. */
void kiln_draw_size_bands(kiln_draw_size *s, const kiln_view *view, const uint64_t *row_pairs);
/* Upper bound of what kiln_draw_collect allocates, with the drawing, without the callback's
 * arrays. */
uint64_t kiln_draw_collect_bytes(const kiln_draw_size *s);
/* Size of the drawing itself. */
uint64_t kiln_draw_kept_bytes(const kiln_draw_size *s);
/* Upper bound of what kiln_draw_picture allocates, without the drawing, rgba and depth. It also
 * covers kiln_draw_emit of one band.
 */
uint64_t kiln_draw_picture_bytes(const kiln_draw_size *s, const kiln_view *view);
/* Upper bound of what drawing in slabs of s->visible Gaussians allocates, without rgba, depth and
 * the callback's arrays. band_pairs and band_tiles are those of a slab. */
uint64_t kiln_draw_slabs_bytes(const kiln_draw_size *s, const kiln_view *view, uint32_t n_chunks);

/* A view whose shares are wanted: rows that it may see, of chunks with at most largest_chunk rows;
 * room: the most Gaussians of a slab, 0: it is drawn whole; share_bytes: a Gaussian's, with its
 * chunk and row. */
typedef struct {
    const kiln_view *view;
    uint64_t rows, capacity, largest_chunk, share_bytes;
    uint32_t n_chunks;
} kiln_draw_shares_size;
/* Upper bound of what drawing them allocates, before pairs are counted, without the sums of rows
 * and the callback's arrays. */
uint64_t kiln_draw_shares_bytes(const kiln_draw_shares_size *s);

KILN_C_END

#endif
