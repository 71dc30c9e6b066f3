/* refine_judge -- whether a refined level is kept. For the worker's part of refine.h.
 *
 * Pure, any thread. */
#ifndef KILN_STAGES_LOD_REFINE_JUDGE_H
#define KILN_STAGES_LOD_REFINE_JUDGE_H

#include "stages/lod/refine_units.h"

#include <stdbool.h>

enum { KILN_REFINE_SIZES = 2, KILN_REFINE_SIGHTS = KILN_REFINE_SIZES * KILN_REFINE_VIEWS };

/* The mean squared error of a level's picture in each sight that is left out, 0 in the others, and
 * their sum: [0] with its neighbours' level around it, [1] with all of their rows. Neighbours are
 * refined, too: a level that only makes up for their faults would be a fault afterwards. */
typedef struct {
    double of[2][KILN_REFINE_SIGHTS], sum[2];
    uint32_t n; /* sights left out */
} kiln_refine_off_by;

/* Whether a level takes enough of the error away in both surroundings, no sight left out is worse
 * by what shows, however right it was, and a view that is none of them would lose no half a
 * decibel. */
bool kiln_refine_is_better(const kiln_refine_off_by *after, const kiln_refine_off_by *before);
/* Whether the sight that was measured last, or the sum so far, already says that a level is not
 * better, whatever the others are. */
bool kiln_refine_is_lost(const kiln_refine_off_by *after, const kiln_refine_off_by *before,
                         int around, uint32_t sight);

#endif
