/* kiln_histogram_add: see prune.h. */
#include "kernels/prune/prune.h"

void kiln_histogram_add(uint64_t *bins, uint32_t n_bins, float lo, float hi, const float *values,
                        uint64_t n)
{
    const double scale = (double)n_bins / ((double)hi - (double)lo);
    for (uint64_t i = 0; i < n; i++) {
        const double at = ((double)values[i] - (double)lo) * scale;
        if (at != at) continue;
        bins[at < 0 ? 0 : at >= (double)n_bins ? n_bins - 1 : (uint32_t)at]++;
    }
}
