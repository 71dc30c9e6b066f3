/* kiln_rank_pick: the bin in which a rank falls. */
#include "kernels/ranks/ranks.h"

uint32_t kiln_rank_pick(const uint64_t counts[KILN_RANK_BINS], uint64_t *rank)
{
    uint32_t bin = 0;
    while (bin < KILN_RANK_BINS - 1 && *rank >= counts[bin]) *rank -= counts[bin++];
    return bin;
}
