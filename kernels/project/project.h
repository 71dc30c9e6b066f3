/* project -- projects the Gaussians of one chunk to a camera and keeps the visible ones: cull, 2D
 * mean, conic, opacity, extent, depth, colour.
 *
 * Planes are planar and hold raw parameters, as in the manifest (schema/planes.def):
 *   means [3][n], log_scales [3][n], quats [4][n] (w,x,y,z), opacity_logits [n]        f32  in
 *   sh0 [3][n], shN [3K][n] coefficient-major; sh_degree 0..4                          f32  in; sh0 NULL: no colour
 *   half_sh         round shN to half precision first: slightly other colours, for fast pictures
 *   sh_halves [n]   in   or NULL: shN in half precision (sh_halves.h), with half_sh. Read instead
 *                        of shN: the same colours, faster
 *   splats [n]      out  the visible Gaussians, in row order; the first *n_visible are set
 *   n_visible [1]   out
 *   source_rows [n] u32  in   or NULL, with the next two
 *   depths, rows [n]     out  or NULL: depth and source row of each element of splats, as
 *                             depth_order needs them
 *   box_pairs [1]   out  or NULL: (tile, Gaussian) pairs that the renderer's own boxes list,
 *                        inria's rectangles and gsplat-1.5's radii; for comparison only. Drawing
 *                        needs no more pairs than tile_pairs_count counts
 *
 * A Gaussian is visible if the profile itself counts it so (truth.json's `visible`). One with NaN
 * is never visible. All arithmetic is pinned (project_math.h): the same bits on every machine and
 * sibling. Activation is our own exp and sigmoid (kernels/math). Quaternions are normalised here,
 * for profiles that do it and for those whose callers do. Pointers, work, threads: as in knn.h.
 * KILN_E_INPUT: see kiln_project_check.
 */
#ifndef KILN_KERNELS_PROJECT_H
#define KILN_KERNELS_PROJECT_H

#include "base/extern_c.h"
#include "base/status.h"
#include "kernels/exec.h"
#include "kernels/profiles/profiles.h"
#include "kernels/sh_halves/sh_halves.h"
#include "kernels/view_cut.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

/* One projected Gaussian, 64 bytes. Pixel coordinates as in view.h for every profile (centres at +
 * 0.5). */
typedef struct {
    float x, y;      /* 2D mean, pixels */
    float conic[3];  /* inverse 2D covariance: A (xx), B (xy), C (yy) */
    float opacity;   /* after the sigmoid and the antialias factor */
    float power_min; /* ln((1 - 2^-14) / (255 opacity)), pinned */
    float depth;     /* camera z, > 0 */
    float rgb[3];    /* SH colour + 0.5, at least 0; 0 if sh0 is NULL */
    uint32_t row;    /* row in its chunk */
    /* the profile's own bounds in tiles, end exclusive, inside the image: inria's rectangle; for
     * gsplat a box that holds every pixel with power >= power_min */
    int32_t tile_x0, tile_y0, tile_x1, tile_y1;
} kiln_splat2d;

typedef struct {
    uint64_t n;
    const float *means, *log_scales, *quats, *opacity_logits, *sh0, *shN;
    const uint32_t *sh_halves;
    uint32_t sh_degree;
    bool half_sh;
    const kiln_view *view;
    kiln_view_cut cut; /* of the picture that the view is a part of; all 0: it is a whole picture */
    kiln_profile_id profile;
    bool antialiased;
    kiln_splat2d *splats;
    uint64_t *n_visible;
    uint64_t *box_pairs;
    const uint32_t *source_rows;
    float *depths;
    uint32_t *rows;
} kiln_project_args;

/* In a designated initialiser: the planes of `rows` from which a Gaussian's place in a picture
 * follows, for arguments that have them by the same names. */
#define KILN_PROJECT_PLANES(rows)                                                     \
    .means = (rows)->means, .log_scales = (rows)->log_scales, .quats = (rows)->quats, \
    .opacity_logits = (rows)->opacity_logits

typedef kiln_status kiln_project_fn(const kiln_exec *x, const kiln_project_args *a, void *work,
                                    size_t *work_bytes, kiln_error *err);

/* Checks the arguments for both siblings. KILN_E_INPUT: too many rows, too high a degree, sh_halves
 * without half_sh or not aligned to 16 bytes. */
kiln_status kiln_project_check(const kiln_project_args *a, kiln_error *err) KILN_MUST_CHECK;

/* Bounds of a chunk: the box of its means (scene coordinates minus origin), its largest log scale
 * and opacity logit. */
typedef struct {
    float box_min[3], box_max[3], max_log_scale, max_opacity_logit;
} kiln_project_bound;
/* Returns false only if the profile's cull rules out every Gaussian within the bounds; true says
 * nothing. */
bool kiln_project_may_see(const kiln_view *view, kiln_profile_id profile, bool antialiased,
                          const kiln_project_bound *b);

/* The arrays that it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_project(A)                                                             \
    A(IN, means, 3 * a->n)                                                                 \
    A(IN, log_scales, 3 * a->n)                                                            \
    A(IN, quats, 4 * a->n)                                                                 \
    A(IN, opacity_logits, a->n)                                                            \
    A(IN, sh0, 3 * a->n)                                                                   \
    A(IN, shN, 3 * (((uint64_t)a->sh_degree + 1) * (a->sh_degree + 1) - 1) * a->n)         \
    A(IN, sh_halves,                                                                       \
      kiln_sh_words((uint32_t)(3 * ((a->sh_degree + 1) * (a->sh_degree + 1) - 1))) * a->n) \
    A(IN, source_rows, a->n)                                                               \
    A(OUT, n_visible, 1)                                                                   \
    A(OUT, box_pairs, 1)                                                                   \
    A(OUT_USED, splats, a->n, a->n_visible)                                                \
    A(OUT_USED, depths, a->n, a->n_visible)                                                \
    A(OUT_USED, rows, a->n, a->n_visible)

KILN_C_END

#endif
