/* depth_order -- sorts visible Gaussians into drawing order: by (bits of depth, source row),
 * ascending.
 *
 *   depths       [n] f32  in   > 0
 *   source_rows  [n] u32  in   order Gaussians of equal depth
 *   order        [n] u32  out  positions in depths, nearest first
 *
 * Pointers, work, threads, errors: as in knn.h.
 */
#ifndef KILN_KERNELS_DEPTH_ORDER_H
#define KILN_KERNELS_DEPTH_ORDER_H

#include "base/extern_c.h"
#include "base/status.h"
#include "kernels/exec.h"

#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

typedef struct {
    uint64_t n;
    const float *depths;
    const uint32_t *source_rows;
    uint32_t *order;
} kiln_depth_order_args;

typedef kiln_status kiln_depth_order_fn(const kiln_exec *x, const kiln_depth_order_args *a,
                                        void *work, size_t *work_bytes, kiln_error *err);

/* The arrays that it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_depth_order(A) \
    A(IN, depths, a->n)            \
    A(IN, source_rows, a->n)       \
    A(OUT, order, a->n)

KILN_C_END

#endif
