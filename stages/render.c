/* kiln-render -- draws the cameras as the profile's renderer would, and measures the pictures against their photos.
 *
 * A unit is a camera. Its picture depends on the chunks that the camera can see. It does not depend on tile tables, which only save
 * work, nor on threads or the path of the file. If the file is missing, the unit is due again. With --camera, --cameras or -o the
 * program draws what was asked for, writes the files and changes nothing in the manifest. */
#include "stages/render/against.h"
#include "stages/render/background.h"
#include "stages/render/photo.h"
#include "stages/render/render_plan.h"
#include "stages/render/video_plan.h"
#include "stages/render/written.h"

#include "base/log.h"
#include "stages/engine/json_text.h"
#include "stages/engine/run_layers.h"
#include "stages/import/cameras/pinholes.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct {
    kiln_view_options request;
    kiln_viewpoint_options where;
    const char *level, *against, *background, *camera, *output;
    uint32_t format, undistort_filter;
    const char *video;
    double fps;
    bool alpha, depth, depth_colours, fast;
} o;

#define X(id, name, suffix, what) "|" name
static const char formats[] =
    KILN_PICTURE_FORMAT_MAP(X) "|none|y4m|raw"; /* "|png|...": an option's range is all but the first bar */
#undef X
#define X(id, name, suffix, what) name ": " what "; "
static const char format_help[] =
    KILN_PICTURE_FORMAT_MAP(X) "none: draw and hash, write nothing; by the suffix of -o where that is given; "
                               "y4m, raw (RGB, 8 bits): all pictures as one stream of frames, to -o - (stdout) or a file";
#undef X

static const kiln_opt options[] = {
    KILN_VIEW_OPTION_ROWS(o.request),
    KILN_LEVEL_OPTION_ROW(o.level),
    {"background", 'b', KILN_OPT_TEXT, &o.background, "COLOUR", "scene", NULL,
     "scene (the scene's own, else black), white, black or r,g,b", KILN_KEYED},
    {"format", 'f', KILN_OPT_ENUM, &o.format, "FORMAT", "png", formats + 1, format_help, KILN_KEYED},
    {"alpha", 0, KILN_OPT_BOOL, &o.alpha, NULL, NULL, NULL,
     "write PNGs with straight alpha, without the background (.npy always has alpha, and colours over the background)", KILN_KEYED},
    {"depth", 0, KILN_OPT_BOOL, &o.depth, NULL, NULL, NULL,
     "also write NAME.depth.png (16-bit; its text and the output give the scene units of one step) or NAME.depth.npy", KILN_KEYED},
    {"depth-colours", 0, KILN_OPT_BOOL, &o.depth_colours, NULL, NULL, NULL,
     "also write NAME.depth.png in colours from red (near) to blue (far) instead of numbers", KILN_KEYED | KILN_LATER},
    {"fast", 0, KILN_OPT_BOOL, &o.fast, NULL, NULL, NULL,
     "draw faster, not exactly (GPU only); a sample is also drawn exactly, to measure the difference in dB", KILN_KEYED},
    {"undistort-filter", 0, KILN_OPT_ENUM, &o.undistort_filter, "FILTER", "bilinear", KILN_UNDISTORT_FILTERS,
     "interpolation when photos are undistorted for comparison: bilinear, as in COLMAP's image_undistorter, or lanczos, which is "
     "sharper",
     KILN_KEYED | KILN_LATER},
    {"camera", 'c', KILN_OPT_TEXT, &o.camera, "NAME", NULL, NULL, "only this camera, by name or #INDEX in sorted order", KILN_ONCE},
    {"cameras", 0, KILN_OPT_PATH, &o.where.cameras, "FILE", NULL, NULL,
     "draw these instead: cameras.json, transforms.json, a COLMAP folder, nerfstudio's camera_path.json or a JSON list as "
     "kiln-info --cameras writes it; they are moved as import's --translate, --rotate and --scale moved the scene",
     KILN_ONCE},
    {"orbit", 0, KILN_OPT_TEXT, &o.where.orbit, "N[,WHERE]", NULL, NULL,
     "draw N pictures on a circle around the scene instead, at the distance and height of its cameras, or as WHERE says: "
     "radius=R,height=H,centre=X:Y:Z in scene units, each optional",
     KILN_ONCE},
    {"interpolate", 0, KILN_OPT_U32, &o.where.interpolate, "N", NULL, "2..100000",
     "draw N pictures on a smooth path through the cameras instead, those of the bake or of --cameras", KILN_ONCE},
    {"through", 0, KILN_OPT_TEXT, &o.where.through, "A,B,...", NULL, NULL,
     "with --interpolate: through these cameras in this order, by name or #INDEX (default: all, by name)", KILN_ONCE},
    {"constant-speed", 0, KILN_OPT_BOOL, &o.where.constant_speed, NULL, NULL, NULL,
     "with --interpolate: steps of equal length (default: longer where cameras are farther apart)", KILN_ONCE},
    {"scale", 0, KILN_OPT_F64, &o.where.scale, "FACTOR", NULL, "0.001..64", "draw pictures this many times as wide and high",
     KILN_ONCE},
    {"size", 0, KILN_OPT_TEXT, &o.where.size, "WxH", NULL, NULL,
     "draw pictures of this size, not stretched; if the shape differs they show more at two sides", KILN_ONCE},
    {"crop", 0, KILN_OPT_TEXT, &o.where.crop, "WxH+X+Y", NULL, NULL,
     "draw only these pixels of each picture, counted after --scale or --size", KILN_ONCE},
    {"video", 0, KILN_OPT_PATH, &o.video, "FILE", NULL, NULL,
     "make a video (.mp4, .m4v, .mov, .mkv, .webm) of the pictures, in the order of their names, by ffmpeg, which must be "
     "installed",
     KILN_ONCE},
    {"fps", 0, KILN_OPT_F64, &o.fps, "RATE", "30", "0.1..1000", "with --video and --format y4m: frames a second", KILN_ONCE},
    {"levels-against", 0, KILN_OPT_PATH, &o.against, "DIR", NULL, NULL,
     "for each level of detail, draw the test cameras at 2^(-LEVEL/2) of their size, the level into DIR/level_LEVEL and the full "
     "scene into DIR/full_LEVEL, and measure each pair",
     KILN_ONCE},
    {"output", 'o', KILN_OPT_PATH, &o.output, "PATH", NULL, NULL,
     "NAME.png or NAME.npy for one camera, else a folder; -: stdout, with --format y4m or raw", KILN_ONCE},
    {NULL, 0, KILN_OPT_END, NULL, NULL, NULL, NULL, NULL, 0},
};

