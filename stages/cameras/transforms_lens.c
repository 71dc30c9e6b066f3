/* transforms_lens -- the intrinsics of nerfstudio, instant-ngp and Blender files.
 *
 * Focal length, per axis: fl_x, else x_fov in degrees, else camera_angle_x in radians; one axis
 * alone serves both; what a frame says wins over the file as a whole. instant-ngp takes x_fov
 * before fl_x and Brush the angle; they differ only in files that contradict themselves, and fl_x
 * is what calibration wrote.
 */
#include "stages/cameras/transforms_lens.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef enum { PERSPECTIVE, FISHEYE, PANORAMA, NOT_OURS } projection;

/* camera_model of nerfstudio (cameras/camera_utils.py, CAMERA_MODEL_TO_TYPE) */
static const struct {
    const char *name;
    projection projection;
} camera_models[] = {
    {"SIMPLE_PINHOLE", PERSPECTIVE},
    {"PINHOLE", PERSPECTIVE},
    {"SIMPLE_RADIAL", PERSPECTIVE},
    {"RADIAL", PERSPECTIVE},
    {"OPENCV", PERSPECTIVE},
    {"OPENCV_FISHEYE", FISHEYE},
    {"EQUIRECTANGULAR", PANORAMA},
    {"OMNIDIRECTIONALSTEREO_L", NOT_OURS},
    {"OMNIDIRECTIONALSTEREO_R", NOT_OURS},
    {"VR180_L", NOT_OURS},
    {"VR180_R", NOT_OURS},
    {"ORTHOPHOTO", NOT_OURS},
    {"FISHEYE624", NOT_OURS},
};

/* lenses of instant-ngp that no model of ours describes */
static const char *const foreign_lenses[] = {"ftheta_p0", "latlong", "equirectangular",
                                             "orthographic"};

const json_t *kiln_frame_get(const json_t *file, const json_t *frame, const char *key)
{
    const json_t *v = json_object_get(frame, key);
    return v ? v : json_object_get(file, key);
}

/* *out = the number, *there whether it is given at all. */
static kiln_status number_of(const kiln_camera_file *f, const json_t *v, const char *key,
                             bool *there, double *out, kiln_error *err)
{
    *there = v && !json_is_null(v);
    if (!*there) return KILN_OK;
    if (!json_is_number(v))
        return kiln_fail(err, KILN_E_INPUT, "'%s': %s is not a number", f->path, key);
    *out = json_number_value(v);
    return KILN_OK;
}

/* Focal length of one axis by what one object (a frame or the file) says. */
static kiln_status focal_of_axis(const kiln_camera_file *f, const json_t *o, bool y, double size,
                                 bool *there, double *focal, kiln_error *err)
{
    const char *length = y ? "fl_y" : "fl_x", *degrees = y ? "y_fov" : "x_fov",
               *radians = y ? "camera_angle_y" : "camera_angle_x";
    const char *angle_key = degrees;
    double angle = 0;
    KILN_TRY(number_of(f, json_object_get(o, length), length, there, focal, err));
    if (*there && !(*focal > 0))
        return kiln_fail(err, KILN_E_INPUT, "'%s': the focal length %s is not positive: %g",
                         f->path, length, *focal);
    if (*there) return KILN_OK;
    KILN_TRY(number_of(f, json_object_get(o, degrees), degrees, there, &angle, err));
    angle *= M_PI / 180;
    if (!*there) {
        angle_key = radians;
        KILN_TRY(number_of(f, json_object_get(o, radians), radians, there, &angle, err));
    }
    if (!*there) return KILN_OK;
    if (!(angle > 0 && angle < M_PI))
        return kiln_fail(err, KILN_E_INPUT, "'%s': %s must be between 0 and %s", f->path, angle_key,
                         angle_key == radians ? "pi" : "180");
    *focal = size / (2 * tan(angle / 2));
    return KILN_OK;
}

/* size: width and height of the photo. */
static kiln_status focal_lengths(const kiln_camera_file *f, const json_t *file, const json_t *frame,
                                 const double size[2], double focal[2], const char *who,
                                 kiln_error *err)
{
    const json_t *levels[2] = {frame, file};
    for (int i = 0; i < 2; i++) {
        bool x = false, y = false;
        KILN_TRY(focal_of_axis(f, levels[i], false, size[0], &x, &focal[0], err));
        KILN_TRY(focal_of_axis(f, levels[i], true, size[1], &y, &focal[1], err));
        if (x && !y) focal[1] = focal[0];
        if (y && !x) focal[0] = focal[1];
        if (x || y) return KILN_OK;
    }
    return kiln_fail(
        err, KILN_E_INPUT,
        "'%s': %s has neither a focal length (fl_x) nor a field of view (camera_angle_x)", f->path,
        who);
}

