/* cameras_list -- a plain list of cameras, used as they stand: for camera paths and for cameras of
 * other programs.
 *
 *     [{"R": [9 numbers or 3 x 3], "t": [3], "fx": 448, "fy": 448, "cx": 320, "cy": 180, "width": 640, "height": 360,
 *       "name": "front"}, ...]
 * R and t are cam_from_world, x right, y down, z forward; cx, cy the middle when left out; the name
 * cam0, cam1, ... . A photo of that name is used when it has the size given; nothing is scaled.
 */
#include "stages/cameras/camera_file.h"
#include "stages/files/json_file.h"

#include <stdio.h>

static double number_or(const json_t *o, const char *key, double otherwise)
{
    const json_t *v = json_object_get(o, key);
    return json_is_number(v) ? json_number_value(v) : otherwise;
}

static kiln_status read_listed_camera(kiln_camera_file *f, const json_t *o, size_t index,
                                      kiln_error *err)
{
    char who[40], numbered[40];
    double r[9], t[3];
    kiln_camera c = {.name = "", .photo = "", .mask = ""};
    kiln_photo_path p;
    const json_t *rotation = json_object_get(o, "R"), *name = json_object_get(o, "name");
    const double width = number_or(o, "width", 0), height = number_or(o, "height", 0);
    const double lens[4] = {number_or(o, "fx", 0), number_or(o, "fy", 0),
                            number_or(o, "cx", width / 2), number_or(o, "cy", height / 2)};
    snprintf(who, sizeof who, "camera %zu", index);
    snprintf(numbered, sizeof numbered, "cam%zu", index);
    if (!kiln_json_vector(rotation, 9, r) && !kiln_json_matrix(rotation, 3, 3, r))
        return kiln_fail(err, KILN_E_INPUT, "'%s': R of %s is neither 9 numbers nor 3 x 3", f->path,
                         who);
    if (!kiln_json_vector(json_object_get(o, "t"), 3, t))
        return kiln_fail(err, KILN_E_INPUT, "'%s': t of %s is not 3 numbers", f->path, who);
    if (name && !json_is_string(name))
        return kiln_fail(err, KILN_E_INPUT, "'%s': the name of %s is not text", f->path, who);
    KILN_TRY(kiln_camera_take_name(f, &c, name ? json_string_value(name) : numbered, &p, who, err));
    KILN_TRY(kiln_camera_take_size(&c, width, height, f->path, who, err));
    KILN_TRY(
        kiln_camera_take_lens(&c, kiln_camera_model_by_name("PINHOLE"), lens, f->path, who, err));
    KILN_TRY(kiln_camera_pose(f, &c, r, t, who, err));
    KILN_TRY(kiln_photo_find(f, &c, &p, err));
    kiln_photo_orient(f, &c, width, height);
    if (c.photo_width != c.width || c.photo_height != c.height)
        c.photo = "", c.photo_width = c.photo_height = 0;
    KILN_TRY(kiln_mask_find(f, &c, &p, NULL, err));
    return kiln_camera_set_add(f->set, &c, err);
}

kiln_status kiln_cameras_list(kiln_camera_file *f, const json_t *json, kiln_error *err)
{
    const size_t n = json_array_size(json);
    f->may_lack_photos = true;
    for (size_t i = 0; i < n; i++) KILN_TRY(read_listed_camera(f, json_array_get(json, i), i, err));
    f->set->frames_read += n;
    return KILN_OK;
}
