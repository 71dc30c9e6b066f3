/* kiln-render -- draws the cameras as the profile's renderer would, and measures the pictures
 * against their photos.
 *
 * A unit is a camera. Its picture depends on the chunks that the camera can see. It does not depend
 * on tile tables, which only save work, nor on threads or the path of the file. If the file is
 * missing, the unit is due again. With --camera, --cameras or -o the program draws what was asked
 * for, writes the files and changes nothing in the manifest. */
#include "stages/frame/background.h"
#include "stages/render/against.h"
#include "stages/render/background_choice.h"
#include "stages/render/exposure.h"
#include "stages/render/picture_places.h"
#include "stages/render/render_plan.h"
#include "stages/render/stored_pictures.h"
#include "stages/render/video_plan.h"

#include "base/log.h"
#include "stages/engine/parent/run_layers.h"
#include "stages/products/product_guard.h"

#include <stdlib.h>
#include <string.h>

static kiln_render_options o;

#define X(id, name, suffix, what) "|" name
static const char formats[] =
    /* "|png|...": an option's range is all but the first bar */
    KILN_PICTURE_FORMAT_MAP(X) "|none|y4m|raw";
#undef X
#define X(id, name, suffix, what) name ": " what "; "
static const char format_help[] = KILN_PICTURE_FORMAT_MAP(
    X) "none: draw and hash, write nothing; by the suffix of -o where that is given; "
       "y4m, raw (RGB, 8 bits): all pictures as one stream of frames, to -o - (stdout) or a file";
#undef X

