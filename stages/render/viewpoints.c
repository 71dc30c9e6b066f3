/* viewpoints -- see viewpoints.h. */
#include "stages/render/viewpoints.h"

#include "base/count.h"
#include "base/log.h"
#include "stages/cameras/pinholes.h"
#include "stages/frame/camera_path.h"
#include "stages/frame/scene_box.h"
#include "stages/frame/view_request.h"
#include "stages/image/image.h"
#include "stages/select/move.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PICTURES_MOST = 100000 };

void kiln_viewpoints_release(kiln_viewpoints *v)
{
    free(v->cameras);
    kiln_texts_release(&v->names);
    kiln_camera_set_release(&v->file);
    *v = (kiln_viewpoints){0};
}

/* ---- texts of options ------------------------------------------------------------------------ */
typedef kiln_render_crop rectangle;

/* Reads a whole number up to `most`; *text moves behind it. */
static bool read_whole_number(const char **text, uint32_t most, uint32_t *out)
{
    char *end;
    if (**text < '0' || **text > '9') return false;
    errno = 0;
    const unsigned long long v = strtoull(*text, &end, 10);
    if (errno || v > most) return false;
    *text = end;
    *out = (uint32_t)v;
    return true;
}

static bool read_char(const char **text, char c)
{
    if (**text != c) return false;
    (*text)++;
    return true;
}

/* "WxH", behind which is "+X+Y" where placed. */
static bool read_rectangle(const char *text, bool placed, rectangle *out)
{
    *out = (rectangle){0};
    const bool sized = read_whole_number(&text, KILN_CAMERA_SIZE_MAX, &out->width) &&
                       read_char(&text, 'x') &&
                       read_whole_number(&text, KILN_CAMERA_SIZE_MAX, &out->height) &&
                       out->width > 0 && out->height > 0;
    const bool at = !placed || (sized && read_char(&text, '+') &&
                                read_whole_number(&text, KILN_CAMERA_SIZE_MAX, &out->x) &&
                                read_char(&text, '+') &&
                                read_whole_number(&text, KILN_CAMERA_SIZE_MAX, &out->y));
    return sized && at && *text == '\0';
}

/* What --orbit says; NAN: not said. */
typedef struct {
    uint32_t n;
    double radius, height, centre[3];
} orbit_text;

static bool read_real(const char **text, double *out)
{
    char *end;
    errno = 0;
    *out = strtod(*text, &end);
    if (end == *text || errno == ERANGE || !isfinite(*out)) return false;
    *text = end;
    return true;
}

static bool read_word(const char **text, const char *word)
{
    const size_t n = strlen(word);
    if (strncmp(*text, word, n) != 0) return false;
    *text += n;
    return true;
}

static bool read_orbit(const char *text, orbit_text *out)
{
    *out = (orbit_text){.radius = NAN, .height = NAN, .centre = {NAN, NAN, NAN}};
    bool good = read_whole_number(&text, PICTURES_MOST, &out->n) && out->n > 0;
    while (good && read_char(&text, ',')) {
        if (read_word(&text, "radius="))
            good = isnan(out->radius) && read_real(&text, &out->radius) && out->radius > 0;
        else if (read_word(&text, "height="))
            good = isnan(out->height) && read_real(&text, &out->height);
        else if (read_word(&text, "centre="))
            good = isnan(out->centre[0]) && read_real(&text, &out->centre[0]) &&
                   read_char(&text, ':') && read_real(&text, &out->centre[1]) &&
                   read_char(&text, ':') && read_real(&text, &out->centre[2]);
        else
            good = false;
    }
    return good && *text == '\0';
}

static bool read_point(const char *text, double out[3])
{
    return read_real(&text, &out[0]) && read_char(&text, ',') && read_real(&text, &out[1]) &&
           read_char(&text, ',') && read_real(&text, &out[2]) && *text == '\0';
}

static kiln_status check_pair(bool a, const char *a_name, bool b, const char *b_name,
                              kiln_error *err)
{
    if (!a || !b) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE, "--%s and --%s do not go together; leave out one of them",
                     a_name, b_name);
}

kiln_status kiln_orbit_check(const char *text, kiln_error *err)
{
    orbit_text orbit;
    if (read_orbit(text, &orbit)) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE,
                     "--orbit takes N (1 to %d), optionally followed by ,radius=R (above 0), "
                     ",height=H and ,centre=X:Y:Z, not '%s'",
                     PICTURES_MOST, text);
}