/* How long --gather waits in all for pictures of other hosts to be seen. KILN_FILES_MS says another time. */
static int64_t patience_ms;

static void set_patience(void)
{
    enum { PATIENCE_MS = 10000 };
    const char *given = getenv("KILN_FILES_MS");
    patience_ms = given ? strtol(given, NULL, 10) : PATIENCE_MS;
}

static const kiln_cli cli = {.program = "kiln-render",
                             .summary = "draws the cameras and measures them against their photos",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .options = options,
                             .common = kiln_common_options};

static void plan_release(kiln_run *r, kiln_render_plan *s)
{
    if (s->video) kiln_video_close(r, s->video);
    free(s->video);
    if (s->units) kiln_units_release(s->units, s->n_jobs);
    free(s->units);
    for (uint32_t i = 0; s->jobs && i < s->n_jobs; i++) kiln_view_chunks_release(&s->jobs[i].chunks);
    free(s->jobs);
    free(s->sources);
    free(s->smaller);
    kiln_viewpoints_release(&s->viewpoints);
    kiln_chunk_keys_release(&s->keys);
    kiln_drawn_release(&s->drawn);
}

static kiln_status get_folder(kiln_run *r, kiln_render_plan *s, kiln_error *err)
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
/* Says whether -o names a folder: it ends with a slash, or the folder exists. */
static bool output_is_folder(void) { return !kiln_path_base(o.output)[0] || kiln_is_dir(o.output); }

static bool output_is_file(const kiln_render_plan *s) { return o.output && s->n_jobs == 1 && !output_is_folder(); }

/* "NAME.png, NAME.npy" */
static void list_written(char *out, size_t size)
{
    size_t n = 0;
    *out = '\0';
    for (int f = 0; f < KILN_N_PICTURE_FORMATS && n < size; f++) {
        const char *suffix = kiln_picture_suffix((kiln_picture_format)f);
        if (f && !strcmp(suffix, kiln_picture_suffix((kiln_picture_format)(f - 1)))) continue;
        n += (size_t)snprintf(out + n, size - n, "%sNAME.%s", n ? ", " : "", suffix);
    }
}

/* Says whether both formats have the same suffix. KILN_RENDER_NO_FILE has none. */
static bool same_suffix(uint32_t a, uint32_t b)
{
    if (a == KILN_RENDER_NO_FILE || b == KILN_RENDER_NO_FILE) return a == b;
    return !strcmp(kiln_picture_suffix((kiln_picture_format)a), kiln_picture_suffix((kiln_picture_format)b));
}

/* Takes the format from the suffix of -o. Refuses many pictures under the name of one, because a folder called view.png is never
 * intended. */
