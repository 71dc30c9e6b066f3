/* sort -- stable radix sort of (64-bit key, 32-bit value) pairs, for the CPU siblings of spatial_order and depth_order. A plain
 * function on host memory, not an operation; the CUDA siblings use sort.cuh.
 *
 * A stable sort has one result, so it does not depend on threads. Does not allocate: work has kiln_sort_bytes(n, threads).
 */
#ifndef KILN_KERNELS_SORT_H
#define KILN_KERNELS_SORT_H

#include "base/extern_c.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

/* KILN_E_INPUT if 32-bit row numbers cannot number n rows. Both siblings of `op` call it. */
kiln_status kiln_sort_check(const char *op, uint64_t n, kiln_error *err) KILN_MUST_CHECK;

size_t kiln_sort_bytes(uint64_t n, unsigned threads); /* SIZE_MAX if it overflows */

/* Sorts both arrays in place by key, ascending; equal keys keep their order. threads >= 1. */
void kiln_sort_pairs(uint64_t n, uint64_t *keys, uint32_t *values, unsigned threads, void *work);

KILN_C_END

#endif