kiln_status kiln_look_at_check(const char *text, kiln_error *err)
{
    const double most = 1e100; /* the square of a distance stays finite */
    double point[3];
    if (read_point(text, point) && fabs(point[0]) < most && fabs(point[1]) < most &&
        fabs(point[2]) < most)
        return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE,
                     "--look-at takes X,Y,Z in scene units such as 0,1.5,0, not '%s'", text);
}

kiln_status kiln_size_check(const char *text, kiln_error *err)
{
    rectangle r;
    if (!read_rectangle(text, false, &r))
        return kiln_fail(err, KILN_E_USAGE,
                         "--size takes WxH such as 1920x1080, each 1 to %u, not '%s'",
                         KILN_CAMERA_SIZE_MAX, text);
    if ((uint64_t)r.width * r.height <= KILN_PICTURE_MAX) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE, "--size %s: a picture has at most %llu pixels", text,
                     (unsigned long long)KILN_PICTURE_MAX);
}

kiln_status kiln_crop_check(const char *text, kiln_error *err)
{
    rectangle r;
    if (read_rectangle(text, true, &r)) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE, "--crop takes WxH+X+Y such as 640x480+100+50, not '%s'",
                     text);
}

bool kiln_viewpoints_sized(const kiln_viewpoint_options *o, uint32_t size[2], const char **by)
{
    rectangle r;
    const char *text = o->crop ? o->crop : o->size;
    if (!text || !read_rectangle(text, o->crop != NULL, &r)) return false;
    *by = o->crop ? "--crop" : "--size";
    size[0] = r.width;
    size[1] = r.height;
    return true;
}

bool kiln_viewpoints_are_own(const kiln_viewpoint_options *o)
{
    return !o->cameras && !o->orbit && o->interpolate == 0 && !o->size && !o->crop &&
           isnan(o->scale);
}

/* A file that cannot be read is found before anything is drawn, or baked. */
static kiln_status check_camera_file(const char *path, kiln_error *err)
{
    kiln_camera_set file = {0};
    const kiln_status st = kiln_cameras_read(path, NULL, &file, err);
    kiln_camera_set_release(&file);
    if (st != KILN_OK) kiln_note(err, "--cameras");
    return st;
}

/* A picture that is cut out of one whose size is known lies within it. */
static kiln_status check_crop_within(const kiln_viewpoint_options *o, kiln_error *err)
{
    rectangle size, r;
    if (!o->crop || !o->size || !read_rectangle(o->size, false, &size) ||
        !read_rectangle(o->crop, true, &r))
        return KILN_OK;
    if ((uint64_t)r.x + r.width <= size.width && (uint64_t)r.y + r.height <= size.height)
        return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE, "--crop %s is not within pictures of --size %s", o->crop,
                     o->size);
}

kiln_status kiln_viewpoints_check(const kiln_viewpoint_options *o, kiln_error *err)
{
    KILN_TRY(check_pair(o->orbit, "orbit", o->cameras, "cameras", err));
    KILN_TRY(check_pair(o->orbit, "orbit", o->interpolate > 0, "interpolate", err));
    KILN_TRY(check_pair(!isnan(o->scale), "scale", o->size, "size", err));
    if (o->through && o->interpolate == 0)
        return kiln_fail(err, KILN_E_USAGE,
                         "--through names the cameras of a path; give the number of its pictures "
                         "with --interpolate N");
    if (o->constant_speed && o->interpolate == 0)
        return kiln_fail(err, KILN_E_USAGE,
                         "--constant-speed concerns a path; give the number of its pictures with "
                         "--interpolate N");
    if (o->look_at && o->interpolate == 0)
        return kiln_fail(
            err, KILN_E_USAGE,
            "--look-at is of a path; say with --interpolate N how many pictures it has%s",
            o->orbit ? ", or give --orbit a centre=X:Y:Z" : "");
    KILN_TRY(check_crop_within(o, err));
    return o->cameras ? check_camera_file(o->cameras, err) : KILN_OK;
}

/* ---- cameras of the file or the bake --------------------------------------------------------- */
static int viewpoints_by_name(const void *a, const void *b)
{
    return strcmp(((const kiln_camera *)a)->name, ((const kiln_camera *)b)->name);
}

