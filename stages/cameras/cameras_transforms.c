/* cameras_transforms -- transforms.json of nerfstudio and instant-ngp, transforms_*.json of
 * Blender.
 *
 *     {"camera_angle_x": 0.69, "frames": [{"file_path": "./train/r_0", "transform_matrix": [[4], [4], [4], [4]]}, ...]}
 * transform_matrix is camera-to-world with OpenGL's camera axes (x right, y up, z backwards):
 * columns 1 and 2 are negated to get right, down, forward. The world stays as it is in the file;
 * what nerfstudio applied to it stands in the scene's transforms (dataparser.c moves cameras to
 * Gaussians that nerfstudio trained). Differences in path and lens between the three dialects are
 * differences of a single key.
 */
#include "stages/cameras/absolute_paths.h"
#include "stages/cameras/camera_file.h"
#include "stages/cameras/transforms_lens.h"
#include "stages/engine/json_text.h"
#include "stages/files/json_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kiln_status read_matrix(const kiln_camera_file *f, const json_t *rows, const char *key,
                               const char *who, double m[12], kiln_error *err)
{
    double last[4] = {0, 0, 0, 1};
    const size_t n = json_array_size(rows);
    bool shape = json_is_array(rows) && (n == 3 || n == 4);
    for (size_t i = 0; shape && i < n; i++) shape = json_array_size(json_array_get(rows, i)) == 4;
    if (!shape)
        return kiln_fail(err, KILN_E_INPUT, "'%s': the %s of %s is neither 4 x 4 nor 3 x 4",
                         f->path, key, who);
    for (size_t i = 0; i < n; i++)
        if (!kiln_json_vector(json_array_get(rows, i), 4, i < 3 ? m + 4 * i : last))
            return kiln_fail(err, KILN_E_INPUT,
                             "'%s': the %s of %s holds a value that is not a number", f->path, key,
                             who);
    if (fabs(last[0]) > 1e-3 || fabs(last[1]) > 1e-3 || fabs(last[2]) > 1e-3)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s': the last row of the %s of %s is not 0 0 0 1; is it transposed?",
                         f->path, key, who);
    return KILN_OK;
}

static kiln_status set_pose(kiln_camera_file *f, kiln_camera *c, const json_t *frame,
                            const char *who, kiln_error *err)
{
    double m[12];
    KILN_TRY(read_matrix(f, json_object_get(frame, "transform_matrix"), "transform_matrix", who, m,
                         err));
    const double r[9] = {m[0], -m[1], -m[2], m[4], -m[5], -m[6], m[8], -m[9], -m[10]},
                 centre[3] = {m[3], m[7], m[11]};
    return kiln_camera_pose_of_body(f, c, r, centre, who, err);
}

/* A path of the file with the backslashes of Windows and instant-ngp as slashes. What is cut is
 * refused as too long. */
static void take_path(const json_t *path, char given[1100])
{
    snprintf(given, 1100, "%s", json_string_value(path));
    for (char *s = given; *s; s++)
        if (*s == '\\') *s = '/';
}

/* The parts of Blender's names are the split: train/r_0 and test/r_0 are two cameras. */
static bool names_have_folders(const kiln_camera_file *f)
{
    return strncmp(kiln_path_base(f->path), "transforms_", 11) == 0;
}

static void find_common_folder(kiln_camera_file *f, const json_t *frames)
{
    char given[1100];
    const json_t *frame;
    size_t i;
    f->common[0] = '\0';
    json_array_foreach(frames, i, frame)
    {
        const json_t *path = json_object_get(frame, "file_path");
        if (!json_is_string(path)) continue; /* is refused when it is read */
        take_path(path, given);
        if (kiln_path_is_absolute(given)) kiln_common_folder(f->common, sizeof f->common, given);
    }
}

