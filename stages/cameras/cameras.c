/* cameras -- one camera file or COLMAP folder, whatever it is: the content decides.
 *
 * A new kind of JSON camera file: its cameras_NAME.c and one row of kinds[].
 */
#include "stages/cameras/camera_file.h"
#include "stages/files/foreign.h"
#include "stages/files/json_file.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    const char *name;
    bool (*is)(const json_t *json);
    kiln_camera_read_fn *read;
} camera_kind;

static bool is_transforms(const json_t *json)
{
    return json_is_object(json) &&
           (json_object_get(json, "frames") || json_object_get(json, "camera_angle_x") ||
            json_object_get(json, "fl_x"));
}

static bool is_list(const json_t *json)
{
    const json_t *first = json_array_get(json, 0);
    return json_object_get(first, "R") && json_object_get(first, "t");
}

static bool is_inria(const json_t *json)
{
    const json_t *first = json_array_get(json, 0);
    return json_is_array(json) &&
           (!first || json_object_get(first, "rotation") || json_object_get(first, "img_name"));
}

/* Nothing of nerfstudio's other files has these. */
static bool is_path(const json_t *json)
{
    return json_object_get(json, "camera_path") || json_object_get(json, "keyframes");
}

static const camera_kind kinds[] = {
    {"transforms.json", is_transforms, kiln_cameras_transforms},
    {"nerfstudio camera path", is_path, kiln_cameras_path},
    {"list of cameras", is_list, kiln_cameras_list},
    {"INRIA cameras.json", is_inria, kiln_cameras_inria},
};

static const camera_kind *camera_kind_of(const json_t *json)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].is(json)) return &kinds[i];
    return NULL;
}

const char *kiln_cameras_kind(const json_t *json)
{
    const camera_kind *k = camera_kind_of(json);
    return k ? k->name : NULL;
}

static kiln_status append_json(kiln_camera_file *f, const char **kind, kiln_error *err)
{
    json_t *own = NULL;
    const kiln_foreign *other = kiln_foreign_of_file(f->path);
    if (other) return kiln_foreign_refuse(f->path, other, err);
    if (!f->json) KILN_TRY(kiln_json_file_read(f->path, &own, err));
    const json_t *json = f->json ? f->json : own;
    const camera_kind *k = camera_kind_of(json);
    kiln_status st = k ? k->read(f, json, err)
                       : kiln_fail(err, KILN_E_INPUT,
                                   "'%s' holds no cameras: neither frames (transforms.json), nor a "
                                   "camera_path, nor a list with img_name "
                                   "and rotation (INRIA) or R and t",
                                   f->path);
    if (k && kind) *kind = k->name;
    if (st == KILN_OK) st = kiln_camera_set_add_source(f->set, f->path, "cameras", err);
    json_decref(own);
    return st;
}

kiln_status kiln_cameras_append(kiln_camera_file *f, const char **kind, kiln_error *err)
{
    char folder[KILN_PATH_MAX];
    bool found = false;
    if (!kiln_is_dir(f->path)) return append_json(f, kind, err);
    KILN_TRY(kiln_colmap_find(f->path, f->avoid, &found, folder, err));
    const kiln_foreign *other = found ? NULL : kiln_foreign_of_folder(f->path);
    if (other) return kiln_foreign_refuse(f->path, other, err);
    if (!found)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' holds no COLMAP model: it has no cameras and images, neither .bin nor .txt",
            f->path);
    if (kind) *kind = "COLMAP model";
    f->set->world = KILN_WORLD_ORIGINAL;
    return kiln_cameras_colmap(f, folder, err);
}

kiln_status kiln_cameras_read(const char *path, const char *photos_root, kiln_camera_set *set,
                              kiln_error *err)
{
    kiln_camera_file f;
    kiln_status st = kiln_camera_file_begin(&f, set, path, photos_root, NULL, err);
    if (st == KILN_OK) st = kiln_cameras_append(&f, NULL, err);
    kiln_camera_file_end(&f);
    return st == KILN_OK ? kiln_camera_set_finish(set, err) : st;
}