/* As import would have, by the options that it stored. */
static kiln_status set_pinholes(kiln_manifest *m, kiln_camera_set *set, kiln_error *err)
{
    kiln_parameter *p = NULL;
    uint32_t n = 0;
    double blank = 0;
    bool as_is = false;
    KILN_TRY(kiln_parameters_get(m, "import", &p, &n, err));
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(p[i].name, "undistort-blank") == 0) blank = strtod(p[i].value, NULL);
        if (strcmp(p[i].name, "ignore-distortion") == 0) as_is = strcmp(p[i].value, "yes") == 0;
    }
    kiln_parameters_free(p, n);
    kiln_lenses_count(set, as_is);
    return kiln_pinholes_set(set, blank >= 0 && blank <= 1 ? blank : 0, err);
}

/* As import --cameras does: the file's poses are of the world before the scene was moved. */
static kiln_status move_cameras(const kiln_scene *scene, kiln_camera_set *set, kiln_error *err)
{
    kiln_similarity move;
    KILN_TRY(kiln_transforms_moves(scene->transforms, &move, err));
    for (uint32_t i = 0; i < set->n_cameras; i++)
        kiln_similarity_pose(&move, set->cameras[i].r, set->cameras[i].t);
    return KILN_OK;
}

static kiln_status read_camera_file(kiln_manifest *m, const char *path, const kiln_scene *scene,
                                    kiln_viewpoints *v, kiln_error *err)
{
    KILN_TRY(kiln_cameras_read(path, NULL, &v->file, err));
    KILN_TRY(set_pinholes(m, &v->file, err));
    KILN_TRY(move_cameras(scene, &v->file, err));
    KILN_TRY(KILN_ALLOC(&v->cameras, v->file.n_cameras, "cameras", err));
    if (v->file.n_cameras)
        memcpy(v->cameras, v->file.cameras, v->file.n_cameras * sizeof *v->cameras);
    v->n = v->file.n_cameras;
    if (v->n) qsort(v->cameras, v->n, sizeof *v->cameras, viewpoints_by_name);
    return KILN_OK;
}

/* ---- paths ----------------------------------------------------------------------------------- */
static int digits_of(uint32_t n)
{
    int digits = 4;
    for (uint64_t most = 10000; most < n; most *= 10) digits++;
    return digits;
}

/* Puts n cameras in the place of those that there are, and names them WHAT_0000 and so on. They are
 * v's in any case. */
static kiln_status take_cameras(kiln_viewpoints *v, kiln_camera *cameras, uint32_t n,
                                const char *what, kiln_error *err)
{
    const int digits = digits_of(n);
    free(v->cameras);
    v->cameras = cameras;
    v->n = n;
    v->own = false;
    for (uint32_t i = 0; i < n; i++) {
        char number[11], name[32]; /* a uint32_t has ten digits at most */
        snprintf(number, sizeof number, "%010u", i);
        snprintf(name, sizeof name, "%s_%s", what, number + sizeof number - 1 - digits);
        KILN_TRY(kiln_texts_add(&v->names, name, &cameras[i].name, err));
    }
    return KILN_OK;
}

/* About the box. */
typedef struct {
    double centre[3], radius; /* above 0 */
} sphere;

static kiln_status sphere_of(const kiln_scene *scene, const kiln_layer *layer, sphere *out,
                             kiln_error *err)
{
    double lo[3], hi[3], square = 0;
    KILN_TRY(kiln_scene_box(scene, layer, lo, hi, err));
    for (int a = 0; a < 3; a++) {
        const double half = (hi[a] - lo[a]) / 2;
        out->centre[a] = lo[a] + half;
        square += half * half;
    }
    out->radius = square > 0 ? sqrt(square) : 1;
    return KILN_OK;
}

/* Is it in the picture, and more than a dot? */
static bool is_seen(const sphere *s, const kiln_camera *c)
{
    double p[3];
    for (int i = 0; i < 3; i++)
        p[i] = c->t[i] + c->r[3 * i] * s->centre[0] + c->r[3 * i + 1] * s->centre[1] +
               c->r[3 * i + 2] * s->centre[2];
    if (!(p[2] > -s->radius)) return false; /* behind the camera */
    /* the camera is within its slab of depth: too near to tell */
    if (p[2] < s->radius) return true;
    const double x = c->fx * p[0] / p[2] + c->cx, y = c->fy * p[1] / p[2] + c->cy,
                 half = c->fx * s->radius / p[2];
    return half >= 1 && x > -half && x < c->width + half && y > -half && y < c->height + half;
}

static void say_unseen(const sphere *s, const kiln_viewpoints *v)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n; i++) n += !is_seen(s, &v->cameras[i]);
    if (n > 0)
        kiln_warn("from %u of %s on the orbit the scene lies outside of the picture or is less "
                  "than 2 pixels wide: its middle is "
                  "%.6g:%.6g:%.6g and its radius %.6g",
                  n, KILN_COUNT(v->n, "place"), s->centre[0], s->centre[1], s->centre[2],
                  s->radius);
}

