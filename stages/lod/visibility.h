/* visibility -- how much cameras see of each Gaussian, so that merging favours what shows.
 *
 *   v = sum over cameras and pixels of alpha T / sum over cameras of 2 pi sqrt(det(covariance)) alpha
 *
 * covariance: in pixels, as it is drawn, blur included; cameras: those to whose pictures the
 * profile draws the Gaussian. v is clamped to [0.02, 1] and stored in eight logarithmic steps a
 * decade, so that a small change elsewhere leaves most planes as they are. A Gaussian that no
 * camera sees has the least. DESIGN.md has the source.
 *
 * Cameras are those of the split "train", or all where there are none, the orbit of a scene without
 * cameras too; a camera with a lens is its pinhole, as everywhere. Of these `views`, evenly spread
 * in the order of names. Pictures have half the camera's size: the longer side at least 200 pixels,
 * if the camera's has as many, and at most 1600.
 *
 * Two lists of units: some views each, which may be drawn on GPUs, then a chunk each
 * (visibility_units.h). For the parent's main thread.
 */
#ifndef KILN_STAGES_LOD_VISIBILITY_H
#define KILN_STAGES_LOD_VISIBILITY_H

#include "stages/frame/frame.h"

typedef struct {
    kiln_view_options view;
    uint32_t views; /* most cameras */
} kiln_visibility_options;

/* Chooses the cameras, as requests of the size at which they are drawn. *n is 0 if there is none to
 * choose. free(*out). KILN_E_USAGE: as kiln_view_request_init. */
kiln_status kiln_visibility_views(const kiln_scene *scene, const kiln_camera *cameras,
                                  uint32_t n_cameras, const kiln_visibility_options *o,
                                  kiln_view_request **out, uint32_t *n,
                                  kiln_error *err) KILN_MUST_CHECK;

/* Makes the layer `visibility` of a baked layer: runs both lists and fills *out, not yet put; the
 * caller frees it with kiln_layer_free, after a failure too. *hidden: rows that have the least.
 * *out stays NULL without views or chunks. Afterwards units run where --devices says. Fails as
 * kiln_run_units. */
kiln_status kiln_lod_visibility(kiln_run *r, const kiln_layer *baked,
                                const kiln_view_request *views, uint32_t n_views, kiln_layer **out,
                                uint64_t *hidden, kiln_error *err) KILN_MUST_CHECK;

#endif