/* file_path; `who` becomes "frame 7, 'images/a.png'". */
static kiln_status set_path(kiln_camera_file *f, kiln_camera *c, const json_t *frame, size_t index,
                            char who[200], kiln_photo_path *p, kiln_error *err)
{
    const json_t *path = json_object_get(frame, "file_path");
    char given[1100];
    snprintf(who, 200, "frame %zu", index);
    if (!json_is_object(frame) || !path)
        return kiln_fail(err, KILN_E_INPUT, "'%s': %s has no file_path", f->path, who);
    if (!json_is_string(path))
        return kiln_fail(err, KILN_E_INPUT, "'%s': the file_path of %s is not text", f->path, who);
    take_path(path, given);
    const bool absolute = kiln_path_is_absolute(given);
    KILN_TRY(kiln_camera_take_name(
        f, c, absolute ? kiln_path_end(given, f->common, names_have_folders(f)) : given, p, who,
        err));
    if (absolute) snprintf(p->full, sizeof p->full, "%s", given);
    f->n_absolute += absolute;
    snprintf(who, 200, "frame %zu, '%.150s'", index, p->path);
    return KILN_OK;
}

static bool is_listed(const json_t *names, const char *path)
{
    const json_t *v;
    size_t i;
    json_array_foreach(names, i, v)
    {
        const char *name = json_string_value(v);
        while (name && name[0] == '.' && name[1] == '/') name += 2;
        if (name && strcmp(name, path) == 0) return true;
    }
    return false;
}

/* nerfstudio's explicit split: what is held out is test; val_filenames where there are no
 * test_filenames, and without either what train_filenames lack. NULL: the file does not say. */
static const char *split_of(kiln_camera_set *set, const json_t *file, const char *path)
{
    const json_t *test = json_object_get(file, "test_filenames"),
                 *train = json_object_get(file, "train_filenames");
    if (!json_array_size(test)) test = json_object_get(file, "val_filenames");
    if (json_array_size(test)) return is_listed(test, path) ? "test" : "train";
    if (json_array_size(train) == 0) return NULL;
    set->split_later = true;
    return is_listed(train, path) ? "train" : "test";
}

/* By mask_path; a frame without one may have its mask in the folder masks, as COLMAP's images
 * do. */
static kiln_status find_mask(kiln_camera_file *f, kiln_camera *c, const json_t *frame,
                             const kiln_photo_path *p, const char *who, kiln_error *err)
{
    const json_t *path = json_object_get(frame, "mask_path");
    char given[1100];
    const char *why = NULL;
    if (!path || json_is_null(path)) return kiln_mask_find(f, c, p, NULL, err);
    if (!json_is_string(path))
        return kiln_fail(err, KILN_E_INPUT, "'%s': the mask_path of %s is not text", f->path, who);
    take_path(path, given);
    const char *name = kiln_path_is_absolute(given) ? kiln_path_end_from(given, "masks") : given;
    while (name[0] == '.' && name[1] == '/') name += 2 + strspn(name + 2, "/");
    if (!kiln_name_is_safe(name, &why))
        return kiln_fail(err, KILN_E_INPUT, "'%s': the mask_path of %s is refused: %s", f->path,
                         who, why);
    return kiln_mask_find(f, c, p, name, err);
}

static kiln_status read_frame(kiln_camera_file *f, const json_t *file, const json_t *frame,
                              size_t index, kiln_error *err)
{
    char who[200];
    bool sized = false;
    kiln_camera c = {.name = "", .photo = "", .mask = ""};
    kiln_photo_path p;
    KILN_TRY(set_path(f, &c, frame, index, who, &p, err));
    KILN_TRY(set_pose(f, &c, frame, who, err));
    KILN_TRY(kiln_photo_find(f, &c, &p, err));
    if (p.full[0] && !c.photo[0] && !p.path[p.stem])
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s': the file_path of frame %zu, '%.300s', is refused: it is absolute, but no photo",
            f->path, index, p.full);
    KILN_TRY(kiln_frame_lens(f, file, frame, &c, who, &sized, err));
    f->set->frames_read++;
    f->n_frames++;
    if (f->need_photos && !c.photo[0] && !sized) {
        if (f->n_dropped++ == 0) snprintf(f->first_dropped, sizeof f->first_dropped, "%s", who);
        f->n_dropped_unreadable += f->last_unreadable;
        f->set->frames_dropped++;
        f->set->frames_unreadable += f->last_unreadable;
        return KILN_OK;
    }
    KILN_TRY(find_mask(f, &c, frame, &p, who, err));
    if (!sized)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s': %s has no size: it has neither w and h nor a photo", f->path, who);
    const char *const split = split_of(f->set, file, p.path);
    snprintf(c.split, sizeof c.split, "%s", split ? split : f->split);
    return kiln_camera_set_add(f->set, &c, err);
}

