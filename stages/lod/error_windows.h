/* error_windows -- which parts of a picture are drawn where the whole of it is too large.
 *
 * Problem. A node that reaches from the cameras to the background has to be measured at the
 * footprint that cameras have, or it seems to lose up to a hundred times what it does. Such a
 * picture has up to 256 times the pixels that measuring can afford.
 *
 * The same view is also measured at a coarser footprint, where the whole picture fits. There the
 * difference of each level is summed in cells. At the fine footprint some of the cells are drawn:
 * systematic sampling in the order of the cells (Madow 1949), each cell as likely as the share that
 * it has of the coarse difference, mean over levels, and an eighth of that spread evenly. The error
 * of a level is its coarse error times the ratio of both footprints' estimates from the cells that
 * were drawn (a ratio estimator, Cochran, Sampling Techniques, chapter 6), which is exact where all
 * cells grow alike.
 *
 * Pure: doubles of + - * /, in the order of cells. Same cells on every machine.
 */
#ifndef KILN_STAGES_LOD_ERROR_WINDOWS_H
#define KILN_STAGES_LOD_ERROR_WINDOWS_H

#include "schema/manifest.h"

enum {
    KILN_LOD_CELLS = 32, /* on each axis of a picture */
    KILN_LOD_CELL_MOST = 128 /* pixels of a cell on an axis, at the finest */,
    KILN_LOD_PARTS = 4 /* most cells that are drawn */
};

/* What levels have lost in each cell of a picture. */
typedef struct {
    double cell[KILN_LEVELS_MAX][KILN_LOD_CELLS * KILN_LOD_CELLS];
} kiln_lod_error_map;

typedef struct {
    uint32_t left, top, width, height;
    double coarse[KILN_LEVELS_MAX]; /* what the map has of it */
    double stands;                  /* for how many of its like */
} kiln_lod_error_part;

/* Of a picture of width x height pixels: at most KILN_LOD_PARTS, but for a map without any
 * difference none. Returns how many. */
uint32_t kiln_lod_error_parts(const kiln_lod_error_map *map, uint32_t n_levels, uint32_t width,
                              uint32_t height, kiln_lod_error_part out[KILN_LOD_PARTS]);

#endif
