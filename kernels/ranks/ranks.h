/* ranks -- finds exact order statistics (median, quantiles) of float32 values that arrive in
 * pieces, in fixed memory.
 *
 * Keys have the order of the values (kiln_rank_key). Pass 0 counts the high 16 bits of all keys;
 * kiln_rank_pick then finds the bin of a rank. Pass 1 counts the low 16 bits of the keys in that
 * bin; kiln_rank_pick then gives the low bits of the value. Counts are integers, so the order of
 * pieces does not matter.
 *
 *   values [n]      f32  in      finite
 *   counts [65536]  u64  in out  added to
 *   pass             0 or 1; high: the bin of pass 0 (pass 1 only)
 */
#ifndef KILN_KERNELS_RANKS_H
#define KILN_KERNELS_RANKS_H

#include "base/extern_c.h"
#include "base/hd.h"
#include "base/status.h"
#include "kernels/exec.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

KILN_C_BEGIN

enum { KILN_RANK_BINS = 65536 };

typedef struct {
    uint64_t n;
    const float *values;
    uint32_t pass, high;
    uint64_t *counts;
} kiln_ranks_args;

typedef kiln_status kiln_ranks_fn(const kiln_exec *x, const kiln_ranks_args *a, void *work,
                                  size_t *work_bytes, kiln_error *err);

/* Checks pass and bin for both siblings: KILN_E_INPUT if there is none such. */
kiln_status kiln_ranks_check(const kiln_ranks_args *a, kiln_error *err) KILN_MUST_CHECK;

static inline KILN_HD uint32_t kiln_rank_key(float v)
{
    uint32_t u;
    memcpy(&u, &v, 4);
    return u & 0x80000000u ? ~u : u | 0x80000000u;
}
static inline KILN_HD float kiln_rank_value(uint32_t key)
{
    uint32_t u = key & 0x80000000u ? key & 0x7fffffffu : ~key;
    float v;
    memcpy(&v, &u, 4);
    return v;
}
/* Returns the bin that holds the element of rank *rank, counted from 0. Subtracts the elements of
 * the bins before it from *rank. */
uint32_t kiln_rank_pick(const uint64_t counts[KILN_RANK_BINS], uint64_t *rank);
/* Returns the nearest rank, counted from 0, of a share of n elements given in thousandths:
 * ceil(share n) - 1, at least 0. */
uint64_t kiln_rank_nearest(uint64_t n, uint64_t thousandths);

/* The arrays that it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_ranks(A) \
    A(IN, values, a->n)      \
    A(INOUT, counts, KILN_RANK_BINS)

KILN_C_END

#endif
