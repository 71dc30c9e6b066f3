/* project_math -- the arithmetic of project up to the point where profiles differ: activation, 3D
 * covariance, camera coordinates, 2D covariance (EWA splatting, Zwicker et al. 2001, as in INRIA's
 * forward.cu). Compiled as C and as CUDA. */
#ifndef KILN_KERNELS_PROJECT_MATH_H
#define KILN_KERNELS_PROJECT_MATH_H

#include "kernels/math/real.h"
#include "kernels/profiles/gsplat_15.h"
#include "kernels/profiles/gsplat_16.h"
#include "kernels/profiles/inria.h"
#include "kernels/profiles/profiles.h"
#include "kernels/view_cut.h"

/* Raw parameters of one Gaussian, as the planes hold them. */
typedef struct {
    float mean[3], log_scale[3], quat[4], opacity_logit;
} kiln_raw;

/* Do the numbers of a camera stay away from what is tiny, huge or 0, so that a Gaussian may be
 * tame? */
static inline int kiln_project_is_mild(const kiln_projection *l)
{
    return kiln_within(l->fx, 0x1p-4f, 0x1p24f) & kiln_within(l->fy, 0x1p-4f, 0x1p24f) &
           kiln_within(-l->u_min, 0x1p-20f, 0x1p20f) & kiln_within(l->u_max, 0x1p-20f, 0x1p20f) &
           kiln_within(-l->v_min, 0x1p-20f, 0x1p20f) & kiln_within(l->v_max, 0x1p-20f, 0x1p20f);
}

static inline void kiln_project_projection(kiln_projection *l, const kiln_view *v,
                                           const kiln_view_cut *cut, kiln_profile_id profile,
                                           int antialiased)
{
    const kiln_view whole = kiln_view_uncut(v, cut);
    for (int i = 0; i < 9; i++) l->r[i] = v->r[i];
    for (int i = 0; i < 3; i++) {
        l->t[i] = v->t[i];
        l->centre[i] = v->centre[i];
    }
    for (int i = 0; i < 4; i++) {
        l->clip_x[i] = v->proj[i];
        l->clip_y[i] = v->proj[4 + i];
        l->clip_w[i] = v->proj[12 + i];
    }
    l->fx = v->fx;
    l->fy = v->fy;
    l->cx = v->cx;
    l->cy = v->cy;
    l->width = (float)whole.width; /* the field of view bounds the Jacobian */
    l->height = (float)whole.height;
    kiln_families[kiln_profiles[profile].family].lens(l, &whole);
    l->width = (float)v->width;
    l->height = (float)v->height;
    l->tiles_x = (float)kiln_view_tiles_x(v);
    l->tiles_y = (float)kiln_view_tiles_y(v);
    l->antialiased = antialiased;
    l->aa_floor = kiln_profiles[profile].aa_floor;
    l->mild = kiln_project_is_mild(l);
    l->tame = 0;
}

/* Camera z of a mean: the first thing asked of every Gaussian. */
static inline KILN_HD float kiln_project_depth(const kiln_projection *l, float x, float y, float z)
{
    return kiln_dot3(l->r[6], l->r[7], l->r[8], x, y, z) + l->t[2];
}

static inline KILN_HD int kiln_project_in_depth(const kiln_projection *l, float z)
{
    return (z >= l->z_min) & (z <= l->z_max);
}

static inline KILN_HD float kiln_project_quat_square(const float q[4])
{
    return kiln_fmaf(q[3], q[3], kiln_fmaf(q[2], q[2], kiln_fmaf(q[0], q[0], q[1] * q[1])));
}

/* R diag(scale): row-major, the columns are the axes of the ellipsoid. tame: as of a lens. Always
 * inlined, so that gcc sees in time that m needs no memory; else it makes no vectors of loops over
 * rows. */
static inline __attribute__((always_inline)) KILN_HD void
kiln_project_axes(const kiln_raw *g, float quat_floor, int tame, float m[9])
{
    const float sx = kiln_exp(g->log_scale[0], tame), sy = kiln_exp(g->log_scale[1], tame),
                sz = kiln_exp(g->log_scale[2], tame);
    const float *q = g->quat;
    const float length = kiln_root(kiln_project_quat_square(q), tame);
    const float scale = kiln_inverse(length < quat_floor ? quat_floor : length, tame);
    const float w = q[0] * scale, x = q[1] * scale, y = q[2] * scale, z = q[3] * scale;
    m[0] = kiln_fmaf(-2.0f, kiln_fmaf(y, y, z * z), 1.0f) * sx;
    m[1] = 2.0f * kiln_fmaf(x, y, -(w * z)) * sy;
    m[2] = 2.0f * kiln_fmaf(x, z, w * y) * sz;
    m[3] = 2.0f * kiln_fmaf(x, y, w * z) * sx;
    m[4] = kiln_fmaf(-2.0f, kiln_fmaf(x, x, z * z), 1.0f) * sy;
    m[5] = 2.0f * kiln_fmaf(y, z, -(w * x)) * sz;
    m[6] = 2.0f * kiln_fmaf(x, z, -(w * y)) * sx;
    m[7] = 2.0f * kiln_fmaf(y, z, w * x) * sy;
    m[8] = kiln_fmaf(-2.0f, kiln_fmaf(x, x, y * y), 1.0f) * sz;
}

