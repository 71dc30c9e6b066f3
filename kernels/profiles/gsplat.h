/* gsplat -- the steps that gsplat-1.5 and gsplat-1.6 share: nerfstudio-project/gsplat v1.5.3
 * (937e299) and 1.6.0 (90d7b4b), rasterization() with packed=False, radius_clip 0 and eps2d 0.3.
 * Formulas and constants are those of its gsplat/cuda/csrc/ProjectionEWA3DGSFused.cu and
 * gsplat/cuda/include/Utils.cuh; the code is ours.
 *
 * Extents of these versions lose no pixel that reaches alpha 1/255, so the tile bounds here are
 * ours: a box that holds every pixel with power >= power_min, whatever float rounding does. */
#ifndef KILN_KERNELS_PROFILES_GSPLAT_H
#define KILN_KERNELS_PROFILES_GSPLAT_H

#include "kernels/math/real64.h"
#include "kernels/profiles/steps.h"

#define KILN_GSPLAT_NEAR 0.01f /* near_plane of rasterization() */
#define KILN_GSPLAT_FAR 1e10f  /* far_plane */
/* persp_proj: lim_x_pos = (width - cx) / fx + 0.3f * tan_fovx */
#define KILN_GSPLAT_MARGIN 0.3f
#define KILN_GSPLAT_DILATION 0.3f /* eps2d */
/* extend = min(3.33, sqrt(2 ln(opacity / ALPHA_THRESHOLD))) */
#define KILN_GSPLAT_SIGMAS 3.33f
/* RasterizeToPixels3DGSFwd.cu: next_T <= 1e-4 ends the pixel; the next float */
#define KILN_GSPLAT_STOP_BELOW 0x1.a36e30p-14f
#define KILN_GSPLAT_MIN_OPACITY (1.0f / 255.0f) /* ALPHA_THRESHOLD */

static inline void kiln_gsplat_projection(kiln_projection *l, const kiln_view *v)
{
    const float tan_x = 0.5f * l->width / v->fx, tan_y = 0.5f * l->height / v->fy;
    l->z_min = v->near_m > 0.0f ? v->near_m : kiln_next_above(0.0f);
    l->z_max = v->far_m < 3.40282347e38f ? v->far_m : 3.40282347e38f;
    l->u_max = (l->width - v->cx) / v->fx + KILN_GSPLAT_MARGIN * tan_x;
    l->u_min = -(v->cx / v->fx + KILN_GSPLAT_MARGIN * tan_x);
    l->v_max = (l->height - v->cy) / v->fy + KILN_GSPLAT_MARGIN * tan_y;
    l->v_min = -(v->cy / v->fy + KILN_GSPLAT_MARGIN * tan_y);
    l->quat_floor = 0.0f; /* a zero quaternion gives NaN there: never visible */
}

/* false: no Gaussian of that opacity is visible, however large. */
static inline bool kiln_gsplat_reach(const kiln_projection *l, double scale, double opacity,
                                     kiln_chunk_reach *out)
{
    const double u = fmax(fabs(l->u_min), fabs(l->u_max)), v = fmax(fabs(l->v_min), fabs(l->v_max));
    const double x = l->fx * sqrt(1.0 + u * u), y = l->fy * sqrt(1.0 + v * v);
    const double sigmas =
        fmin(KILN_GSPLAT_SIGMAS, sqrt(2.0 * kiln_log_f64(fmax(255.0 * opacity, 1.0))));
    out->reach[0] = sigmas * scale * x;
    out->reach[1] = sigmas * scale * y;
    out->flat = sigmas * sqrt(KILN_GSPLAT_DILATION);
    out->centre[0] = l->cx;
    out->centre[1] = l->cy;
    return !(opacity < KILN_GSPLAT_MIN_OPACITY); /* not a number: may be visible */
}

/* Half width (of the ellipse's box) along the axis whose conic entry is `own`, the other axis'
 * entry being `other`: sqrt(t other / (own other - b^2)). The pinned power exceeds the exact one by
 * at most 6 * 2^-24 (A dx^2 + C dy^2) and the determinant here is off by 2^-23 A C, most of it
 * where a thin diagonal ellipse cancels nearly all digits; entries made smaller by 2^-19 allow for
 * both. What then is no ellipse any more has no bound. */
static inline KILN_HD float kiln_gsplat_half_width(float t, float own, float b, float other,
                                                   int tame)
{
    const float shrink = 1.0f - 0x1p-19f;
    const float det = kiln_det2(own * shrink, b, other * shrink);
    const float half = kiln_root(kiln_quotient(t * other, det, tame), tame) * 1.0001f;
    return det > 0.0f ? half : 1e30f;
}

