/* results -- the results of a run's pictures: rows in the manifest, the report, and the text for
 * people. A camera whose unit is quarantined has no row, and the report says so. */
#include "stages/render/against.h"

#include "base/count.h"
#include "base/log.h"
#include "base/quote.h"
#include "base/vec3.h"
#include "stages/engine/json_text.h"
#include "stages/engine/meaning.h"
#include "stages/frame/view_detail.h"
#include "stages/cameras/orbit.h"
#include "stages/lod/distance_prior.h"
#include "stages/render/distance.h"
#include "stages/render/exposure.h"
#include "stages/render/picture_targets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint64_t visible, pairs;
    uint64_t slabs;          /* 0: not drawn in slabs */
    double psnr, ssim;       /* NAN: none */
    double fast_db;          /* of a fast picture that was measured; else NAN */
    double full_db;          /* of a picture of --levels-against; else NAN */
    double depth_step;       /* scene units of a step of its depth's 16-bit PNG; 0: there is none */
    double draw_s, encode_s; /* in the run that drew it last; 0: nothing was encoded */
    bool from_table;
    kiln_hash pixels;
    kiln_outside outside;
    char damage[KILN_PHOTO_DAMAGE]; /* of its photo; "": none */
} view_result;

static kiln_status no_memory_for_results(kiln_error *err)
{
    return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
}

/* Reads a number of a unit's counters; NAN: it is not there. */
static double db_of(const json_t *v)
{
    return json_is_string(v) ? INFINITY : json_is_number(v) ? json_number_value(v) : NAN;
}

/* How it was drawn, which --force may do otherwise: in slabs, by a table's lists, in another
 * time. */
static kiln_status read_drawing(kiln_run *r, const kiln_unit *u, view_result *v, kiln_error *err)
{
    json_t *c;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_unit_counters_now(r, u, &c, err));
    v->slabs = 0;
    if (json_object_get(c, "slabs")) st = kiln_unit_count(r, u, c, "slabs", &v->slabs, err);
    v->draw_s = json_number_value(json_object_get(c, "draw_s"));
    v->encode_s = json_number_value(json_object_get(c, "encode_s"));
    v->from_table = json_is_true(json_object_get(c, "from_table"));
    json_decref(c);
    return st;
}

static kiln_status read_result(kiln_run *r, const kiln_unit *u, view_result *v, kiln_error *err)
{
    json_t *c;
    KILN_TRY(kiln_unit_struct(r, u, "pixels", v->pixels.bytes, sizeof v->pixels.bytes, err));
    KILN_TRY(kiln_unit_counters(r, u, &c, err));
    kiln_status st = kiln_unit_count(r, u, c, "visible", &v->visible, err);
    if (st == KILN_OK) st = kiln_unit_count(r, u, c, "pairs", &v->pairs, err);
    const json_t *ssim = json_object_get(c, "ssim"), *note = json_object_get(c, "note");
    v->psnr = db_of(json_object_get(c, "psnr"));
    v->fast_db = db_of(json_object_get(c, "fast_db"));
    v->full_db = db_of(json_object_get(c, "full_db"));
    v->depth_step = json_number_value(json_object_get(c, "depth_step"));
    v->ssim = json_is_number(ssim) ? json_number_value(ssim) : NAN;
    v->outside = kiln_outside_of_json(json_object_get(c, "outside"));
    snprintf(v->damage, sizeof v->damage, "%s",
             json_is_string(note) ? json_string_value(note) : "");
    json_decref(c);
    return st == KILN_OK ? read_drawing(r, u, v, err) : st;
}

