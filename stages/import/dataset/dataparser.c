/* dataparser -- {"transform": [3 rows of 4], "scale": s}: nerfstudio turned, moved and scaled its
 * poses before it trained.
 *
 *     x_trained = s (T [x_original; 1])                                          what the file says
 *     x_saved   = A [x_original; 1]                                              applied_transform of transforms.json
 *     x_trained = f (R x_saved + t),  [R t] = T inverse(A),  f = s / a           a: applied_scale, which s contains
 * The Gaussians are trained ones; poses of transforms.json are saved ones, those of a COLMAP model
 * original ones (A the identity). A point at depth z of a camera lies at depth f z of the moved
 * one, on the same pixel. Rows keep their bits. */
#include "stages/import/dataset/dataparser.h"

#include "kernels/similarity/similarity.h"
#include "stages/cameras/camera_file.h"
#include "stages/engine/json_text.h"
#include "stages/files/json_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME "dataparser_transforms.json"
#define FORGO "; --no-dataparser leaves the cameras where they are"

typedef struct {
    double transform[12], scale; /* as the file says */
    kiln_similarity move;        /* of the cameras' world to that of the Gaussians */
} motion;

/* Beside the Gaussians, or in the scene's folder. INRIA's training writes point_cloud/iteration_N
 * and knows of no such file, so that one in the scene's folder is about others. */
static kiln_status find_file(const kiln_dataset *d, char path[KILN_PATH_MAX], kiln_error *err)
{
    char dir[KILN_PATH_MAX];
    const size_t root = strlen(d->set.root);
    const bool iteration = strncmp(d->rows_path, d->set.root, root) == 0 &&
                           strncmp(d->rows_path + root, "/point_cloud/", 13) == 0;
    snprintf(dir, sizeof dir, "%.*s", (int)(kiln_path_base(d->rows_path) - d->rows_path),
             d->rows_path);
    if (dir[0]) KILN_TRY(kiln_path_join(path, KILN_PATH_MAX, dir, NAME, err));
    if (dir[0] && kiln_is_file(path)) {
        char *slash = strrchr(path, '/'); /* dir ends with one */
        if (slash > path && slash[-1] == '/') memmove(slash, slash + 1, strlen(slash));
        return KILN_OK;
    }
    KILN_TRY(kiln_path_join(path, KILN_PATH_MAX, d->set.root, NAME, err));
    if (iteration || !kiln_is_file(path)) path[0] = '\0';
    return KILN_OK;
}

/* Why the cameras stay; NULL: they are moved. */
static const char *why_not(const kiln_dataset *d, bool forgone)
{
    if (forgone) return "--no-dataparser";
    if (d->rows_kind != KILN_SCENE_SPLATS) return "it concerns Gaussians, but the scene has none";
    if (d->set.n_cameras == 0) return "the scene has no cameras that it could move";
    if (d->set.world == KILN_WORLD_OF_ROWS)
        return "the cameras come neither from a transforms.json nor from a COLMAP model";
    return NULL;
}

static kiln_status parse_dataparser(const char *path, motion *m, kiln_error *err)
{
    json_t *json = NULL;
    KILN_TRY(kiln_json_file_read(path, &json, err));
    const json_t *scale = json_object_get(json, "scale");
    const bool sound = kiln_json_matrix(json_object_get(json, "transform"), 3, 4, m->transform) &&
                       json_is_number(scale);
    m->scale = json_number_value(scale);
    json_decref(json);
    if (!sound)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' holds no transform as nerfstudio writes it: 3 x 4 numbers and a scale" FORGO,
            path);
    if (!(m->scale > 0 && isfinite(m->scale)))
        return kiln_fail(err, KILN_E_INPUT, "'%s': the scale %g is not positive" FORGO, path,
                         m->scale);
    return KILN_OK;
}

/* inverse[9] of the 3 x 3 part of a[12], rows of 4; false when there is none. */
static bool invert_linear(const double a[12], double inverse[9])
{
    double det = 0;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            const int r0 = (k + 1) % 3, r1 = (k + 2) % 3, c0 = (i + 1) % 3, c1 = (i + 2) % 3;
            inverse[3 * i + k] = a[4 * r0 + c0] * a[4 * r1 + c1] - a[4 * r0 + c1] * a[4 * r1 + c0];
        }
    for (int k = 0; k < 3; k++) det += a[4 * k] * inverse[k];
    for (int i = 0; i < 9; i++) inverse[i] /= det;
    return isfinite(det) && fabs(det) > 1e-12;
}

