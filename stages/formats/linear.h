/* linear -- scales, opacities and rotations as formats of linear values store them: what
 * kiln_log_scales and kiln_alpha_logits (stages/formats/codes.h) read back. No libm call decides a
 * bit.
 *
 * A float of a logarithm and one of its exponential are never equally fine. Where the stored one is
 * finer (scales below 1/e and above e, opacities below 1/8), what was written comes back bit by
 * bit. Where it is coarser, the value that is stored is the nearest one, and its logarithm is less
 * exact: that of an opacity near 1 by up to 2^-25 / (1 - opacity). What was read from such a file
 * comes back bit by bit either way.
 *
 * Nothing here allocates or fails; any thread. Arrays may be the same. */
#ifndef KILN_STAGES_FORMATS_LINEAR_H
#define KILN_STAGES_FORMATS_LINEAR_H

#include <stdint.h>

/* exp of log scales: the nearest float (error below 0.501 ulp), 0 below -104, infinity above 88.7,
 * NaN of NaN. */
void kiln_linear_scales(uint64_t n, const float *logs, float *linear);

/* 1 / (1 + exp(-logit)): the nearest float (error below 0.501 ulp) in 2^-126 .. 1 - 2^-24, so that
 * no reader takes a finite logit for an infinite one. Returns how many are held at these ends. */
uint64_t kiln_alphas(uint64_t n, const float *logits, float *alphas);

/* Makes rotations [4][n] unit quaternions, which no component of may be infinite or NaN. What is a
 * unit quaternion as far as its floats can be (its length squared is within 2^-16 of 1) stays bit
 * by bit. A zero one becomes 1 0 0 0. */
void kiln_unit_quats(uint64_t n, const float *quats, float *unit);

/* A quaternion, any order of components, scaled to length 1 in double. One of length 0 or with a
 * component that is not finite becomes (1, 0, 0, 0). */
void kiln_unit_quat(const float q[4], double unit[4]);

/* The nearest code of a colour 0.5 + C0 f of SH degree 0, times 255. Returns how many are outside 0
 * .. 1 and became 0 or 255. */
uint64_t kiln_colour_codes(uint64_t n, const float *sh0, uint8_t *codes);
/* codes[i * stride] = the whole number nearest to 255 / (1 + exp(-logits[i])). A logit that came
 * from such a code gives that code again. NaN gives 0. */
void kiln_opacity_codes(uint64_t n, const float *logits, uint8_t *codes, uint64_t stride);

#endif
