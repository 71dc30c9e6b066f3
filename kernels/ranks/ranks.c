/* Which rank is meant, the bin in which it falls, and what both siblings ask of their arguments. */
#include "kernels/ranks/ranks.h"

uint32_t kiln_rank_pick(const uint64_t counts[KILN_RANK_BINS], uint64_t *rank)
{
    uint32_t bin = 0;
    while (bin < KILN_RANK_BINS - 1 && *rank >= counts[bin]) *rank -= counts[bin++];
    return bin;
}

uint64_t kiln_rank_nearest(uint64_t n, uint64_t thousandths)
{
    /* no product of n itself: it may be large */
    uint64_t up = n / 1000 * thousandths + (n % 1000 * thousandths + 999) / 1000;
    return up ? up - 1 : 0;
}

kiln_status kiln_ranks_check(const kiln_ranks_args *a, kiln_error *err)
{
    if (a->pass > 1 || a->high >= KILN_RANK_BINS)
        return kiln_fail(err, KILN_E_INPUT,
                         "ranks: pass %u of bin %u; passes are 0 and 1, bins below %d", a->pass,
                         a->high, KILN_RANK_BINS);
    return KILN_OK;
}
