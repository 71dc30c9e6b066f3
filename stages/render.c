/* kiln-render -- draws the cameras as the profile's renderer would and measures them against their photos.
 *
 * A unit is a camera: its picture depends on the chunks that the camera can see, not on tables (they only save work),
 * threads or where the file goes. A missing picture makes its unit due again. With --camera, --cameras or -o it is a
 * tool: it draws what was asked for, writes the files and changes nothing in the manifest. */
#include "stages/render/background.h"
#include "stages/render/units.h"
#include "stages/render/written.h"

#include "base/log.h"
#include "stages/import/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct {
    kiln_shot_options shot;
    const char *background, *camera, *cameras, *output;
    uint32_t format;
    bool alpha, depth;
} o;

static const kiln_opt options[] = {
    KILN_SHOT_OPTION_ROWS(o.shot),
    {"background", 'b', KILN_OPT_TEXT, &o.background, "COLOUR", "scene", NULL,
     "scene (what it says, else black), white, black or r,g,b", KILN_KEYED},
    {"format", 'f', KILN_OPT_ENUM, &o.format, "FORMAT", "png", "png|png16|npy",
     "8- or 16-bit PNG, or .npy float32 RGBA; by the suffix of -o where that is given", KILN_KEYED},
    {"alpha", 0, KILN_OPT_BOOL, &o.alpha, NULL, NULL, NULL, "write PNGs with an alpha channel (colour stays over the background)",
     KILN_KEYED},
    {"depth", 0, KILN_OPT_BOOL, &o.depth, NULL, NULL, NULL, "write NAME.depth.png (16-bit, unit in its text) or .depth.npy too",
     KILN_KEYED},
    {"camera", 'c', KILN_OPT_TEXT, &o.camera, "NAME", NULL, NULL, "only this camera, by name or #INDEX in sorted order", KILN_ONCE},
    {"cameras", 0, KILN_OPT_PATH, &o.cameras, "FILE", NULL, NULL,
     "draw these instead: cameras.json, transforms.json, a COLMAP folder or a JSON list (a camera path)", KILN_ONCE},
    {"output", 'o', KILN_OPT_PATH, &o.output, "PATH", NULL, NULL, "a file for one camera, else a folder", KILN_ONCE},
    {NULL, 0, KILN_OPT_END, NULL, NULL, NULL, NULL, NULL, 0},
};

static const kiln_cli cli = {.program = "kiln-render",
                             .summary = "draws the cameras and measures them against their photos",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .options = options,
                             .common = kiln_common_options};

typedef struct {
    const kiln_camera *camera;
    kiln_render_unit payload;
    char relative[KILN_PATH_MAX]; /* what the manifest remembers */
    kiln_hash picture_key;
    char device_kind[8];
} job;

typedef struct {
    kiln_scene scene;
    kiln_layer *layer;
    kiln_dataset file; /* cameras of --cameras */
    kiln_camera *cameras;
    uint32_t n_cameras;
    kiln_source_file *sources;
    uint32_t n_sources;
    job *jobs;
    kiln_unit *units;
    uint32_t n_jobs;
    double background[3];
    char folder[KILN_PATH_MAX]; /* absolute, of the manifest */
} shoot;

static void shoot_release(shoot *s)
{
    if (s->units) kiln_units_release(s->units, s->n_jobs);
    free(s->units);
    free(s->jobs);
    free(s->sources);
    free(s->cameras);
    kiln_dataset_release(&s->file);
    kiln_layer_free(s->layer);
}

static int by_name(const void *a, const void *b) { return strcmp(((const kiln_camera *)a)->name, ((const kiln_camera *)b)->name); }

