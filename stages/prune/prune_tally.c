/* prune_tally -- see the header. */
#include "stages/prune/prune_tally.h"

#include "kernels/math/real.h"

#include <math.h>
#include <string.h>

void kiln_tally_rows(kiln_tally *t, int side, uint64_t n, const float *log_scales,
                     const float *opacity_logits, const uint8_t *keep)
{
    for (uint64_t i = 0; i < n; i++) {
        if (keep && !keep[i]) continue;
        float longest = log_scales[i];
        for (uint64_t a = 1; a < 3; a++)
            longest = log_scales[a * n + i] > longest ? log_scales[a * n + i] : longest;
        const float opacity = kiln_sigmoidf(opacity_logits[i]);
        kiln_histogram_add(t->scales[side], KILN_TALLY_SCALES, KILN_TALLY_LO, KILN_TALLY_HI,
                           &longest, 1);
        kiln_histogram_add(t->opacities[side], KILN_TALLY_OPACITIES, 0, 1, &opacity, 1);
    }
}

void kiln_tally_same(kiln_tally *t)
{
    memcpy(t->scales[1], t->scales[0], sizeof t->scales[1]);
    memcpy(t->opacities[1], t->opacities[0], sizeof t->opacities[1]);
}

void kiln_tally_add(kiln_tally *sum, const kiln_tally *t)
{
    sum->rows += t->rows;
    sum->kept += t->kept;
    sum->touched += t->touched;
    for (int r = 0; r < KILN_PRUNE_RULES; r++)
        for (int i = 0; i < 2; i++) sum->counts[r][i] += t->counts[r][i];
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < KILN_TALLY_SCALES; i++) sum->scales[side][i] += t->scales[side][i];
        for (int i = 0; i < KILN_TALLY_OPACITIES; i++)
            sum->opacities[side][i] += t->opacities[side][i];
    }
}

double kiln_tally_scale_at(const uint64_t scales[KILN_TALLY_SCALES], double share)
{
    uint64_t total = 0, below = 0;
    for (int i = 0; i < KILN_TALLY_SCALES; i++) total += scales[i];
    if (total == 0) return 0;
    const double want = share * (double)total;
    int bin = 0;
    for (; bin < KILN_TALLY_SCALES - 1; bin++) {
        below += scales[bin];
        if (below > 0 && (double)below >= want) break;
    }
    const double width = ((double)KILN_TALLY_HI - (double)KILN_TALLY_LO) / KILN_TALLY_SCALES;
    /* for people: stored nowhere */
    return exp((double)KILN_TALLY_LO + ((double)bin + 0.5) * width);
}