/* First tile, and one past the last, of the pixel centres within `half` of `mean`; one pixel more
 * on each side. */
static inline KILN_HD void kiln_gsplat_tiles(float mean, float half, float tiles, int32_t *first,
                                             int32_t *end)
{
    const float slack = 0.5f + 1e-6f * (fabsf(mean) + half);
    const float lo = mean - half - 1.0f - slack, hi = mean + half + slack;
    *first = kiln_tile_border(lo * 0.0625f, tiles);
    *end = kiln_tile_border(hi * 0.0625f + 1.0f, tiles);
    *end = *end > *first ? *end : *first;
}

/* Tiles across of gsplat-1.5's own list (intersect_tile_kernel of IntersectTile.cu): from
 * floor((mean - r)/16) to ceil((mean + r)/16), both within the image. gsplat-1.6 lists ellipses;
 * its boxes would be the same. */
static inline KILN_HD int32_t kiln_gsplat_box(float mean, float r, float tiles)
{
    return kiln_tile_border(ceilf((mean + r) * 0.0625f), tiles) -
           kiln_tile_border((mean - r) * 0.0625f, tiles);
}

/* Beside what kiln_project_is_tame asks: log(255 opacity) is not as good as 0. */
static inline KILN_HD int kiln_gsplat_is_tame(const kiln_projection *l, const kiln_splat3d *g,
                                              const kiln_outline *o)
{
    const float xx = g->xx + KILN_GSPLAT_DILATION, yy = g->yy + KILN_GSPLAT_DILATION;
    (void)l;
    return kiln_is_tame_ellipse(xx, yy, kiln_det2(xx, g->xy, yy)) &
           (fabsf(o->opacity - KILN_GSPLAT_MIN_OPACITY) >= 1e-5f);
}

static inline KILN_HD int kiln_gsplat_outline(const kiln_projection *l, const kiln_splat3d *g,
                                              kiln_outline *o)
{
    const int tame = KILN_TAME(l);
    const float inv_z = kiln_inverse(g->cam[2], tame);
    const float xx = g->xx + KILN_GSPLAT_DILATION, yy = g->yy + KILN_GSPLAT_DILATION;
    const float det = kiln_det2(xx, g->xy, yy);
    const float inv_det = kiln_inverse(det, tame);
    o->x = kiln_fmaf(l->fx * g->cam[0], inv_z, l->cx);
    o->y = kiln_fmaf(l->fy * g->cam[1], inv_z, l->cy);
    o->a = yy * inv_det;
    o->b = -g->xy * inv_det;
    o->c = xx * inv_det;
    o->opacity = g->opacity * kiln_aa_factor(l, kiln_det2(g->xx, g->xy, g->yy), det);

    /* det infinite: as for inria */
    const int regular = (det > 0.0f) & (o->opacity >= KILN_GSPLAT_MIN_OPACITY);
    /* of the least opacity and more: any other is not visible */
    o->power_min = kiln_power_min_normal(o->opacity, tame);
    const float reach = kiln_root(2.0f * kiln_logf_normal(255.0f * o->opacity), tame);
    const float sigmas = reach < KILN_GSPLAT_SIGMAS ? reach : KILN_GSPLAT_SIGMAS;
    const float rx = ceilf(sigmas * kiln_root(xx, tame)), ry = ceilf(sigmas * kiln_root(yy, tame));
    const int on_screen =
        (o->x + rx > 0.0f) & (o->x - rx < l->width) & (o->y + ry > 0.0f) & (o->y - ry < l->height);
    const int placed = tame | ((rx < INFINITY) & (ry < INFINITY) & ((rx > 0.0f) | (ry > 0.0f)));

    const float t = -2.0f * o->power_min;
    kiln_gsplat_tiles(o->x, kiln_gsplat_half_width(t, o->a, o->b, o->c, tame), l->tiles_x,
                      &o->tile_x0, &o->tile_x1);
    kiln_gsplat_tiles(o->y, kiln_gsplat_half_width(t, o->c, o->b, o->a, tame), l->tiles_y,
                      &o->tile_y0, &o->tile_y1);
    o->box_x = kiln_gsplat_box(o->x, rx, l->tiles_x);
    o->box_y = kiln_gsplat_box(o->y, ry, l->tiles_y);
    return regular & placed & on_screen & (tame | kiln_outline_is_finite(o));
}

#endif