static void fill_image(const kiln_render_plan *s, uint32_t i, const view_result *v,
                       kiln_image *image)
{
    static const char *const formats[] = {"png", "png16", "npy", "none"};
    const kiln_render_job *j = &s->jobs[i];
    const kiln_render_made *made = kiln_render_made_of(j);
    snprintf(image->camera, sizeof image->camera, "%s", j->camera->name);
    snprintf(image->profile, sizeof image->profile, "%s", kiln_profiles[j->request.profile].name);
    snprintf(image->device_kind, sizeof image->device_kind, "%s", j->device_kind);
    snprintf(image->path, sizeof image->path, "%s", made->relative);
    snprintf(image->format, sizeof image->format, "%s", formats[made->unit.format]);
    image->antialiased = j->request.antialiased;
    image->near_m = j->request.near_m;
    memcpy(image->background, s->background, sizeof s->background);
    image->width = j->camera->width;
    image->height = j->camera->height;
    image->key = s->units[i].key;
    image->pixels = v->pixels;
    image->visible = v->visible;
    image->pairs = v->pairs;
    image->psnr = v->psnr;
    image->ssim = v->ssim;
}

static kiln_status put_image(kiln_run *r, kiln_manifest *m, const kiln_render_plan *s, uint32_t i,
                             kiln_error *err)
{
    kiln_image *image;
    view_result v;
    KILN_TRY(read_result(r, &s->units[i], &v, err));
    KILN_TRY(KILN_ALLOC(&image, 1, "image row", err));
    fill_image(s, i, &v, image);
    const kiln_status st = kiln_image_put(m, image, err);
    free(image);
    return st;
}

kiln_status kiln_render_plan_put(kiln_run *r, kiln_manifest *m, void *context, kiln_error *err)
{
    const kiln_render_plan *s = context;
    KILN_TRY(kiln_picture_targets_put(r, m, s, err));
    KILN_TRY(kiln_images_clear(m, err));
    for (uint32_t i = 0; i < s->n_jobs; i++)
        if (!s->units[i].quarantined) KILN_TRY(put_image(r, m, s, i, err));
    return KILN_OK;
}

static json_t *db_json(double db) { return isinf(db) ? json_string("inf") : kiln_json_real(db); }

/* ---- one view -------------------------------------------------------------------------------- */
/* Of --levels-against. */
static kiln_status describe_against(const kiln_render_job *j, const view_result *v, json_t *row,
                                    kiln_error *err)
{
    char path[KILN_PATH_MAX];
    kiln_render_full_path(kiln_render_unit_of(j), path);
    const int failed =
        json_object_set_new(row, "level", json_integer((json_int_t)j->level)) |
        json_object_set_new(row, "full_db", db_json(v->full_db)) |
        (path[0] ? json_object_set_new(row, "full_file", kiln_json_string(path)) : 0);
    return failed ? no_memory_for_results(err) : KILN_OK;
}

static kiln_status describe_view(const kiln_render_job *j, const view_result *v, json_t *row,
                                 kiln_error *err)
{
    char hex[33];
    const kiln_render_unit *u = kiln_render_unit_of(j);
    json_t *head =
        json_pack("{s:o, s:o, s:o, s:I, s:I, s:b, s:s, s:o, s:o}", "name",
                  kiln_json_string(j->camera->name), "split", kiln_json_string(j->camera->split),
                  "file", u->picture[0] ? kiln_json_string(u->picture) : json_null(), "visible",
                  (json_int_t)v->visible, "pairs", (json_int_t)v->pairs, "from_table",
                  (int)v->from_table, "pixels", kiln_hash_hex(v->pixels, hex), "psnr",
                  kiln_json_real(v->psnr), "ssim", kiln_json_real(v->ssim));
    const int failed = !head || json_object_update(row, head);
    json_decref(head);
    if (failed) return no_memory_for_results(err);
    if (v->slabs > 0 && json_object_set_new(row, "slabs", json_integer((json_int_t)v->slabs)) != 0)
        return no_memory_for_results(err);
    if (u->depth[0] && json_object_set_new(row, "depth_file", kiln_json_string(u->depth)) != 0)
        return no_memory_for_results(err);
    if (v->depth_step > 0 &&
        json_object_set_new(row, "depth_step", kiln_json_real(v->depth_step)) != 0)
        return no_memory_for_results(err);
    if (v->damage[0] && json_object_set_new(row, "note", kiln_json_string(v->damage)) != 0)
        return no_memory_for_results(err);
    if (!isnan(v->fast_db) && json_object_set_new(row, "fast_db", db_json(v->fast_db)) != 0)
        return no_memory_for_results(err);
    if (j->detail.full > 0 && json_object_set_new(row, "detail", kiln_detail_json(&j->detail)) != 0)
        return no_memory_for_results(err);
    return j->level ? describe_against(j, v, row, err) : KILN_OK;
}