static kiln_status check_suffix(const kiln_render_plan *s, kiln_error *err)
{
    char written[128];
    const char *suffix = kiln_path_suffix(o.output);
    const kiln_picture_format of_suffix = kiln_picture_format_of(o.output);
    if (!kiln_path_has_suffix(o.output)) return KILN_OK;
    if (!kiln_picture_suffix_is_written(o.output)) {
        list_written(written, sizeof written);
        return kiln_fail(err, KILN_E_USAGE,
                         "-o '%s': '.%s' is no format that kiln-render writes; it writes %s, or a folder of such files (end its "
                         "name with a slash)",
                         o.output, suffix, written);
    }
    if (s->n_jobs != 1)
        return kiln_fail(err, KILN_E_USAGE,
                         "-o '%s' names one file but %u cameras are to be drawn; name a folder, or one camera with --camera",
                         o.output, s->n_jobs);
    if (kiln_opt_given(&cli, "format") && !same_suffix(of_suffix, o.format))
        return kiln_fail(err, KILN_E_USAGE, "-o '%s' names the format %s, --format says another one; leave out one of them",
                         o.output, kiln_picture_suffix(of_suffix));
    return KILN_OK;
}

static kiln_status check_against(kiln_error *err)
{
    static const char *const others[] = {"level", "output", "depth", "depth-colours", "fast", "crop"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (kiln_opt_given(&cli, others[i]))
            return kiln_fail(err, KILN_E_USAGE, "--levels-against and --%s do not go together; leave out one of them", others[i]);
    o.fast = o.depth = o.depth_colours = false; /* though they were stored */
    return KILN_OK;
}

/* ---- one stream of all pictures ------------------------------------------------------------------------------------ */
static kiln_status refuse_beside(const char *what, const char *const *others, size_t n, kiln_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (kiln_opt_given(&cli, others[i]))
            return kiln_fail(err, KILN_E_USAGE, "%s and --%s do not go together; leave out one of them", what, others[i]);
    return KILN_OK;
}

static kiln_status check_video(kiln_error *err)
{
    static const char *const others[] = {"output", "format", "depth", "depth-colours", "alpha", "levels-against"};
    KILN_TRY(refuse_beside("--video", others, sizeof others / sizeof *others, err));
    return kiln_encoder_check(o.video, err);
}

static kiln_status check_frames(kiln_run *r, kiln_error *err)
{
    static const char *const others[] = {"depth", "depth-colours", "alpha", "levels-against"};
    const char *const what = o.format == KILN_RENDER_Y4M ? "--format y4m" : "--format raw";
    KILN_TRY(refuse_beside(what, others, sizeof others / sizeof *others, err));
    if (!o.output || output_is_folder())
        return kiln_fail(err, KILN_E_USAGE, "%s writes one stream; name its file with -o FILE, or stdout with -o -", what);
    if (strcmp(o.output, "-") == 0 && kiln_run_json(r))
        return kiln_fail(err, KILN_E_USAGE, "-o - and --json both write to stdout; leave out one of them");
    return KILN_OK;
}

/* Says what the stream is, if all pictures are one. Each of them writes no file then. */
static kiln_status choose_stream(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    const bool frames = !o.video && (o.format == KILN_RENDER_Y4M || o.format == KILN_RENDER_RAW);
    if (o.video) KILN_TRY(check_video(err));
    if (frames) KILN_TRY(check_frames(r, err));
    if (kiln_opt_given(&cli, "fps") && !o.video && !(frames && o.format == KILN_RENDER_Y4M))
        return kiln_fail(err, KILN_E_USAGE, "--fps is of --video and of --format y4m");
    if (!frames && !o.video) {
        if (o.output && strcmp(o.output, "-") == 0)
            return kiln_fail(err, KILN_E_USAGE, "-o - is for --format y4m or raw, a stream of frames");
        return KILN_OK;
    }
    s->stream = (kiln_video_options){.path = o.video ? o.video : o.output,
                                     .encodes = o.video != NULL,
                                     .kind = o.video || o.format == KILN_RENDER_RAW ? KILN_VIDEO_RGB : KILN_VIDEO_Y4M,
                                     .rate = kiln_video_rate_of(o.fps)};
    o.output = NULL;
    o.format = KILN_RENDER_NO_FILE;
    o.depth = o.depth_colours = o.alpha = false; /* though they were stored */
    return KILN_OK;
}

/* Names the option because of which the pictures are not those of the bake. */
static const char *chooser(void)
{
    static const char *const names[] = {"cameras", "orbit", "interpolate", "scale", "size", "crop"};
    size_t i = 0;
    while (i + 1 < sizeof names / sizeof *names && !kiln_opt_given(&cli, names[i])) i++;
    return names[i];
}

static kiln_status check_output(const kiln_render_plan *s, kiln_error *err)
{
    const bool none = o.format == KILN_RENDER_NO_FILE;
    if (o.output && none && kiln_opt_given(&cli, "format"))
        return kiln_fail(err, KILN_E_USAGE, "--format none writes no file; leave out -o or name a format");
    if (s->against) return KILN_OK;
    if (!s->viewpoints.own && !o.output && !none && s->stream.kind == KILN_VIDEO_NONE)
        return kiln_fail(err, KILN_E_USAGE, "--%s needs -o, a folder (or a file for one camera), or --format none", chooser());
    return !o.output || output_is_folder() ? KILN_OK : check_suffix(s, err);
}

/* -o and --levels-against ask for files although the stored format is none. Given beside --levels-against, none only measures. */
static uint32_t format_now(const kiln_render_plan *s)
{
    const bool asks = o.output || (s->against && !kiln_opt_given(&cli, "format"));
    const uint32_t format = asks && o.format == KILN_RENDER_NO_FILE ? KILN_PNG8 : o.format;
    if (!output_is_file(s) || !*kiln_path_suffix(o.output) || kiln_opt_given(&cli, "format")) return format;
    const kiln_picture_format f = kiln_picture_format_of(o.output);
    return same_suffix(f, format) ? format : f;
}

/* Beside the picture. */
static kiln_status place_depth(const kiln_render_plan *s, kiln_render_job *j, const char *suffix, kiln_error *err)
{
    char name[KILN_PATH_MAX];
    const char *picture = o.output ? j->payload.picture : j->relative, *dot = strrchr(kiln_path_base(picture), '.');
    const int stem = dot ? (int)(dot - picture) : (int)strlen(picture);
    if ((size_t)snprintf(name, sizeof name, "%.*s.depth.%s", stem, picture, suffix) >= sizeof name)
        return kiln_fail(err, KILN_E_INPUT, "the path of '%.80s...' is too long", picture);
    if (!o.output) return kiln_path_inside(j->payload.depth, sizeof j->payload.depth, s->folder, name, "-o", err);
    snprintf(j->payload.depth, sizeof j->payload.depth, "%s", name);
    return KILN_OK;
}

static kiln_status place_files(const kiln_render_plan *s, kiln_render_job *j, kiln_error *err)
{
    const uint32_t format = format_now(s);
    char name[KILN_PATH_MAX];
    if (s->against) return kiln_against_place(s, j, format, err);
    j->payload.format = format;
    j->payload.alpha = o.alpha;
    j->payload.fast = o.fast;
    if (format == KILN_RENDER_NO_FILE) return KILN_OK;
    const char *suffix = kiln_picture_suffix((kiln_picture_format)format);
    if (output_is_file(s)) {
        snprintf(j->payload.picture, sizeof j->payload.picture, "%s", o.output);
    } else {
        if ((size_t)snprintf(name, sizeof name, "%s%s.%s", o.output ? "" : "renders/", j->camera->name, suffix) >= sizeof name)
            return kiln_fail(err, KILN_E_INPUT, "the name of camera '%.80s...' is too long for a file", j->camera->name);
        if (o.output)
            KILN_TRY(kiln_path_join(j->payload.picture, sizeof j->payload.picture, o.output, name, err));
        else
            KILN_TRY(kiln_path_inside(j->payload.picture, sizeof j->payload.picture, s->folder, name, "-o", err));
        if (!o.output) snprintf(j->relative, sizeof j->relative, "%s", name);
    }
    j->payload.depth_colours = o.depth_colours;
    if (o.depth_colours) suffix = kiln_picture_suffix(KILN_PNG8);
    return o.depth || o.depth_colours ? place_depth(s, j, suffix, err) : KILN_OK;
}

/* ---- keys ------------------------------------------------------------------------------------------------------------ */
static int compare_path(const void *path, const void *source) { return strcmp(path, ((const kiln_source_file *)source)->path); }

/* path: of a photo or mask; "" has no source. Sources come in the order of their paths. */
static const kiln_source_file *source_at(const kiln_render_plan *s, const char *path)
{
    return path[0] && s->n_sources ? bsearch(path, s->sources, s->n_sources, sizeof *s->sources, compare_path) : NULL;
}

static void key_photo(kiln_hasher *h, const kiln_render_plan *s, const kiln_camera *c)
{
    const kiln_source_file *f = source_at(s, c->photo), *mask = source_at(s, c->mask);
    if (f) kiln_key_hash(h, "photo", f->hash);
    kiln_key_text(h, "photo", c->photo);
    if (mask) kiln_key_hash(h, "mask", mask->hash); /* without masks the key of before */
    if (c->mask[0]) kiln_key_text(h, "mask", c->mask);
    kiln_key_u64(h, "distorted", c->distorted);
    if (!c->distorted || !c->photo[0]) return;
    kiln_key_u64(h, "undistorted by", o.undistort_filter);
    kiln_key_hash(h, "lens", kiln_camera_hash(c)); /* two lenses may have one pinhole, whose size is whole pixels */
    kiln_key_u64(h, "photo width", c->photo_width);
    kiln_key_u64(h, "photo height", c->photo_height);
}

/* A part of the key. 1 stood for an earlier PNG, whose colours were over the background although its alpha was straight; it is not
 * used again, so that none of those counts as current. */
static uint64_t alpha_kind(const kiln_render_unit *u)
{
    enum { OF_NO_PNG = 1, STRAIGHT = 2 };
    if (!u->alpha) return 0;
    return u->format == KILN_PNG8 || u->format == KILN_PNG16 ? STRAIGHT : OF_NO_PNG;
}

static kiln_hash unit_key(kiln_run *r, const kiln_render_plan *s, const kiln_render_job *j, const char *device_kind)
{
    KILN_KEY_LISTS(kiln_render_unit, 18224);
    kiln_hasher *h = kiln_run_key_bare(r, "picture"); /* against_full, crop and frame are of runs that store nothing */
    kiln_key_hash(h, "picture",
                  kiln_view_request_picture_key(&j->payload.request, &s->keys, &j->chunks, s->background, device_kind));
    key_photo(h, s, j->camera);
    kiln_key_text(h, "file", j->relative);
    kiln_key_u64(h, "format", j->payload.format);
    kiln_key_u64(h, "alpha", alpha_kind(&j->payload));
    kiln_key_u64(h, "depth", j->payload.depth[0] != '\0');
    if (j->payload.depth_colours) kiln_key_u64(h, "depth colours", 1); /* without them the key of before */
    return kiln_key_end(h);
}

/* Without the device: a picture of either kind is good unless --devices names one. */
static kiln_hash input_key(kiln_run *r, const kiln_render_plan *s)
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
    bool done, intact; /* its unit is stored; its files are still those that the unit wrote */
} picture;

