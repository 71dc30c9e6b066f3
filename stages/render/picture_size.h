/* picture_size -- the host memory that a picture takes while it is drawn, for the parent, which
 * plans it, and for a worker whose GPU has refused the picture. All sizes are bytes. */
#ifndef KILN_STAGES_RENDER_PICTURE_SIZE_H
#define KILN_STAGES_RENDER_PICTURE_SIZE_H

#include "stages/render/render_units.h"

/* Returns the bytes for writing the largest of the files, whatever its format. */
uint64_t kiln_render_writing_bytes(const kiln_render_unit *u);
/* Returns the bytes beside the frame, once it is made. size: of the frame. */
uint64_t kiln_render_beside_frame(const kiln_render_unit *u, const kiln_draw_size *size);
/* Returns the bytes of a unit whose picture is drawn in the memory of a GPU: the planes of a chunk
 * on their way there, and what is not of the Gaussians. */
uint64_t kiln_render_device_ram(const kiln_layer *layer, const kiln_render_unit *u);
/* Returns the bytes for a picture in slabs of at most `capacity` Gaussians. size: of the frame; its
 * band_pairs are those that a slab may have. */
uint64_t kiln_render_slabs_ram(const kiln_layer *layer, const kiln_render_unit *u,
                               const kiln_draw_size *size, uint64_t capacity);
/* Returns the smallest slabs that are used for a frame of this size, and the largest for which
 * `may` has room; if it has none, the smallest. */
uint64_t kiln_render_smallest_slab(const kiln_draw_size *size);
uint64_t kiln_render_largest_slab(const kiln_layer *layer, const kiln_render_unit *u,
                                  const kiln_draw_size *size, uint64_t may);
/* Returns the pairs that a band of a slab may have, if a view of `pairs` pairs has a band of
 * `band_pairs` of them. */
uint64_t kiln_render_slab_band(uint64_t band_pairs, uint64_t pairs);

#endif
