/* initial_math -- what a point becomes (INRIA's scene set-up, initial.h): pinned, the same bits on
 * every machine. */
#ifndef KILN_KERNELS_INITIAL_MATH_H
#define KILN_KERNELS_INITIAL_MATH_H

#include "base/hd.h"
#include "kernels/math/real.h"

#include <float.h>
#include <math.h>

/* log(sqrt(max(spacing2, 1e-7))). *known is 0 where the spacing is no measure: infinite, NaN, or so
 * large that a missing neighbour (FLT_MAX) must be in its mean of at most 32. */
static inline KILN_HD float kiln_initial_log_scale(float spacing2, float fallback, int *known)
{
    *known = spacing2 < FLT_MAX / 64.0f;
    if (!*known) return fallback;
    return kiln_logf(sqrtf(spacing2 > 1e-7f ? spacing2 : 1e-7f));
}

/* A colour that is not a number becomes grey: what bits a NaN has is the machine's choice, and no
 * layer may hold that. */
static inline KILN_HD float kiln_initial_sh0(float colour)
{
    const float sh0 = (colour - 0.5f) / 0.28209479177387814f; /* 1/(2 sqrt pi), Y_0^0 */
    return colour == colour ? sh0 : 0.0f;
}

#endif