/* Says whether the files of a stored unit are still those that it wrote, and a damaged photo is still as it was. False if the
 * counters do not describe them. */
static kiln_status files_intact(const kiln_render_unit *u, const kiln_unit_result *done, bool *intact, kiln_error *err)
{
    json_t *c; /* NULL: they are no JSON, so no file is known */
    KILN_TRY(kiln_json_parse(done->counters, strlen(done->counters), 0, "counters", &c, NULL, err));
    *intact = json_is_object(c) && (!u->picture[0] || kiln_written_is_intact(json_object_get(c, "picture"), u->picture)) &&
              (!u->depth[0] || kiln_written_is_intact(json_object_get(c, "depth"), u->depth)) &&
              (!json_object_get(c, "photo") || kiln_photo_state_is(json_object_get(c, "photo"), u->photo)) &&
              (!json_object_get(c, "mask") || kiln_photo_state_is(json_object_get(c, "mask"), u->mask));
    json_decref(c);
    return KILN_OK;
}

/* A kiln_unit_check_fn. Another host has renamed the files before it finished its part, but a network file system can show that
 * some seconds later. All waits of a run together take at most `patience_ms`. */
static kiln_status check_files(kiln_run *r, const kiln_unit *u, const kiln_unit_result *result, kiln_error *err)
{
    const kiln_render_unit *payload = u->payload;
    for (int64_t pause_ms = 50;; pause_ms *= 2) {
        bool intact;
        KILN_TRY(files_intact(payload, result, &intact, err));
        if (intact) return KILN_OK;
        if (pause_ms > patience_ms) pause_ms = patience_ms;
        if (pause_ms <= 0) break;
        patience_ms -= pause_ms;
        (void)nanosleep(&(struct timespec){.tv_sec = pause_ms / 1000, .tv_nsec = pause_ms % 1000 * 1000000}, NULL);
        KILN_TRY(kiln_run_interrupted(r, err));
        kiln_written_look_again(payload->picture);
    }
    return kiln_fail(err, KILN_E_INPUT, "%s: '%s' is not the picture that its task wrote, or its photo has changed", u->name,
                     payload->picture);
}

