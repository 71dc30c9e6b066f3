/* cameras_answer -- cameras.json: each camera as kiln-render draws it, and what there is to
 * compare. An id is the place in the list by name: of one version of the state. A key stays the
 * camera's, and addresses have it. */
#include "stages/engine/json_text.h"
#include "stages/serve/routes.h"

#include <stdlib.h>
#include <string.h>

static int photos_by_path(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Paths of the photos that import read, sorted; [*n] borrowed pointers, free(*out). */
static kiln_status photo_paths(kiln_bake_state *s, const char ***out, size_t *n, kiln_error *err)
{
    const kiln_source_file *files;
    uint32_t n_files;
    *n = 0;
    KILN_TRY(kiln_bake_state_sources(s, &files, &n_files, err));
    KILN_TRY(KILN_ALLOC(out, n_files, "paths of photos", err));
    for (uint32_t i = 0; i < n_files; i++)
        if (strcmp(files[i].role, "photo") == 0) (*out)[(*n)++] = files[i].path;
    if (*n) qsort(*out, *n, sizeof **out, photos_by_path);
    return KILN_OK;
}

/* Means are relative to the scene's origin, so the camera is, too. */
static void translation(const kiln_bake_camera *c, const double origin[3], double out[3])
{
    for (int i = 0; i < 3; i++) {
        out[i] = c->t[i];
        for (int k = 0; k < 3; k++) out[i] += c->r[3 * i + k] * origin[k];
    }
}

static json_t *pack_camera(const kiln_bake_views *v, uint32_t id, const double origin[3],
                           bool has_photo)
{
    const kiln_bake_camera *c = &v->cameras[id];
    const kiln_bake_image *image = kiln_bake_view_image(v, c->name);
    double t[3];
    char key[33];
    translation(c, origin, t);
    return json_pack(
        "{s:I, s:s, s:o, s:o, s:b, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:o, "
        "s:o}",
        "id", (json_int_t)id, "key", kiln_camera_key(c->name, key), "name",
        kiln_json_string(c->name), "split", kiln_json_string(c->split), "synthetic", c->synthetic,
        "width", (json_int_t)c->width, "height", (json_int_t)c->height, "fx", kiln_json_real(c->fx),
        "fy", kiln_json_real(c->fy), "cx", kiln_json_real(c->cx), "cy", kiln_json_real(c->cy), "R",
        kiln_json_reals(c->r, 9), "t", kiln_json_reals(t, 3), "photo", has_photo, "picture",
        image && image->path[0], "heat", kiln_bake_view_table(v, c->name) != NULL, "psnr",
        image ? kiln_json_real(image->psnr) : json_null(), "ssim",
        image ? kiln_json_real(image->ssim) : json_null());
}

/* Each is text at once: 20,000 of them are 60 MB as JSON, and 14 as text. */
static kiln_status put_camera(const kiln_bake_views *v, uint32_t id, const double origin[3],
                              bool has_photo, kiln_buffer *out, kiln_error *err)
{
    json_t *camera = pack_camera(v, id, origin, has_photo);
    char *text = kiln_json_text(camera, JSON_COMPACT);
    json_decref(camera);
    kiln_status st = text ? KILN_OK : kiln_fail(err, KILN_E_NOMEM, "out of memory for an answer");
    if (st == KILN_OK && id) st = kiln_buffer_put(out, ",", 1, err);
    if (st == KILN_OK) st = kiln_buffer_put(out, text, strlen(text), err);
    free(text);
    return st;
}

static kiln_status put_cameras(kiln_bake_state *s, kiln_buffer *out, kiln_error *err)
{
    const kiln_bake_views *v;
    const kiln_scene *scene;
    const char **photos = NULL;
    size_t n_photos;
    const kiln_status known = kiln_bake_state_scene(s, &scene, err);
    if (known == KILN_E_STALE) return KILN_OK;
    if (known != KILN_OK) return known;
    KILN_TRY(kiln_bake_state_views(s, &v, err));
    kiln_status st = photo_paths(s, &photos, &n_photos, err);
    for (uint32_t i = 0; i < v->n_cameras && st == KILN_OK; i++) {
        const char *path = v->cameras[i].photo;
        const bool has =
            n_photos && path[0] && bsearch(&path, photos, n_photos, sizeof *photos, photos_by_path);
        st = put_camera(v, i, scene->origin, has, out, err);
    }
    free(photos);
    return st;
}

kiln_status kiln_answer_cameras(kiln_bake_state *s, const kiln_request *q, kiln_reply *out,
                                kiln_error *err)
{
    (void)q;
    out->type = "application/json";
    KILN_TRY(kiln_buffer_printf(&out->body, err, "{\"version\":%llu,\"cameras\":[",
                                (unsigned long long)s->version));
    KILN_TRY(put_cameras(s, &out->body, err));
    return kiln_buffer_put(&out->body, "]}", 2, err);
}
