/* lanes -- where pictures of a store are made at the same time (kiln_draw_passes): each lane has streams, a block of device memory
 * and a place where its numbers land. The first lane is the store's own: the runner's streams and the scratch block. The memory of
 * the others goes when anything else needs it.
 */
#ifndef KILN_KERNELS_LANES_H
#define KILN_KERNELS_LANES_H

#include "kernels/draw/store.h"

KILN_C_BEGIN

/* Returns the first lane. */
kiln_store_lane kiln_lane_own(kiln_draw_store *s);
/* Returns how many bytes the other lanes have. */
uint64_t kiln_lanes_bytes(const kiln_draw_store *s);
/* Gives the memory of the other lanes back. They must be idle. */
void kiln_lanes_drop(kiln_draw_store *s);
/* Frees their streams, too. */
void kiln_lanes_free(kiln_draw_store *s);

KILN_C_END

#endif
