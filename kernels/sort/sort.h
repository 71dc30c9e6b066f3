/* sort -- stable radix sort of (64-bit key, 32-bit value) pairs, or of words, for the CPU siblings
 * of spatial_order and depth_order. Plain functions on host memory, not operations; the CUDA
 * siblings use sort.cuh.
 *
 * A stable sort has one result, so it does not depend on threads. Does not allocate: work has
 * kiln_sort_bytes(n, threads).
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

/* Sorts words by their bits from `from` on, ascending; others keep their order. `spare` has room
 * for n words, too, and is used. Returns where the result is: words or spare. work has
 * kiln_sort_words_bytes(n, threads); threads >= 1. */
size_t kiln_sort_words_bytes(uint64_t n, unsigned threads);
uint64_t *kiln_sort_words(uint64_t n, uint64_t *words, uint64_t *spare, unsigned from,
                          unsigned threads, void *work);

KILN_C_END

#endif