/* m m^T: xx xy xz yy yz zz */
static inline KILN_HD void kiln_project_covariance(const float m[9], float s[6])
{
    s[0] = kiln_dot3(m[0], m[1], m[2], m[0], m[1], m[2]);
    s[1] = kiln_dot3(m[0], m[1], m[2], m[3], m[4], m[5]);
    s[2] = kiln_dot3(m[0], m[1], m[2], m[6], m[7], m[8]);
    s[3] = kiln_dot3(m[3], m[4], m[5], m[3], m[4], m[5]);
    s[4] = kiln_dot3(m[3], m[4], m[5], m[6], m[7], m[8]);
    s[5] = kiln_dot3(m[6], m[7], m[8], m[6], m[7], m[8]);
}

static inline KILN_HD float kiln_between(float v, float lo, float hi)
{
    v = v > lo ? v : lo;
    return v < hi ? v : hi;
}

/* (J R) S (J R)^T with S symmetric: J is the Jacobian of the perspective at the mean, its direction
 * clamped. */
static inline KILN_HD void kiln_project_flatten(const kiln_projection *l, const float s[6],
                                                kiln_splat3d *g)
{
    const int tame = KILN_TAME(l);
    const float *r = l->r, z = g->cam[2], zz = z * z;
    const float tx = kiln_between(kiln_quotient(g->cam[0], z, tame), l->u_min, l->u_max) * z;
    const float ty = kiln_between(kiln_quotient(g->cam[1], z, tame), l->v_min, l->v_max) * z;
    const float j00 = kiln_quotient(l->fx, z, tame), j02 = kiln_quotient(-(l->fx * tx), zz, tame);
    const float j11 = kiln_quotient(l->fy, z, tame), j12 = kiln_quotient(-(l->fy * ty), zz, tame);
    const float a0 = kiln_fmaf(j02, r[6], j00 * r[0]), a1 = kiln_fmaf(j02, r[7], j00 * r[1]),
                a2 = kiln_fmaf(j02, r[8], j00 * r[2]);
    const float b0 = kiln_fmaf(j12, r[6], j11 * r[3]), b1 = kiln_fmaf(j12, r[7], j11 * r[4]),
                b2 = kiln_fmaf(j12, r[8], j11 * r[5]);
    const float u0 = kiln_dot3(s[0], s[1], s[2], a0, a1, a2);
    const float u1 = kiln_dot3(s[1], s[3], s[4], a0, a1, a2);
    const float u2 = kiln_dot3(s[2], s[4], s[5], a0, a1, a2);
    const float v0 = kiln_dot3(s[0], s[1], s[2], b0, b1, b2);
    const float v1 = kiln_dot3(s[1], s[3], s[4], b0, b1, b2);
    const float v2 = kiln_dot3(s[2], s[4], s[5], b0, b1, b2);
    g->xx = kiln_dot3(a0, a1, a2, u0, u1, u2);
    g->xy = kiln_dot3(b0, b1, b2, u0, u1, u2);
    g->yy = kiln_dot3(b0, b1, b2, v0, v1, v2);
}

/* All that a profile's outline is made from. */
static inline KILN_HD void kiln_project_splat3d(const kiln_projection *l, const kiln_raw *g,
                                                kiln_splat3d *o)
{
    float axes[9], covariance[6];
    const float x = g->mean[0], y = g->mean[1], z = g->mean[2];
    o->world[0] = x;
    o->world[1] = y;
    o->world[2] = z;
    o->cam[0] = kiln_dot3(l->r[0], l->r[1], l->r[2], x, y, z) + l->t[0];
    o->cam[1] = kiln_dot3(l->r[3], l->r[4], l->r[5], x, y, z) + l->t[1];
    o->cam[2] = kiln_project_depth(l, x, y, z);
    o->opacity = kiln_sigmoid(g->opacity_logit, KILN_TAME(l));
    kiln_project_axes(g, l->quat_floor, KILN_TAME(l), axes);
    kiln_project_covariance(axes, covariance);
    kiln_project_flatten(l, covariance, o);
}

/* Is a Gaussian tame before a mild camera, so that what l->tame gives for it holds? s: made with
 * it, or without. The profile's kiln_FAMILY_is_tame asks for the rest. NaN is not tame. */
static inline KILN_HD int kiln_project_is_tame(const kiln_raw *g, const kiln_splat3d *s)
{
    return kiln_within(fabsf(s->cam[0]), 0x1p-40f, 0x1p20f) &
           kiln_within(fabsf(s->cam[1]), 0x1p-40f, 0x1p20f) &
           kiln_within(s->cam[2], 0x1p-20f, 0x1p20f) & (fabsf(g->log_scale[0]) <= 80.0f) &
           (fabsf(g->log_scale[1]) <= 80.0f) & (fabsf(g->log_scale[2]) <= 80.0f) &
           (fabsf(g->opacity_logit) <= 80.0f) &
           kiln_within(kiln_project_quat_square(g->quat), 0x1p-60f, 0x1p60f);
}

#endif
