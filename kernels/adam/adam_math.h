/* adam_math -- one parameter's step, and what a row's geometry makes of its ten; shared by both
 * siblings. */
#ifndef KILN_KERNELS_ADAM_MATH_H
#define KILN_KERNELS_ADAM_MATH_H

#include "kernels/adam/adam.h"
#include "kernels/math/real.h"

/* v, or where it is not finite `old`: a step that leads nowhere is not made, and no NaN is stored,
 * whose bits CPU and GPU make differently. */
static inline KILN_HD float kiln_adam_finite(float v, float old) { return v - v == 0.0f ? v : old; }

/* m' / (sqrt(v') + least), and the new m and v. No gradient, no move: a row that one picture shows
 * would go on for six steps by that one's error while others do not show it. */
static inline KILN_HD float kiln_adam_move(const kiln_adam_args *a, uint64_t at, float least)
{
    const float g = kiln_adam_finite(a->weight * a->gradients[at], 0.0f);
    if (g == 0.0f) return 0.0f;
    const float m = kiln_fmaf(0.9f, a->m[at], 0.1f * g),
                v = kiln_fmaf(0.99f, a->v[at], 0.01f * (g * g));
    a->m[at] = m;
    a->v[at] = v;
    return kiln_adam_finite(m * a->correct1 / (sqrtf(v * a->correct2) + least), 0.0f);
}

/* quat (1, h): the rotation after a small one about the Gaussian's own axes. */
static inline KILN_HD void kiln_adam_turn(float q[4], const float h[3])
{
    const float w = q[0], x = q[1], y = q[2], z = q[3];
    q[0] = w - (x * h[0] + y * h[1] + z * h[2]);
    q[1] = x + (w * h[0] + y * h[2] - z * h[1]);
    q[2] = y + (w * h[1] + z * h[0] - x * h[2]);
    q[3] = z + (w * h[2] + x * h[1] - y * h[0]);
    const float length = sqrtf(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    const float scale = length > 1e-12f ? 1.0f / length : 1.0f;
    for (int k = 0; k < 4; k++) q[k] *= scale;
    if (!(length - length == 0.0f)) { /* not finite */
        q[0] = w;
        q[1] = x;
        q[2] = y;
        q[3] = z;
    }
}

/* The unit of a mean's step: the longest axis, and less than a->longest the longer it is beyond
 * that. */
static inline KILN_HD float kiln_adam_axis(float own, float longest)
{
    return longest > 0.0f && own > longest ? longest * (longest / own) : own;
}

/* Mean, scales, rotation and opacity of a row. The mean's step goes by the longest axis as it is
 * before this step. */
static inline KILN_HD void kiln_adam_geometry(const kiln_adam_args *a, uint64_t row)
{
    const uint64_t n = a->n;
    float longest = a->log_scales[row], q[4], h[3];
    for (uint64_t k = 1; k < 3; k++)
        longest = a->log_scales[k * n + row] > longest ? a->log_scales[k * n + row] : longest;
    const float axis = kiln_adam_axis(kiln_expf(longest), a->longest);
    const float step = a->steps.mean * axis, least = a->least / axis;
    for (uint64_t k = 0; k < 3; k++) {
        const float mean = a->means[k * n + row], size = a->log_scales[k * n + row];
        const float moved =
            mean - step * kiln_adam_move(a, (KILN_GRADIENT_MEAN + k) * n + row, least);
        const float grown =
            size - a->steps.log_scale *
                       kiln_adam_move(a, (KILN_GRADIENT_LOG_SCALE + k) * n + row, a->least);
        a->means[k * n + row] = kiln_adam_finite(moved, mean);
        a->log_scales[k * n + row] = kiln_adam_finite(grown, size);
        h[k] = -a->steps.half_angle *
               kiln_adam_move(a, (KILN_GRADIENT_HALF_ANGLE + k) * n + row, a->least);
    }
    for (uint64_t k = 0; k < 4; k++) q[k] = a->quats[k * n + row];
    kiln_adam_turn(q, h);
    for (uint64_t k = 0; k < 4; k++) a->quats[k * n + row] = q[k];
    const float logit =
        a->opacity_logits[row] -
        a->steps.opacity_logit * kiln_adam_move(a, KILN_GRADIENT_OPACITY_LOGIT * n + row, a->least);
    if (!(logit - logit == 0.0f)) return;
    a->opacity_logits[row] = logit > KILN_ADAM_LOGIT_MAX ? KILN_ADAM_LOGIT_MAX : logit;
}

/* Colour plane k (0, 1, 2 of sh0, then shN's) of a row. */
static inline KILN_HD void kiln_adam_colour(const kiln_adam_args *a, uint64_t k, uint64_t row)
{
    float *const plane = k < 3 ? a->sh0 + k * a->n : a->shN + (k - 3) * a->n;
    const float step = k < 3 ? a->steps.sh0 : a->steps.shN;
    plane[row] = kiln_adam_finite(
        plane[row] - step * kiln_adam_move(a, (KILN_GRADIENT_SH + k) * a->n + row, a->least),
        plane[row]);
}

#endif
