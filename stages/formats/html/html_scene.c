/* html_scene -- see the header. A function that makes JSON returns NULL if memory is gone, and
 * json_pack does so if one of its values is NULL; the caller of the whole looks. */
#include "stages/formats/html/html_scene.h"

#include "base/file.h"
#include "base/quote.h"
#include "stages/engine/json_text.h"
#include "stages/frame/camera_path.h"
#include "stages/frame/scene_box.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEAR 0.01 /* gsplat's near plane, where the bake has no pictures */

/* In the coordinates of what is written. */
typedef struct {
    double up[3], centre[3], radius;
} placed;

/* Quoted as for a terminal: nothing reorders what is read. */
static json_t *quoted_json(const char *text)
{
    char quoted[8 * KILN_CAMERA_NAME];
    kiln_quote(quoted, sizeof quoted, text);
    return kiln_json_string(quoted);
}

/* ---- where things are ------------------------------------------------------------------------ */

/* The world that is written: moved, and measured from the base. */
static void moved_point(const kiln_export *e, const double from[3], double to[3])
{
    const kiln_similarity *m = &e->edits.move;
    for (int a = 0; a < 3; a++) {
        const double turned =
            m->r[3 * a] * from[0] + m->r[3 * a + 1] * from[1] + m->r[3 * a + 2] * from[2];
        to[a] = (e->edits.moves ? m->scale * turned + m->t[a] : from[a]) - e->base[a];
    }
}

static void move_camera(const kiln_export *e, kiln_camera *c)
{
    if (e->edits.moves) kiln_similarity_pose(&e->edits.move, c->r, c->t);
    for (int a = 0; a < 3; a++)
        c->t[a] +=
            c->r[3 * a] * e->base[0] + c->r[3 * a + 1] * e->base[1] + c->r[3 * a + 2] * e->base[2];
}

/* The sphere around what is written. The scene's own box leaves out rows far away; the rows' box
 * knows of filters and of bakes that were added. */
static kiln_status sphere_of(const kiln_export *e, double centre[3], double *radius,
                             kiln_error *err)
{
    double lo[3], hi[3], half = 0, rows_half = 0;
    KILN_TRY(kiln_scene_box(kiln_export_scene(e), e->bakes[0].layer, lo, hi, err));
    for (int a = 0; a < 3; a++) half += (hi[a] - lo[a]) * (hi[a] - lo[a]) / 4;
    half = sqrt(half) * (e->edits.moves ? e->edits.move.scale : 1);
    moved_point(e, (double[3]){(lo[0] + hi[0]) / 2, (lo[1] + hi[1]) / 2, (lo[2] + hi[2]) / 2},
                centre);
    for (int a = 0; a < 3; a++) {
        const double from = (double)e->survey.means[a].lo, to = (double)e->survey.means[a].hi;
        rows_half += (to - from) * (to - from) / 4;
        centre[a] = e->n_bakes > 1 ? (from + to) / 2 : fmin(fmax(centre[a], from), to);
    }
    *radius = e->n_bakes > 1 ? sqrt(rows_half) : fmin(half, sqrt(rows_half));
    return KILN_OK;
}

/* ---- the JSON -------------------------------------------------------------------------------- */

static json_t *camera_json(const kiln_camera *c)
{
    return json_pack("{s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
                     quoted_json(c->name), "split", quoted_json(c->synthetic ? "orbit" : c->split),
                     "width", (json_int_t)c->width, "height", (json_int_t)c->height, "fx",
                     kiln_json_real(c->fx), "fy", kiln_json_real(c->fy), "cx",
                     kiln_json_real(c->cx), "cy", kiln_json_real(c->cy), "R",
                     kiln_json_reals(c->r, 9), "t", kiln_json_reals(c->t, 3));
}

/* As the bake's pictures are drawn; before there are any, as the scene was trained. */
static bool is_antialiased(const kiln_export *e)
{
    return e->views->n_tables ? e->views->antialiased : kiln_export_scene(e)->antialiased;
}

/* Without the cameras, which are its last member. */
static json_t *scene_json(const kiln_export *e, uint64_t bytes, const placed *at)
{
    static const double black[3] = {0, 0, 0};
    const kiln_scene *s = kiln_export_scene(e);
    const char *name = s->name[0] ? s->name : kiln_path_base(e->bakes[0].path);
    return json_pack("{s:i, s:o, s:I, s:i, s:b, s:o, s:o, s:o, s:o, s:o, s:I}", "version",
                     KILN_HTML_SCENE_VERSION, "name", quoted_json(name), "rows",
                     (json_int_t)e->n_rows, "sh_degree", (int)kiln_export_degree(e, 3),
                     "antialiased", (int)is_antialiased(e), "near",
                     kiln_json_real(e->views->n_tables ? e->views->near_m : NEAR), "background",
                     kiln_json_reals(s->has_background ? s->background : black, 3), "up",
                     kiln_json_reals(at->up, 3), "centre", kiln_json_reals(at->centre, 3), "radius",
                     kiln_json_real(at->radius), "bytes", (json_int_t)bytes);
}

