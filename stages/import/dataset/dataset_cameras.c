/* dataset_cameras -- which of a directory's camera sources is used: the first of a fixed order.
 *
 * Blender's three files are one source. All that exist are findings, also those that are not read.
 */
#include "stages/import/cameras/camera_file.h"
#include "stages/import/cameras/json_file.h"
#include "stages/import/dataset/dataset_search.h"

#include <stdio.h>
#include <string.h>

/* In the order of precedence; the COLMAP model comes between INRIA's and the transforms. */
static const char *const inria_files[] = {"cameras.json", NULL};
static const char *const transforms_files[] = {"transforms.json", NULL};
static const char *const blender_files[] = {"transforms_train.json", "transforms_val.json", "transforms_test.json", NULL};

static kiln_status read_source(kiln_search *s, const char *path, const char *split, kiln_error *err)
{
    kiln_camera_file f;
    const uint32_t before = s->d->n_cameras;
    char what[160];
    kiln_status st = kiln_camera_file_begin(&f, s->d, path, s->d->root, s->avoid, err);
    f.need_photos = true;
    f.split = split;
    if (st == KILN_OK) st = kiln_cameras_append(&f, &s->camera_kind, err);
    if (st == KILN_OK && f.points[0]) snprintf(s->points, sizeof s->points, "%s", f.points);
    kiln_camera_file_end(&f);
    if (st != KILN_OK) return st;
    const uint32_t n = s->d->n_cameras - before;
    snprintf(what, sizeof what, "%s, %u camera%s", s->camera_kind, n, n == 1 ? "" : "s");
    return kiln_dataset_add_finding(s->d, path, "cameras", true, what, "", err);
}

static kiln_status pass_over(kiln_search *s, const char *path, const char *what, const char *why_not, kiln_error *err)
{
    for (uint32_t i = 0; i < s->d->n_findings; i++)
        if (strcmp(s->d->findings[i].path, path) == 0) return KILN_OK; /* it is the one that was named */
    return kiln_dataset_add_finding(s->d, path, "cameras", false, what, why_not, err);
}

/* cameras.json may be another program's: what parses and holds no cameras is passed over. */
static kiln_status holds_cameras(const char *path, bool *yes, kiln_error *err)
{
    json_t *json = NULL;
    KILN_TRY(kiln_json_file_read(path, &json, err));
    *yes = kiln_cameras_kind(json) != NULL;
    json_decref(json);
    return KILN_OK;
}

/* Files of one JSON source, each of which makes it there. */
static kiln_status try_files(kiln_search *s, const char *const *names, const char *taken, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    const char *before_us = taken ? taken : s->camera_kind ? "other cameras take precedence" : NULL;
    for (; *names; names++) {
        const char *why_not = before_us;
        bool yes = true;
        KILN_TRY(kiln_path_join(path, sizeof path, s->d->root, *names, err));
        if (!kiln_is_file(path)) continue;
        if (!why_not && names[0] == inria_files[0]) KILN_TRY(holds_cameras(path, &yes, err));
        if (!yes) why_not = "it holds no cameras that we know";
        if (why_not)
            KILN_TRY(pass_over(s, path, "camera file", why_not, err));
        else
            KILN_TRY(read_source(s, path, strcmp(*names, "transforms_test.json") == 0 ? "test" : "", err));
    }
    return KILN_OK;
}

static kiln_status try_colmap(kiln_search *s, const char *taken, kiln_error *err)
{
    char folder[KILN_PATH_MAX], points[KILN_PATH_MAX], what[160];
    bool found;
    uint64_t images;
    KILN_TRY(kiln_colmap_find(s->d->root, s->avoid, &found, folder, err));
    if (!found) return KILN_OK;
    const char *encoding = kiln_colmap_look(folder, &images, points);
    if (!s->points[0]) snprintf(s->points, sizeof s->points, "%s", points);
    if (!s->camera_kind && !taken) return read_source(s, folder, "", err);
    snprintf(what, sizeof what, "COLMAP model (%s), %llu images", encoding, (unsigned long long)images);
    return pass_over(s, folder, what, taken ? taken : "other cameras take precedence", err);
}

