/* project_backward -- from the gradients of what was drawn (raster_backward) to those of a chunk's
 * parameters.
 *
 * Planes are planar and hold raw parameters, as for project:
 *   means [3][n], log_scales [3][n], quats [4][n], opacity_logits [n]   f32  in
 *   splats [n_splats]       in     what project made of these rows under the same view, in any
 *                                  order; those whose `row` is n or more are others'
 *   drawn [9][n]            in     raster_backward's gradients
 *   gradients [P][n]        out    P = kiln_gradient_planes(sh_degree), in the order of
 *                                  kiln_gradient_plane; zero for rows that no splat has
 *
 * The rotation's gradient is that of half angles about the Gaussian's own axes: quat (1, h0, h1,
 * h2), not of the quaternion's four numbers. Left out, as in the measurements that chose this
 * (DESIGN.md): how the mean moves the Jacobian, the direction of the colour and the antialiasing
 * factor. What is not finite becomes 0.
 *
 * Each row alone, in pinned arithmetic: the same bits everywhere. Pointers, work (none), threads:
 * as in knn.h. KILN_E_INPUT: n above 2^32 - 2, a degree above 4.
 */
#ifndef KILN_KERNELS_PROJECT_BACKWARD_H
#define KILN_KERNELS_PROJECT_BACKWARD_H

#include "base/extern_c.h"
#include "kernels/raster_backward/raster_backward.h"

KILN_C_BEGIN

/* The first of the planes of each kind. */
typedef enum {
    KILN_GRADIENT_MEAN = 0,
    KILN_GRADIENT_LOG_SCALE = 3,
    KILN_GRADIENT_HALF_ANGLE = 6,
    KILN_GRADIENT_OPACITY_LOGIT = 9,
    KILN_GRADIENT_SH = 10 /* sh0's three, then shN's, coefficient-major */
} kiln_gradient_plane;

static inline KILN_HD uint32_t kiln_gradient_planes(uint32_t sh_degree)
{
    return KILN_GRADIENT_SH + 3 * (sh_degree + 1) * (sh_degree + 1);
}

typedef struct {
    uint64_t n, n_splats;
    const float *means, *log_scales, *quats, *opacity_logits;
    uint32_t sh_degree;
    const kiln_view *view;
    kiln_view_cut cut; /* as project had it */
    kiln_profile_id profile;
    bool antialiased;
    const kiln_splat2d *splats;
    const float *drawn;
    float *gradients;
} kiln_project_backward_args;

typedef kiln_status kiln_project_backward_fn(const kiln_exec *x,
                                             const kiln_project_backward_args *a, void *work,
                                             size_t *work_bytes, kiln_error *err);

/* Checks the arguments for both siblings. */
kiln_status kiln_project_backward_check(const kiln_project_backward_args *a,
                                        kiln_error *err) KILN_MUST_CHECK;

/* The arrays that it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_project_backward(A)       \
    A(IN, means, 3 * a->n)                    \
    A(IN, log_scales, 3 * a->n)               \
    A(IN, quats, 4 * a->n)                    \
    A(IN, opacity_logits, a->n)               \
    A(IN, splats, a->n_splats)                \
    A(IN, drawn, KILN_BACKWARD_PLANES * a->n) \
    A(OUT, gradients, kiln_gradient_planes(a->sh_degree) * a->n)

KILN_C_END

#endif
