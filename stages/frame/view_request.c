/* view_request -- fills view requests, and makes the keys of tables and pictures from them. */
#include "stages/frame/frame.h"

#include "stages/engine/stage_graph.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the shortest decimal of a float32. The arithmetic uses the near plane as float32; with its shortest decimal, a default of
 * 0.2f and --near 0.2 are the same 0.2 in keys, names and reports. */
static double shortest_decimal(float v)
{
    char text[32];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)v);
        if (strtof(text, NULL) == v) break;
    }
    return strtod(text, NULL);
}

kiln_status kiln_near_parse(const char *text, double *out, kiln_error *err)
{
    char *end;
    if (strcmp(text, "profile") == 0) return KILN_OK;
    errno = 0;
    *out = strtod(text, &end);
    if (!errno && !*end && end != text && (float)*out > 0 && isfinite((float)*out)) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE, "--near takes a distance above 0 or 'profile', not '%s'", text);
}

kiln_status kiln_near_check(const char *text, kiln_error *err)
{
    double near_m;
    return kiln_near_parse(text, &near_m, err);
}

kiln_status kiln_view_request_init(kiln_view_request *s, const kiln_view_options *o, const kiln_scene *scene,
                                   const kiln_camera *camera, kiln_error *err)
{
    memset(s, 0, sizeof *s); /* the struct's bytes are compared */
    s->profile = (kiln_profile_id)o->profile;
    s->antialiased = o->antialiased == 1 || (o->antialiased == 0 && scene->antialiased);
    const kiln_profile *p = &kiln_profiles[s->profile];
    s->near_m = (double)p->near_m;
    KILN_TRY(kiln_near_parse(o->near_text, &s->near_m, err));
    s->near_m = shortest_decimal((float)s->near_m);
    const double intrinsics[4] = {camera->fx, camera->fy, camera->cx, camera->cy};
    kiln_view_init(&s->view, camera->r, camera->t, scene->origin, intrinsics, camera->width, camera->height, (float)s->near_m,
                   p->far_m);
    return KILN_OK;
}

bool kiln_view_request_may_see(const kiln_view_request *s, const kiln_chunk *c)
{
    if (c->count == 0) return false;
    kiln_project_bound b = {.max_log_scale = c->max_log_scale, .max_opacity_logit = c->max_opacity_logit};
    memcpy(b.box_min, c->box_min, sizeof b.box_min);
    memcpy(b.box_max, c->box_max, sizeof b.box_max);
    return kiln_project_may_see(&s->view, s->profile, s->antialiased, &b);
}

static void key_plane(kiln_hasher *h, const kiln_chunk *c, const char *name)
{
    const kiln_plane *p = kiln_chunk_plane(c, name);
    for (uint32_t i = 0; p && i < p->data.n_segments; i++) kiln_key_hash(h, name, p->data.segments[i]);
}

static kiln_hash chunk_key(const kiln_chunk *c, const char *const *planes, size_t n)
{
    kiln_hasher *h = kiln_hasher_new();
    kiln_key_text(h, "chunk", c->name);
    for (size_t i = 0; i < n; i++) key_plane(h, c, planes[i]);
    return kiln_key_end(h);
}

kiln_status kiln_chunk_keys_make(const kiln_layer *layer, kiln_chunk_keys *out, kiln_error *err)
{
    enum { ALL = 7, GEOMETRY = 5 };
    static const char *const planes[ALL] = {"means", "log_scales", "quats", "opacity_logits", "source_row", "sh0", "shN"};
    *out = (kiln_chunk_keys){.layer = layer};
    KILN_TRY(KILN_ALLOC(&out->geometry, layer->n_chunks, "keys of chunks", err));
    const kiln_status st = KILN_ALLOC(&out->colour, layer->n_chunks, "keys of chunks", err);
    if (st != KILN_OK) {
        kiln_chunk_keys_release(out);
        return st;
    }
    for (uint32_t i = 0; i < layer->n_chunks; i++) {
        out->geometry[i] = chunk_key(&layer->chunks[i], planes, GEOMETRY);
        out->colour[i] = chunk_key(&layer->chunks[i], planes, ALL);
    }
    return KILN_OK;
}

void kiln_chunk_keys_release(kiln_chunk_keys *k)
{
    free(k->geometry);
    free(k->colour);
    *k = (kiln_chunk_keys){0};
}

