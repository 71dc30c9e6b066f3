/* slabs -- what slabs.c shares with the rest of kernels/draw. */
#ifndef KILN_KERNELS_SLABS_H
#define KILN_KERNELS_SLABS_H

#include "kernels/draw/draw.h"

KILN_C_BEGIN

/* Counts, lists and blends tile rows [a->row0, a->row1), band by band; lists of a are made here, and its arrays are of those rows.
 * *pairs: how many there are. */
kiln_status kiln_draw_rows(kiln_runner *r, kiln_drawing *d, const kiln_raster_args *a, uint64_t *pairs,
                           kiln_error *err) KILN_MUST_CHECK;

/* One chunk, looked at in room that is kept from chunk to chunk; all zero before the first. */
typedef struct {
    uint64_t capacity;
    kiln_splat2d *splats; /* [room] */
    uint64_t *row_pairs;  /* [tiles_y] */
    uint64_t n, box_pairs;
    const uint32_t *source_rows; /* of the chunk */
} kiln_draw_probe;
/* Its visible Gaussians, without colour, and their pairs by tile row. */
kiln_status kiln_draw_probe_chunk(kiln_runner *r, const kiln_draw_scene *s, uint32_t chunk, kiln_draw_probe *g,
                                  kiln_error *err) KILN_MUST_CHECK;
void kiln_draw_probe_release(kiln_draw_probe *g);

KILN_C_END

#endif