/* a fast picture with fewer dB breaks what --fast promises */
enum { FAST_DB = 60 };

static void warn_of_fast(const kiln_render_job *j, const view_result *v)
{
    if (v->fast_db < FAST_DB)
        kiln_warn("camera '%s': the fast picture is %.1f dB from the exact one, less than %d: draw "
                  "it with --no-fast instead",
                  j->camera->name, v->fast_db, FAST_DB);
}

/* What is printed of each view. A view has a line if the user asks for all, or if there are few
 * views and the line has a result. */
typedef struct {
    bool any;    /* at least one view has a line */
    bool counts; /* lines have counts of visible Gaussians and of pairs */
    bool files;  /* lines have the path of the picture, in a run that stores nothing */
    bool headed; /* out: the heading of the table is printed */
} view_lines;
enum { FEW_VIEWS = 24 };

static view_lines choose_lines(const kiln_run *r, uint32_t n)
{
    const bool all = kiln_run_prints_all(r, false);
    return (view_lines){.any = all || (kiln_run_prints(r) && n <= FEW_VIEWS),
                        .counts = all,
                        .files = kiln_run_is_once(r) && n <= FEW_VIEWS};
}

static void print_head(view_lines *l)
{
    if (l->headed) return;
    kiln_print_part("%-32s", "camera");
    if (l->counts) kiln_print_part(" %10s %11s", "visible", "pairs");
    kiln_print(" %8s  %7s", "psnr dB", "ssim");
    l->headed = true;
}

/* What its values mean, which no viewer of pictures says. */
static void print_depth(const view_lines *l, const kiln_render_job *j, const view_result *v)
{
    const kiln_render_unit *u = kiln_render_unit_of(j);
    if (v->depth_step > 0 && !u->depth_colours)
        kiln_print("%s: depth in scene units = value * %.9g%s%s", j->camera->name, v->depth_step,
                   l->files ? "  -> " : "", l->files ? u->depth : "");
}

static void print_view(view_lines *l, const kiln_render_job *j, const view_result *v)
{
    const kiln_render_unit *u = kiln_render_unit_of(j);
    const bool measured = !isnan(v->psnr), file = l->files && u->picture[0];
    if (l->any) print_depth(l, j, v);
    if (!l->any || !(measured || l->counts || file)) return;
    if (measured || l->counts) print_head(l);
    kiln_print_part(l->headed ? "%-32s" : "%s", j->camera->name);
    if (l->counts)
        kiln_print_part(" %10llu %11llu", (unsigned long long)v->visible,
                        (unsigned long long)v->pairs);
    if (measured) kiln_print_part(" %8.3f  %7.5f", v->psnr, v->ssim);
    if (file && l->counts) kiln_print_gap(); /* 80 columns have no room for both */
    kiln_print("%s%s", file ? "  -> " : "", file ? u->picture : "");
}

static kiln_status report_view(kiln_run *r, const kiln_render_job *j, const view_result *v,
                               kiln_error *err)
{
    json_t *row = json_object();
    if (!row) return no_memory_for_results(err);
    const kiln_status st = describe_view(j, v, row, err);
    if (st == KILN_OK) return kiln_run_report_row(r, row, err);
    json_decref(row);
    return st;
}