/* Where the cameras stand around what they look at; if they do not, around the box of the scene. */
static kiln_status shape_of(const kiln_scene *scene, const sphere *around_scene,
                            const kiln_viewpoints *v, const kiln_camera *lens,
                            const orbit_text *said, kiln_orbit_shape *shape, kiln_error *err)
{
    bool around = false;
    *shape = (kiln_orbit_shape){0};
    kiln_camera_path_up(scene->up_axis, KILN_POSES(v->cameras, v->n), shape->up);
    if (!isnan(said->centre[0]))
        memcpy(shape->centre, said->centre, sizeof shape->centre);
    else if (!kiln_camera_path_focus(KILN_POSES(v->cameras, v->n), shape->centre))
        memcpy(shape->centre, around_scene->centre, sizeof shape->centre);
    KILN_TRY(kiln_camera_path_around(v->cameras, v->n, shape, &around, err));
    if (!around) kiln_camera_path_contain(lens, around_scene->radius, shape);
    if (!isnan(said->radius)) shape->radius = said->radius;
    if (!isnan(said->height)) shape->height = said->height;
    return KILN_OK;
}

static kiln_status make_orbit(const char *text, const kiln_scene *scene, const kiln_layer *layer,
                              kiln_viewpoints *v, kiln_error *err)
{
    orbit_text said;
    kiln_orbit_shape shape;
    sphere around;
    kiln_camera *lens, *cameras;
    if (!read_orbit(text, &said)) return kiln_fail(err, KILN_E_BUG, "'%s' has been checked", text);
    KILN_TRY(KILN_ALLOC(&lens, 1, "a camera", err));
    kiln_camera_path_lens(lens);
    if (v->n > 0) *lens = v->cameras[0];
    kiln_status st = sphere_of(scene, layer, &around, err);
    if (st == KILN_OK) st = shape_of(scene, &around, v, lens, &said, &shape, err);
    if (st == KILN_OK) st = KILN_ALLOC(&cameras, said.n, "cameras", err);
    if (st == KILN_OK) {
        for (uint32_t i = 0; i < said.n; i++)
            kiln_camera_path_orbit(&shape, lens, i, said.n, &cameras[i]);
        st = take_cameras(v, cameras, said.n, "orbit", err);
    }
    if (st == KILN_OK) {
        kiln_say(
            "the orbit has radius=%.6g,height=%.6g,centre=%.6g:%.6g:%.6g; up is %.3g %.3g %.3g",
            shape.radius, shape.height, shape.centre[0], shape.centre[1], shape.centre[2],
            shape.up[0] + 0.0, shape.up[1] + 0.0, shape.up[2] + 0.0); /* not -0 */
        say_unseen(&around, v);
    }
    free(lens);
    return st;
}

/* By name, numbers in it by their value: frame_9 before frame_10, as it was filmed. */
static int by_number(const void *a, const void *b)
{
    const int order = strverscmp(((const kiln_camera *)a)->name, ((const kiln_camera *)b)->name);
    return order ? order : viewpoints_by_name(a, b);
}

void kiln_viewpoints_order(kiln_viewpoints *v)
{
    if (v->n) qsort(v->cameras, v->n, sizeof *v->cameras, by_number);
}

static uint32_t count_names(const char *text)
{
    uint32_t n = 1;
    for (; *text; text++) n += *text == ',';
    return n;
}

/* Chooses the cameras that --through names, into new memory. */
static kiln_status choose_through(const kiln_viewpoints *v, const char *text, kiln_camera **out,
                                  uint32_t *n, kiln_error *err)
{
    char name[KILN_CAMERA_NAME];
    uint32_t at;
    *n = text ? count_names(text) : v->n;
    KILN_TRY(KILN_ALLOC(out, *n, "cameras of a path", err));
    if (!text) {
        if (v->n) memcpy(*out, v->cameras, v->n * sizeof **out);
        if (v->n) qsort(*out, v->n, sizeof **out, by_number);
        return KILN_OK;
    }
    for (uint32_t i = 0; i < *n; i++) {
        const size_t length = strcspn(text, ",");
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name),
                 text);
        KILN_TRY(kiln_camera_pick(v->cameras, v->n, name, &at, err));
        (*out)[i] = v->cameras[at];
        text += length + 1;
    }
    return KILN_OK;
}