/* ---- the text -------------------------------------------------------------------------------- */

typedef struct {
    const kiln_export *e;
    kiln_text_sink_fn *sink;
    void *context;
    kiln_camera *moved; /* the camera in work */
    uint64_t n;         /* cameras before it */
} scene_text;

static kiln_status put_scene_text(const scene_text *t, const char *text, size_t bytes,
                                  kiln_error *err)
{
    return t->sink(t->context, text, bytes, err);
}

static kiln_status put_escaped(const scene_text *t, const char *text, size_t bytes, kiln_error *err)
{
    char code[8];
    for (size_t at = 0; at < bytes;) {
        size_t n = 0;
        while (at + n < bytes && !strchr("<>&", text[at + n])) n++;
        KILN_TRY(put_scene_text(t, text + at, n, err));
        at += n;
        if (at < bytes)
            KILN_TRY(put_scene_text(
                t, code, (size_t)snprintf(code, sizeof code, "\\u%04x", (unsigned)text[at++]),
                err));
    }
    return KILN_OK;
}

/* Takes the value. cut: bytes of its end that are left out. */
static kiln_status put_json(const scene_text *t, json_t *value, size_t cut, kiln_error *err)
{
    char *text = kiln_json_text(value, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref(value);
    if (!text)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for the cameras of '%s'", t->e->target);
    const kiln_status st = put_escaped(t, text, strlen(text) - cut, err);
    free(text);
    return st;
}

static kiln_status put_camera(void *context, const kiln_camera *c, kiln_error *err)
{
    scene_text *t = context;
    *t->moved = *c;
    move_camera(t->e, t->moved);
    if (t->n++) KILN_TRY(put_scene_text(t, ",", 1, err));
    return put_json(t, camera_json(t->moved), 0, err);
}

/* ---- the poses ------------------------------------------------------------------------------- */

typedef struct {
    double r[9], t[3];
} pose;

typedef struct {
    const kiln_export *e;
    kiln_camera *moved;
    pose *poses; /* [capacity] */
    uint32_t n, capacity;
} pose_list;

static kiln_status add_pose(void *context, const kiln_camera *c, kiln_error *err)
{
    pose_list *l = context;
    if (l->n == l->capacity)
        return kiln_fail(err, KILN_E_INPUT, "there are more cameras than were counted");
    *l->moved = *c;
    move_camera(l->e, l->moved);
    memcpy(l->poses[l->n].r, l->moved->r, sizeof l->poses->r);
    memcpy(l->poses[l->n].t, l->moved->t, sizeof l->poses->t);
    l->n++;
    return KILN_OK;
}

static kiln_status place_first_camera(const kiln_export *e, kiln_camera *moved, placed *at,
                                      kiln_error *err)
{
    double focus[3];
    char axis[sizeof kiln_export_scene(e)->up_axis];
    pose_list l = {.e = e, .moved = moved, .capacity = e->views->n_cameras};
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC(&l.poses, l.capacity, "cameras", err));
    KILN_GO(kiln_cameras_each(e->views->m, add_pose, &l, err));
    kiln_export_up_axis(e, axis, sizeof axis);
    kiln_camera_path_up(axis, KILN_POSES(l.poses, l.n), at->up);
    KILN_GO(sphere_of(e, at->centre, &at->radius, err));
    if (kiln_camera_path_focus(KILN_POSES(l.poses, l.n), focus))
        memcpy(at->centre, focus, sizeof focus);
done:
    free(l.poses);
    return st;
}

kiln_status kiln_html_scene_write(const kiln_export *e, uint64_t bytes, kiln_text_sink_fn *sink,
                                  void *context, kiln_error *err)
{
    placed at;
    scene_text t = {.e = e, .sink = sink, .context = context};
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC(&t.moved, 1, "a camera", err));
    KILN_GO(place_first_camera(e, t.moved, &at, err));
    KILN_GO(put_json(&t, scene_json(e, bytes, &at), strlen("}"), err));
    KILN_GO(put_scene_text(&t, ",\"cameras\":[", strlen(",\"cameras\":["), err));
    KILN_GO(kiln_cameras_each(e->views->m, put_camera, &t, err));
    KILN_GO(put_scene_text(&t, "]}", strlen("]}"), err));
done:
    free(t.moved);
    return st;
}