/* Fast pictures have a device kind of their own, so that none passes for an exact one. */
static const char *kind_of_pictures(const char *device_kind) { return o.fast ? KILN_RENDER_FAST_KIND : device_kind; }

/* Says whether the picture of this kind is stored and its files are intact. *done: it is stored, but files may be missing or
 * overwritten.
 */
static kiln_status find_of_kind(kiln_run *r, const kiln_render_plan *s, kiln_render_job *j, const char *kind, picture *p,
                                kiln_error *err)
{
    kiln_unit_result result;
    *p = (picture){.key = unit_key(r, s, j, kind)};
    KILN_TRY(kiln_unit_find(kiln_run_manifest(r), p->key, &p->done, &result, err));
    const kiln_status st = p->done ? files_intact(&j->payload, &result, &p->intact, err) : KILN_OK;
    kiln_unit_result_release(&result);
    snprintf(j->device_kind, sizeof j->device_kind, "%s", kind);
    return st;
}

/* A picture of either kind is good unless --devices names one. Looks for no device. */
static kiln_status find_picture(kiln_run *r, const kiln_render_plan *s, kiln_render_job *j, picture *p, kiln_error *err)
{
    const char *named = kind_of_pictures(kiln_run_named_kind(r));
    KILN_TRY(find_of_kind(r, s, j, named ? named : "cpu", p, err));
    return named || p->intact ? KILN_OK : find_of_kind(r, s, j, "cuda", p, err);
}

