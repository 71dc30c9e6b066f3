/* camera_models -- the table, and what follows from a row. */
#include "stages/cameras/camera_models.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const kiln_camera_model models[] = {
    /* id  name                       params focal bending bent  stretched */
    {0, "SIMPLE_PINHOLE", 3, 1, 0, false, "PINHOLE"},
    {1, "PINHOLE", 4, 2, 0, false, NULL},
    {2, "SIMPLE_RADIAL", 4, 1, 1, false, "OPENCV"},
    {3, "RADIAL", 5, 1, 2, false, "OPENCV"},
    {4, "OPENCV", 8, 2, 4, false, NULL},
    {5, "OPENCV_FISHEYE", 8, 2, 4, true, NULL},
    {6, "FULL_OPENCV", 12, 2, 8, false, NULL},
    {7, "FOV", 5, 2, 1, false, NULL},
    {8, "SIMPLE_RADIAL_FISHEYE", 4, 1, 1, true, "OPENCV_FISHEYE"},
    {9, "RADIAL_FISHEYE", 5, 1, 2, true, "OPENCV_FISHEYE"},
    {10, "THIN_PRISM_FISHEYE", 12, 2, 8, true, NULL},
    {11, "RAD_TAN_THIN_PRISM_FISHEYE", 16, 2, 12, true, NULL},
    {12, "SIMPLE_DIVISION", 4, 1, 1, false, "DIVISION"},
    {13, "DIVISION", 5, 2, 1, false, NULL},
    {14, "SIMPLE_FISHEYE", 3, 1, 0, true, "FISHEYE"},
    {15, "FISHEYE", 4, 2, 0, true, NULL},
    {16, "EUCM", 6, 2, 1, false, NULL}, /* alpha 0 is a pinhole whatever beta is */
    {17, "EQUIRECTANGULAR", 2, 0, 0, true, NULL},
};

enum { N_MODELS = sizeof models / sizeof *models, SIZE_MAX_PX = 1 << 20 };

const kiln_camera_model *kiln_camera_model_by_id(int64_t id)
{
    for (int i = 0; i < N_MODELS; i++)
        if (models[i].id == id) return &models[i];
    return NULL;
}

const kiln_camera_model *kiln_camera_model_by_name(const char *name)
{
    if (strcmp(name, "SPHERICAL") == 0) name = "EQUIRECTANGULAR"; /* another word for it in text */
    for (int i = 0; i < N_MODELS; i++)
        if (strcmp(models[i].name, name) == 0) return &models[i];
    return NULL;
}

kiln_status kiln_camera_take_size(kiln_camera *c, double width, double height, const char *path,
                                  const char *who, kiln_error *err)
{
    const double w = nearbyint(width), h = nearbyint(height);
    if (!(w >= 1 && h >= 1))
        return kiln_fail(err, KILN_E_INPUT, "%s of '%s' has no pixels: %.0f x %.0f", who, path,
                         width, height);
    if (w > SIZE_MAX_PX || h > SIZE_MAX_PX)
        return kiln_fail(
            err, KILN_E_INPUT,
            "%s of '%s' is larger than allowed: %.0f x %.0f; an axis may have at most %d", who,
            path, width, height, SIZE_MAX_PX);
    c->width = (uint32_t)w;
    c->height = (uint32_t)h;
    return KILN_OK;
}

static void derive_pinhole(kiln_camera *c, const kiln_camera_model *m)
{
    const double *p = c->params;
    c->distorted = m->bent;
    for (uint32_t i = 0; i < m->n_bending; i++)
        if (p[m->n_focal + 2 + i] != 0) c->distorted = true;
    /* a panorama has no focal length: drawn, it shows the 90 degrees ahead */
    if (m->n_focal == 0) {
        c->fx = c->fy = c->width / 2.0;
        c->cx = c->width / 2.0;
        c->cy = c->height / 2.0;
        return;
    }
    c->fx = p[0];
    c->fy = p[m->n_focal - 1];
    c->cx = p[m->n_focal];
    c->cy = p[m->n_focal + 1];
}

kiln_status kiln_camera_take_lens(kiln_camera *c, const kiln_camera_model *m, const double *params,
                                  const char *path, const char *who, kiln_error *err)
{
    const uint32_t n_positive = m->n_focal ? m->n_focal : m->n_params;
    for (uint32_t i = 0; i < n_positive; i++)
        if (!(params[i] > 0 && isfinite(params[i])))
            return kiln_fail(err, KILN_E_INPUT,
                             "%s of '%s' has a focal length that is not positive: %g", who, path,
                             params[i]);
    for (uint32_t i = n_positive; i < m->n_params; i++)
        if (!isfinite(params[i]))
            return kiln_fail(err, KILN_E_INPUT,
                             "%s of '%s' has a parameter that is not finite: number %u of %s", who,
                             path, i + 1, m->name);
    snprintf(c->model, sizeof c->model, "%s", m->name);
    c->n_params = m->n_params;
    memset(c->params, 0, sizeof c->params);
    memcpy(c->params, params, m->n_params * sizeof *params);
    derive_pinhole(c, m);
    return KILN_OK;
}

/* f, cx, cy, terms -> f, f, cx, cy, terms, 0 ... */
static const kiln_camera_model *stretch_model(kiln_camera *c, const kiln_camera_model *m)
{
    const kiln_camera_model *to = kiln_camera_model_by_name(m->stretched);
    memmove(c->params + 1, c->params, (KILN_CAMERA_PARAMS - 1) * sizeof *c->params);
    snprintf(c->model, sizeof c->model, "%s", to->name);
    c->n_params = to->n_params;
    return to;
}

void kiln_camera_scale(kiln_camera *c, double sx, double sy, uint32_t width, uint32_t height)
{
    const kiln_camera_model *m = kiln_camera_model_by_name(c->model);
    c->width = width;
    c->height = height;
    if (m->n_focal == 1 && sx != sy) m = stretch_model(c, m);
    if (m->n_focal == 1) {
        c->params[0] *= sx;
    } else {
        c->params[0] *= sx;
        c->params[1] *= sy;
    }
    if (m->n_focal) {
        c->params[m->n_focal] *= sx;
        c->params[m->n_focal + 1] *= sy;
    }
    derive_pinhole(c, m);
}
