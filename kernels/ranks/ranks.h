/* ranks -- exact order statistics of float32 values that arrive in pieces, in fixed memory.
 *
 * The key of a value orders as the value does (kiln_rank_key). Pass 0 counts the keys' high 16 bits over all pieces;
 * kiln_rank_pick finds the bin of a rank; pass 1 counts the low 16 bits of the keys in that bin; kiln_rank_pick again
 * gives the value itself. Counts are integers: order-free.
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

typedef kiln_status kiln_ranks_fn(const kiln_exec *x, const kiln_ranks_args *a, void *work, size_t *work_bytes, kiln_error *err);

/* KILN_E_INPUT: no such pass or bin. */
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
/* The bin that holds the element of rank `rank` (from 0), and *rank reduced by what lies in bins before it. */
uint32_t kiln_rank_pick(const uint64_t counts[KILN_RANK_BINS], uint64_t *rank);
/* The nearest rank, from 0, of a share of n elements in thousandths: ceil(share n) - 1, and 0 at least. */
uint64_t kiln_rank_nearest(uint64_t n, uint64_t thousandths);

/* What it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_ranks(A) \
    A(IN, values, a->n)      \
    A(INOUT, counts, KILN_RANK_BINS)

KILN_C_END

#endif
