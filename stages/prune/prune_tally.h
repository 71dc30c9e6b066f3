/* prune_tally -- what the rules did to a block or to the whole layer: counts and histograms, before
 * and after. */
#ifndef KILN_STAGES_PRUNE_TALLY_H
#define KILN_STAGES_PRUNE_TALLY_H

#include "kernels/prune/prune.h"

#include <stdint.h>

enum { KILN_TALLY_SCALES = 800, KILN_TALLY_OPACITIES = 20 };
#define KILN_TALLY_LO (-28.0f) /* natural logarithm of the longest axis, bins of 0.05: about 5 % */
#define KILN_TALLY_HI 12.0f

typedef struct {
    uint64_t rows, kept;
    /* rows dropped or changed that could show before */
    uint64_t touched;
    uint64_t counts[KILN_PRUNE_RULES][2];        /* dropped, clamped */
    uint64_t scales[2][KILN_TALLY_SCALES];       /* before, after */
    uint64_t opacities[2][KILN_TALLY_OPACITIES]; /* bins of 1/20 */
} kiln_tally;

/* Adds n rows to one side (0 before, 1 after); planes planar; keep may be NULL: all. */
void kiln_tally_rows(kiln_tally *t, int side, uint64_t n, const float *log_scales,
                     const float *opacity_logits, const uint8_t *keep);
/* Makes the side after equal to the side before. */
void kiln_tally_same(kiln_tally *t);
void kiln_tally_add(kiln_tally *sum, const kiln_tally *t);
/* The longest axis that a share (0..1) of the rows does not exceed: the middle of its bin. 0
 * without rows. */
double kiln_tally_scale_at(const uint64_t scales[KILN_TALLY_SCALES], double share);

#endif