/* ---- plan --------------------------------------------------------------------------------------------------------------- */
/* Chooses what the picture is drawn of. */
static kiln_status choose_chunks(const kiln_render_plan *s, kiln_render_job *j, kiln_error *err)
{
    const kiln_view_request *request = &j->payload.request;
    const kiln_level_wish wish = j->level ? (kiln_level_wish){.form = KILN_LEVEL_AT, .level = j->level} : s->wish;
    kiln_view_chunks full;
    j->payload.drawn = kiln_drawn_name_of(&s->drawn, &wish);
    KILN_TRY(kiln_view_chunks_choose(&s->drawn, &wish, request, &j->chunks, err));
    if (s->drawn.levels) kiln_view_detail_add(&j->detail, &s->drawn, request, &j->chunks);
    if (!j->level) return KILN_OK;
    KILN_TRY(kiln_view_chunks_choose(&s->drawn, &kiln_level_full, request, &full, err));
    kiln_view_chunks less = full.rows < j->chunks.rows ? full : j->chunks;
    if (full.rows >= j->chunks.rows) j->chunks = full;
    kiln_view_chunks_release(&less);
    return KILN_OK;
}

static kiln_status make_job(kiln_render_plan *s, kiln_render_job *j, const kiln_camera *c, kiln_error *err)
{
    j->camera = c;
    KILN_TRY(kiln_view_request_init(&j->payload.request, &o.request, &s->scene, c, err));
    KILN_TRY(choose_chunks(s, j, err));
    j->payload.table_key = kiln_view_request_table_key(&j->payload.request, &s->keys, &j->chunks);
    snprintf(j->payload.camera, sizeof j->payload.camera, "%s", c->name);
    memcpy(j->payload.background, s->background, sizeof s->background);
    const kiln_source_file *f = source_at(s, c->photo), *mask = source_at(s, c->mask);
    snprintf(j->payload.photo, sizeof j->payload.photo, "%s", c->photo);
    if (c->distorted && c->photo[0]) KILN_TRY(kiln_pinhole_lens(c, &j->payload.lens, err));
    j->payload.pinhole = (kiln_pinhole){c->fx, c->fy, c->cx, c->cy, c->width, c->height};
    j->payload.undistort_filter = o.undistort_filter;
    if (f) j->payload.photo_file = (kiln_file_info){.size = f->size, .mtime_ns = f->mtime_ns, .inode = f->inode};
    if (f) j->payload.photo_hash = f->hash;
    if (j->payload.photo[0]) snprintf(j->payload.mask, sizeof j->payload.mask, "%s", c->mask);
    if (mask) j->payload.mask_file = (kiln_file_info){.size = mask->size, .mtime_ns = mask->mtime_ns, .inode = mask->inode};
    if (mask) j->payload.mask_hash = mask->hash;
    j->payload.mask_width = c->mask_width;
    j->payload.mask_height = c->mask_height;
    j->payload.crop = s->viewpoints.crop;
    return place_files(s, j, err);
}

static kiln_status say_measured(const kiln_render_plan *s, const kiln_camera *c, kiln_error *err)
{
    kiln_view_request request;
    KILN_TRY(kiln_view_request_init(&request, &o.request, &s->scene, c, err));
    kiln_drawn_say_measured(&s->drawn, &s->wish, &request);
    return KILN_OK;
}

static kiln_status plan(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    uint32_t first = 0, n;
    s->profile = kiln_profiles[o.request.profile].name;
    KILN_TRY(kiln_scene_get(m, &s->scene, err));
    s->level_text = o.level;
    KILN_TRY(kiln_level_wish_parse(o.level, &s->wish, err));
    KILN_TRY(kiln_drawn_current(m, s->kind, s->against || !kiln_level_wish_full(&s->wish), &s->drawn, err));
    if (!s->against) KILN_TRY(kiln_drawn_narrow(&s->drawn, &s->wish, err));
    s->layer = s->drawn.chunks;
    KILN_TRY(kiln_chunk_keys_make(s->layer, &s->keys, err));
    KILN_TRY(kiln_sources_get(m, &s->sources, &s->n_sources, err));
    KILN_TRY(kiln_viewpoints_get(m, &o.where, &s->scene, s->layer, &s->viewpoints, err));
    if (s->stream.kind != KILN_VIDEO_NONE && !o.camera) kiln_viewpoints_order(&s->viewpoints);
    s->cameras = s->viewpoints.cameras;
    s->n_cameras = s->viewpoints.n;
    KILN_TRY(get_folder(r, s, err));
    KILN_TRY(kiln_background_parse(o.background, &s->scene, s->background, err));
    s->n_jobs = n = s->n_cameras;
    if (o.camera) {
        KILN_TRY(kiln_camera_pick(s->cameras, s->n_cameras, o.camera, &first, err));
        s->n_jobs = n = 1;
    }
    KILN_TRY(check_output(s, err));
    if (s->against)
        KILN_TRY(kiln_against_list(s, first, n, err));
    else
        KILN_TRY(KILN_ALLOC(&s->jobs, n, "cameras", err));
    KILN_TRY(KILN_ALLOC(&s->units, s->n_jobs, "units", err));
    if (n > 0 && !s->against) KILN_TRY(say_measured(s, &s->cameras[first], err));
    for (uint32_t i = 0; i < s->n_jobs; i++)
        KILN_TRY(make_job(s, &s->jobs[i], s->against ? &s->smaller[i] : &s->cameras[first + i], err));
    return KILN_OK;
}

