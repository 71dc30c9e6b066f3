/* draw_probe -- looks at the geometry of a scene chunk by chunk, in the memory of one chunk. */
#ifndef KILN_KERNELS_DRAW_PROBE_H
#define KILN_KERNELS_DRAW_PROBE_H

#include "kernels/draw/draw_types.h"

KILN_C_BEGIN

/* One chunk, projected without colour and counted. The buffers are reused from chunk to chunk; all
 * zero before the first. */
typedef struct {
    uint64_t capacity;
    kiln_splat2d *splats; /* [capacity] the first n are the visible ones */
    uint64_t *row_pairs;  /* [tiles_y] undefined if n is 0 */
    uint64_t n, box_pairs;
    const uint32_t *source_rows; /* of the chunk; the callback's array */
} kiln_probe;
/* Projects a chunk and counts its pairs by tile row. */
kiln_status kiln_probe_chunk(kiln_runner *r, const kiln_draw_scene *s, uint32_t chunk,
                             kiln_probe *g, kiln_error *err) KILN_MUST_CHECK;
void kiln_probe_release(kiln_probe *g);

KILN_C_END

#endif
