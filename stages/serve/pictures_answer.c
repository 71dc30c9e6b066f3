/* pictures_answer -- a camera's photo, picture and tile heat map, under the rules of kiln-report: a
 * photo only if import has read it and its content is still the same, a picture only in the bake's
 * folder; what is sent has been decoded and encoded again. */
#include "stages/report/foreign_picture.h"
#include "stages/report/thumbnail.h"
#include "stages/report/view_pictures.h"
#include "stages/serve/routes.h"

#include <math.h>
#include <string.h>

enum { SIDE_MAX = 2048 /* of what is sent, pixels */, QUALITY = 88 };

/* By its key, because the cameras may be others than those of which the page was told. */
static kiln_status find_camera(kiln_bake_state *s, const char *key, const kiln_bake_views **views,
                               const kiln_bake_camera **out, kiln_error *err)
{
    char hex[33];
    KILN_TRY(kiln_bake_state_views(s, views, err));
    for (uint32_t i = 0; i < (*views)->n_cameras; i++) {
        *out = &(*views)->cameras[i];
        if (strncmp(kiln_camera_key((*out)->name, hex), key, sizeof hex - 1) == 0) return KILN_OK;
    }
    return kiln_fail(err, KILN_E_STALE,
                     "the bake has no such camera now; cameras.json lists its cameras");
}

static kiln_status background_of(kiln_bake_state *s, const kiln_bake_image *image, double out[3],
                                 kiln_error *err)
{
    const kiln_scene *scene;
    memset(out, 0, 3 * sizeof *out);
    KILN_TRY(kiln_bake_state_scene(s, &scene, err));
    if (image)
        memcpy(out, image->background, 3 * sizeof *out);
    else if (scene->has_background)
        memcpy(out, scene->background, 3 * sizeof *out);
    return KILN_OK;
}

static kiln_status encode_picture(const kiln_picture *p, const char *why,
                                  const double background[3], kiln_reply *out, kiln_error *err)
{
    if (why) return kiln_fail(err, KILN_E_STALE, "%s", why);
    const uint32_t longer = p->width > p->height ? p->width : p->height;
    const double scale = longer > SIDE_MAX ? (double)SIDE_MAX / longer : 1;
    kiln_thumbnail t = {.width = (uint32_t)fmax(1, floor(p->width * scale + 0.5)),
                        .height = (uint32_t)fmax(1, floor(p->height * scale + 0.5))};
    out->type = "image/jpeg";
    kiln_status st = kiln_thumbnail_make(p, background, &t, err);
    if (st == KILN_OK) st = kiln_jpeg_encode(t.rgb, t.width, t.height, QUALITY, &out->body, err);
    kiln_thumbnail_release(&t);
    return st;
}

kiln_status kiln_answer_photo(kiln_bake_state *s, const kiln_request *q, kiln_reply *out,
                              kiln_error *err)
{
    const kiln_bake_views *views;
    const kiln_bake_camera *c = NULL;
    const kiln_source_file *sources;
    uint32_t n_sources;
    double background[3];
    kiln_picture p = {0};
    const char *why = NULL;
    KILN_TRY(find_camera(s, q->path.digest, &views, &c, err));
    KILN_TRY(kiln_bake_state_sources(s, &sources, &n_sources, err));
    KILN_TRY(background_of(s, kiln_bake_view_image(views, c->name), background, err));
    kiln_bake_state_leave(s); /* decoding takes long, and needs no more of the manifest */
    kiln_status st = kiln_view_photo_read(c, background, sources, n_sources, &p, &why, err);
    if (st == KILN_OK) st = encode_picture(&p, why, background, out, err);
    kiln_picture_release(&p);
    return st;
}

kiln_status kiln_answer_picture(kiln_bake_state *s, const kiln_request *q, kiln_reply *out,
                                kiln_error *err)
{
    const kiln_bake_views *views;
    const kiln_bake_camera *c = NULL;
    double background[3];
    kiln_picture p = {0};
    const char *why = NULL;
    KILN_TRY(find_camera(s, q->path.digest, &views, &c, err));
    const kiln_bake_image *image = kiln_bake_view_image(views, c->name);
    if (!image) return kiln_fail(err, KILN_E_STALE, "the camera has no picture yet");
    KILN_TRY(background_of(s, image, background, err));
    kiln_bake_state_leave(s);
    kiln_status st = kiln_foreign_render(s->path, image->path, &p, &why, err);
    if (st == KILN_OK) st = encode_picture(&p, why, background, out, err);
    kiln_picture_release(&p);
    return st;
}

kiln_status kiln_answer_heat(kiln_bake_state *s, const kiln_request *q, kiln_reply *out,
                             kiln_error *err)
{
    const kiln_bake_views *views;
    kiln_view_pictures v = {.camera = NULL};
    KILN_TRY(find_camera(s, q->path.digest, &views, &v.camera, err));
    const kiln_status st = kiln_view_heat_make(s->m, views, &v, err);
    out->type = "image/webp";
    out->body = v.heat;
    if (st == KILN_OK && v.heat.size == 0)
        return kiln_fail(err, KILN_E_STALE, "the camera has no tile table");
    return st;
}
