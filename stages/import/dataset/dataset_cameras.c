/* dataset_cameras -- which of a directory's camera sources is used: the first of a fixed order.
 *
 * Blender's three files are one source, and so are the two that forks of INRIA's write. All that
 * exist are findings, also those that are not read.
 */
#include "base/memory.h"
#include "stages/cameras/camera_file.h"
#include "stages/files/json_file.h"
#include "stages/import/dataset/dataset_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name;  /* NULL in the last row */
    const char *split; /* of all its cameras; "" where the file's name does not say */
} camera_file_name;

/* In the order of precedence; the COLMAP model comes between INRIA's and the transforms. */
static const camera_file_name inria_files[] = {{"cameras.json", ""}, {NULL, NULL}};
static const camera_file_name split_files[] = {
    {"train_cameras.json", "train"}, {"test_cameras.json", "test"}, {NULL, NULL}};
static const camera_file_name transforms_files[] = {{"transforms.json", ""}, {NULL, NULL}};
static const camera_file_name blender_files[] = {{"transforms_train.json", ""},
                                                 {"transforms_val.json", ""},
                                                 {"transforms_test.json", "test"},
                                                 {NULL, NULL}};

/* json: what the file holds, where it has been parsed; NULL: it has not. */
static kiln_status read_source(kiln_search *s, const char *path, const json_t *json,
                               const char *split, const char *prefix, kiln_error *err)
{
    kiln_camera_file f;
    const uint32_t before = s->d->set.n_cameras;
    char what[160];
    kiln_status st = kiln_camera_file_begin(&f, &s->d->set, path, s->d->set.root, s->avoid, err);
    f.need_photos = true;
    f.json = json;
    f.split = split;
    f.prefix = prefix;
    if (st == KILN_OK) st = kiln_cameras_append(&f, &s->camera_kind, err);
    if (st == KILN_OK && f.points[0]) snprintf(s->points, sizeof s->points, "%s", f.points);
    kiln_camera_file_end(&f);
    if (st != KILN_OK) return st;
    const uint32_t n = s->d->set.n_cameras - before;
    snprintf(what, sizeof what, "%s, %u camera%s", s->camera_kind, n, n == 1 ? "" : "s");
    return kiln_camera_set_add_finding(&s->d->set, path, "cameras", true, what, "", err);
}