static kiln_status get_cameras(kiln_run *r, shoot *s, kiln_error *err)
{
    if (!o.cameras) return kiln_cameras_get(kiln_run_manifest(r), &s->cameras, &s->n_cameras, err);
    KILN_TRY(kiln_cameras_read(o.cameras, NULL, &s->file, err));
    KILN_TRY(KILN_ALLOC(&s->cameras, s->file.n_cameras, "cameras", err));
    if (s->file.n_cameras) memcpy(s->cameras, s->file.cameras, s->file.n_cameras * sizeof *s->cameras);
    s->n_cameras = s->file.n_cameras;
    if (s->n_cameras) qsort(s->cameras, s->n_cameras, sizeof *s->cameras, by_name);
    return KILN_OK;
}

static kiln_status get_folder(kiln_run *r, shoot *s, kiln_error *err)
{
    char *real = realpath(kiln_manifest_path(kiln_run_manifest(r)), NULL);
    if (!real) return kiln_fail(err, KILN_E_IO, "cannot resolve '%s'", kiln_manifest_path(kiln_run_manifest(r)));
    char *slash = strrchr(real, '/');
    *slash = '\0';
    snprintf(s->folder, sizeof s->folder, "%s", real[0] ? real : "/");
    free(real);
    return KILN_OK;
}

/* ---- where the files go --------------------------------------------------------------------------------------------- */
static bool output_is_file(const shoot *s)
{
    if (!o.output || s->n_jobs != 1) return false;
    size_t n = strlen(o.output);
    return n > 0 && o.output[n - 1] != '/' && !kiln_is_dir(o.output);
}

/* Many pictures under the name of one: a folder called view.png is never what was meant. */
static kiln_status check_output(const shoot *s, kiln_error *err)
{
    if (o.cameras && !o.output) return kiln_fail(err, KILN_E_USAGE, "--cameras needs -o, a folder (or a file for one camera)");
    if (!o.output || s->n_jobs == 1 || kiln_is_dir(o.output)) return KILN_OK;
    const char *suffix = kiln_path_suffix(o.output);
    if (strcasecmp(suffix, "png") && strcasecmp(suffix, "npy")) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE,
                     "-o '%s' names one file but %u cameras are to be drawn; name a folder, or one camera with --camera", o.output,
                     s->n_jobs);
}

static kiln_picture_format format_now(const shoot *s)
{
    if (output_is_file(s) && !kiln_opt_given(&cli, "format")) {
        kiln_picture_format f = kiln_picture_format_of(o.output);
        return f == KILN_NPY || o.format == KILN_NPY ? f : (kiln_picture_format)o.format;
    }
    return (kiln_picture_format)o.format;
}

static kiln_status place_files(const shoot *s, job *j, kiln_error *err)
{
    kiln_picture_format format = format_now(s);
    const char *suffix = format == KILN_NPY ? "npy" : "png";
    char name[KILN_PATH_MAX];
    j->payload.format = format;
    j->payload.alpha = o.alpha;
    if (output_is_file(s)) {
        snprintf(j->payload.picture, sizeof j->payload.picture, "%s", o.output);
    } else {
        if ((size_t)snprintf(name, sizeof name, "%s%s.%s", o.output ? "" : "renders/", j->camera->name, suffix) >= sizeof name)
            return kiln_fail(err, KILN_E_INPUT, "the name of camera '%.80s...' is too long for a file", j->camera->name);
        KILN_TRY(kiln_path_join(j->payload.picture, sizeof j->payload.picture, o.output ? o.output : s->folder, name, err));
        if (!o.output) snprintf(j->relative, sizeof j->relative, "%s", name);
    }
    if (!o.depth) return KILN_OK;
    const char *picture = j->payload.picture, *dot = strrchr(kiln_path_base(picture), '.');
    int stem = dot ? (int)(dot - picture) : (int)strlen(picture);
    if ((size_t)snprintf(j->payload.depth, sizeof j->payload.depth, "%.*s.depth.%s", stem, picture, suffix) >=
        sizeof j->payload.depth)
        return kiln_fail(err, KILN_E_INPUT, "the path of '%.80s...' is too long", picture);
    return KILN_OK;
}