static kiln_status report_missing(kiln_run *r, const kiln_render_job *j, kiln_error *err)
{
    if (kiln_run_prints(r)) kiln_print("%-32s no picture, see above", j->camera->name);
    json_t *row = json_pack("{s:o, s:o, s:b}", "name", kiln_json_string(j->camera->name), "split",
                            kiln_json_string(j->camera->split), "quarantined", 1);
    return kiln_run_report_row(r, row, err);
}

/* ---- all of them ----------------------------------------------------------------------------- */
/* Sums over the measured views of a split. */
typedef struct {
    uint32_t n;
    double psnr, ssim;  /* summed */
    double least, most; /* of psnr */
    const char *worst;  /* the camera with the least psnr */
} split_sums;
enum { TEST, OTHERS, N_SPLITS };

typedef struct {
    split_sums splits[N_SPLITS];
    uint32_t n_missing;
    uint32_t n_drawn, n_encoded; /* by this run */
    uint32_t n_in_slabs;         /* of the drawn ones */
    uint32_t n_damaged;          /* photos */
    double draw_s, encode_s;     /* summed over workers */
    uint32_t n_measured;         /* fast pictures */
    double least_db;             /* the least of them, and its camera */
    const char *least_camera;
    uint32_t n_blank; /* pictures of which no Gaussian is visible; the first and the last of them */
    const char *first_blank, *last_blank;
    kiln_view_detail detail; /* summed over n_detail views */
    uint32_t n_detail;
    kiln_against_sums against;
} totals;

static void add_measured(split_sums *s, const kiln_render_job *j, const view_result *v)
{
    if (s->n++ == 0) s->least = INFINITY, s->most = -INFINITY;
    s->psnr += v->psnr;
    s->ssim += v->ssim;
    if (v->psnr > s->most) s->most = v->psnr;
    if (s->worst && v->psnr >= s->least) return;
    s->least = v->psnr;
    s->worst = j->camera->name;
}

static void add_view(totals *t, const kiln_render_job *j, const kiln_unit *u, const view_result *v)
{
    if (kiln_unit_is_new(u)) {
        t->n_drawn++;
        t->n_encoded += v->encode_s > 0;
        t->n_in_slabs += v->slabs > 0;
        t->draw_s += v->draw_s;
        t->encode_s += v->encode_s;
    }
    if (!isnan(v->fast_db) && (t->n_measured++ == 0 || v->fast_db < t->least_db)) {
        t->least_db = v->fast_db;
        t->least_camera = j->camera->name;
    }
    if (v->visible == 0) {
        if (t->n_blank++ == 0) t->first_blank = j->camera->name;
        t->last_blank = j->camera->name;
    }
    if (!isnan(v->full_db)) kiln_against_add(&t->against, j, v->full_db);
    kiln_detail_add(&t->detail, &j->detail);
    t->n_detail += j->detail.full > 0;
    if (!isnan(v->psnr))
        add_measured(&t->splits[strcmp(j->camera->split, "test") == 0 ? TEST : OTHERS], j, v);
}

/* A path through cameras may lead where they look away from the scene. */
static void warn_of_blank(const kiln_render_plan *s, const totals *t)
{
    if (s->o->where.interpolate == 0 || t->n_blank == 0) return;
    kiln_warn("%u of %s of the path %s blank, the first '%s', the last '%s': nothing of the scene "
              "is before the camera; --look-at "
              "X,Y,Z turns the path to a point, --through chooses its cameras",
              t->n_blank, KILN_COUNT(s->n_jobs, "picture"), t->n_blank == 1 ? "is" : "are",
              t->first_blank, t->last_blank);
}

/* Warns of damaged photos. Names only a few, because a folder that is gone takes all its photos
 * with it. */
enum { DAMAGED_NAMED = 5 };

