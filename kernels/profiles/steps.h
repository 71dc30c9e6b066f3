/* steps -- what the profiles' headers share: the constants of one camera, the input and output of a
 * profile for one Gaussian, and the arithmetic that all profiles share. Host and device code.
 *
 * Order of operations: a*b + c*d + e*f is fma(e,f, fma(a,b, c*d)) throughout, as nvcc contracts the
 * renderers' own sources; a translation is added last, without fma. Comparisons are written so that
 * NaN fails them. */
#ifndef KILN_KERNELS_PROFILES_STEPS_H
#define KILN_KERNELS_PROFILES_STEPS_H

#include "kernels/math/power_math.h"
#include "kernels/profiles/profiles.h"
#include "kernels/view.h"

#include <stdbool.h>

/* Constants of one (view, profile, antialiased): made on the host, passed by value to loops and
 * device functions. */
typedef struct {
    float r[9], t[3], centre[3];
    float clip_x[4], clip_y[4], clip_w[4]; /* rows of the full projection matrix */
    float fx, fy, cx, cy;
    float z_min, z_max;               /* visible: z_min <= z <= z_max; z_min > 0 */
    float u_min, u_max, v_min, v_max; /* bounds of x/z and y/z in the Jacobian */
    float width, height, tiles_x, tiles_y;
    float quat_floor; /* least length that a quaternion is divided by */
    float aa_floor;   /* as in kiln_profile */
    int antialiased;
    int mild; /* the camera's own numbers let a Gaussian be tame (kiln_project_is_tame) */
    /* what is given is tame: CUDA computes it in fewer instructions, to the same bits
     * (tame_math.h) */
    int tame;
} kiln_projection;

/* One Gaussian as the camera has it, before dilation. */
typedef struct {
    float world[3], cam[3]; /* mean */
    float xx, xy, yy;       /* 2D covariance, pixels squared */
    float opacity;          /* after the sigmoid */
} kiln_splat3d;

/* What the profile makes of it. Fields as in kiln_splat2d. */
typedef struct {
    float x, y, a, b, c, opacity, power_min;
    int32_t tile_x0, tile_y0, tile_x1, tile_y1;
    int32_t box_x, box_y; /* tiles across and down of the box that the renderer itself lists */
} kiln_outline;

/* a.x + b.y + c.z */
static inline KILN_HD float kiln_dot3(float a, float b, float c, float x, float y, float z)
{
    return kiln_fmaf(c, z, kiln_fmaf(a, x, b * y));
}

/* Row of a 3x4 matrix times (x, y, z, 1). */
static inline KILN_HD float kiln_row4(const float m[4], float x, float y, float z)
{
    return kiln_dot3(m[0], m[1], m[2], x, y, z) + m[3];
}

static inline KILN_HD float kiln_det2(float xx, float xy, float yy)
{
    return kiln_fmaf(xx, yy, -(xy * xy));
}

static inline KILN_HD int kiln_within(float v, float low, float high)
{
    return (v >= low) & (v <= high);
}

/* What the steps of every family take: a 2D covariance, dilated, of less than 32,768 pixels and not
 * so thin that its determinant is all rounding. */
static inline KILN_HD int kiln_is_tame_ellipse(float xx, float yy, float det)
{
    return (xx <= 0x1p30f) & (yy <= 0x1p30f) & (det >= 0x1p-10f);
}

/* The factor that an antialiased variant multiplies the opacity with; 1 in the classic one. det0
 * and det are the determinants before and after dilation. */
static inline KILN_HD float kiln_aa_factor(const kiln_projection *l, float det0, float det)
{
    if (!l->antialiased) return 1.0f;
    const float ratio = det0 / det;
    return sqrtf(ratio > l->aa_floor ? ratio : l->aa_floor);
}

/* Where a Gaussian of one scale and opacity can reach, whatever its rotation: a circle or box of
 * half width reach / z + flat pixels about the image of its mean. Host only, in double: the bound
 * of a whole chunk (kernels/project/may_see.c). */
typedef struct {
    double reach[2], flat; /* reach: across and down, pixels times scene units */
    double centre[2];      /* where the optical axis meets the image, pixels */
} kiln_chunk_reach;

/* What a family does on the host, once for a camera or a chunk (profiles.def). */
typedef struct {
    void (*lens)(kiln_projection *l, const kiln_view *v);
    bool (*reach)(const kiln_projection *l, double scale, double opacity,
                  kiln_chunk_reach *out); /* false: none of that opacity is visible */
} kiln_family_steps;
extern const kiln_family_steps kiln_families[KILN_FAMILY_COUNT];

/* What is not a number, or not finite, is not visible in any profile. */
static inline KILN_HD int kiln_outline_is_finite(const kiln_outline *o)
{
    return (fabsf(o->x) < INFINITY) & (fabsf(o->y) < INFINITY) & (fabsf(o->a) < INFINITY) &
           (fabsf(o->b) < INFINITY) & (fabsf(o->c) < INFINITY) & (o->opacity >= 0.0f) &
           (o->opacity < INFINITY);
}

/* Truncates to a tile border within [0, tiles]; NaN is 0. */
static inline KILN_HD int32_t kiln_tile_border(float f, float tiles)
{
    f = f > 0.0f ? f : 0.0f;
    f = f < tiles ? f : tiles;
    return (int32_t)f;
}

/* The least float above v, for v >= 0: turns z > v into z >= ... */
static inline KILN_HD float kiln_next_above(float v)
{
    return kiln_float_of(kiln_bits_of(v > 0.0f ? v : 0.0f) + 1u);
}

#endif
