/* view_request -- see view_request.h. */
#include "stages/frame/view_request.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the shortest decimal of a float32. The arithmetic uses the near plane as float32; with
 * its shortest decimal, a default of 0.2f and --near 0.2 are the same 0.2 in keys, names and
 * reports. */
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
    return kiln_fail(err, KILN_E_USAGE, "--near takes a distance above 0 or 'profile', not '%s'",
                     text);
}

kiln_status kiln_near_check(const char *text, kiln_error *err)
{
    double near_m;
    return kiln_near_parse(text, &near_m, err);
}

kiln_status kiln_view_request_init(kiln_view_request *s, const kiln_view_options *o,
                                   const kiln_scene *scene, const kiln_camera *camera,
                                   kiln_error *err)
{
    memset(s, 0, sizeof *s); /* the struct's bytes are compared */
    s->profile = (kiln_profile_id)o->profile;
    s->antialiased = o->antialiased == 1 || (o->antialiased == 0 && scene->antialiased);
    const kiln_profile *p = &kiln_profiles[s->profile];
    s->near_m = (double)p->near_m;
    KILN_TRY(kiln_near_parse(o->near_text, &s->near_m, err));
    s->near_m = shortest_decimal((float)s->near_m);
    const double intrinsics[4] = {camera->fx, camera->fy, camera->cx, camera->cy};
    kiln_view_init(&s->view, camera->r, camera->t, scene->origin, intrinsics, camera->width,
                   camera->height, (float)s->near_m, p->far_m);
    return KILN_OK;
}

bool kiln_view_request_may_see(const kiln_view_request *s, const kiln_chunk *c)
{
    if (c->count == 0) return false;
    kiln_project_bound b = {.max_log_scale = c->max_log_scale,
                            .max_opacity_logit = c->max_opacity_logit};
    memcpy(b.box_min, c->box_min, sizeof b.box_min);
    memcpy(b.box_max, c->box_max, sizeof b.box_max);
    return kiln_project_may_see(&s->view, s->profile, s->antialiased, &b);
}

kiln_status kiln_camera_name_check(const char *text, kiln_error *err)
{
    const size_t most = KILN_CAMERA_NAME - 1;
    if (*text && strlen(text) <= most) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE, "the name of a camera has 1 to %zu characters, not %zu",
                     most, strlen(text));
}

kiln_status kiln_camera_list_check(const char *text, kiln_error *err)
{
    const size_t most = KILN_CAMERA_NAME - 1;
    for (const char *at = text;; at++) {
        const size_t n = strcspn(at, ",");
        if (n == 0 || n > most)
            return kiln_fail(
                err, KILN_E_USAGE,
                "cameras are names or #INDEX of 1 to %zu characters, separated by commas, "
                "not '%.200s'",
                most, text);
        at += n;
        if (!*at) return KILN_OK;
    }
}

kiln_status kiln_camera_pick(const kiln_camera *cameras, uint32_t n, const char *text,
                             uint32_t *index, kiln_error *err)
{
    if (n == 0)
        return kiln_fail(err, KILN_E_USAGE, "the bake has no cameras, so '%s' cannot be chosen",
                         text);
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(cameras[i].name, text) != 0) continue;
        *index = i;
        return KILN_OK;
    }
    if (text[0] != '#')
        return kiln_fail(
            err, KILN_E_USAGE,
            "there is no camera '%s'; kiln-info lists them ('%s' to '%s'); '#0' is the first", text,
            cameras[0].name, cameras[n - 1].name);
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text + 1, &end, 10);
    if (errno || *end || end == text + 1 || v >= n)
        return kiln_fail(err, KILN_E_USAGE, "camera '%s' does not exist; there are '#0' to '#%u'",
                         text, n - 1);
    *index = (uint32_t)v;
    return KILN_OK;
}

static kiln_status pick_each(const kiln_camera *cameras, uint32_t n, const char *text, bool list,
                             kiln_error *err)
{
    char name[KILN_CAMERA_NAME];
    uint32_t at;
    for (;; text++) {
        const size_t length = list ? strcspn(text, ",") : strlen(text);
        (void)snprintf(name, sizeof name, "%.*s",
                       length < sizeof name ? (int)length : (int)sizeof name - 1, text);
        KILN_TRY(kiln_camera_pick(cameras, n, name, &at, err));
        text += length;
        if (!*text) return KILN_OK;
    }
}

kiln_status kiln_cameras_named_check(kiln_manifest *m, const char *option, const char *text,
                                     bool list, kiln_error *err)
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