/* m->move of the file's numbers and what was applied to the world of the cameras. */
static kiln_status compose_move(const kiln_dataset *d, const char *path, motion *m, kiln_error *err)
{
    kiln_camera checked = {.name = "", .photo = "", .mask = ""};
    kiln_camera_file f = {0}; /* for the sentences of the check */
    double inverse[9];
    const double *t = m->transform, *a = d->set.applied;
    const bool saved = d->set.world == KILN_WORLD_SAVED;
    kiln_similarity *const s = &m->move;
    static const double identity[12] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
    if (!saved) a = identity;
    if (!invert_linear(a, inverse))
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' cannot be used: applied_transform of the cameras has no inverse" FORGO, path);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            s->r[3 * i + k] = t[4 * i] * inverse[k] + t[4 * i + 1] * inverse[3 + k] +
                              t[4 * i + 2] * inverse[6 + k];
    for (int i = 0; i < 3; i++)
        s->t[i] =
            t[4 * i + 3] - (s->r[3 * i] * a[3] + s->r[3 * i + 1] * a[7] + s->r[3 * i + 2] * a[11]);
    s->scale = m->scale / (saved ? d->set.applied_scale : 1);
    snprintf(f.path, sizeof f.path, "%s", path);
    KILN_TRY(kiln_camera_pose(&f, &checked, s->r, s->t, "the transform", err));
    if (f.n_normalised)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s': the transform is not a rotation, because it has a scale of its own" FORGO, path);
    if (!(s->scale > 0 && isfinite(s->scale)))
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' cannot be used: applied_scale of the cameras is %g" FORGO, path,
                         d->set.applied_scale);
    for (int i = 0; i < 3; i++) s->t[i] *= s->scale; /* s (R x + t) is s R x + s t */
    return KILN_OK;
}

/* {"dataparser_scale": s, "dataparser_transform": [...], "of": "cameras"} behind what is there. */
static kiln_status note_transform(kiln_dataset *d, const motion *m, kiln_error *err)
{
    const double *t = m->transform;
    json_t *all = NULL;
    if (d->set.transforms[0])
        KILN_TRY(kiln_json_parse(d->set.transforms, strlen(d->set.transforms), 0, "transforms",
                                 &all, NULL, err));
    if (!all) all = json_array();
    json_t *rows = json_array(),
           *one = json_pack("{s:o, s:O, s:s}", "dataparser_scale", kiln_json_real(m->scale),
                            "dataparser_transform", rows, "of", "cameras");
    bool made = all && rows && one;
    for (int i = 0; i < 3 && made; i++) {
        json_t *row = json_array();
        for (int k = 0; k < 4; k++)
            made = made && json_array_append_new(row, kiln_json_real(t[4 * i + k])) == 0;
        made = json_array_append_new(rows, row) == 0 && made;
    }
    made = made && json_array_append(all, one) == 0;
    const size_t n = made ? kiln_json_put(all, d->set.transforms, sizeof d->set.transforms - 1,
                                          JSON_COMPACT | JSON_SORT_KEYS)
                          : 0;
    json_decref(one);
    json_decref(rows);
    json_decref(all);
    if (n == 0)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for the transforms of the cameras");
    if (n > sizeof d->set.transforms - 1)
        return kiln_fail(err, KILN_E_BUG, "the transforms of the cameras need %zu bytes", n);
    d->set.transforms[n] = '\0';
    return KILN_OK;
}

kiln_status kiln_dataparser_apply(kiln_dataset *d, bool forgone, kiln_error *err)
{
    char path[KILN_PATH_MAX], what[160];
    motion m;
    KILN_TRY(find_file(d, path, err));
    if (!path[0]) return KILN_OK;
    d->has_dataparser = true;
    const char *const why = why_not(d, forgone);
    if (why)
        return kiln_camera_set_add_finding(&d->set, path, "frame", false,
                                           "nerfstudio's frame of training", why, err);
    KILN_TRY(parse_dataparser(path, &m, err));
    KILN_TRY(compose_move(d, path, &m, err));
    for (uint32_t i = 0; i < d->set.n_cameras; i++) {
        kiln_similarity_pose(&m.move, d->set.cameras[i].r, d->set.cameras[i].t);
        for (int k = 0; k < 3; k++)
            if (!isfinite(d->set.cameras[i].t[k]))
                return kiln_fail(err, KILN_E_INPUT,
                                 "'%s' moves camera '%.200s' beyond all bounds" FORGO, path,
                                 d->set.cameras[i].name);
    }
    KILN_TRY(note_transform(d, &m, err));
    snprintf(what, sizeof what, "cameras are moved into the Gaussians' world, scale %g",
             m.move.scale);
    KILN_TRY(kiln_camera_set_add_finding(&d->set, path, "frame", true, what, "", err));
    return kiln_camera_set_add_source(&d->set, path, "frame", err);
}
