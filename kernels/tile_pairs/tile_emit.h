/* tile_emit -- tile_pairs_emit for splats that lie in any order; on the CPU. */
#ifndef KILN_KERNELS_TILE_EMIT_H
#define KILN_KERNELS_TILE_EMIT_H

#include "kernels/tile_pairs/tile_pairs.h"

/* kiln_tile_emit_cpu: as kiln_tile_pairs_emit_cpu, of the splats order[0], order[1] and so on,
 * whose places a->ranks gets in place of their ranks. order NULL: the splats lie in depth order. */
kiln_status KILN_CPU(tile_emit)(const kiln_exec *x, const kiln_tile_pairs_emit_args *a,
                                const uint32_t *order, void *work, size_t *work_bytes,
                                kiln_error *err);

#endif
