/* distance_prior -- what Gaussians weigh in a scene whose cameras say nothing about it.
 *
 * A scene without cameras has an orbit of our own around it. That judges an object, which is looked
 * at from outside. It is no judge of a scene with an interior: a capture's background hides what
 * stands in the middle, and from outside all of it is small. Such a scene is one whose rows lie
 * close together beside the distance of the orbit, or are coarser the farther out they stand, as
 * training makes them of what is seen from within. People look at it from the middle, about. Import
 * asks the same question and lets the orbit run within such a scene: eight views are few judges.
 *
 * So the prominence of a row is (W / max(d^2, r^2))^(3/4): d is its distance from the middle, r the
 * scene's central radius.
 *
 * The middle is the median of the rows along each axis, r the median of the distances from it. Both
 * are of at most SAMPLED rows, evenly spread over the chunks, and rounded, so that one row more or
 * less rarely changes them. For the parent's main thread. */
#ifndef KILN_STAGES_LOD_DISTANCE_PRIOR_H
#define KILN_STAGES_LOD_DISTANCE_PRIOR_H

#include "kernels/coarsen/coarsen.h"
#include "schema/manifest.h"

/* Where most rows of a layer lie, by a sample of at most 65,536. */
typedef struct {
    double middle[3], radius; /* as in kiln_distance_prior; radius 0: no rows, or half at a point */
    double lo[3], hi[3];      /* without the outermost thousandth at each side; as the means */
    bool coarser_outside;     /* as training makes rows of what is seen from within */
} kiln_scene_core;

/* A layer without log scales is not coarser anywhere. KILN_E_NOMEM, and what reading planes
 * returns. */
kiln_status kiln_scene_core_find(kiln_manifest *m, const kiln_layer *layer, kiln_scene_core *out,
                                 kiln_error *err) KILN_MUST_CHECK;
/* The same of rows that are in no layer. The sample of `count` rows: row 0 and every stride-th row
 * after it. */
uint64_t kiln_scene_core_stride(uint64_t count);
/* rows: [n][4] of the sample: x, y, z and the largest log scale, 0 where rows have none.
 * KILN_E_NOMEM. */
kiln_status kiln_scene_core_of(const float *rows, uint64_t n, kiln_scene_core *out,
                               kiln_error *err) KILN_MUST_CHECK;
/* Whether what surrounds the scene (sky, walls) hides it from these cameras, which stand around
 * it. */
bool kiln_scene_core_is_hidden(const kiln_scene_core *c, const double origin[3],
                               const kiln_camera *cameras, uint32_t n);

/* Part of a unit's payload and key. */
typedef struct {
    double middle[3]; /* as the means of chunks: the scene's origin subtracted */
    double radius;    /* 0: there is none */
} kiln_distance_prior;

/* Sets *out to the prior of a scene whose cameras are all of an orbit that is no judge of it;
 * radius 0 for any other scene. KILN_E_NOMEM, and what reading planes returns. */
kiln_status kiln_distance_prior_find(kiln_manifest *m, const kiln_scene *scene,
                                     const kiln_layer *baked, const kiln_camera *cameras,
                                     uint32_t n_cameras, kiln_distance_prior *out,
                                     kiln_error *err) KILN_MUST_CHECK;
/* The prominence of a row of this weight W at `mean`; above 0 and finite. */
float kiln_distance_prior_of(const kiln_distance_prior *p, const double mean[3], double weight);
/* Sets rows->prominence from means and weights. */
void kiln_distance_prior_fill(const kiln_distance_prior *p, const kiln_coarsen_rows *rows);

#endif
