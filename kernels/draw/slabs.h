/* slabs -- functions that draw.c, slabs.c and draw_tally.c share. */
#ifndef KILN_KERNELS_SLABS_H
#define KILN_KERNELS_SLABS_H

#include "kernels/draw/draw.h"
#include "kernels/draw/store.h"

KILN_C_BEGIN

/* Shares of a drawing's Gaussians (draw_weights.h), while its rows are drawn. */
typedef struct {
    uint64_t *weights;      /* [of the drawing] */
    kiln_store_block there; /* the same in device memory, which counts instead while there is one: bands add to it without copies */
    kiln_draw_store *store; /* that has it */
    uint64_t *const *sums;
    uint64_t n;
} kiln_draw_shares;
/* Makes shares of 0, on the device if the drawing is there and leaves room. Release them before the drawing, after a failure too.
 */
kiln_status kiln_draw_shares_begin(const kiln_drawing *d, uint64_t *const *sums, kiln_draw_shares *out,
                                   kiln_error *err) KILN_MUST_CHECK;
/* Adds them to the sums of their rows. */
kiln_status kiln_draw_shares_add(kiln_runner *r, const kiln_drawing *d, kiln_draw_shares *s, kiln_error *err) KILN_MUST_CHECK;
void kiln_draw_shares_release(kiln_draw_shares *s);

/* Counts, lists and blends tile rows [a->row0, a->row1), band by band. The lists are made here: tile_counts, ranks and n_pairs of
 * `a` are ignored. Its rgba, depth and state begin at row0. Sets *pairs to the number of pairs in these rows. shares (or NULL):
 * instead of a picture, each Gaussian's share of it is added there (blend_weights); of `a` only the state is used then. */
kiln_status kiln_draw_rows(kiln_runner *r, kiln_drawing *d, const kiln_raster_args *a, kiln_draw_shares *shares, uint64_t *pairs,
                           kiln_error *err) KILN_MUST_CHECK;
/* As kiln_draw_band, for shares. */
kiln_status kiln_draw_band_shares(kiln_runner *r, kiln_drawing *d, const kiln_raster_args *a, kiln_draw_shares *shares,
                                  uint32_t *counts, uint32_t *ranks, kiln_error *err) KILN_MUST_CHECK;
/* As kiln_draw_slabs, for shares. */
kiln_status kiln_draw_slabs_weights(kiln_runner *r, const kiln_draw_scene *s, uint64_t capacity, uint64_t *const *sums,
                                    kiln_draw_stats *stats, kiln_error *err) KILN_MUST_CHECK;

/* One chunk, projected without colour and counted. The buffers are reused from chunk to chunk; all zero before the first. */
typedef struct {
    uint64_t capacity;
    kiln_splat2d *splats; /* [capacity] the first n are the visible ones */
    uint64_t *row_pairs;  /* [tiles_y] undefined if n is 0 */
    uint64_t n, box_pairs;
    const uint32_t *source_rows; /* of the chunk; the callback's array */
} kiln_draw_probe;
/* Projects a chunk and counts its pairs by tile row. */
kiln_status kiln_draw_probe_chunk(kiln_runner *r, const kiln_draw_scene *s, uint32_t chunk, kiln_draw_probe *g,
                                  kiln_error *err) KILN_MUST_CHECK;
void kiln_draw_probe_release(kiln_draw_probe *g);

KILN_C_END

#endif