/* ---- keys ------------------------------------------------------------------------------------------------------------ */
static const kiln_source_file *photo_source(const shoot *s, const kiln_camera *c)
{
    for (uint32_t i = 0; c->photo[0] && i < s->n_sources; i++)
        if (strcmp(s->sources[i].path, c->photo) == 0) return &s->sources[i];
    return NULL;
}

static void key_photo(kiln_hasher *h, const shoot *s, const kiln_camera *c)
{
    const kiln_source_file *f = photo_source(s, c);
    if (f) kiln_key_hash(h, "photo", f->hash);
    kiln_key_text(h, "photo", c->photo);
    kiln_key_u64(h, "distorted", c->distorted);
}

static kiln_hash unit_key(kiln_run *r, const shoot *s, const job *j, const char *device_kind)
{
    kiln_hasher *h = kiln_run_key_bare(r, "picture");
    kiln_key_hash(h, "picture", kiln_shot_picture_key(&j->payload.shot, s->layer, s->background, device_kind));
    key_photo(h, s, j->camera);
    kiln_key_text(h, "file", j->relative);
    kiln_key_u64(h, "format", j->payload.format);
    kiln_key_u64(h, "alpha", j->payload.alpha);
    kiln_key_u64(h, "depth", j->payload.depth[0] != '\0');
    return kiln_key_end(h);
}

/* Device-free: a picture of either kind will do unless --devices names one. */
static kiln_hash input_key(kiln_run *r, const shoot *s)
{
    kiln_hasher *h = kiln_run_key(r);
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        kiln_key_text(h, "camera", s->jobs[i].camera->name);
        kiln_key_text(h, "split", s->jobs[i].camera->split);
        kiln_key_hash(h, "unit", unit_key(r, s, &s->jobs[i], ""));
    }
    return kiln_key_end(h);
}

typedef struct {
    kiln_hash key;
    bool done, intact; /* a unit has it; its files are still those that it wrote */
} picture;

/* Are the files of a unit that was done still those that it wrote? */
static kiln_status files_intact(const job *j, const kiln_unit_result *done, bool *intact, kiln_error *err)
{
    json_t *c;
    const kiln_unit unit = {.name = "a picture", .result = *done};
    KILN_TRY(kiln_unit_counters(&unit, &c, err));
    *intact = kiln_written_is_intact(json_object_get(c, "picture"), j->payload.picture) &&
              (!j->payload.depth[0] || kiln_written_is_intact(json_object_get(c, "depth"), j->payload.depth));
    json_decref(c);
    return KILN_OK;
}

/* Is the picture of this kind there? *done: a unit has it, though its file may be gone or drawn over. */
static kiln_status find_of_kind(kiln_run *r, const shoot *s, job *j, const char *kind, picture *p, kiln_error *err)
{
    kiln_unit_result result;
    *p = (picture){.key = unit_key(r, s, j, kind)};
    KILN_TRY(kiln_unit_find(kiln_run_manifest(r), p->key, &p->done, &result, err));
    const kiln_status st = p->done ? files_intact(j, &result, &p->intact, err) : KILN_OK;
    kiln_unit_result_release(&result);
    snprintf(j->device_kind, sizeof j->device_kind, "%s", kind);
    return st;
}

/* One of either kind will do unless --devices names one; none is looked for yet. */
static kiln_status find_picture(kiln_run *r, const shoot *s, job *j, picture *p, kiln_error *err)
{
    const char *named = kiln_run_named_kind(r);
    KILN_TRY(find_of_kind(r, s, j, named ? named : "cpu", p, err));
    return named || p->intact ? KILN_OK : find_of_kind(r, s, j, "cuda", p, err);
}