/* outside: [s->n_jobs], all 0. */
static kiln_status report_views(kiln_run *r, const kiln_render_plan *s, totals *t,
                                kiln_outside *outside, kiln_error *err)
{
    view_result v;
    view_lines lines = choose_lines(r, s->n_jobs);
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const kiln_render_job *j = &s->jobs[i];
        if (s->units[i].quarantined) {
            KILN_TRY(report_missing(r, j, err));
            t->n_missing++;
            continue;
        }
        KILN_TRY(read_result(r, &s->units[i], &v, err));
        KILN_TRY(report_view(r, j, &v, err));
        if (v.damage[0] && t->n_damaged++ < DAMAGED_NAMED)
            kiln_warn("camera '%s' is drawn but not measured: %s", j->camera->name, v.damage);
        warn_of_fast(j, &v);
        if (!s->against) print_view(&lines, j, &v);
        outside[i] = v.outside;
        add_view(t, j, &s->units[i], &v);
    }
    return KILN_OK;
}

static kiln_status report_totals(const kiln_render_plan *s, const totals *t, json_t *out,
                                 kiln_error *err)
{
    const split_sums *test = &t->splits[TEST];
    json_t *sums =
        json_pack("{s:s, s:i, s:o, s:i, s:o, s:i, s:i}", "profile", s->profile, "frames_drawn",
                  (int)t->n_drawn, "draw_s", kiln_json_real(t->draw_s), "frames_encoded",
                  (int)t->n_encoded, "encode_s", kiln_json_real(t->encode_s), "cameras_quarantined",
                  (int)t->n_missing, "photos_damaged", (int)t->n_damaged);
    int failed = !sums || json_object_update(out, sums);
    json_decref(sums);
    if (!failed && test->n)
        failed = json_object_set_new(out, "test",
                                     json_pack("{s:i, s:o, s:o}", "views", (int)test->n, "psnr",
                                               kiln_json_real(test->psnr / test->n), "ssim",
                                               kiln_json_real(test->ssim / test->n)));
    if (!failed && t->n_detail > 0)
        failed = json_object_set_new(out, "detail", kiln_detail_json(&t->detail));
    if (!failed && t->n_measured)
        failed = json_object_set_new(out, "fast",
                                     json_pack("{s:i, s:o, s:o}", "measured", (int)t->n_measured,
                                               "least_db", db_json(t->least_db), "camera",
                                               kiln_json_string(t->least_camera)));
    return failed ? no_memory_for_results(err) : KILN_OK;
}

/* Says it once for all cameras. */
static kiln_status report_background(const kiln_render_plan *s, const kiln_outside *outside,
                                     json_t *out, kiln_error *err)
{
    double colour[3];
    char photos[16], drawn[16], sentence[256];
    if (s->background_chosen) {
        static const char chosen[] = "the background is white, because the photos are white "
                                     "wherever nothing is drawn (--background changes it)";
        kiln_say("%s", chosen);
        KILN_TRY(kiln_meaning_put(out, err, "%s", chosen));
        if (json_object_set_new(out, "background_chosen", json_string("white")) != 0)
            return no_memory_for_results(err);
    }
    if (!kiln_outside_differs(outside, s->n_jobs, s->background, colour)) return KILN_OK;
    kiln_colour_text(colour, photos);
    kiln_colour_text(s->background, drawn);
    (void)snprintf(sentence, sizeof sentence,
                   "where nothing is drawn, the photos are %s but the background is %s, and PSNR "
                   "and SSIM mostly measure that difference; "
                   "--background %s fits the photos",
                   photos, drawn, photos);
    kiln_warn("%s", sentence);
    KILN_TRY(kiln_meaning_put(out, err, "%s", sentence));
    return json_object_set_new(out, "background_of_photos", json_string(photos)) == 0
               ? KILN_OK
               : no_memory_for_results(err);
}

/* Another orbit, for a sentence. */
typedef struct {
    double radius, height, centre[3];
} proposed_orbit;