static kiln_status look_at(const char *text, const char *up_axis, kiln_camera *cameras, uint32_t n,
                           kiln_error *err)
{
    double point[3], up[3];
    if (!text) return KILN_OK;
    if (!read_point(text, point)) return kiln_fail(err, KILN_E_BUG, "'%s' has been checked", text);
    kiln_camera_path_up(up_axis, KILN_POSES(cameras, n), up);
    for (uint32_t i = 0; i < n; i++) kiln_camera_path_look_at(point, up, &cameras[i]);
    return KILN_OK;
}

static kiln_status make_path(const kiln_viewpoint_options *o, const kiln_scene *scene,
                             kiln_viewpoints *v, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_camera *through = NULL, *cameras = NULL;
    uint32_t n;
    KILN_GO(choose_through(v, o->through, &through, &n, err));
    if (n < 2) {
        st = kiln_fail(err, KILN_E_USAGE,
                       "--interpolate makes a path through at least 2 cameras, not %u", n);
        goto done;
    }
    KILN_GO(KILN_ALLOC(&cameras, o->interpolate, "cameras", err));
    KILN_GO(kiln_camera_path_between(through, n, o->constant_speed, o->interpolate, cameras, err));
    KILN_GO(look_at(o->look_at, scene->up_axis, cameras, o->interpolate, err));
    st = take_cameras(v, cameras, o->interpolate, "path", err);
    cameras = NULL;
done:
    free(cameras);
    free(through);
    return st;
}

/* ---- size ------------------------------------------------------------------------------------ */
/* The whole picture is drawn and its pixels are cut out, because a profile may know no principal
 * point (inria). */
static kiln_status crop(kiln_camera *c, const rectangle *r, kiln_error *err)
{
    if ((uint64_t)r->x + r->width > c->width || (uint64_t)r->y + r->height > c->height)
        return kiln_fail(
            err, KILN_E_USAGE,
            "--crop %ux%u+%u+%u is not within the picture of camera '%s', which has %ux%u pixels",
            r->width, r->height, r->x, r->y, c->name, c->width, c->height);
    kiln_camera_resize(c, c->width, c->height); /* without its photo */
    return KILN_OK;
}

kiln_status kiln_viewpoint_size(const kiln_viewpoint_options *o, kiln_camera *c, kiln_error *err)
{
    rectangle size = {0}, part = {0};
    if ((o->size && !read_rectangle(o->size, false, &size)) ||
        (o->crop && !read_rectangle(o->crop, true, &part)))
        return kiln_fail(err, KILN_E_BUG, "--size and --crop have been checked");
    if (o->size) kiln_camera_fit(c, size.width, size.height);
    if (!isnan(o->scale))
        kiln_camera_resize(c, kiln_camera_scaled(c->width, o->scale),
                           kiln_camera_scaled(c->height, o->scale));
    if (o->crop) KILN_TRY(crop(c, &part, err));
    if ((uint64_t)c->width * c->height > KILN_PICTURE_MAX)
        return kiln_fail(err, KILN_E_USAGE,
                         "camera '%s' would have %ux%u pixels; a picture has at most %llu", c->name,
                         c->width, c->height, (unsigned long long)KILN_PICTURE_MAX);
    return KILN_OK;
}

static kiln_status set_sizes(const kiln_viewpoint_options *o, kiln_viewpoints *v, kiln_error *err)
{
    if (o->crop && !read_rectangle(o->crop, true, &v->crop))
        return kiln_fail(err, KILN_E_BUG, "--crop has been checked");
    for (uint32_t i = 0; i < v->n; i++) KILN_TRY(kiln_viewpoint_size(o, &v->cameras[i], err));
    v->sized_by = o->crop ? "--crop" : o->size ? "--size" : NULL;
    v->own = v->own && !o->size && !o->crop && isnan(o->scale);
    return KILN_OK;
}

kiln_status kiln_viewpoints_get(kiln_manifest *m, const kiln_viewpoint_options *o,
                                const kiln_scene *scene, const kiln_layer *layer,
                                kiln_viewpoints *out, kiln_error *err)
{
    out->own = !o->cameras;
    if (o->cameras)
        KILN_TRY(read_camera_file(m, o->cameras, scene, out, err));
    else
        KILN_TRY(kiln_cameras_get(m, &out->cameras, &out->n, err));
    if (o->orbit) KILN_TRY(make_orbit(o->orbit, scene, layer, out, err));
    if (o->interpolate) KILN_TRY(make_path(o, scene, out, err));
    return set_sizes(o, out, err);
}