/* ---- plan --------------------------------------------------------------------------------------------------------------- */
static kiln_status make_job(shoot *s, job *j, const kiln_camera *c, kiln_error *err)
{
    j->camera = c;
    KILN_TRY(kiln_shot_init(&j->payload.shot, &o.shot, &s->scene, c, err));
    j->payload.layer = s->layer->digest;
    j->payload.table_key = kiln_shot_table_key(&j->payload.shot, s->layer);
    snprintf(j->payload.camera, sizeof j->payload.camera, "%s", c->name);
    memcpy(j->payload.background, s->background, sizeof s->background);
    const kiln_source_file *f = photo_source(s, c);
    if (!c->distorted) snprintf(j->payload.photo, sizeof j->payload.photo, "%s", c->photo);
    if (f) j->payload.photo_file = (kiln_file_info){.size = f->size, .mtime_ns = f->mtime_ns, .inode = f->inode};
    return place_files(s, j, err);
}

static kiln_status plan(kiln_run *r, shoot *s, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    uint32_t first = 0;
    KILN_TRY(kiln_scene_get(m, &s->scene, err));
    KILN_TRY(kiln_layer_get(m, "baked", &s->layer, err));
    KILN_TRY(kiln_sources_get(m, &s->sources, &s->n_sources, err));
    KILN_TRY(get_cameras(r, s, err));
    KILN_TRY(get_folder(r, s, err));
    KILN_TRY(kiln_background_parse(o.background, &s->scene, s->background, err));
    s->n_jobs = s->n_cameras;
    if (o.camera) {
        KILN_TRY(kiln_camera_pick(s->cameras, s->n_cameras, o.camera, &first, err));
        s->n_jobs = 1;
    }
    KILN_TRY(check_output(s, err));
    KILN_TRY(KILN_ALLOC(&s->jobs, s->n_jobs, "cameras", err));
    KILN_TRY(KILN_ALLOC(&s->units, s->n_jobs, "units", err));
    for (uint32_t i = 0; i < s->n_jobs; i++) KILN_TRY(make_job(s, &s->jobs[i], &s->cameras[first + i], err));
    return KILN_OK;
}

static kiln_status is_fresh(kiln_run *r, shoot *s, kiln_hash key, bool *fresh, kiln_error *err)
{
    KILN_TRY(kiln_run_is_fresh(r, key, fresh, err));
    for (uint32_t i = 0; i < s->n_jobs && *fresh; i++) {
        picture p;
        KILN_TRY(find_picture(r, s, &s->jobs[i], &p, err));
        *fresh = p.intact;
    }
    return KILN_OK;
}

/* A unit that is due gets the key of the kind that computes it: so does every one with --force, or a picture of one kind
 * would be compared with that of the other. One whose file is gone or was drawn over is due again. */
static kiln_status choose_unit(kiln_run *r, const shoot *s, job *j, kiln_unit *u, kiln_error *err)
{
    const char *kind;
    picture p;
    KILN_TRY(find_picture(r, s, j, &p, err));
    if (!p.intact || kiln_run_force(r)) {
        KILN_TRY(kiln_run_device_kind(r, &kind, err));
        KILN_TRY(find_of_kind(r, s, j, kind, &p, err));
    }
    u->key = p.key;
    return p.done && !p.intact ? kiln_unit_forget(kiln_run_manifest(r), u->key, err) : KILN_OK;
}

static kiln_status choose_units(kiln_run *r, shoot *s, kiln_error *err)
{
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        kiln_unit *u = &s->units[i];
        job *j = &s->jobs[i];
        snprintf(u->name, sizeof u->name, "camera %.140s", j->camera->name);
        u->payload = &j->payload;
        u->payload_bytes = sizeof j->payload;
        u->cost = (uint64_t)j->camera->width * j->camera->height;
        u->volatile_result = kiln_run_is_once(r);
        if (!u->volatile_result) KILN_TRY(choose_unit(r, s, j, u, err));
    }
    return KILN_OK;
}

