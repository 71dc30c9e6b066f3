/* project -- the Gaussians of one chunk as a camera sees them: cull, 2D mean, conic, opacity, extent, depth, colour.
 *
 * Planes are planar, raw parameters as in the manifest (schema/planes.def):
 *   means [3][n], log_scales [3][n], quats [4][n] (w,x,y,z), opacity_logits [n]        f32  in
 *   sh0 [3][n], shN [3K][n] coefficient-major; sh_degree 0..4                          f32  in, NULL: no colour wanted
 *   half_sh         shN is rounded to half precision first: other colours, for fast pictures
 *   sh_halves [n]   in  or NULL: with half_sh that of sh_halves.h, read instead of shN: the same colours sooner
 *   splats [room]   out  the visible ones only, in row order; room >= n
 *   *n_visible      out
 *   depths, rows [room]   out  or NULL: of splats, in their order: the depth, and of `source_rows [n] u32 in` the splat's: what
 *                              depth_order asks for. All three or none
 *   *box_pairs      out  or NULL: (tile, Gaussian) pairs that the renderer's own boxes list: inria's rectangles, gsplat-1.5's
 *                        radii. For comparison alone: what is drawn never needs more than tile_pairs counts
 *
 * Visible means: as the profile itself counts (truth.json's `visible`). What is not a number is never visible.
 * All arithmetic is pinned (project_math.h): the same bits on every machine and sibling. Activation is our own exp
 * and sigmoid (kernels/math); for profiles that normalise quaternions, or whose callers do, it is done here.
 * work as in knn.h.
 */
#ifndef KILN_KERNELS_PROJECT_H
#define KILN_KERNELS_PROJECT_H

#include "base/extern_c.h"
#include "base/status.h"
#include "kernels/exec.h"
#include "kernels/profiles/profiles.h"
#include "kernels/sh_halves/sh_halves.h"
#include "kernels/view.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

/* One projected Gaussian, 64 bytes. Pixel coordinates as in view.h for every profile (centres at + 0.5). */
typedef struct {
    float x, y;                                 /* 2D mean, pixels */
    float conic[3];                             /* inverse 2D covariance: A (xx), B (xy), C (yy) */
    float opacity;                              /* after the sigmoid and the antialias factor */
    float power_min;                            /* ln((1 - 2^-14) / (255 opacity)), pinned */
    float depth;                                /* camera z, > 0 */
    float rgb[3];                               /* SH colour + 0.5, not below 0; 0 when no colour was asked for */
    uint32_t row;                               /* row in its chunk */
    int32_t tile_x0, tile_y0, tile_x1, tile_y1; /* the profile's own bounds in tiles, end exclusive, inside the image:
                               inria's rectangle; for gsplat a box that holds every pixel with power >= power_min */
} kiln_splat2d;

typedef struct {
    uint64_t n;
    const float *means, *log_scales, *quats, *opacity_logits, *sh0, *shN;
    const uint32_t *sh_halves;
    uint32_t sh_degree;
    bool half_sh;
    const kiln_view *view;
    kiln_profile_id profile;
    bool antialiased;
    kiln_splat2d *splats;
    uint64_t *n_visible;
    uint64_t *box_pairs;
    const uint32_t *source_rows;
    float *depths;
    uint32_t *rows;
} kiln_project_args;

typedef kiln_status kiln_project_fn(const kiln_exec *x, const kiln_project_args *a, void *work, size_t *work_bytes,
                                    kiln_error *err);

/* KILN_E_INPUT: more rows or a higher degree than can be, or halves without half_sh or not aligned to
 * 16 bytes. Both siblings ask first. */
kiln_status kiln_project_check(const kiln_project_args *a, kiln_error *err) KILN_MUST_CHECK;

/* May any Gaussian of a box be visible? Conservative: false only where the profile's cull rules all of them out.
 * box of means, largest log scale and opacity logit over the chunk (scene coordinates minus origin). */
typedef struct {
    float box_min[3], box_max[3], max_log_scale, max_opacity_logit;
} kiln_project_bound;
bool kiln_project_may_see(const kiln_view *view, kiln_profile_id profile, bool antialiased, const kiln_project_bound *b);

/* What it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_project(A)                                                                            \
    A(IN, means, 3 * a->n)                                                                                \
    A(IN, log_scales, 3 * a->n)                                                                           \
    A(IN, quats, 4 * a->n)                                                                                \
    A(IN, opacity_logits, a->n)                                                                           \
    A(IN, sh0, 3 * a->n)                                                                                  \
    A(IN, shN, 3 * (((uint64_t)a->sh_degree + 1) * (a->sh_degree + 1) - 1) * a->n)                        \
    A(IN, sh_halves, kiln_sh_words((uint32_t)(3 * ((a->sh_degree + 1) * (a->sh_degree + 1) - 1))) * a->n) \
    A(IN, source_rows, a->n)                                                                              \
    A(OUT, n_visible, 1)                                                                                  \
    A(OUT, box_pairs, 1)                                                                                  \
    A(OUT_USED, splats, a->n, a->n_visible)                                                               \
    A(OUT_USED, depths, a->n, a->n_visible)                                                               \
    A(OUT_USED, rows, a->n, a->n_visible)

KILN_C_END

#endif