static kiln_status pass_over(kiln_search *s, const char *path, const char *what,
                             const char *why_not, kiln_error *err)
{
    for (uint32_t i = 0; i < s->d->set.n_findings; i++) /* it is the one that was named */
        if (strcmp(s->d->set.findings[i].path, path) == 0) return KILN_OK;
    return kiln_camera_set_add_finding(&s->d->set, path, "cameras", false, what, why_not, err);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Says whether two lists of cameras have a name in common. Names that are not text are the reader's
 * to refuse. */
static kiln_status have_common_name(const json_t *a, const json_t *b, bool *common, kiln_error *err)
{
    const char **names = NULL, *name;
    size_t n = 0;
    *common = false;
    KILN_TRY(KILN_ALLOC(&names, json_array_size(a), "names of cameras", err));
    for (size_t i = 0; i < json_array_size(a); i++)
        if ((name = json_string_value(json_object_get(json_array_get(a, i), "img_name"))))
            names[n++] = name;
    if (n) qsort(names, n, sizeof *names, by_text);
    for (size_t i = 0; n && i < json_array_size(b) && !*common; i++)
        if ((name = json_string_value(json_object_get(json_array_get(b, i), "img_name"))))
            *common = bsearch(&name, names, n, sizeof *names, by_text) != NULL;
    free(names);
    return KILN_OK;
}

/* Forks that keep only the last part of a photo's path call both train/r_0 and test/r_0 "r_0". Then
 * the folder is put back. */
static kiln_status need_prefixes(const kiln_search *s, bool *yes, kiln_error *err)
{
    char path[2][KILN_PATH_MAX];
    json_t *json[2] = {NULL, NULL};
    kiln_status st = KILN_OK;
    *yes = false;
    for (int i = 0; i < 2; i++) {
        KILN_TRY(kiln_path_join(path[i], sizeof path[i], s->d->set.root, split_files[i].name, err));
        if (!kiln_is_file(path[i])) return KILN_OK;
    }
    for (int i = 0; i < 2 && st == KILN_OK; i++) st = kiln_json_file_read(path[i], &json[i], err);
    if (st == KILN_OK) st = have_common_name(json[0], json[1], yes, err);
    json_decref(json[0]);
    json_decref(json[1]);
    return st;
}

/* One file of a source, which is there. A file of INRIA's names may be another program's: what
 * parses and holds no cameras is passed over. */
static kiln_status try_file(kiln_search *s, const char *path, bool ours, const char *split,
                            const char *prefix, kiln_error *err)
{
    json_t *json = NULL;
    if (ours) KILN_TRY(kiln_json_file_read(path, &json, err));
    const kiln_status st =
        ours && !kiln_cameras_kind(json)
            ? pass_over(s, path, "camera file", "it holds no cameras of a known format", err)
            : read_source(s, path, json, split, prefix, err);
    json_decref(json);
    return st;
}

/* Files of one JSON source, each of which makes it there. */
static kiln_status try_files(kiln_search *s, const camera_file_name *names, const char *taken,
                             kiln_error *err)
{
    char path[KILN_PATH_MAX], prefix[16];
    bool prefixes = false;
    const char *before_us = taken ? taken : s->camera_kind ? "other cameras take precedence" : NULL;
    const bool ours = names == inria_files || names == split_files;
    if (!before_us && names == split_files) KILN_TRY(need_prefixes(s, &prefixes, err));
    for (; names->name; names++) {
        KILN_TRY(kiln_path_join(path, sizeof path, s->d->set.root, names->name, err));
        if (!kiln_is_file(path)) continue;
        snprintf(prefix, sizeof prefix, "%s%s", prefixes ? names->split : "", prefixes ? "/" : "");
        if (before_us)
            KILN_TRY(pass_over(s, path, "camera file", before_us, err));
        else
            KILN_TRY(try_file(s, path, ours, names->split, prefix, err));
    }
    return KILN_OK;
}

static kiln_status try_colmap(kiln_search *s, const char *taken, kiln_error *err)
{
    char folder[KILN_PATH_MAX], points[KILN_PATH_MAX], what[160];
    bool found;
    uint64_t images;
    KILN_TRY(kiln_colmap_find(s->d->set.root, s->avoid, &found, folder, err));
    if (!found) return KILN_OK;
    const char *encoding = kiln_colmap_look(folder, &images, points);
    if (!s->points[0]) snprintf(s->points, sizeof s->points, "%s", points);
    if (!s->camera_kind && !taken) return read_source(s, folder, NULL, "", "", err);
    snprintf(what, sizeof what, "COLMAP model (%s), %llu image%s", encoding,
             (unsigned long long)images, images == 1 ? "" : "s");
    return pass_over(s, folder, what, taken ? taken : "other cameras take precedence", err);
}

/* The folder under which a photo has its camera's name. */
static void photo_folder(const kiln_camera *c, char folder[KILN_PATH_MAX])
{
    const char *suffix = kiln_path_suffix(c->photo);
    const size_t stem = *suffix ? (size_t)(suffix - 1 - c->photo) : strlen(c->photo),
                 name = strlen(c->name);
    const bool named = stem > name && strncmp(c->photo + stem - name, c->name, name) == 0;
    snprintf(folder, KILN_PATH_MAX, "%.*s",
             (int)(named ? stem - name - 1 : (size_t)(kiln_path_base(c->photo) - c->photo - 1)),
             c->photo);
}

/* Behind the first: a few by their names, the others as a number. */
static void name_others(const kiln_dataset *d, char *out, size_t capacity)
{
    enum { NAMED = 4, NAME_CHARS = 100 };
    size_t used = 0;
    uint64_t n = 1;
    out[0] = '\0';
    if (d->set.photos_missing < 2) return;
    used = (size_t)snprintf(out, capacity, "; so were");
    for (const char *name = kiln_missing_next(&d->set, kiln_missing_next(&d->set, NULL));
         name && n <= NAMED; name = kiln_missing_next(&d->set, name), n++)
        used += (size_t)snprintf(out + used, capacity - used, "%s '%.*s'", n > 1 ? "," : "",
                                 NAME_CHARS, name);
    if (n < d->set.photos_missing)
        snprintf(out + used, capacity - used, " and %llu more (--list names them)",
                 (unsigned long long)(d->set.photos_missing - n));
}

static void note_missing(kiln_dataset *d)
{
    char others[600];
    if (!d->set.photos_missing) return;
    name_others(d, others, sizeof others);
    kiln_camera_set_note_meaning(&d->set,
                                 "photos not found: %llu; the first is '%s', looked for in %s%s",
                                 (unsigned long long)d->set.photos_missing,
                                 kiln_missing_next(&d->set, NULL), d->set.sought, others);
    if (d->set.source_path[0])
        kiln_camera_set_note(&d->set, "cfg_args names '%s' as the folder of the training data",
                             d->set.source_path);
    if (!d->set.photos[0]) kiln_camera_set_note(&d->set, "--photos DIR says where photos are");
}

static kiln_status add_masks(kiln_search *s, kiln_error *err)
{
    char folder[KILN_PATH_MAX] = "", what[160];
    for (uint32_t i = 0; i < s->d->set.n_cameras && !folder[0]; i++)
        snprintf(folder, sizeof folder, "%.*s",
                 (int)(kiln_path_base(s->d->set.cameras[i].mask) - s->d->set.cameras[i].mask),
                 s->d->set.cameras[i].mask);
    folder[strlen(folder) > 1 ? strlen(folder) - 1 : 0] = '\0'; /* its slash */
    const unsigned long long n = s->d->set.n_masks;
    snprintf(what, sizeof what,
             "%llu mask%s; their black pixels are left out of metrics and colours", n,
             n == 1 ? "" : "s");
    return kiln_camera_set_add_finding(&s->d->set, folder, "masks", true, what, "", err);
}

static kiln_status add_photos(kiln_search *s, kiln_error *err)
{
    char folder[KILN_PATH_MAX] = "", what[160];
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->d->set.n_cameras; i++)
        if (s->d->set.cameras[i].photo[0] && n++ == 0) photo_folder(&s->d->set.cameras[i], folder);
    if (n < s->d->set.n_cameras)
        kiln_camera_set_note_meaning(
            &s->d->set,
            "%u of %u camera%s no photo; a camera without a photo is drawn, but not measured",
            s->d->set.n_cameras - n, s->d->set.n_cameras,
            s->d->set.n_cameras == 1 ? " has" : "s have");
    note_missing(s->d);
    if (n == 0) return KILN_OK;
    snprintf(what, sizeof what, "%u photo%s", n, n == 1 ? "" : "s");
    KILN_TRY(kiln_camera_set_add_finding(&s->d->set, folder, "photos", true, what, "", err));
    return s->d->set.n_masks ? add_masks(s, err) : KILN_OK;
}