static kiln_status find_projection(const kiln_camera_file *f, const json_t *file,
                                   const json_t *frame, projection *out, kiln_error *err)
{
    const json_t *name = kiln_frame_get(file, frame, "camera_model");
    for (size_t i = 0; i < sizeof foreign_lenses / sizeof *foreign_lenses; i++) {
        const json_t *v = kiln_frame_get(file, frame, foreign_lenses[i]);
        if (v && !json_is_false(v))
            return kiln_fail(err, KILN_E_INPUT,
                             "'%s': the lens '%s' is not supported; undistort the photos first",
                             f->path, foreign_lenses[i]);
    }
    *out = json_is_true(kiln_frame_get(file, frame, "is_fisheye")) ? FISHEYE : PERSPECTIVE;
    if (!name || json_is_null(name)) return KILN_OK;
    if (!json_is_string(name))
        return kiln_fail(err, KILN_E_INPUT, "'%s': camera_model is not text", f->path);
    for (size_t i = 0; i < sizeof camera_models / sizeof *camera_models; i++) {
        if (strcmp(json_string_value(name), camera_models[i].name) != 0) continue;
        if (camera_models[i].projection == NOT_OURS)
            return kiln_fail(err, KILN_E_INPUT, "'%s': the camera model %s is not supported",
                             f->path, camera_models[i].name);
        if (camera_models[i].projection != PERSPECTIVE) *out = camera_models[i].projection;
        return KILN_OK;
    }
    return kiln_fail(err, KILN_E_INPUT, "'%s': the camera model '%.60s' is unknown", f->path,
                     json_string_value(name));
}

enum { K1, K2, K3, K4, P1, P2, K5, K6, N_TERMS };

/* k1 ... by name, or nerfstudio's distortion_params: k1 k2 k3 k4 p1 p2. *given: the file speaks of
 * distortion at all. */
static kiln_status lens_terms(const kiln_camera_file *f, const json_t *file, const json_t *frame,
                              double k[N_TERMS], bool *given, kiln_error *err)
{
    static const char *const names[N_TERMS] = {"k1", "k2", "k3", "k4", "p1", "p2", "k5", "k6"};
    const json_t *array = kiln_frame_get(file, frame, "distortion_params");
    memset(k, 0, N_TERMS * sizeof *k);
    *given = array != NULL;
    for (int i = 0; i < N_TERMS; i++) {
        bool there;
        const json_t *v = kiln_frame_get(file, frame, names[i]);
        if (!v && i <= P2) v = json_array_get(array, (size_t)i);
        KILN_TRY(number_of(f, v, names[i], &there, &k[i], err));
        *given |= there;
    }
    return KILN_OK;
}

static kiln_status set_lens(kiln_camera_file *f, const json_t *file, const json_t *frame,
                            const double size[2], kiln_camera *c, const char *who, kiln_error *err)
{
    projection kind = PERSPECTIVE;
    double k[N_TERMS], focal[2] = {0, 0}, cx = size[0] / 2, cy = size[1] / 2;
    bool given, there;
    KILN_TRY(find_projection(f, file, frame, &kind, err));
    if (kind == PANORAMA)
        return kiln_camera_take_lens(c, kiln_camera_model_by_name("EQUIRECTANGULAR"), size, f->path,
                                     who, err);
    KILN_TRY(focal_lengths(f, file, frame, size, focal, who, err));
    KILN_TRY(number_of(f, kiln_frame_get(file, frame, "cx"), "cx", &there, &cx, err));
    KILN_TRY(number_of(f, kiln_frame_get(file, frame, "cy"), "cy", &there, &cy, err));
    KILN_TRY(lens_terms(f, file, frame, k, &given, err));
    const double fisheye[8] = {focal[0], focal[1], cx, cy, k[K1], k[K2], k[K3], k[K4]};
    const double opencv[12] = {focal[0], focal[1], cx,    cy,    k[K1], k[K2],
                               k[P1],    k[P2],    k[K3], k[K4], k[K5], k[K6]};
    const bool higher = k[K3] != 0 || k[K4] != 0 || k[K5] != 0 || k[K6] != 0;
    if (kind == FISHEYE)
        return kiln_camera_take_lens(c, kiln_camera_model_by_name("OPENCV_FISHEYE"), fisheye,
                                     f->path, who, err);
    return kiln_camera_take_lens(c,
                                 kiln_camera_model_by_name(higher  ? "FULL_OPENCV"
                                                           : given ? "OPENCV"
                                                                   : "PINHOLE"),
                                 opencv, f->path, who, err);
}

kiln_status kiln_frame_lens(kiln_camera_file *f, const json_t *file, const json_t *frame,
                            kiln_camera *c, const char *who, bool *sized, kiln_error *err)
{
    double width = c->photo_width, height = c->photo_height;
    bool w, h;
    KILN_TRY(number_of(f, kiln_frame_get(file, frame, "w"), "w", &w, &width, err));
    KILN_TRY(number_of(f, kiln_frame_get(file, frame, "h"), "h", &h, &height, err));
    *sized = c->photo[0] || (w && h);
    if (!*sized) return KILN_OK;
    KILN_TRY(kiln_camera_take_size(c, width, height, f->path, who, err));
    KILN_TRY(set_lens(f, file, frame, (double[]){width, height}, c, who, err));
    kiln_photo_fit(f, c, width, height);
    return KILN_OK;
}
