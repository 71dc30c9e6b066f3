/* cameras_path -- camera_path.json of nerfstudio's viewer (cameras/camera_paths.py,
 * get_path_from_json).
 *
 *     {"camera_type": "perspective", "render_width": 1920, "render_height": 1080, "keyframes": [...],
 *      "camera_path": [{"camera_to_world": [16 numbers], "fov": 50, "aspect": 1.78}, ...], "fps": 24, "seconds": 4, ...}
 * camera_to_world is a 4 x 4 matrix by rows, camera axes OpenGL's, in the world of the Gaussians;
 * fov is the vertical field of view in degrees. The principal point is the middle. aspect says what
 * the viewer's window was: a size that is given counts. keyframes are what the viewer made the path
 * of, and nothing is drawn of them.
 */
#include "stages/cameras/camera_file.h"
#include "stages/files/json_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    double width, height; /* 0: not given */
    int digits;           /* of the number in a name: as many as order by name needs, 4 at least */
} path_head;

static kiln_status read_size(const kiln_camera_file *f, const json_t *json, const char *key,
                             double *out, kiln_error *err)
{
    const json_t *v = json_object_get(json, key);
    *out = 0;
    if (!v || json_is_null(v)) return KILN_OK;
    *out = json_number_value(v);
    if (!json_is_number(v) || !(*out >= 1))
        return kiln_fail(err, KILN_E_INPUT, "'%s': %s is not a size", f->path, key);
    return KILN_OK;
}

static kiln_status read_path_head(const kiln_camera_file *f, const json_t *json, size_t n,
                                  path_head *h, kiln_error *err)
{
    const json_t *type = json_object_get(json, "camera_type");
    if (type && !json_is_null(type) &&
        (!json_is_string(type) || strcmp(json_string_value(type), "perspective") != 0))
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s': the camera_type '%.60s' cannot be drawn; choose perspective in the viewer",
            f->path, json_is_string(type) ? json_string_value(type) : "?");
    KILN_TRY(read_size(f, json, "render_width", &h->width, err));
    KILN_TRY(read_size(f, json, "render_height", &h->height, err));
    if (h->height == 0) return kiln_fail(err, KILN_E_INPUT, "'%s' has no render_height", f->path);
    h->digits = 4;
    for (size_t most = 10000; most < n; most *= 10) h->digits++;
    return KILN_OK;
}

static kiln_status set_pose(kiln_camera_file *f, kiln_camera *c, const json_t *o, const char *who,
                            kiln_error *err)
{
    double m[16];
    const json_t *matrix = json_object_get(o, "camera_to_world");
    if (!kiln_json_vector(matrix, 16, m) && !kiln_json_matrix(matrix, 4, 4, m))
        return kiln_fail(err, KILN_E_INPUT, "'%s': camera_to_world of %s is not 16 numbers",
                         f->path, who);
    if (fabs(m[12]) > 1e-3 || fabs(m[13]) > 1e-3 || fabs(m[14]) > 1e-3)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s': the last row of camera_to_world of %s is not 0 0 0 1; is it transposed?",
            f->path, who);
    const double r[9] = {m[0], -m[1], -m[2], m[4], -m[5], -m[6], m[8], -m[9], -m[10]},
                 centre[3] = {m[3], m[7], m[11]};
    return kiln_camera_pose_of_body(f, c, r, centre, who, err);
}

static kiln_status set_lens(kiln_camera_file *f, const path_head *h, kiln_camera *c,
                            const json_t *o, const char *who, kiln_error *err)
{
    const double fov = json_number_value(json_object_get(o, "fov")),
                 aspect = json_number_value(json_object_get(o, "aspect"));
    const double width = h->width > 0 ? h->width : floor(h->height * aspect + 0.5);
    if (!(fov > 0 && fov < 180))
        return kiln_fail(err, KILN_E_INPUT, "'%s': fov of %s must lie between 0 and 180 degrees",
                         f->path, who);
    if (!(width >= 1))
        return kiln_fail(err, KILN_E_INPUT, "'%s': %s has neither render_width nor an aspect",
                         f->path, who);
    const double focal = h->height / (2 * tan(fov * (M_PI / 180) / 2)),
                 lens[4] = {focal, focal, width / 2, h->height / 2};
    KILN_TRY(kiln_camera_take_size(c, width, h->height, f->path, who, err));
    return kiln_camera_take_lens(c, kiln_camera_model_by_name("PINHOLE"), lens, f->path, who, err);
}

kiln_status kiln_cameras_path(kiln_camera_file *f, const json_t *json, kiln_error *err)
{
    const json_t *path = json_object_get(json, "camera_path");
    const size_t n = json_array_size(path);
    path_head h;
    char who[40], name[40];
    f->may_lack_photos = true;
    if (n == 0)
        return kiln_fail(err, KILN_E_INPUT, "'%s' has no camera in camera_path%s", f->path,
                         json_array_size(json_object_get(json, "keyframes"))
                             ? ", only keyframes; generate the path in the viewer"
                             : "");
    KILN_TRY(read_path_head(f, json, n, &h, err));
    for (size_t i = 0; i < n; i++) {
        const json_t *o = json_array_get(path, i);
        kiln_camera c = {.name = name, .photo = "", .mask = ""};
        snprintf(who, sizeof who, "camera %zu", i);
        snprintf(name, sizeof name, "path/%0*zu", h.digits, i);
        KILN_TRY(set_pose(f, &c, o, who, err));
        KILN_TRY(set_lens(f, &h, &c, o, who, err));
        KILN_TRY(kiln_camera_set_add(f->set, &c, err));
    }
    if (json_object_get(json, "crop") && !json_is_null(json_object_get(json, "crop")))
        kiln_camera_set_note(f->set, "'%s': its crop is not applied; all Gaussians are drawn",
                             f->path);
    f->set->frames_read += n;
    snprintf(f->set->frame, sizeof f->set->frame, "opengl");
    return KILN_OK;
}
