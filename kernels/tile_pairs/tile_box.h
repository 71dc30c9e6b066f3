/* tile_box -- which tiles Gaussians reach, exactly, for those that have a proven box
 * (tile_ask_math.h); on the CPU. Many Gaussians at once: a lane of a vector is a Gaussian, and
 * those with boxes of the same width and height share vectors. */
#ifndef KILN_KERNELS_TILE_BOX_H
#define KILN_KERNELS_TILE_BOX_H

#include "kernels/exec.h"
#include "kernels/tile_pairs/tile_ask_math.h"

enum {
    /* Gaussians at once; of 1,024 all arrays would begin in the same set of the first cache */
    KILN_TILE_BATCH = 752,
    KILN_TILE_SORTED = KILN_TILE_BATCH + 8, /* the last vector may reach beyond them */
    KILN_TILE_BOX_FEW = 16,                 /* a box of so many tiles is answered with the batch, */
    /* one of so many in a row when its rows are asked for, */
    KILN_TILE_BOX_WIDE = 64,
    KILN_TILE_BOX_ROWS = 32, /* of which so many are at once */
};

/* How the tiles of a Gaussian are found. Anything below: a box of few tiles, which is answered; the
 * number is its shape. */
typedef enum {
    KILN_TILES_NONE = KILN_TILE_BOX_FEW * KILN_TILE_BOX_FEW,
    /* a proven box that is at most KILN_TILE_BOX_WIDE wide: kiln_tile_box_rows_cpu */
    KILN_TILES_ROWS,
    KILN_TILES_ODD, /* no proven box, or a wider one: tile_rows.h */
} kiln_tile_way;

/* Up to KILN_TILE_BATCH Gaussians; 71 KiB, of the thread's stack. The caller sets n and id and
 * reads way, boxes and tiles. */
typedef struct {
    uint32_t n, id[KILN_TILE_BATCH];                       /* which splats */
    uint16_t way[KILN_TILE_BATCH];                         /* kiln_tile_way */
    int32_t column[KILN_TILE_BATCH], row[KILN_TILE_BATCH]; /* of the box, the first */
    int32_t w[KILN_TILE_BATCH], h[KILN_TILE_BATCH];        /* how many */
    /* of few: bit row * w + column */
    uint32_t tiles[KILN_TILE_BATCH];
    float x[KILN_TILE_BATCH], y[KILN_TILE_BATCH], t[KILN_TILE_BATCH]; /* of the splats */
    float a[KILN_TILE_BATCH], b[KILN_TILE_BATCH], c[KILN_TILE_BATCH];
    /* Gaussians by their way, those of a way by the shape of the box */
    uint16_t sorted[KILN_TILE_BATCH];
    struct { /* those with few tiles, in that order */
        float x[KILN_TILE_SORTED], y[KILN_TILE_SORTED], half_a[KILN_TILE_SORTED],
            b[KILN_TILE_SORTED], half_c[KILN_TILE_SORTED];
        float t[KILN_TILE_SORTED], px0[KILN_TILE_SORTED], py0[KILN_TILE_SORTED];
        float minus_b_a[KILN_TILE_SORTED], minus_b_c[KILN_TILE_SORTED], limit[KILN_TILE_SORTED];
    } few;
} kiln_tile_batch;

static inline bool kiln_tiles_are_few(uint16_t way) { return way < KILN_TILES_NONE; }

/* kiln_tile_box_find_cpu: finds the boxes within rows [row0, row1) of the splats k->id, and asks
 * the tiles of the small ones. */
void KILN_CPU(tile_box_find)(const kiln_splat2d *splats, const kiln_view *v, uint32_t row0,
                             uint32_t row1, kiln_tile_batch *k);
/* kiln_tile_box_rows_cpu: for a box that is at most KILN_TILE_BOX_WIDE wide and KILN_TILE_BOX_ROWS
 * high. Sets bit column of tiles[row]. */
void KILN_CPU(tile_box_rows)(const kiln_splat2d *s, const kiln_view *v, const kiln_tile_box *b,
                             uint64_t *tiles);

#endif
