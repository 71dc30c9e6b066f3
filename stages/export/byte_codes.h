/* byte_codes -- what formats of bytes and of linear scales store of a Gaussian's opacity, scale and rotation: the other direction
 * of stages/import/codes.h. No libm call decides a bit. Nothing here allocates or fails; any thread. */
#ifndef KILN_STAGES_EXPORT_BYTE_CODES_H
#define KILN_STAGES_EXPORT_BYTE_CODES_H

#include <stdint.h>

/* codes[i * stride] = the whole number nearest to 255 sigmoid(logits[i]). A logit that came from such a code gives that code
 * again. NaN gives 0. */
void kiln_alpha_codes(uint64_t n, const float *logits, uint8_t *codes, uint64_t stride);

/* linear[i] = exp(logs[i]): the nearest float (error below 0.501 ulp), in place or not. A logarithm below about -103.97 gives 0,
 * one above 88.72 gives infinity, NaN gives NaN. */
void kiln_linear_scales(uint64_t n, const float *logs, float *linear);

/* A quaternion, any order of components, scaled to length 1 in double. One of length 0 or with a component that is not finite
 * becomes (1, 0, 0, 0). */
void kiln_unit_quat(const float q[4], double unit[4]);

#endif