/* What was done to the world before it was saved, as a JSON array for the scene row. */
static kiln_status note_transforms(kiln_camera_file *f, const json_t *file, kiln_error *err)
{
    double m[12] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
    const json_t *applied = json_object_get(file, "applied_transform"),
                 *scale = json_object_get(file, "applied_scale");
    if (applied) KILN_TRY(read_matrix(f, applied, "applied_transform", "the file", m, err));
    if (scale && !json_is_number(scale))
        return kiln_fail(err, KILN_E_INPUT, "'%s': applied_scale is not a number", f->path);
    if (applied || json_object_get(file, "aabb_scale") ||
        strncmp(kiln_path_base(f->path), "transforms_", 11) == 0)
        snprintf(f->set->up_axis, sizeof f->set->up_axis,
                 "z"); /* nerfstudio's, instant-ngp's and Blender's writers turn the world so */
    snprintf(f->set->frame, sizeof f->set->frame, "opengl");
    f->set->world = KILN_WORLD_SAVED;
    memcpy(f->set->applied, m, sizeof m);
    f->set->applied_scale = scale ? json_number_value(scale) : 1;
    if (!applied && !scale) return KILN_OK;
    json_t *note = json_object();
    const bool kept =
        (!applied ||
         json_object_set_new(note, "applied_transform", json_deep_copy(applied)) == 0) &&
        (!scale || json_object_set_new(note, "applied_scale", json_deep_copy(scale)) == 0);
    char *text = kept ? kiln_json_text(note, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    if (text) snprintf(f->set->transforms, sizeof f->set->transforms, "[%s]", text);
    free(text);
    json_decref(note);
    return text ? KILN_OK
                : kiln_fail(err, KILN_E_NOMEM, "out of memory for the transforms of '%s'", f->path);
}

/* nerfstudio's start points, in the world of the file. */
static kiln_status find_points(kiln_camera_file *f, const json_t *file, kiln_error *err)
{
    const json_t *path = json_object_get(file, "ply_file_path");
    char given[1100];
    const char *why = NULL;
    if (!path || json_is_null(path)) return KILN_OK;
    if (!json_is_string(path))
        return kiln_fail(err, KILN_E_INPUT, "'%s': ply_file_path is not text", f->path);
    snprintf(given, sizeof given, "%s", json_string_value(path));
    if (kiln_path_is_absolute(given) || given[1] == ':') take_path(path, given);
    const char *name = kiln_path_is_absolute(given) ? kiln_path_base(given) : given;
    if (!kiln_name_is_safe(name, &why))
        return kiln_fail(err, KILN_E_INPUT, "'%s': ply_file_path is refused: %s", f->path, why);
    KILN_TRY(kiln_path_join(f->points, sizeof f->points, f->dirs[0], name, err));
    if (kiln_is_file(f->points)) return KILN_OK;
    kiln_camera_set_note(f->set, "'%s' names the points '%s', which do not exist", f->path, name);
    f->points[0] = 0;
    return KILN_OK;
}

kiln_status kiln_cameras_transforms(kiln_camera_file *f, const json_t *json, kiln_error *err)
{
    const json_t *frames = json_object_get(json, "frames");
    if (frames && !json_is_array(frames))
        return kiln_fail(err, KILN_E_INPUT, "'%s': frames must be an array", f->path);
    if (json_array_size(frames) == 0)
        return kiln_fail(err, KILN_E_INPUT, "'%s' has no frames", f->path);
    KILN_TRY(note_transforms(f, json, err));
    KILN_TRY(find_points(f, json, err));
    find_common_folder(f, frames);
    for (size_t i = 0; i < json_array_size(frames); i++)
        KILN_TRY(read_frame(f, json, json_array_get(frames, i), i, err));
    return KILN_OK;
}