static const kiln_opt options[] = {
    KILN_VIEW_OPTION_ROWS(o.request),
    KILN_LEVEL_OPTION_ROW(o.level),
    KILN_OPTION_TEXT("background", &o.background, "COLOUR",
                     "scene (the scene's own; else white where the photos are white wherever "
                     "nothing is drawn; else black), white, "
                     "black or r,g,b",
                     .letter = 'b', .def = "scene",
                     .brief = "behind the scene: a colour, or scene, which guesses",
                     .group = "Pictures", .flags = KILN_KEYED),
    KILN_OPTION_ENUM("format", &o.format, "FORMAT", formats + 1, format_help, .letter = 'f',
                     .def = "png", .brief = "png, png16 or npy", .flags = KILN_KEYED),
    KILN_OPTION_BOOL("alpha", &o.alpha,
                     "write PNGs with straight alpha, without the background (.npy always has "
                     "alpha, and colours over the "
                     "background)",
                     .brief = "PNGs with straight alpha and no background", .flags = KILN_KEYED),
    KILN_OPTION_BOOL("depth", &o.depth,
                     "also write NAME.depth.png (16 bits; its text chunk and the output give the "
                     "scene units of one step) or "
                     "NAME.depth.npy",
                     .brief = "also NAME.depth.png, in 16 bits", .flags = KILN_KEYED),
    KILN_OPTION_BOOL(
        "depth-colours", &o.depth_colours,
        "also write NAME.depth.png in colours from red (near) to blue (far) instead of numbers",
        .brief = "also NAME.depth.png in colours, near red", .flags = KILN_KEYED | KILN_LATER),
    KILN_OPTION_BOOL("fast", &o.fast,
                     "draw faster, not exactly (GPU only); a sample is also drawn exactly, to "
                     "measure the difference in dB",
                     .brief = "faster on a GPU, not exactly", .flags = KILN_KEYED),
    KILN_OPTION_ENUM("undistort-filter", &o.undistort_filter, "FILTER", KILN_UNDISTORT_FILTERS,
                     "interpolation when photos are undistorted for comparison: bilinear, as in "
                     "COLMAP's image_undistorter, or "
                     "lanczos, which is sharper",
                     .def = "bilinear", .brief = "interpolation of photos that are compared",
                     .flags = KILN_KEYED | KILN_LATER),
    KILN_OPTION_ENUM("exposure", &o.exposure, "WHEN", KILN_EXPOSURE_USES,
                     "exposures that INRIA's trainer learnt (exposure.json); compare: use them "
                     "when photos are compared; on: draw "
                     "pictures with them, too; off: ignore them",
                     .def = "compare",
                     .brief = "draw with the exposures that INRIA's trainer learnt",
                     .flags = KILN_KEYED | KILN_LATER),
    KILN_OPTION_TEXT("camera", &o.camera, "NAME",
                     "only this camera, by name or #INDEX in sorted order", .letter = 'c',
                     .brief = "only this camera, by name or #INDEX",
                     .group = "Which views, in a run that stores nothing", .flags = KILN_ONCE),
    KILN_OPTION_PATH("cameras", &o.where.cameras, "FILE",
                     "draw these instead: cameras.json, transforms.json, a COLMAP folder, "
                     "nerfstudio's camera_path.json or a JSON "
                     "list as kiln-info --cameras writes it; import's --translate, --rotate and "
                     "--scale apply to them, too",
                     .brief = "draw the cameras of this file instead", .flags = KILN_ONCE),
    KILN_OPTION_TEXT("orbit", &o.where.orbit, "N[,WHERE]",
                     "draw N pictures on a circle around the scene instead, at the distance and "
                     "height of its cameras, or as WHERE "
                     "says: radius=R,height=H,centre=X:Y:Z in scene units, each optional",
                     .brief = "draw N views on a circle about the scene instead",
                     .flags = KILN_ONCE),
    KILN_OPTION_NUMBER("interpolate", &o.where.interpolate, "N",
                       "draw N pictures on a smooth path through the cameras instead, those of the "
                       "bake or of --cameras",
                       .range = "2..100000",
                       .brief = "draw N views on a path through the cameras instead",
                       .flags = KILN_ONCE),
    KILN_OPTION_TEXT("through", &o.where.through, "A,B,...",
                     "with --interpolate: through these cameras in this order, by name or #INDEX "
                     "(default: all, by name)",
                     .brief = "the path leads through these, in this order", .flags = KILN_ONCE),
    KILN_OPTION_BOOL("constant-speed", &o.where.constant_speed,
                     "with --interpolate: steps of equal length (default: longer where cameras are "
                     "farther apart)",
                     .brief = "steps of the path are of equal length", .flags = KILN_ONCE),
    KILN_OPTION_TEXT(
        "look-at", &o.where.look_at, "X,Y,Z",
        "with --interpolate: turn every camera of the path to this point of the scene, upright",
        .brief = "turn every camera of the path to this point", .flags = KILN_ONCE),
    KILN_OPTION_NUMBER("scale", &o.where.scale, "FACTOR",
                       "draw pictures this many times as wide and high", .range = "0.001..64",
                       .brief = "pictures FACTOR times as wide and high", .flags = KILN_ONCE),
    KILN_OPTION_TEXT("size", &o.where.size, "WxH",
                     "draw pictures of this size, not stretched; if the shape differs, they show "
                     "more at two sides",
                     .brief = "pictures of this size, not stretched", .flags = KILN_ONCE),
    KILN_OPTION_TEXT("crop", &o.where.crop, "WxH+X+Y",
                     "draw only these pixels of each picture, counted after --scale or --size",
                     .brief = "only these pixels of each picture", .flags = KILN_ONCE),
    KILN_OPTION_PATH("video", &o.video, "FILE",
                     "make a video (.mp4, .m4v, .mov, .mkv, .webm) of the pictures, in the order "
                     "of their names, by ffmpeg, which "
                     "must be installed",
                     .brief = "make a video of the views", .group = "Files", .flags = KILN_ONCE),
    KILN_OPTION_NUMBER("fps", &o.fps, "RATE", "with --video and --format y4m: frames a second",
                       .def = "30", .range = "0.1..1000", .brief = "pictures a second of the video",
                       .flags = KILN_ONCE),
    KILN_OPTION_PATH("levels-against", &o.against, "DIR",
                     "draw each level of detail from the test cameras at 2^(-LEVEL/2) of their "
                     "size and measure it; "
                     "DIR/level_LEVEL has the level, DIR/full_LEVEL the full scene",
                     .brief = "measure each level of detail against the full scene",
                     .flags = KILN_ONCE),
    KILN_OPTION_PATH("output", &o.output, "PATH",
                     "NAME.png, NAME.npy, NAME.jpg or NAME.webp for one camera, else a folder; -: "
                     "stdout, with --format y4m or raw",
                     .letter = 'o', .brief = "a picture of one camera, else a folder",
                     .flags = KILN_ONCE),
    KILN_OVERWRITE_OPTION(&o.overwrite),
    KILN_OPTION_END,
};

static const kiln_opt_check checks[] = {KILN_VIEW_OPTION_CHECKS,
                                        KILN_LEVEL_OPTION_CHECK,
                                        {"background", kiln_background_check},
                                        {"camera", kiln_camera_name_check},
                                        {"through", kiln_camera_list_check},
                                        {"orbit", kiln_orbit_check},
                                        {"look-at", kiln_look_at_check},
                                        {"size", kiln_size_check},
                                        {"crop", kiln_crop_check},
                                        {NULL, NULL}};