static kiln_status is_fresh(kiln_run *r, kiln_render_plan *s, kiln_hash key, bool *fresh, kiln_error *err)
{
    KILN_TRY(kiln_run_is_fresh(r, key, fresh, err));
    for (uint32_t i = 0; i < s->n_jobs && *fresh; i++) {
        picture p;
        KILN_TRY(find_picture(r, s, &s->jobs[i], &p, err));
        *fresh = p.intact;
    }
    return KILN_OK;
}

/* A unit whose file is missing or overwritten is due again. With --force every unit is. */
static kiln_status find_due(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        picture p = {0};
        if (!kiln_run_is_once(r)) KILN_TRY(find_picture(r, s, &s->jobs[i], &p, err));
        s->units[i].key = p.key;
        s->jobs[i].due = !p.intact || kiln_run_force(r);
    }
    return KILN_OK;
}

/* Drops the stored picture of this kind if its files are not there. */
static kiln_status forget_lost(kiln_run *r, const picture *p, kiln_error *err)
{
    if (!p->done || p->intact || kiln_run_is_frozen(r)) return KILN_OK;
    return kiln_unit_forget(kiln_run_manifest(r), p->key, err);
}

/* In a plan, also that of the other kind: if its file came back while tasks draw, hosts would no longer list the same units. */
static kiln_status forget_other(kiln_run *r, const kiln_render_plan *s, kiln_render_job *j, const char *kind, kiln_error *err)
{
    picture p;
    KILN_TRY(find_of_kind(r, s, j, strcmp(kind, "cpu") ? "cpu" : "cuda", &p, err));
    return forget_lost(r, &p, err);
}

/* Sets the key of a unit that is due to that of the device kind that will compute it: with --force a picture of one kind would be
 * compared with one of the other. */
static kiln_status choose_unit(kiln_run *r, const kiln_render_plan *s, kiln_render_job *j, const char *kind, kiln_unit *u,
                               kiln_error *err)
{
    picture p;
    if (!j->due) return KILN_OK;
    if (kind && !o.fast) KILN_TRY(forget_other(r, s, j, kind, err));
    if (!kind) KILN_TRY(kiln_run_device_kind(r, &kind, err));
    KILN_TRY(find_of_kind(r, s, j, kind_of_pictures(kind), &p, err));
    u->key = p.key;
    j->due = !p.intact || kiln_run_force(r);
    return forget_lost(r, &p, err);
}

/* The kind of devices that draws what is due, on every host of a plan; NULL: it is asked for when the first picture is due. */
static kiln_status choose_kind(kiln_run *r, const kiln_render_plan *s, const char **kind, kiln_error *err)
{
    bool due = false;
    *kind = NULL;
    if (kiln_run_tasks(r) == 0) return KILN_OK;
    for (uint32_t i = 0; i < s->n_jobs; i++) due = due || s->jobs[i].due;
    return kiln_run_decide_kind(r, due, kind, err);
}

/* Of the fast pictures that this run draws, the first and each 64th after it are also drawn exactly. */
static kiln_status plan_fast(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    enum { MEASURED_OF = 64 };
    const char *kind = "cuda";
    uint32_t due = 0;
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        kiln_render_job *j = &s->jobs[i];
        if (j->due) j->payload.measured = due++ % MEASURED_OF == 0;
    }
    if (due > 0) KILN_TRY(kiln_run_device_kind(r, &kind, err));
    if (strcmp(kind, "cuda") == 0) return KILN_OK;
    return kiln_fail(err, KILN_E_DEVICE,
                     "--fast draws on a GPU, and there is none that can be used (kiln-doctor says why); --no-fast "
                     "draws exactly, on the CPU");
}

