/* initial -- makes points Gaussians, as INRIA's scene set-up does
 * (graphdeco-inria/gaussian-splatting, GaussianModel.create_from_pcd).
 *
 *   spacing2 [n] f32 in; rgb [3][n] f32 in 0..1
 *   log_scales [3][n], quats [4][n] (1,0,0,0), opacity_logits [n] (logit of opacity), sh0 [3][n]   f32 out
 * log scale = log(sqrt(max(spacing2, 1e-7))) on all three axes, our own pinned log; a spacing2 that
 * is not finite or of fewer than k neighbours gives fallback_log_scale, counted in *n_fallback. sh0
 * = (rgb - 0.5) / 0.28209479177387814, and 0 for a colour that is not a number.
 */
#ifndef KILN_KERNELS_INITIAL_H
#define KILN_KERNELS_INITIAL_H

#include "base/extern_c.h"
#include "base/status.h"
#include "kernels/exec.h"

#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

typedef struct {
    uint64_t n;
    const float *spacing2, *rgb;
    float opacity, fallback_log_scale;
    float *log_scales, *quats, *opacity_logits, *sh0;
    uint64_t *n_fallback;
} kiln_initial_args;

typedef kiln_status kiln_initial_fn(const kiln_exec *x, const kiln_initial_args *a, void *work,
                                    size_t *work_bytes, kiln_error *err);

/* The arrays that it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_initial(A)   \
    A(IN, spacing2, a->n)        \
    A(IN, rgb, 3 * a->n)         \
    A(OUT, log_scales, 3 * a->n) \
    A(OUT, quats, 4 * a->n)      \
    A(OUT, opacity_logits, a->n) \
    A(OUT, sh0, 3 * a->n)        \
    A(OUT, n_fallback, 1)

KILN_C_END

#endif
