/* inria -- the profile of graphdeco-inria/diff-gaussian-rasterization 59f5f77, the rasteriser of
 * Kerbl et al. 2023, called as its train.py and render.py do; antialiased as its dr_aa branch. The
 * formulas and constants are those of its cuda_rasterizer/forward.cu and auxiliary.h; the code is
 * ours.
 *
 * far_m of the view is not used: the program has no far plane. cx, cy are not used: its projection
 * matrix is made of the two fields of view, so the principal point is the middle of the image. */
#ifndef KILN_KERNELS_PROFILES_INRIA_H
#define KILN_KERNELS_PROFILES_INRIA_H

#include "kernels/profiles/steps.h"

#define KILN_INRIA_NEAR 0.2f          /* in_frustum: p_view.z <= 0.2f is culled */
#define KILN_INRIA_MAX_ALPHA 0.99f    /* renderCUDA */
#define KILN_INRIA_STOP_BELOW 1e-4f   /* renderCUDA: test_T < 0.0001f ends the pixel */
#define KILN_INRIA_FRUSTUM 1.3f       /* computeCov2D: limx = 1.3f * tan_fovx */
#define KILN_INRIA_DILATION 0.3f      /* preprocessCUDA: h_var */
#define KILN_INRIA_AA_FLOOR 0.000025f /* dr_aa: h_convolution_scaling */
#define KILN_INRIA_SIGMAS 3.0f        /* radius = ceil(3 sqrt(lambda)) */
#define KILN_INRIA_SPREAD_FLOOR 0.1f  /* sqrt(max(0.1, mid^2 - det)) */
#define KILN_INRIA_W_SHIFT 0.0000001f /* 1 / (w + 1e-7) */
/* torch.nn.functional.normalize in its caller, gaussian_model.py */
#define KILN_INRIA_QUAT_FLOOR 1e-12f

/* Fills what depends on the profile; on the host. */
static inline void kiln_inria_projection(kiln_projection *l, const kiln_view *v)
{
    const float tan_x = 0.5f * l->width / v->fx, tan_y = 0.5f * l->height / v->fy;
    l->z_min = kiln_next_above(v->near_m);
    l->z_max = 3.40282347e38f;
    l->u_max = KILN_INRIA_FRUSTUM * tan_x;
    l->u_min = -l->u_max;
    l->v_max = KILN_INRIA_FRUSTUM * tan_y;
    l->v_min = -l->v_max;
    l->quat_floor = KILN_INRIA_QUAT_FLOOR;
}

/* lambda <= scale^2 (x^2 + y^2) / z^2 + 0.3 + sqrt(0.1), where x, y bound the focal lengths times
 * the Jacobian's slope. Opacity plays no part. */
static inline bool kiln_inria_reach(const kiln_projection *l, double scale, double opacity,
                                    kiln_chunk_reach *out)
{
    const double u = fmax(fabs(l->u_min), fabs(l->u_max)), v = fmax(fabs(l->v_min), fabs(l->v_max));
    const double x = l->fx * sqrt(1.0 + u * u), y = l->fy * sqrt(1.0 + v * v);
    (void)opacity;
    out->reach[0] = out->reach[1] = KILN_INRIA_SIGMAS * scale * sqrt(x * x + y * y);
    out->flat = KILN_INRIA_SIGMAS * sqrt(KILN_INRIA_DILATION + sqrt(KILN_INRIA_SPREAD_FLOOR));
    out->centre[0] = 0.5 * l->width;
    out->centre[1] = 0.5 * l->height;
    return true;
}

/* ndc2Pix: pixel centres at integers, computed in double and rounded once. */
static inline KILN_HD float kiln_inria_pixel(float ndc, float size)
{
    return (float)((((double)ndc + 1.0) * (double)size - 1.0) * 0.5);
}

/* ceil(3 sqrt(lambda)), lambda the larger eigenvalue with the program's floor under the root. */
static inline KILN_HD float kiln_inria_radius(float xx, float yy, float det, int tame)
{
    const float mid = 0.5f * (xx + yy);
    const float spread = kiln_fmaf(mid, mid, -det);
    const float lambda =
        mid + kiln_root(spread > KILN_INRIA_SPREAD_FLOOR ? spread : KILN_INRIA_SPREAD_FLOOR, tame);
    return ceilf(KILN_INRIA_SIGMAS * kiln_root(lambda, tame));
}

static inline KILN_HD float kiln_inria_w(const kiln_projection *l, const kiln_splat3d *g)
{
    return kiln_row4(l->clip_w, g->world[0], g->world[1], g->world[2]) + KILN_INRIA_W_SHIFT;
}

/* Beside what kiln_project_is_tame asks. */
static inline KILN_HD int kiln_inria_is_tame(const kiln_projection *l, const kiln_splat3d *g,
                                             const kiln_outline *o)
{
    const float xx = g->xx + KILN_INRIA_DILATION, yy = g->yy + KILN_INRIA_DILATION;
    (void)o;
    return kiln_is_tame_ellipse(xx, yy, kiln_det2(xx, g->xy, yy)) &
           kiln_within(kiln_inria_w(l, g), 0x1p-20f, 0x1p20f);
}

/* Is it visible, and how. The tile rectangle is getRect of integer-centred coordinates; what is
 * stored has its centres at + 0.5. Opacity plays no part: one of 0 takes its tiles too. */
static inline KILN_HD int kiln_inria_outline(const kiln_projection *l, const kiln_splat3d *g,
                                             kiln_outline *o)
{
    const int tame = KILN_TAME(l);
    const float inv_w = kiln_inverse(kiln_inria_w(l, g), tame);
    const float px = kiln_inria_pixel(
        kiln_row4(l->clip_x, g->world[0], g->world[1], g->world[2]) * inv_w, l->width);
    const float py = kiln_inria_pixel(
        kiln_row4(l->clip_y, g->world[0], g->world[1], g->world[2]) * inv_w, l->height);
    const float xx = g->xx + KILN_INRIA_DILATION, yy = g->yy + KILN_INRIA_DILATION;
    const float det = kiln_det2(xx, g->xy, yy);
    const float inv_det = kiln_inverse(det, tame);
    const float radius = kiln_inria_radius(xx, yy, det, tame);

    o->x = px + 0.5f;
    o->y = py + 0.5f;
    o->a = yy * inv_det;
    o->b = -g->xy * inv_det;
    o->c = xx * inv_det;
    o->opacity = g->opacity * kiln_aa_factor(l, kiln_det2(g->xx, g->xy, g->yy), det);
    o->power_min = tame ? kiln_power_min_normal(o->opacity, tame) : kiln_power_min(o->opacity);
    o->tile_x0 = kiln_tile_border((px - radius) * 0.0625f, l->tiles_x);
    o->tile_y0 = kiln_tile_border((py - radius) * 0.0625f, l->tiles_y);
    o->tile_x1 = kiln_tile_border((px + radius + 16.0f - 1.0f) * 0.0625f, l->tiles_x);
    o->tile_y1 = kiln_tile_border((py + radius + 16.0f - 1.0f) * 0.0625f, l->tiles_y);

    o->box_x = o->tile_x1 - o->tile_x0;
    o->box_y = o->tile_y1 - o->tile_y0;

    /* infinite: the conic is 0, a fog over the whole image */
    const int regular = (det > 0.0f) | (det < 0.0f);
    const int placed = (radius < INFINITY) & (fabsf(px) < INFINITY) & (fabsf(py) < INFINITY);
    return regular & placed & (tame | kiln_outline_is_finite(o)) & (o->tile_x0 < o->tile_x1) &
           (o->tile_y0 < o->tile_y1);
}

#endif
