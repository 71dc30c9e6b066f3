/* planes -- the planes of a chunk, or of several as if they were one, in one block of device
 * memory. */
#ifndef KILN_KERNELS_DRAW_PLANES_H
#define KILN_KERNELS_DRAW_PLANES_H

#include "kernels/draw/draw_types.h"

KILN_C_BEGIN

/* Sets the pointers of *out to planes in the block `at` and returns their bytes. With `at` NULL it
 * only measures. */
uint64_t kiln_planes_lay_out(const kiln_draw_chunk_header *l, uint32_t sh_degree, char *at,
                             kiln_draw_chunk *out);
/* Copies a chunk's planes from host memory to the planes `to`, starting at row `first`; waits for
 * the copies, after a failure, too. */
kiln_status kiln_planes_copy(const kiln_exec *x, const kiln_draw_chunk *from,
                             const kiln_draw_chunk *to, uint64_t first, uint32_t sh_degree,
                             kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
