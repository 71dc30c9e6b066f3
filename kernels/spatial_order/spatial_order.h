/* spatial_order -- Hilbert codes of 21 bits per axis inside the root cube, and the rows sorted by
 * (code, row).
 *
 *   means  [3][n] f32  in   scene units, finite, planar
 *   order  [n]    u32  out  rows in Hilbert order; ties keep row order (the sort is stable)
 *   codes  [n]    u64  out  code of order[i], ascending; 63 bits, 3 bits a level, the root's first
 *
 * Cell of a coordinate: floor((x - (centre - half)) / (2 half) * 2^21) in double, clamped to 0 ..
 * 2^21 - 1, so that means outside the cube take the nearest border cell. half is a power of two:
 * the division is exact. The curve and its tables: spatial_order_math.h (one function cell -> code,
 * its inverse, and the child order of a cell). work as in knn.h. KILN_E_INPUT: n above 2^32 - 2.
 * KILN_E_CAP: *work_bytes too small.
 */
#ifndef KILN_KERNELS_SPATIAL_ORDER_H
#define KILN_KERNELS_SPATIAL_ORDER_H

#include "base/extern_c.h"
#include "base/status.h"
#include "kernels/exec.h"

#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

enum { KILN_HILBERT_BITS = 21 };

typedef struct {
    uint64_t n;
    const float *means;
    double centre[3], half;
    uint32_t *order;
    uint64_t *codes;
} kiln_spatial_order_args;

typedef kiln_status kiln_spatial_order_fn(const kiln_exec *x, const kiln_spatial_order_args *a,
                                          void *work, size_t *work_bytes, kiln_error *err);

/* The arrays that it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_spatial_order(A) \
    A(IN, means, 3 * a->n)           \
    A(OUT, order, a->n)              \
    A(OUT, codes, a->n)

KILN_C_END

#endif
