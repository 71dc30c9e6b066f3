/* project_backward_math -- the chain rule from a splat to one Gaussian's parameters, shared by both
 * siblings. Formulas: DESIGN.md.
 */
#ifndef KILN_KERNELS_PROJECT_BACKWARD_MATH_H
#define KILN_KERNELS_PROJECT_BACKWARD_MATH_H

#include "kernels/project/project_math.h"
#include "kernels/project/sh_math.h"
#include "kernels/project_backward/project_backward.h"

/* Rows of J R, 2 x 3, as kiln_project_flatten has them, and the point before the camera. */
typedef struct {
    float cam[3], a[3], b[3];
} kiln_screen_axes;

static inline KILN_HD kiln_screen_axes kiln_screen_axes_of(const kiln_projection *l,
                                                           const float mean[3])
{
    kiln_screen_axes s;
    const float *r = l->r;
    for (int k = 0; k < 3; k++)
        s.cam[k] =
            kiln_dot3(r[3 * k], r[3 * k + 1], r[3 * k + 2], mean[0], mean[1], mean[2]) + l->t[k];
    const float z = s.cam[2], zz = z * z;
    const float tx = kiln_between(s.cam[0] / z, l->u_min, l->u_max) * z,
                ty = kiln_between(s.cam[1] / z, l->v_min, l->v_max) * z;
    const float j00 = l->fx / z, j02 = -(l->fx * tx) / zz, j11 = l->fy / z,
                j12 = -(l->fy * ty) / zz;
    for (int k = 0; k < 3; k++) {
        s.a[k] = kiln_fmaf(j02, r[6 + k], j00 * r[k]);
        s.b[k] = kiln_fmaf(j12, r[6 + k], j11 * r[3 + k]);
    }
    return s;
}

/* A symmetric 2 x 2 matrix. */
typedef struct {
    float xx, xy, yy;
} kiln_symmetric2;

/* 1/2 Q M Q: dE/dcovariance from the conic Q and the second moments M of dE/dpower. */
static inline KILN_HD kiln_symmetric2 kiln_covariance_gradient(const float q[3], float mxx,
                                                               float mxy, float myy)
{
    /* Q M, first row */
    const float l0 = kiln_fmaf(q[1], mxy, q[0] * mxx), l1 = kiln_fmaf(q[1], myy, q[0] * mxy);
    const float l2 = kiln_fmaf(q[2], mxy, q[1] * mxx), l3 = kiln_fmaf(q[2], myy, q[1] * mxy);
    kiln_symmetric2 g;
    g.xx = 0.5f * kiln_fmaf(l1, q[1], l0 * q[0]);
    g.xy = 0.5f * kiln_fmaf(l1, q[2], l0 * q[1]);
    g.yy = 0.5f * kiln_fmaf(l3, q[2], l2 * q[1]);
    return g;
}

/* A zero is +0: which sign it has depends on how an fma is made. */
static inline KILN_HD float kiln_finite_or_zero(float v)
{
    return fabsf(v) < INFINITY ? v + 0.0f : 0.0f;
}

/* The mean: what it moves on the picture, and from there. */
static inline KILN_HD void kiln_mean_gradient(const kiln_projection *l, const kiln_screen_axes *s,
                                              const float q[3], float mx, float my, float g[3])
{
    const float gx = -kiln_fmaf(q[1], my, q[0] * mx), gy = -kiln_fmaf(q[2], my, q[1] * mx);
    const float z = s->cam[2], cx = l->fx / z * gx, cy = l->fy / z * gy;
    const float cz = -kiln_fmaf(cy, s->cam[1], cx * s->cam[0]) / z;
    for (int k = 0; k < 3; k++) g[k] = kiln_dot3(l->r[k], l->r[3 + k], l->r[6 + k], cx, cy, cz);
}

/* Log scales and half angles. axes: R diag(scale), its columns on the picture are u[j]; h[i][j] = 2
 * u[i]^T G u[j]. */
static inline KILN_HD void kiln_shape_gradient(const kiln_screen_axes *s, const float axes[9],
                                               const float scale[3], kiln_symmetric2 g,
                                               float log_scale[3], float half_angle[3])
{
    float ux[3], uy[3], gx[3], gy[3];
    for (int j = 0; j < 3; j++) {
        ux[j] = kiln_dot3(s->a[0], s->a[1], s->a[2], axes[j], axes[3 + j], axes[6 + j]);
        uy[j] = kiln_dot3(s->b[0], s->b[1], s->b[2], axes[j], axes[3 + j], axes[6 + j]);
        gx[j] = kiln_fmaf(g.xy, uy[j], g.xx * ux[j]);
        gy[j] = kiln_fmaf(g.yy, uy[j], g.xy * ux[j]);
        log_scale[j] = 2.0f * kiln_fmaf(uy[j], gy[j], ux[j] * gx[j]);
    }
    for (int k = 0; k < 3; k++) {
        const int i = (k + 1) % 3, j = (k + 2) % 3;
        const float h = 2.0f * kiln_fmaf(uy[i], gy[j], ux[i] * gx[j]);
        half_angle[k] = 2.0f * h * (scale[i] / scale[j] - scale[j] / scale[i]);
    }
}