static kiln_status draw_all(kiln_run *r, shoot *s, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    KILN_TRY(kiln_manifest_begin(m, err));
    kiln_status st = choose_units(r, s, err);
    if (st == KILN_OK) st = kiln_manifest_commit(m, err);
    if (st != KILN_OK) {
        kiln_manifest_rollback(m);
        return st;
    }
    return kiln_run_units(r, "rendering", s->units, s->n_jobs, err);
}

/* ---- results --------------------------------------------------------------------------------------------------------------- */
typedef struct {
    uint64_t visible, pairs;
    double psnr, ssim; /* NAN: none */
    bool from_table;
    char note[256];
} view_result;

static kiln_status read_result(const kiln_unit *u, view_result *v, kiln_error *err)
{
    json_t *c;
    KILN_TRY(kiln_unit_counters(u, &c, err));
    const json_t *psnr = json_object_get(c, "psnr"), *ssim = json_object_get(c, "ssim"), *note = json_object_get(c, "note");
    v->visible = (uint64_t)json_integer_value(json_object_get(c, "visible"));
    v->pairs = (uint64_t)json_integer_value(json_object_get(c, "pairs"));
    v->from_table = json_is_true(json_object_get(c, "from_table"));
    v->psnr = json_is_string(psnr) ? INFINITY : json_is_number(psnr) ? json_number_value(psnr) : NAN;
    v->ssim = json_is_number(ssim) ? json_number_value(ssim) : NAN;
    snprintf(v->note, sizeof v->note, "%s", json_is_string(note) ? json_string_value(note) : "");
    json_decref(c);
    return KILN_OK;
}

static kiln_status put_image(kiln_run *r, kiln_manifest *m, const shoot *s, uint32_t i, kiln_error *err)
{
    static const char *const formats[] = {"png", "png16", "npy"};
    const job *j = &s->jobs[i];
    kiln_image *image;
    view_result v;
    void *pixels = NULL;
    uint64_t bytes;
    KILN_TRY(read_result(&s->units[i], &v, err));
    KILN_TRY(kiln_unit_data(r, &s->units[i], "pixels", &pixels, &bytes, err));
    kiln_status st = KILN_ALLOC(&image, 1, "image row", err);
    if (st == KILN_OK) {
        snprintf(image->camera, sizeof image->camera, "%s", j->camera->name);
        snprintf(image->profile, sizeof image->profile, "%s", kiln_profiles[j->payload.shot.profile].name);
        snprintf(image->device_kind, sizeof image->device_kind, "%s", j->device_kind);
        snprintf(image->path, sizeof image->path, "%s", j->relative);
        snprintf(image->format, sizeof image->format, "%s", formats[j->payload.format]);
        image->antialiased = j->payload.shot.antialiased;
        image->near_m = j->payload.shot.near_m;
        memcpy(image->background, s->background, sizeof s->background);
        image->width = j->camera->width;
        image->height = j->camera->height;
        image->key = s->units[i].key;
        if (bytes == sizeof image->pixels.bytes) memcpy(image->pixels.bytes, pixels, sizeof image->pixels.bytes);
        image->visible = v.visible;
        image->pairs = v.pairs;
        image->psnr = v.psnr;
        image->ssim = v.ssim;
        st = kiln_image_put(m, image, err);
        free(image);
    }
    free(pixels);
    return st;
}

static kiln_status put_images(kiln_run *r, kiln_manifest *m, void *context, kiln_error *err)
{
    const shoot *s = context;
    KILN_TRY(kiln_images_clear(m, err));
    for (uint32_t i = 0; i < s->n_jobs; i++) KILN_TRY(put_image(r, m, s, i, err));
    return KILN_OK;
}

static json_t *number_or_null(double v) { return isfinite(v) ? json_real(v) : json_null(); }

