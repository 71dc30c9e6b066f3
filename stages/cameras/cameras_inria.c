/* cameras_inria -- cameras.json of INRIA's train.py (utils/camera_utils.py, camera_to_JSON).
 *
 *     [{"id": 0, "img_name": "test/r_0", "width": 400, "height": 400, "position": [3], "rotation": [[3], [3], [3]],
 *       "fy": 555.5, "fx": 555.5}, ...]
 * position is the camera's centre, rotation its axes in the world (columns right, down, forward).
 * There is no principal point: it is the middle. img_name has no extension in older versions. Forks
 * write the same as train_cameras.json and test_cameras.json.
 */
#include "stages/cameras/camera_file.h"
#include "stages/files/json_file.h"

#include <stdio.h>

static kiln_status read_inria_camera(kiln_camera_file *f, const json_t *o, size_t index,
                                     kiln_error *err)
{
    char who[40], given[1100];
    double r[9], centre[3];
    kiln_camera c = {.name = "", .photo = "", .mask = ""};
    kiln_photo_path p;
    const char *name = json_string_value(json_object_get(o, "img_name"));
    const double width = json_number_value(json_object_get(o, "width")),
                 height = json_number_value(json_object_get(o, "height"));
    snprintf(who, sizeof who, "camera %zu", index);
    if (!json_is_object(o) || !name)
        return kiln_fail(err, KILN_E_INPUT, "'%s': %s has no img_name", f->path, who);
    if (!kiln_json_matrix(json_object_get(o, "rotation"), 3, 3, r))
        return kiln_fail(err, KILN_E_INPUT, "'%s': the rotation of %s is not 3 x 3 numbers",
                         f->path, who);
    if (!kiln_json_vector(json_object_get(o, "position"), 3, centre))
        return kiln_fail(err, KILN_E_INPUT, "'%s': the position of %s is not 3 numbers", f->path,
                         who);
    const double lens[4] = {json_number_value(json_object_get(o, "fx")),
                            json_number_value(json_object_get(o, "fy")), width / 2, height / 2};
    /* cut at 1099: set_name refuses more than 1024 */
    snprintf(given, sizeof given, "%s%s", f->prefix, name);
    KILN_TRY(kiln_camera_take_name(f, &c, given, &p, who, err));
    snprintf(c.split, sizeof c.split, "%s", f->split);
    KILN_TRY(kiln_camera_take_size(&c, width, height, f->path, who, err));
    KILN_TRY(
        kiln_camera_take_lens(&c, kiln_camera_model_by_name("PINHOLE"), lens, f->path, who, err));
    KILN_TRY(kiln_camera_pose_of_body(f, &c, r, centre, who, err));
    KILN_TRY(kiln_photo_find(f, &c, &p, err));
    kiln_photo_fit(f, &c, width, height);
    KILN_TRY(kiln_mask_find(f, &c, &p, NULL, err));
    return kiln_camera_set_add(f->set, &c, err);
}

kiln_status kiln_cameras_inria(kiln_camera_file *f, const json_t *json, kiln_error *err)
{
    const size_t n = json_array_size(json);
    if (n == 0) return kiln_fail(err, KILN_E_INPUT, "'%s' holds no camera", f->path);
    for (size_t i = 0; i < n; i++) KILN_TRY(read_inria_camera(f, json_array_get(json, i), i, err));
    f->set->frames_read += n;
    snprintf(f->set->frame, sizeof f->set->frame, "opencv");
    return KILN_OK;
}