/* The ten that do not depend on the degree, in the order of kiln_gradient_plane. drawn:
 * raster_backward's nine. */
static inline KILN_HD void kiln_geometry_gradient(const kiln_projection *l, const kiln_raw *raw,
                                                  const float conic[3],
                                                  const float drawn[KILN_BACKWARD_PLANES],
                                                  float g[KILN_GRADIENT_SH])
{
    const kiln_screen_axes s = kiln_screen_axes_of(l, raw->mean);
    const float scale[3] = {kiln_expf(raw->log_scale[0]), kiln_expf(raw->log_scale[1]),
                            kiln_expf(raw->log_scale[2])};
    const kiln_symmetric2 c = kiln_covariance_gradient(
        conic, drawn[KILN_BACKWARD_XX], drawn[KILN_BACKWARD_XY], drawn[KILN_BACKWARD_YY]);
    float axes[9];
    kiln_project_axes(raw, l->quat_floor, 0, axes);
    kiln_mean_gradient(l, &s, conic, drawn[KILN_BACKWARD_X], drawn[KILN_BACKWARD_Y],
                       g + KILN_GRADIENT_MEAN);
    kiln_shape_gradient(&s, axes, scale, c, g + KILN_GRADIENT_LOG_SCALE,
                        g + KILN_GRADIENT_HALF_ANGLE);
    g[KILN_GRADIENT_OPACITY_LOGIT] =
        drawn[KILN_BACKWARD_POWER] * kiln_sigmoidf(-raw->opacity_logit);
}

/* The basis functions of all degrees at the direction from the camera's centre to the mean, as
 * project has them. */
static inline KILN_HD void kiln_basis_at(const kiln_projection *l, const float mean[3],
                                         uint32_t degree, float b[KILN_SH_COEFFICIENTS_MAX])
{
    float x = mean[0] - l->centre[0], y = mean[1] - l->centre[1], z = mean[2] - l->centre[2];
    const float scale = 1.0f / sqrtf(kiln_dot3(x, y, z, x, y, z));
    x *= scale;
    y *= scale;
    z *= scale;
    b[0] = KILN_SH_C0;
    if (degree >= 1) kiln_sh_basis1(x, y, z, b + 1);
    if (degree >= 2) kiln_sh_basis2(x, y, z, b + 4);
    if (degree >= 3) kiln_sh_basis3(x, y, z, b + 9);
    if (degree >= 4) kiln_sh_basis4(x, y, z, b + 16);
}

/* All of one row. */
static inline KILN_HD void kiln_project_backward_row(const kiln_project_backward_args *a,
                                                     const kiln_projection *l,
                                                     const kiln_splat2d *s)
{
    const uint64_t row = s->row, n = a->n;
    const uint32_t coefficients = (a->sh_degree + 1) * (a->sh_degree + 1);
    float drawn[KILN_BACKWARD_PLANES], g[KILN_GRADIENT_SH], basis[KILN_SH_COEFFICIENTS_MAX];
    kiln_raw raw;
    for (uint64_t k = 0; k < KILN_BACKWARD_PLANES; k++) drawn[k] = a->drawn[k * n + row];
    for (uint64_t k = 0; k < 3; k++) {
        raw.mean[k] = a->means[k * n + row];
        raw.log_scale[k] = a->log_scales[k * n + row];
    }
    for (uint64_t k = 0; k < 4; k++) raw.quat[k] = a->quats[k * n + row];
    raw.opacity_logit = a->opacity_logits[row];
    kiln_geometry_gradient(l, &raw, s->conic, drawn, g);
    for (uint64_t k = 0; k < KILN_GRADIENT_SH; k++)
        a->gradients[k * n + row] = kiln_finite_or_zero(g[k]);
    kiln_basis_at(l, raw.mean, a->sh_degree, basis);
    for (uint32_t j = 0; j < coefficients; j++)
        for (uint32_t c = 0; c < 3; c++)
            a->gradients[(KILN_GRADIENT_SH + 3 * (uint64_t)j + c) * n + row] =
                kiln_finite_or_zero(basis[j] * drawn[KILN_BACKWARD_RED + c]);
}

#endif