static void name_orbit(const proposed_orbit *p, const kiln_manifest *m, char out[KILN_PATH_MAX])
{
    (void)snprintf(out, KILN_PATH_MAX,
                   "kiln render '%s' --orbit 8,radius=%.3g,height=%.3g,centre=%.6g:%.6g:%.6g -o "
                   "look/",
                   kiln_manifest_path(m), p->radius, p->height, p->centre[0] + 0.0,
                   p->centre[1] + 0.0, p->centre[2] + 0.0); /* not -0 */
}

static double orbit_distance(const kiln_camera *c, const double centre[3])
{
    double at[3];
    kiln_pose_centre(c->r, c->t, at);
    for (int a = 0; a < 3; a++) at[a] -= centre[a];
    return kiln_vec3_length(at);
}

/* Says whether what is drawn is that much smaller than what the orbit runs around, which only
 * pruning makes of it, and can be seen from around itself: *out does so. */
static bool is_remainder(const kiln_render_plan *s, const kiln_scene_core *core,
                         proposed_orbit *out)
{
    enum { SMALLER = 3 };
    kiln_camera around[KILN_ORBIT_CAMERAS];
    double lo[3], hi[3];
    for (int a = 0; a < 3; a++) {
        lo[a] = core->lo[a] + s->scene.origin[a];
        hi[a] = core->hi[a] + s->scene.origin[a];
        out->centre[a] = (lo[a] + hi[a]) / 2;
    }
    kiln_orbit(s->scene.up_axis, lo, hi, around);
    const double distance = orbit_distance(&around[0], out->centre);
    out->radius = KILN_ORBIT_ACROSS * distance;
    out->height = KILN_ORBIT_ABOVE * distance;
    return core->radius > 0 && orbit_distance(&s->cameras[0], out->centre) > SMALLER * distance &&
           !kiln_scene_core_is_hidden(core, s->scene.origin, around, KILN_ORBIT_CAMERAS);
}

/* An orbit of our own around the whole scene runs around its sky or walls, too, if it has them, and
 * around all that pruning has dropped. */
static kiln_status report_orbit(kiln_run *r, const kiln_render_plan *s, json_t *out,
                                kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    kiln_layer *layer;
    kiln_scene_core core;
    proposed_orbit other;
    char command[KILN_PATH_MAX], sentence[KILN_PATH_MAX + 512];
    if (s->against || s->n_cameras == 0) return KILN_OK;
    for (uint32_t i = 0; i < s->n_cameras; i++)
        if (!s->cameras[i].synthetic) return KILN_OK;
    if (kiln_orbit_is_inner(&s->cameras[0])) return KILN_OK;
    KILN_TRY(kiln_layer_current(m, s->kind, &layer, err));
    const kiln_status st = kiln_scene_core_find(m, layer, &core, err);
    kiln_layer_free(layer);
    KILN_TRY(st);
    if (is_remainder(s, &core, &other)) {
        name_orbit(&other, m, command);
        (void)snprintf(sentence, sizeof sentence,
                       "the orbit runs around the whole scene, in which what pruning has left is "
                       "small; to look at that: %s",
                       command);
    } else {
        if (!kiln_scene_core_is_hidden(&core, s->scene.origin, s->cameras, s->n_cameras))
            return KILN_OK;
        other.radius = KILN_ORBIT_INNER_ACROSS * core.radius;
        other.height = KILN_ORBIT_INNER_ABOVE * core.radius;
        for (int a = 0; a < 3; a++) other.centre[a] = s->scene.origin[a] + core.middle[a];
        name_orbit(&other, m, command);
        (void)snprintf(sentence, sizeof sentence,
                       "the orbit is outside of what surrounds the scene (sky, walls), and the "
                       "pictures may show only that; give cameras with --cameras FILE, or look "
                       "from inside: %s",
                       command);
    }
    kiln_warn("%s", sentence);
    return kiln_meaning_put(out, err, "%s", sentence);
}

