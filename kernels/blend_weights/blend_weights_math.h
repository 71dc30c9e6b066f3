/* blend_weights_math -- a pixel's share as an integer. */
#ifndef KILN_KERNELS_BLEND_WEIGHTS_MATH_H
#define KILN_KERNELS_BLEND_WEIGHTS_MATH_H

#include "kernels/blend_weights/blend_weights.h"

/* Of alpha T or alpha, which is 0 or from 2^-22 up to below 1: the product is exact, and what is
 * left of its fraction is cut off.
 */
static inline KILN_HD int32_t kiln_blend_units(float weight)
{
    return (int32_t)(weight * (float)KILN_BLEND_UNIT);
}

#endif