/* The folder under which a photo has its camera's name. */
static void photo_folder(const kiln_camera *c, char folder[KILN_PATH_MAX])
{
    const char *suffix = kiln_path_suffix(c->photo);
    const size_t stem = *suffix ? (size_t)(suffix - 1 - c->photo) : strlen(c->photo), name = strlen(c->name);
    const bool named = stem > name && strncmp(c->photo + stem - name, c->name, name) == 0;
    snprintf(folder, KILN_PATH_MAX, "%.*s", (int)(named ? stem - name - 1 : (size_t)(kiln_path_base(c->photo) - c->photo - 1)),
             c->photo);
}

static void note_missing(kiln_dataset *d)
{
    if (d->photos_missing)
        kiln_dataset_note(d, "photos that are named and not found: %llu; the first, '%s', was sought in %s%s",
                          (unsigned long long)d->photos_missing, d->first_missing, d->sought,
                          d->photos_missing > 1 ? "; so were the others" : "");
    if (d->photos_missing && d->source_path[0])
        kiln_dataset_note(d, "cfg_args names '%s' as the folder of the training data%s", d->source_path,
                          kiln_is_dir(d->source_path) ? ", which is there: link its photos into the scene" : "");
}

static kiln_status add_masks(kiln_search *s, kiln_error *err)
{
    char folder[KILN_PATH_MAX] = "", what[160];
    for (uint32_t i = 0; i < s->d->n_cameras && !folder[0]; i++)
        snprintf(folder, sizeof folder, "%.*s", (int)(kiln_path_base(s->d->cameras[i].mask) - s->d->cameras[i].mask),
                 s->d->cameras[i].mask);
    folder[strlen(folder) > 1 ? strlen(folder) - 1 : 0] = '\0'; /* its slash */
    const unsigned long long n = s->d->n_masks;
    snprintf(what, sizeof what, "%llu mask%s; what is black in one is left out of metrics and colours", n, n == 1 ? "" : "s");
    return kiln_dataset_add_finding(s->d, folder, "masks", true, what, "", err);
}

static kiln_status add_photos(kiln_search *s, kiln_error *err)
{
    char folder[KILN_PATH_MAX] = "", what[160];
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->d->n_cameras; i++)
        if (s->d->cameras[i].photo[0] && n++ == 0) photo_folder(&s->d->cameras[i], folder);
    if (n < s->d->n_cameras)
        kiln_dataset_note(s->d, "%u of %u cameras have no photo; they are drawn, not measured", s->d->n_cameras - n,
                          s->d->n_cameras);
    note_missing(s->d);
    if (n == 0) return KILN_OK;
    snprintf(what, sizeof what, "%u photo%s", n, n == 1 ? "" : "s");
    KILN_TRY(kiln_dataset_add_finding(s->d, folder, "photos", true, what, "", err));
    return s->d->n_masks ? add_masks(s, err) : KILN_OK;
}

kiln_status kiln_search_cameras(kiln_search *s, const char *file, kiln_error *err)
{
    const char *taken = file ? "other cameras were named" : NULL;
    if (file) KILN_TRY(read_source(s, file, "", err));
    KILN_TRY(try_files(s, inria_files, taken, err));
    KILN_TRY(try_colmap(s, taken, err));
    KILN_TRY(try_files(s, transforms_files, taken, err));
    KILN_TRY(try_files(s, blender_files, taken, err));
    if (s->d->frames_read && s->d->frames_read == s->d->frames_dropped)
        return kiln_fail(
            err, KILN_E_INPUT,
            "none of the %llu frames in '%s' has its photo (%llu cannot be read); are the images beside the camera file? "
            "The first missing, '%s', was sought in %s",
            (unsigned long long)s->d->frames_read, s->d->root, (unsigned long long)s->d->frames_unreadable, s->d->first_missing,
            s->d->sought);
    KILN_TRY(kiln_dataset_finish_cameras(s->d, err));
    return add_photos(s, err);
}