static const kiln_cli cli = {.program = "kiln-render",
                             .summary = "draws the cameras and measures them against their photos",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .options = options,
                             .common = kiln_common_options,
                             .checks = checks};

static void plan_release(kiln_run *r, kiln_render_plan *s)
{
    if (s->video) kiln_video_close(r, s->video);
    free(s->video);
    if (s->units) kiln_units_release(s->units, s->n_jobs);
    free(s->units);
    for (uint32_t i = 0; s->jobs && i < s->n_jobs; i++)
        kiln_view_chunks_release(&s->jobs[i].chunks);
    free(s->jobs);
    free(s->made);
    kiln_exposures_release(&s->exposures);
    free(s->exposure_of);
    free(s->sources);
    free(s->smaller);
    kiln_viewpoints_release(&s->viewpoints);
    kiln_chunk_keys_release(&s->keys);
    kiln_drawn_release(&s->drawn);
}

static kiln_status get_folder(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    char *real = realpath(kiln_manifest_path(kiln_run_manifest(r)), NULL);
    if (!real)
        return kiln_fail(err, KILN_E_IO, "cannot resolve '%s'",
                         kiln_manifest_path(kiln_run_manifest(r)));
    char *slash = strrchr(real, '/');
    *slash = '\0';
    snprintf(s->folder, sizeof s->folder, "%s", real[0] ? real : "/");
    free(real);
    return KILN_OK;
}

/* ---- plan ------------------------------------------------------------------------------------ */
/* Chooses what the picture is drawn of. */
static kiln_status choose_chunks(const kiln_render_plan *s, kiln_render_job *j, kiln_error *err)
{
    const kiln_view_request *request = &j->request;
    const kiln_level_wish wish = kiln_render_wish(s, j);
    kiln_view_chunks full;
    KILN_TRY(kiln_view_chunks_choose(&s->drawn, &wish, request, &j->chunks, err));
    if (s->drawn.levels) kiln_view_detail_add(&j->detail, &s->drawn, request, &j->chunks);
    if (!j->level) return KILN_OK;
    KILN_TRY(kiln_view_chunks_choose(&s->drawn, &kiln_level_full, request, &full, err));
    kiln_view_chunks less = full.rows < j->chunks.rows ? full : j->chunks;
    if (full.rows >= j->chunks.rows) j->chunks = full;
    kiln_view_chunks_release(&less);
    return KILN_OK;
}

kiln_status kiln_render_job_make(kiln_render_plan *s, kiln_render_job *j, const kiln_camera *c,
                                 kiln_error *err)
{
    const kiln_render_made *made;
    j->plan = s;
    j->camera = c;
    KILN_TRY(kiln_view_request_init(&j->request, &o.request, &s->scene, c, err));
    KILN_TRY(choose_chunks(s, j, err));
    /* with a level, a stored table is of one of the two pictures at most */
    if (!j->level) j->table_key = kiln_view_request_table_key(&j->request, &s->keys, &j->chunks);
    KILN_TRY(kiln_render_make(j, &made, err)); /* what is refused is refused before any work */
    j->placed = true;
    return KILN_OK;
}

static kiln_status say_measured(const kiln_render_plan *s, const kiln_camera *c, kiln_error *err)
{
    kiln_view_request request;
    KILN_TRY(kiln_view_request_init(&request, &o.request, &s->scene, c, err));
    kiln_drawn_say_measured(&s->drawn, &s->wish, &request);
    return KILN_OK;
}

typedef struct {
    kiln_render_plan *plan;
    bool in_parts;
    uint64_t least, n;
} measuring;

static kiln_status measure_camera(void *context, const kiln_camera *c, kiln_error *err)
{
    measuring *x = context;
    kiln_camera sized = *c;
    kiln_render_job j = {.plan = x->plan, .camera = &sized};
    if (!x->plan->viewpoints.n) KILN_TRY(kiln_viewpoint_size(&o.where, &sized, err));
    KILN_TRY(kiln_view_request_init(&j.request, &o.request, &x->plan->scene, &sized, err));
    KILN_TRY(choose_chunks(x->plan, &j, err));
    const uint64_t least = kiln_render_least_ram(&j, x->in_parts);
    if (least > x->least) x->least = least;
    x->n++;
    kiln_view_chunks_release(&j.chunks);
    x->plan->made->job = NULL; /* the next one lies in the same place */
    return KILN_OK;
}

