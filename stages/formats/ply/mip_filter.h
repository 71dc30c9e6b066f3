/* mip_filter -- folds mip-splatting's filter_3D into scale and opacity (its save_fused_ply):
 *
 *   s'_i = sqrt(s_i^2 + f^2)     alpha' = alpha * sqrt(prod s_i^2 / prod s'_i^2)     s = exp(log scale)
 *
 * In double, with exp and log of our own (kernels/math/real64.h): no libm call decides a stored
 * bit. f == 0 changes nothing. An infinite logit or log scale goes through as its limit; NaN stays
 * NaN. The caller sanitises.
 *
 *   log_scales [3][n], opacity_logits [n]  in out      filter [n]  in
 */
#ifndef KILN_STAGES_FORMATS_PLY_MIP_FILTER_H
#define KILN_STAGES_FORMATS_PLY_MIP_FILTER_H

#include "kernels/math/real64.h"

#include <stdint.h>

void kiln_mip_filter_fold(uint64_t n, const float *filter, float *log_scales,
                          float *opacity_logits);

#endif
