/* camera_models -- COLMAP's camera models: what their parameters are (colmap/colmap,
 * src/colmap/sensor/models.h).
 *
 * Adding one is one row of the table in camera_models.c. All parameters are kept with the camera;
 * we draw pinholes, so that a row also says when the model is one.
 */
#ifndef KILN_STAGES_CAMERAS_CAMERA_MODELS_H
#define KILN_STAGES_CAMERAS_CAMERA_MODELS_H

#include "base/status.h"
#include "schema/manifest.h"

#include <stdbool.h>
#include <stdint.h>

/* Parameters are the focal lengths, cx, cy, then the lens terms; a panorama (n_focal 0) has its
 * width and height alone. */
typedef struct {
    int id;
    const char *name;
    uint32_t n_params;
    uint32_t n_focal;   /* 1: one for both axes; 2: fx, fy; 0: panorama */
    uint32_t n_bending; /* so many of the first lens terms bend rays when they are not zero */
    bool bent;          /* no pinhole even with all lens terms zero */
    /* n_focal 1: the model that holds the same with fx, fy, lens terms in the same order */
    const char *stretched;
} kiln_camera_model;

/* NULL when there is none. */
const kiln_camera_model *kiln_camera_model_by_id(int64_t id);
const kiln_camera_model *kiln_camera_model_by_name(const char *name);

/* width and height of c, each 1 .. 2^20. `who` is the camera's name in messages: "camera 3". */
kiln_status kiln_camera_take_size(kiln_camera *c, double width, double height, const char *path,
                                  const char *who, kiln_error *err) KILN_MUST_CHECK;
/* model, params (m->n_params of them), fx, fy, cx, cy and distorted of c, whose size is set.
 * KILN_E_INPUT: a focal length that is not positive, a parameter that is not finite. */
kiln_status kiln_camera_take_lens(kiln_camera *c, const kiln_camera_model *m, const double *params,
                                  const char *path, const char *who,
                                  kiln_error *err) KILN_MUST_CHECK;
/* The same camera for a photo of width x height that is sx, sy times as large. One focal length
 * becomes two where needed. */
void kiln_camera_scale(kiln_camera *c, double sx, double sy, uint32_t width, uint32_t height);

#endif