/* Before the list of the bake's cameras is read: if it has no room, one camera after the other is
 * asked what its picture would take. Cameras of a file, an orbit or a path are there already. */
static kiln_status need_cameras(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    kiln_scene_size size;
    measuring x = {.plan = s};
    KILN_TRY(kiln_scene_size_get(kiln_run_manifest(r), &size, err));
    const uint64_t n = s->viewpoints.n ? s->viewpoints.n : (uint64_t)size.cameras;
    kiln_run_foresee_parent(r, kiln_render_parent_ram(r, s, n));
    if (kiln_run_parent_fits(r)) return KILN_OK;
    const char *kind = "cuda";
    KILN_TRY(kiln_run_device_kind(r, &kind, err));
    x.in_parts = strcmp(kind, "cpu") != 0;
    for (uint32_t i = 0; i < s->viewpoints.n; i++)
        KILN_TRY(measure_camera(&x, &s->viewpoints.cameras[i], err));
    if (!s->viewpoints.n)
        KILN_TRY(kiln_cameras_each(kiln_run_manifest(r), measure_camera, &x, err));
    kiln_render_foresee(r, x.least, x.n);
    return kiln_run_need_parent(r, "the list of cameras", err);
}

static kiln_status plan_render(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    enum { MANY = 64 }; /* cameras that take some milliseconds to plan */
    kiln_manifest *m = kiln_run_manifest(r);
    uint32_t first = 0, n;
    s->profile = kiln_profiles[o.request.profile].name;
    KILN_TRY(kiln_scene_get(m, &s->scene, err));
    s->level_text = o.level;
    KILN_TRY(kiln_level_wish_parse(o.level, &s->wish, err));
    KILN_TRY(kiln_drawn_current(m, s->kind, s->against || !kiln_level_wish_full(&s->wish),
                                &s->drawn, err));
    if (!s->against) KILN_TRY(kiln_drawn_narrow(&s->drawn, &s->wish, err));
    s->layer = s->drawn.chunks;
    KILN_TRY(KILN_ALLOC(&s->made, 1, "units", err));
    KILN_TRY(kiln_chunk_keys_make(s->layer, &s->keys, err));
    KILN_TRY(kiln_sources_get(m, &s->sources, &s->n_sources, err));
    KILN_TRY(kiln_render_exposures_get(s, err));
    const bool of_bake = !o.where.cameras && !o.where.orbit && !o.where.interpolate;
    if (of_bake) KILN_TRY(need_cameras(r, s, err));
    KILN_TRY(kiln_viewpoints_get(m, &o.where, &s->scene, s->layer, &s->viewpoints, err));
    if (!of_bake) KILN_TRY(need_cameras(r, s, err));
    if (s->stream.kind != KILN_VIDEO_NONE && !o.camera) kiln_viewpoints_order(&s->viewpoints);
    s->cameras = s->viewpoints.cameras;
    s->n_cameras = s->viewpoints.n;
    KILN_TRY(kiln_render_exposures_match(s, err));
    KILN_TRY(get_folder(r, s, err));
    KILN_TRY(kiln_background_parse(o.background, &s->scene, s->background, err));
    KILN_TRY(kiln_render_background_choose(r, s, err));
    s->n_jobs = n = s->n_cameras;
    if (o.camera) {
        KILN_TRY(kiln_camera_pick(s->cameras, s->n_cameras, o.camera, &first, err));
        s->n_jobs = n = 1;
    }
    KILN_TRY(kiln_pictures_check_output(s, err));
    if (s->against)
        KILN_TRY(kiln_against_list(s, first, n, err));
    else
        KILN_TRY(KILN_ALLOC(&s->jobs, n, "cameras", err));
    if (n > 0 && !s->against) KILN_TRY(say_measured(s, &s->cameras[first], err));
    if (kiln_run_is_once(r) && s->n_jobs >= MANY) kiln_run_open_early(r); /* all of them are due */
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        KILN_TRY(kiln_render_job_make(s, &s->jobs[i],
                                      s->against ? &s->smaller[i] : &s->cameras[first + i], err));
        kiln_pictures_key_job(r, &s->jobs[i]); /* while the job's texts are in memory */
    }
    return KILN_OK;
}