/* Adds the view, and the hash of each of its chunks. */
static void key_request(kiln_hasher *h, const kiln_view_request *s, const kiln_view_chunks *c, const kiln_hash *chunks)
{
    KILN_KEY_LISTS(kiln_view_request, 176);
    kiln_key_bytes(h, "view", &s->view, sizeof s->view); /* near_m is in it */
    kiln_key_text(h, "profile", kiln_profiles[s->profile].name);
    kiln_key_u64(h, "antialiased", s->antialiased);
    for (uint32_t i = 0; i < c->n; i++) kiln_key_hash(h, "chunk", chunks[c->numbers[i]]);
}

/* Returns the version in stages.def. If it is raised there, earlier tables and pictures are no longer found. */
static uint32_t version_of(const char *stage)
{
    const kiln_stage_info *info = kiln_stage_find(stage);
    return info ? info->version : 0;
}

kiln_hash kiln_view_request_table_key(const kiln_view_request *s, const kiln_chunk_keys *k, const kiln_view_chunks *c)
{
    kiln_hasher *h = kiln_key_begin("tiles", version_of("tiles"));
    key_request(h, s, c, k->geometry);
    return kiln_key_end(h);
}

kiln_hash kiln_view_request_picture_key(const kiln_view_request *s, const kiln_chunk_keys *k, const kiln_view_chunks *c,
                                        const double background[3], const char *device_kind)
{
    kiln_hasher *h = kiln_key_begin("render", version_of("render"));
    key_request(h, s, c, k->colour);
    kiln_key_u64(h, "sh_degree", k->layer->sh_degree);
    for (int i = 0; i < 3; i++) kiln_key_f64(h, "background", background[i]);
    kiln_key_text(h, "device", device_kind);
    return kiln_key_end(h);
}

kiln_status kiln_camera_name_check(const char *text, kiln_error *err)
{
    const size_t most = KILN_CAMERA_NAME - 1;
    if (*text && strlen(text) <= most) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE, "the name of a camera has 1 to %zu characters, not %zu", most, strlen(text));
}

kiln_status kiln_camera_list_check(const char *text, kiln_error *err)
{
    const size_t most = KILN_CAMERA_NAME - 1;
    for (const char *at = text;; at++) {
        const size_t n = strcspn(at, ",");
        if (n == 0 || n > most)
            return kiln_fail(err, KILN_E_USAGE,
                             "cameras are names or #INDEX, with commas between them, each of 1 to %zu characters; "
                             "not '%.200s'",
                             most, text);
        at += n;
        if (!*at) return KILN_OK;
    }
}

kiln_status kiln_camera_pick(const kiln_camera *cameras, uint32_t n, const char *text, uint32_t *index, kiln_error *err)
{
    if (n == 0) return kiln_fail(err, KILN_E_USAGE, "there is no camera to choose '%s' from", text);
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(cameras[i].name, text) != 0) continue;
        *index = i;
        return KILN_OK;
    }
    if (text[0] != '#')
        return kiln_fail(err, KILN_E_USAGE, "there is no camera '%s'; kiln-info lists them ('%s' to '%s'), '#0' is the first", text,
                         cameras[0].name, cameras[n - 1].name);
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text + 1, &end, 10);
    if (errno || *end || end == text + 1 || v >= n)
        return kiln_fail(err, KILN_E_USAGE, "camera '%s' is none of '#0' to '#%u'", text, n - 1);
    *index = (uint32_t)v;
    return KILN_OK;
}

static kiln_status pick_each(const kiln_camera *cameras, uint32_t n, const char *text, bool list, kiln_error *err)
{
    char name[KILN_CAMERA_NAME];
    uint32_t at;
    for (;; text++) {
        const size_t length = list ? strcspn(text, ",") : strlen(text);
        (void)snprintf(name, sizeof name, "%.*s", length < sizeof name ? (int)length : (int)sizeof name - 1, text);
        KILN_TRY(kiln_camera_pick(cameras, n, name, &at, err));
        text += length;
        if (!*text) return KILN_OK;
    }
}

kiln_status kiln_cameras_named_check(kiln_manifest *m, const char *option, const char *text, bool list, kiln_error *err)
{
    kiln_camera *cameras = NULL;
    uint32_t n = 0;
    if (!text || !m) return KILN_OK;
    KILN_TRY(kiln_cameras_get(m, &cameras, &n, err));
    const kiln_status st = n > 0 ? pick_each(cameras, n, text, list, err) : KILN_OK;
    free(cameras);
    if (st != KILN_OK) kiln_note(err, "%s", option);
    return st;
}
