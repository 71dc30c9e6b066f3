/* draw_bands -- counts, lists and draws the tile rows of a drawing, one band after the other
 * (kiln_tile_bands). So lists take the memory of one band only.
 */
#ifndef KILN_KERNELS_DRAW_BANDS_H
#define KILN_KERNELS_DRAW_BANDS_H

#include "kernels/draw/draw_types.h"

KILN_C_BEGIN

typedef struct {
    uint32_t number;
    bool stored; /* its lists are to be read from kiln_band_way.stored */
    /* its tile rows, pixels and number of pairs, without lists and Gaussians */
    kiln_raster_args a;
    uint32_t *counts, *ranks; /* work space for its lists; NULL where the way needs none */
} kiln_band;

/* How bands are counted and drawn. *done is true; a function that sets it to false has given up,
 * and the others are not called any more. */
typedef kiln_status kiln_band_count_fn(void *context, const kiln_tile_pairs_count_args *a,
                                       bool *done, kiln_error *err);
typedef kiln_status kiln_band_draw_fn(void *context, const kiln_band *b, bool *done,
                                      kiln_error *err);
typedef struct {
    kiln_band_count_fn *count;
    kiln_band_draw_fn *draw;
    void *context;
    bool lists;                    /* `draw` needs host memory for the lists of a band */
    const kiln_draw_lists *stored; /* NULL, or asked for the bands before they are counted */
    uint64_t visible;              /* of the drawing */
    uint64_t most_pairs;           /* KILN_E_CAP if a band lists more; 0: any number */
} kiln_band_way;

typedef struct {
    /* of all rows, and of the band that has most: set also if that is too many */
    uint64_t pairs, band_pairs;
} kiln_bands_listed;

/* Draws tile rows [a->row0, a->row1), where rgba, depth and state of `a` begin. Its lists are
 * ignored. *done: false if the way was given up. */
kiln_status kiln_bands_draw(const kiln_band_way *way, const kiln_raster_args *a,
                            kiln_bands_listed *out, bool *done, kiln_error *err) KILN_MUST_CHECK;

/* The way of a drawing: on its device where that fits, else in host memory. */
typedef struct {
    kiln_runner *runner;
    kiln_drawing *drawing;
    const kiln_draw_lists *stored; /* NULL: lists are computed */
    uint64_t most_pairs;           /* as of kiln_band_way */
} kiln_bands_source;
kiln_band_way kiln_bands_of(kiln_bands_source *s);
kiln_band_count_fn kiln_bands_count; /* the context is a kiln_bands_source */

KILN_C_END

#endif
