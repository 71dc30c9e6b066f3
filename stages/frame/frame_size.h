/* frame_size -- the host memory of a unit that looks through a camera, in bytes, for kiln_unit.ram:
 * the planes of the largest chunk while they are decoded, and the frame (kernels/draw/draw_size.h)
 * or what is made of it. The rest of the worker's memory keeps more planes. */
#ifndef KILN_STAGES_FRAME_SIZE_H
#define KILN_STAGES_FRAME_SIZE_H

#include "kernels/draw/draw.h"
#include "stages/frame/chunk_size.h"
#include "stages/frame/drawn.h"

/* Returns an upper bound of a frame's size before any Gaussian is read: all rows of its chunks, and
 * bands of at most KILN_BAND_PAIRS pairs. A single tile row with more pairs exceeds the bound.
 * in_parts is set; clear it if the CPU computes. */
kiln_draw_size kiln_frame_bound(const kiln_view_request *s, const kiln_layer *layer,
                                const kiln_view_chunks *c);
/* The counting pass (kiln_frame_count), at most. */
uint64_t kiln_frame_count_ram(const kiln_layer *layer, const kiln_view_request *s);
/* A frame, at most, and with_frame bytes that its unit takes in addition once the frame is made. */
uint64_t kiln_frame_ram(const kiln_layer *layer, const kiln_draw_size *size, bool colour,
                        uint64_t with_frame);
/* What a worker keeps between units if there is room, for kiln_unit.ram_cache: every plane, the
 * connections that decode ahead, and on the CPU what a unit has freed of its `ram` bytes. */
uint64_t kiln_frame_cache_ram(const kiln_layer *layer, uint64_t ram);
/* The last of these. More than `ram`: malloc gives all back as soon as so much is free, and at the
 * end of a unit all of it is. */
uint64_t kiln_frame_kept_free(uint64_t ram);
/* A picture in slabs of size->visible Gaussians, whose bands have at most size->band_pairs pairs,
 * and `beside` bytes that its unit takes in addition. */
uint64_t kiln_frame_slabs_ram(const kiln_layer *layer, const kiln_view_request *s,
                              const kiln_draw_size *size, uint64_t beside);

#endif