kiln_status kiln_search_cameras(kiln_search *s, const char *file, kiln_error *err)
{
    const char *taken = file ? "other cameras were chosen" : NULL;
    if (file) KILN_TRY(read_source(s, file, NULL, "", "", err));
    KILN_TRY(try_files(s, inria_files, taken, err));
    KILN_TRY(try_files(s, split_files, taken, err));
    KILN_TRY(try_colmap(s, taken, err));
    KILN_TRY(try_files(s, transforms_files, taken, err));
    KILN_TRY(try_files(s, blender_files, taken, err));
    KILN_TRY(kiln_photos_check_given(&s->d->set, err));
    if (s->d->set.frames_read && s->d->set.frames_read == s->d->set.frames_dropped &&
        !s->d->set.missing.size)
        return kiln_fail(
            err, KILN_E_INPUT,
            "none of the photos of %llu frame%s in '%s' can be read; convert them to PNG or JPEG",
            (unsigned long long)s->d->set.frames_read, s->d->set.frames_read == 1 ? "" : "s",
            s->d->set.root);
    if (s->d->set.frames_read && s->d->set.frames_read == s->d->set.frames_dropped)
        return kiln_fail(err, KILN_E_INPUT,
                         "none of the %llu frames in '%s' has its photo (%llu cannot be read), and "
                         "the file gives no picture size "
                         "(w and h); are the images beside the camera file, or where --photos "
                         "says? The first missing "
                         "photo is '%s', looked for in %s",
                         (unsigned long long)s->d->set.frames_read, s->d->set.root,
                         (unsigned long long)s->d->set.frames_unreadable,
                         kiln_missing_next(&s->d->set, NULL), s->d->set.sought);
    KILN_TRY(kiln_camera_set_finish(&s->d->set, err));
    return add_photos(s, err);
}
