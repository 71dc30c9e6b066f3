/* bounds -- what is stored beside a block or chunk so that a camera can rule it out without reading
 * it. A plain function, not an operation: scalar, the same bits everywhere and on any number of
 * threads, no memory of its own.
 *
 *   means, log_scales [3][n] f32, opacity_logits [n] f32, planar, finite
 *
 * reach is the box of means +- the distance at which a Gaussian's alpha falls to 1/255 along its
 * longest axis: r = exp(max log scale) * sqrt(2 ln(255 opacity)), 0 where the opacity is below
 * 1/255; a hair wider (1 + 2^-20) than r so that rounding never makes it too small, and cut at the
 * largest finite float. n == 0: everything is 0.
 */
#ifndef KILN_KERNELS_BOUNDS_H
#define KILN_KERNELS_BOUNDS_H

#include "base/extern_c.h"

#include <stdint.h>

KILN_C_BEGIN

typedef struct {
    float box_min[3], box_max[3];     /* of means */
    float reach_min[3], reach_max[3]; /* of means +- r */
    float max_log_scale, max_opacity_logit;
} kiln_bounds;

/* threads: 0 counts as 1. */
void kiln_chunk_bounds(unsigned threads, uint64_t n, const float *means, const float *log_scales,
                       const float *opacity_logits, kiln_bounds *out);

KILN_C_END

#endif