/* Of runs that were killed; once for several cameras in a row whose files share a folder. */
static void drop_leftovers(const kiln_render_plan *s)
{
    char before[KILN_PATH_MAX] = ""; /* the folder of the last one, with its slash */
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const char *now = kiln_render_unit_of(&s->jobs[i])->picture;
        const size_t n = (size_t)(kiln_path_base(now) - now);
        if (!*now || (i > 0 && n == strlen(before) && !strncmp(before, now, n))) continue;
        kiln_leftovers_drop(now);
        (void)snprintf(before, sizeof before, "%.*s", (int)n, now);
    }
}

static kiln_status draw_all(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    KILN_TRY(kiln_pictures_check_places(s, err));
    /* not before there is something to do */
    KILN_TRY(KILN_ALLOC(&s->units, s->n_jobs, "units", err));
    KILN_TRY(kiln_pictures_choose(r, s, err));
    KILN_TRY(kiln_render_exposures_check(s, err));
    if (s->stream.kind != KILN_VIDEO_NONE) KILN_TRY(kiln_video_plan_begin(r, s, err));
    KILN_TRY(kiln_render_plan_size(r, s, err));
    if (s->video) return kiln_video_plan_draw(r, s, err);
    /* other hosts are writing: their processes are not known here */
    if (!kiln_run_is_frozen(r)) drop_leftovers(s);
    kiln_pictures_wait_for_files(r);
    return kiln_run_units(r, "rendering", s->units, s->n_jobs, err);
}

static kiln_status render_all(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    KILN_TRY(plan_render(r, s, err));
    kiln_hash key = {0};
    if (!kiln_run_is_once(r)) {
        bool fresh;
        key = kiln_pictures_key(r, s);
        KILN_TRY(kiln_pictures_are_fresh(r, s, key, &fresh, err));
        if (fresh) return kiln_run_nothing_to_do(r, err);
    }
    if (s->n_jobs == 0)
        kiln_warn(s->n_cameras > 0 ? "the bake has no level to draw"
                                   : "the bake has no camera to draw");
    KILN_TRY(draw_all(r, s, err));
    KILN_TRY(kiln_render_plan_report(r, s, err));
    if (s->video) KILN_TRY(kiln_video_plan_report(r, s, err));
    return kiln_run_is_once(r) ? KILN_OK : kiln_run_commit(r, key, kiln_render_plan_put, s, err);
}

static kiln_status check_render(kiln_run *r, kiln_error *err)
{
    const char *named = kiln_run_named_kind(r);
    KILN_TRY(kiln_viewpoints_check(&o.where, err));
    if (o.fast && !o.against && named && strcmp(named, "cpu") == 0)
        return kiln_fail(
            err, KILN_E_USAGE,
            "--fast draws only on a GPU, but --devices names the CPU; leave out one of them "
            "(--no-fast where --fast was stored)");
    KILN_TRY(kiln_pictures_check_options(&o, &cli, kiln_run_json(r), err));
    if (o.where.cameras || o.where.orbit) return KILN_OK;
    KILN_TRY(
        kiln_cameras_named_check(kiln_run_manifest(r), "--through", o.where.through, true, err));
    return o.where.interpolate
               ? KILN_OK
               : kiln_cameras_named_check(kiln_run_manifest(r), "--camera", o.camera, false, err);
}

static kiln_status run_render(kiln_run *r, kiln_error *err)
{
    kiln_render_plan *s;
    kiln_layer_kind kind;
    KILN_TRY(kiln_run_need(r, "import", err));
    KILN_TRY(kiln_run_need_layer(r, KILN_FORM_CHUNKS, &kind, err));
    KILN_TRY(KILN_ALLOC(&s, 1, "render", err));
    s->o = &o;
    s->cli = &cli;
    s->kind = kind;
    s->against = o.against;
    kiln_pictures_choose_stream(s);
    const kiln_status st = render_all(r, s, err);
    plan_release(r, s);
    free(s);
    return st;
}

/* Which chunks of which level are drawn is not known before the first unit. */
static uint64_t read_early(kiln_worker *w, const atomic_bool *stop)
{
    kiln_level_wish wish;
    return kiln_level_wish_parse(o.level, &wish, NULL) == KILN_OK && kiln_level_wish_full(&wish)
               ? kiln_frame_early(w, stop)
               : 0;
}

const kiln_stage_program kiln_stage_render = {.name = "render",
                                              .cli = &cli,
                                              .open = KILN_OPEN_WRITE,
                                              .flags = KILN_PROGRAM_ROUNDS,
                                              .check = check_render,
                                              .run = run_render,
                                              .unit = kiln_render_compute,
                                              .early = read_early};