static kiln_status report_view(kiln_run *r, const shoot *s, uint32_t i, json_t *rows, view_result *v, kiln_error *err)
{
    const job *j = &s->jobs[i];
    KILN_TRY(read_result(&s->units[i], v, err));
    json_t *row =
        json_pack("{s:s, s:s, s:s, s:I, s:I, s:b}", "name", j->camera->name, "split", j->camera->split, "file", j->payload.picture,
                  "visible", (json_int_t)v->visible, "pairs", (json_int_t)v->pairs, "from_table", (int)v->from_table);
    json_object_set_new(row, "psnr", number_or_null(v->psnr));
    json_object_set_new(row, "ssim", number_or_null(v->ssim));
    if (v->note[0]) json_object_set_new(row, "note", json_string(v->note));
    json_array_append_new(rows, row);
    if (v->note[0]) kiln_warn("camera '%s': %s", j->camera->name, v->note);
    if (kiln_run_json(r)) return KILN_OK;
    printf("%-32s visible %9llu  pairs %11llu", j->camera->name, (unsigned long long)v->visible, (unsigned long long)v->pairs);
    if (!isnan(v->psnr)) printf("  psnr %7.3f dB  ssim %.5f", v->psnr, v->ssim);
    printf("%s%s\n", kiln_run_is_once(r) ? "  -> " : "", kiln_run_is_once(r) ? j->payload.picture : "");
    return KILN_OK;
}

static kiln_status report(kiln_run *r, const shoot *s, kiln_error *err)
{
    json_t *rows = json_array(), *out = kiln_run_report(r);
    double psnr = 0, ssim = 0;
    uint32_t n_test = 0, n_distorted = 0;
    view_result v;
    json_object_set_new(out, "profile", json_string(kiln_profiles[o.shot.profile].name));
    json_object_set_new(out, "views", rows);
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        KILN_TRY(report_view(r, s, i, rows, &v, err));
        n_distorted += s->jobs[i].camera->distorted;
        if (isnan(v.psnr) || strcmp(s->jobs[i].camera->split, "test") != 0) continue;
        psnr += v.psnr;
        ssim += v.ssim;
        n_test++;
    }
    if (n_distorted)
        kiln_warn("%u of %u cameras have lens distortion: drawn as pinhole, not measured until photos are undistorted", n_distorted,
                  s->n_jobs);
    if (n_test == 0) return KILN_OK;
    json_object_set_new(
        out, "test",
        json_pack("{s:i, s:o, s:f}", "views", (int)n_test, "psnr", number_or_null(psnr / n_test), "ssim", ssim / n_test));
    if (!kiln_run_json(r))
        printf("test split, %u views: psnr %.3f dB, ssim %.5f (profile %s)\n", n_test, psnr / n_test, ssim / n_test,
               kiln_profiles[o.shot.profile].name);
    return KILN_OK;
}

static kiln_status shoot_all(kiln_run *r, shoot *s, kiln_error *err)
{
    KILN_TRY(plan(r, s, err));
    kiln_hash key = input_key(r, s);
    if (!kiln_run_is_once(r)) {
        bool fresh;
        KILN_TRY(is_fresh(r, s, key, &fresh, err));
        if (fresh) return kiln_run_nothing_to_do(r, err);
    }
    if (s->n_jobs == 0) kiln_warn("there is no camera to draw");
    KILN_TRY(draw_all(r, s, err));
    KILN_TRY(report(r, s, err));
    return kiln_run_is_once(r) ? KILN_OK : kiln_run_commit(r, key, put_images, s, err);
}

static kiln_status run(kiln_run *r, kiln_error *err)
{
    shoot *s;
    KILN_TRY(kiln_run_need(r, "import", err));
    KILN_TRY(kiln_run_need(r, "chunk", err));
    KILN_TRY(KILN_ALLOC(&s, 1, "render", err));
    kiln_status st = shoot_all(r, s, err);
    shoot_release(s);
    free(s);
    return st;
}

static const kiln_stage_program program = {
    .name = "render", .cli = &cli, .open = KILN_OPEN_WRITE, .run = run, .unit = kiln_render_compute};

int main(int argc, char **argv) { return kiln_program_main(&program, argc, argv); }
