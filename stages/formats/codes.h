/* codes -- what formats of bytes and of linear scales store, as the values that rows have. No libm
 * call decides a bit.
 *
 * Tables have one entry a code. Nothing here allocates or fails; any thread. */
#ifndef KILN_STAGES_FORMATS_CODES_H
#define KILN_STAGES_FORMATS_CODES_H

#include <stdint.h>

/* The logit of an alpha of b / 255; -HUGE_VALF and HUGE_VALF at 0 and 255, which clean_rows.c
 * clamps and counts. */
void kiln_code_logits(float table[256]);
/* The coefficient of SH degree 0 of a colour of b / 255: (b / 255 - 0.5) / C0. */
void kiln_code_colours(float table[256]);
/* Natural logarithms of linear scales, in place or not: the nearest float (error below 0.501 ulp).
 * 0 gives -HUGE_VALF, a negative one or NaN gives NaN, infinity HUGE_VALF. Vector code where
 * kiln_logf, which is fused operations, is a call each: 20 times as fast on a machine that is not
 * assumed to have them. */
void kiln_log_scales(uint64_t n, const float *linear, float *logs);
/* ln(a / (1 - a)) of opacities: the nearest float (error below 0.501 ulp). 0 and below give
 * -HUGE_VALF, 1 and above HUGE_VALF, NaN gives NaN. */
void kiln_alpha_logits(uint64_t n, const double *alphas, float *logits);

#endif
