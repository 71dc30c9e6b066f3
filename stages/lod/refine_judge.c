#include "stages/lod/refine_judge.h"

#define WORSE 1.05  /* a sight left out may have so much of its merged error .. */
#define SLIGHT 0.02 /* .. and this share of their mean */

bool kiln_refine_is_better(const kiln_refine_off_by *after, const kiln_refine_off_by *before)
{
    for (int around = 0; around < 2; around++) {
        const double *of = before->of[around], slight = before->n > 0 ? SLIGHT * before->sum[around] / before->n : 0;
        if (!(after->sum[around] < (1 - KILN_REFINE_LEAST_GAIN) * before->sum[around])) return false;
        for (uint32_t i = 0; i < KILN_REFINE_SIGHTS; i++)
            if (after->of[around][i] > WORSE * of[i] + slight) return false;
    }
    return true;
}