static kiln_status collect_results(kiln_run *r, const kiln_render_plan *s, totals *t,
                                   kiln_error *err)
{
    json_t *out = kiln_run_report(r);
    kiln_outside *outside = NULL;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_run_report_rows(r, "views", err));
    KILN_TRY(KILN_ALLOC(&outside, s->n_jobs, "colours of photos", err));
    KILN_GO(report_views(r, s, t, outside, err));
    warn_of_blank(s, t);
    KILN_GO(report_totals(s, t, out, err));
    KILN_GO(report_background(s, outside, out, err));
    KILN_GO(report_orbit(r, s, out, err));
    if (t->n_damaged > 0)
        KILN_GO(kiln_meaning_put(out, err, "%s not measured: damaged, gone or changed",
                                 KILN_COUNT(t->n_damaged, "photo is|photos are")));
    KILN_GO(kiln_render_exposures_report(s, out, err));
done:
    free(outside);
    return st;
}

static void print_split(const char *name, const split_sums *s, const char *profile)
{
    if (s->n == 0) return;
    kiln_print("%s, %u view%s: psnr %.3f dB, ssim %.5f (profile %s)", name, s->n,
               s->n == 1 ? "" : "s", s->psnr / s->n, s->ssim / s->n, profile);
    if (s->n > 1) kiln_print("  psnr from %.3f dB (%s) to %.3f dB", s->least, s->worst, s->most);
}

/* What knn made of points gives 5 to 13 dB, which is nobody's mistake. */
static bool is_untrained(const kiln_render_plan *s) { return s->scene.kind == KILN_SCENE_POINTS; }

static void print_totals(const kiln_render_plan *s, const totals *t)
{
    if (t->n_encoded)
        kiln_print("%u picture%s drawn in %.2f s and written in %.2f s of worker time", t->n_drawn,
                   t->n_drawn == 1 ? "" : "s", t->draw_s, t->encode_s);
    else if (t->n_drawn)
        kiln_print("%u picture%s drawn in %.2f s of worker time", t->n_drawn,
                   t->n_drawn == 1 ? "" : "s", t->draw_s);
    else
        kiln_print("all pictures are up to date; none was drawn");
    if (t->n_measured)
        kiln_print("fast pictures, %u of %u measured: at least %.1f dB from the exact ones (%s)",
                   t->n_measured, s->n_jobs, t->least_db, t->least_camera);
    if (!s->against) kiln_detail_print(&t->detail, t->n_detail, s->level_text);
    if (is_untrained(s)) kiln_print("the Gaussians are made of points, " KILN_UNTRAINED);
    if (s->n_jobs == 1) return; /* its line says it */
    print_split("test split", &t->splits[TEST], s->profile);
    print_split("other cameras", &t->splits[OTHERS], s->profile);
}

kiln_status kiln_render_plan_report(kiln_run *r, const kiln_render_plan *s, kiln_error *err)
{
    totals t = {0};
    KILN_TRY(collect_results(r, s, &t, err));
    if (t.n_damaged > DAMAGED_NAMED)
        kiln_warn("more photos are damaged or missing: %u; their cameras are not measured (--json "
                  "names all)",
                  t.n_damaged - DAMAGED_NAMED);
    if (t.n_in_slabs)
        kiln_say("the Gaussians of %u of %s did not fit into memory at once, so they were drawn in "
                 "slabs of depth, with the same bits",
                 t.n_in_slabs, KILN_COUNT(t.n_drawn, "picture"));
    if (is_untrained(s) && json_object_set_new(kiln_run_report(r), "untrained", json_true()) != 0)
        return no_memory_for_results(err);
    if (kiln_run_prints(r)) print_totals(s, &t);
    if (s->against)
        return kiln_against_report(&t.against, kiln_run_report(r), kiln_run_prints(r), err);
    return KILN_OK;
}
