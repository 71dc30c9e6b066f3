/* adam -- one step of Adam (Kingma and Ba 2015) on the parameters of a chunk's Gaussians.
 *
 *   means [3][n], log_scales [3][n], quats [4][n], opacity_logits [n], sh0 [3][n], shN [3K][n]
 *       f32  inout, raw parameters
 *   gradients [P][n]   in     project_backward's, to be multiplied by `weight`; P =
 *                             kiln_gradient_planes(sh_degree)
 *   m, v [P][n]        inout  running means of the gradient and of its square; zero before the
 *                             first step
 *
 * With beta 0.9 and 0.99 a parameter moves by -step m' / (sqrt(v') + 1e-15), m' and v' being m and
 * v times correct1 and correct2. The caller computes those and the steps' decay on the host
 * (kiln_adam_at): no power or cosine is computed here. A mean's step is in units of the Gaussian's
 * longest axis (and so `least` is for its gradient), or where that is longer than `longest`, of
 * longest^2 / axis: a large Gaussian hides others, and hardly moves. A rotation's step is in half
 * angles about its own axes: quat (1, h0, h1, h2), to length 1. A logit stays at most
 * KILN_ADAM_LOGIT_MAX. A parameter whose gradient is 0 stays, and so do its m and v.
 *
 * Each parameter alone, with sums, products, quotients and square roots that are correctly rounded:
 * the same bits everywhere. Pointers, work (none), threads: as in knn.h. KILN_E_INPUT: n above 2^32
 * - 2, a degree above 4.
 */
#ifndef KILN_KERNELS_ADAM_H
#define KILN_KERNELS_ADAM_H

#include "base/extern_c.h"
#include "kernels/project_backward/project_backward.h"

KILN_C_BEGIN

#define KILN_ADAM_LOGIT_MAX 6.0f

/* How far each kind of parameter moves in a step. */
typedef struct {
    float mean, log_scale, half_angle, opacity_logit, sh0, shN;
} kiln_adam_steps;

typedef struct {
    uint64_t n;
    uint32_t sh_degree;
    float *means, *log_scales, *quats, *opacity_logits, *sh0, *shN;
    const float *gradients;
    float *m, *v;
    kiln_adam_steps steps;
    float correct1, correct2; /* 1 / (1 - beta^t) */
    float weight;             /* of the gradients */
    float least;              /* above 0; gradients well below it hardly move anything */
    float longest;            /* of an axis in a mean's step, scene units; 0: any length */
} kiln_adam_args;

typedef kiln_status kiln_adam_fn(const kiln_exec *x, const kiln_adam_args *a, void *work,
                                 size_t *work_bytes, kiln_error *err);

/* Fills steps, correct1 and correct2 for step t of `steps` (from 0): the steps fall from `full`
 * along half a cosine towards a tenth. In double, with + - * / alone: the same numbers on every
 * machine. */
void kiln_adam_at(kiln_adam_args *a, const kiln_adam_steps *full, uint32_t t, uint32_t steps);

/* Checks the arguments for both siblings. */
kiln_status kiln_adam_check(const kiln_adam_args *a, kiln_error *err) KILN_MUST_CHECK;

/* The arrays that it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_adam(A)                                                           \
    A(INOUT, means, 3 * a->n)                                                         \
    A(INOUT, log_scales, 3 * a->n)                                                    \
    A(INOUT, quats, 4 * a->n)                                                         \
    A(INOUT, opacity_logits, a->n)                                                    \
    A(INOUT, sh0, 3 * a->n)                                                           \
    A(INOUT, shN, 3 * (((uint64_t)a->sh_degree + 1) * (a->sh_degree + 1) - 1) * a->n) \
    A(IN, gradients, kiln_gradient_planes(a->sh_degree) * a->n)                       \
    A(INOUT, m, kiln_gradient_planes(a->sh_degree) * a->n)                            \
    A(INOUT, v, kiln_gradient_planes(a->sh_degree) * a->n)

KILN_C_END

#endif