static kiln_status choose_units(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    const char *kind;
    KILN_TRY(find_due(r, s, err));
    KILN_TRY(kiln_render_plan_expect(r, s, o.fast, err));
    KILN_TRY(choose_kind(r, s, &kind, err));
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        kiln_unit *u = &s->units[i];
        kiln_render_job *j = &s->jobs[i];
        snprintf(u->name, sizeof u->name, "camera %.140s", j->camera->name);
        if (j->level) snprintf(u->name, sizeof u->name, "level %u of camera %.120s", j->level, j->camera->name);
        u->payload = &j->payload;
        u->payload_bytes = sizeof j->payload;
        u->optional = true; /* a camera that fails does not stop the others */
        u->replaced = o.fast;
        u->volatile_result = kiln_run_is_once(r);
        if (!u->volatile_result) KILN_TRY(choose_unit(r, s, j, kind, u, err));
    }
    return o.fast ? plan_fast(r, s, err) : KILN_OK;
}

/* Makes the folders of the files; one for several cameras in a row that share it. */
static void drop_leftovers(const kiln_render_plan *s)
{
    const char *before = NULL;
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const char *now = s->jobs[i].payload.picture;
        const ptrdiff_t n = kiln_path_base(now) - now;
        if (!*now || (before && n == kiln_path_base(before) - before && !strncmp(before, now, (size_t)n))) continue;
        kiln_leftovers_drop(now);
        before = now;
    }
}

static kiln_status choose_and_forget(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    KILN_TRY(kiln_manifest_begin(m, err));
    kiln_status st = choose_units(r, s, err);
    if (st == KILN_OK) st = kiln_manifest_commit(m, err);
    if (st != KILN_OK) kiln_manifest_rollback(m);
    return st;
}

static kiln_status draw_all(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    if (kiln_run_is_frozen(r))
        KILN_TRY(choose_units(r, s, err));
    else
        KILN_TRY(choose_and_forget(r, s, err));
    if (s->stream.kind != KILN_VIDEO_NONE) KILN_TRY(kiln_video_plan_begin(r, s, err));
    KILN_TRY(kiln_render_plan_size(r, s, err));
    if (s->video) return kiln_video_plan_draw(r, s, err);
    if (!kiln_run_is_frozen(r)) drop_leftovers(s); /* other hosts are writing: their processes are not known here */
    kiln_run_checks_files(r, check_files);
    return kiln_run_units(r, "rendering", s->units, s->n_jobs, err);
}

static kiln_status render_all(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    KILN_TRY(plan(r, s, err));
    kiln_hash key = {0};
    if (!kiln_run_is_once(r)) {
        bool fresh;
        key = input_key(r, s);
        KILN_TRY(is_fresh(r, s, key, &fresh, err));
        if (fresh) return kiln_run_nothing_to_do(r, err);
    }
    if (s->n_jobs == 0) kiln_warn(s->n_cameras > 0 ? "there is no level to draw" : "there is no camera to draw");
    KILN_TRY(draw_all(r, s, err));
    KILN_TRY(kiln_render_plan_report(r, s, err));
    if (s->video) KILN_TRY(kiln_video_plan_report(r, s, err));
    return kiln_run_is_once(r) ? KILN_OK : kiln_run_commit(r, key, kiln_render_plan_put, s, err);
}

static kiln_status run(kiln_run *r, kiln_error *err)
{
    kiln_render_plan *s;
    kiln_layer_kind kind;
    const char *named = kiln_run_named_kind(r);
    KILN_TRY(kiln_viewpoints_check(&o.where, err));
    if (o.against) KILN_TRY(check_against(err));
    if (o.fast && named && strcmp(named, "cpu") == 0)
        return kiln_fail(err, KILN_E_USAGE,
                         "--fast draws on a GPU alone, and --devices names the CPU; leave out one of them "
                         "(--no-fast where --fast was stored)");
    KILN_TRY(kiln_run_need(r, "import", err));
    KILN_TRY(kiln_run_need_layer(r, KILN_FORM_CHUNKS, &kind, err));
    KILN_TRY(KILN_ALLOC(&s, 1, "render", err));
    set_patience();
    s->kind = kind;
    s->against = o.against;
    kiln_status st = choose_stream(r, s, err);
    if (st == KILN_OK) st = render_all(r, s, err);
    plan_release(r, s);
    free(s);
    return st;
}

/* Which chunks of which level are drawn is not known before the first unit. */
static uint64_t read_early(kiln_worker *w, const atomic_bool *stop)
{
    kiln_level_wish wish;
    return kiln_level_wish_parse(o.level, &wish, NULL) == KILN_OK && kiln_level_wish_full(&wish) ? kiln_frame_early(w, stop) : 0;
}

const kiln_stage_program kiln_stage_render = {.name = "render",
                                              .cli = &cli,
                                              .open = KILN_OPEN_WRITE,
                                              .rounds = true,
                                              .run = run,
                                              .unit = kiln_render_compute,
                                              .early = read_early};
