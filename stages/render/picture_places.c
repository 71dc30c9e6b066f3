/* picture_places -- see the header. */
#include "stages/render/picture_places.h"

#include "base/count.h"
#include "stages/render/against.h"
#include "stages/render/video_plan.h"

#include <stdio.h>
#include <string.h>

/* ---- what -o names --------------------------------------------------------------------------- */
/* Says whether -o names a folder: it ends with a slash, or the folder exists. */
static bool output_is_folder(const kiln_render_options *o)
{
    return !kiln_path_base(o->output)[0] || kiln_is_dir(o->output);
}

static bool output_is_file(const kiln_render_plan *s)
{
    return s->o->output && s->n_jobs == 1 && !output_is_folder(s->o);
}

/* "NAME.png, NAME.npy" */
static void list_written(char *out, size_t size)
{
    size_t n = 0;
    const char *suffix;
    *out = '\0';
    for (unsigned i = 0; n < size && (suffix = kiln_picture_suffix_at(i)); i++)
        n += (size_t)snprintf(out + n, size - n, "%sNAME.%s", n ? ", " : "", suffix);
}

/* Says whether both formats have the same suffix. KILN_RENDER_NO_FILE has none. */
static bool same_suffix(uint32_t a, uint32_t b)
{
    if (a == KILN_RENDER_NO_FILE || b == KILN_RENDER_NO_FILE) return a == b;
    return !strcmp(kiln_picture_suffix((kiln_picture_format)a),
                   kiln_picture_suffix((kiln_picture_format)b));
}

/* The suffix of -o names a format that is written, and the one of --format. */
static kiln_status check_suffix(const kiln_render_options *o, const kiln_cli *cli, kiln_error *err)
{
    char written[128];
    const char *suffix = kiln_path_suffix(o->output);
    const kiln_picture_format of_suffix = kiln_picture_format_of(o->output);
    if (!kiln_path_has_suffix(o->output)) return KILN_OK;
    if (!kiln_picture_suffix_is_written(o->output)) {
        list_written(written, sizeof written);
        return kiln_fail(err, KILN_E_USAGE,
                         "-o '%s': '.%s' is not a format that kiln-render writes; it writes %s, or "
                         "a folder of such files (end its "
                         "name with a slash)",
                         o->output, suffix, written);
    }
    if (kiln_opt_given(cli, "format") && !same_suffix(of_suffix, o->format))
        return kiln_fail(
            err, KILN_E_USAGE,
            "-o '%s' names the format %s, but --format names another one; leave out one of them",
            o->output, kiln_picture_suffix(of_suffix));
    if (of_suffix >= KILN_JPEG && o->alpha && kiln_opt_given(cli, "alpha"))
        return kiln_fail(
            err, KILN_E_USAGE,
            "--alpha is of PNGs, and -o '%s' is none; name a .png or leave out --alpha", o->output);
    return KILN_OK;
}

/* ---- one stream of all pictures -------------------------------------------------------------- */
static kiln_status refuse_beside(const kiln_cli *cli, const char *what, const char *const *others,
                                 size_t n, kiln_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (kiln_opt_given(cli, others[i]))
            return kiln_fail(err, KILN_E_USAGE,
                             "%s and --%s do not go together; leave out one of them", what,
                             others[i]);
    return KILN_OK;
}

static kiln_status check_against(const kiln_cli *cli, kiln_error *err)
{
    static const char *const others[] = {"level",         "output", "depth",
                                         "depth-colours", "fast",   "crop"};
    return refuse_beside(cli, "--levels-against", others, sizeof others / sizeof *others, err);
}

static kiln_status check_video(const kiln_render_options *o, const kiln_cli *cli, kiln_error *err)
{
    static const char *const others[] = {"output",        "format", "depth",
                                         "depth-colours", "alpha",  "levels-against"};
    char version[128];
    const char *by;
    uint32_t size[2];
    KILN_TRY(refuse_beside(cli, "--video", others, sizeof others / sizeof *others, err));
    KILN_TRY(kiln_encoder_check(o->video, err));
    if (kiln_viewpoints_sized(&o->where, size, &by)) KILN_TRY(kiln_video_size_check(size, by, err));
    const kiln_status st = kiln_encoder_find(version, err);
    if (st != KILN_OK) kiln_note(err, "--video '%s'", o->video);
    return st;
}

static kiln_status check_frames(const kiln_render_options *o, const kiln_cli *cli, bool json,
                                kiln_error *err)
{
    static const char *const others[] = {"depth", "depth-colours", "alpha", "levels-against"};
    const char *const what = o->format == KILN_RENDER_Y4M ? "--format y4m" : "--format raw";
    KILN_TRY(refuse_beside(cli, what, others, sizeof others / sizeof *others, err));
    if (!o->output || output_is_folder(o))
        return kiln_fail(err, KILN_E_USAGE,
                         "%s writes one stream; name its file with -o FILE, or stdout with -o -",
                         what);
    if (strcmp(o->output, "-") == 0 && json)
        return kiln_fail(err, KILN_E_USAGE,
                         "-o - and --json both write to stdout; leave out one of them");
    return KILN_OK;
}

static bool writes_frames(const kiln_render_options *o)
{
    return !o->video && (o->format == KILN_RENDER_Y4M || o->format == KILN_RENDER_RAW);
}

/* Says what the stream is, if all pictures are one. Each of them writes no file then. */
void kiln_pictures_choose_stream(kiln_render_plan *s)
{
    /* though they were stored */
    if (s->against) s->o->fast = s->o->depth = s->o->depth_colours = false;
    if (!writes_frames(s->o) && !s->o->video) return;
    s->stream = (kiln_video_options){
        .path = s->o->video ? s->o->video : s->o->output,
        .encodes = s->o->video != NULL,
        .kind = s->o->video || s->o->format == KILN_RENDER_RAW ? KILN_VIDEO_RGB : KILN_VIDEO_Y4M,
        .rate = kiln_video_rate_of(s->o->fps)};
    s->o->output = NULL;
    s->o->format = KILN_RENDER_NO_FILE;
    s->o->depth = s->o->depth_colours = s->o->alpha = false; /* though they were stored */
}

/* ---- files ----------------------------------------------------------------------------------- */
/* Names the option because of which the pictures are not those of the bake. */
static const char *chooser(const kiln_cli *cli)
{
    static const char *const names[] = {"cameras", "orbit", "interpolate", "scale", "size", "crop"};
    size_t i = 0;
    while (i + 1 < sizeof names / sizeof *names && !kiln_opt_given(cli, names[i])) i++;
    return names[i];
}

/* Of pictures that are files. */
static kiln_status check_output_option(const kiln_render_options *o, const kiln_cli *cli,
                                       kiln_error *err)
{
    const bool none = o->format == KILN_RENDER_NO_FILE;
    if (o->output && strcmp(o->output, "-") == 0)
        return kiln_fail(err, KILN_E_USAGE,
                         "-o - needs --format y4m or raw, which write a stream of frames");
    if (o->output && none && kiln_opt_given(cli, "format"))
        return kiln_fail(err, KILN_E_USAGE,
                         "--format none writes no file; leave out -o, or name a format");
    if (o->against) return KILN_OK;
    if (!kiln_viewpoints_are_own(&o->where) && !o->output && !none)
        return kiln_fail(err, KILN_E_USAGE,
                         "--%s needs -o, a folder (or a file for one camera), or --format none",
                         chooser(cli));
    return !o->output || output_is_folder(o) ? KILN_OK : check_suffix(o, cli, err);
}

kiln_status kiln_pictures_check_options(const kiln_render_options *o, const kiln_cli *cli,
                                        bool json, kiln_error *err)
{
    if (o->against) KILN_TRY(check_against(cli, err));
    if (kiln_opt_given(cli, "fps") && !o->video && o->format != KILN_RENDER_Y4M)
        return kiln_fail(err, KILN_E_USAGE, "--fps needs --video or --format y4m");
    if (o->video) return check_video(o, cli, err);
    return writes_frames(o) ? check_frames(o, cli, json, err) : check_output_option(o, cli, err);
}

/* Many pictures under the name of one are refused, because a folder called view.png is never
 * intended. */
kiln_status kiln_pictures_check_output(const kiln_render_plan *s, kiln_error *err)
{
    if (s->against || !s->o->output || output_is_folder(s->o) ||
        !kiln_path_has_suffix(s->o->output) || s->n_jobs == 1)
        return KILN_OK;
    return kiln_fail(
        err, KILN_E_USAGE,
        "-o '%s' names one file, but %s to be drawn; name a folder, or one camera with --camera",
        s->o->output, KILN_COUNT(s->n_jobs, "camera is|cameras are"));
}

/* -o and --levels-against ask for files although the stored format is none. Given beside
 * --levels-against, none only measures. */
static uint32_t format_now(const kiln_render_plan *s)
{
    const bool asks = s->o->output || (s->against && !kiln_opt_given(s->cli, "format"));
    const uint32_t format = asks && s->o->format == KILN_RENDER_NO_FILE ? KILN_PNG8 : s->o->format;
    if (!output_is_file(s) || !*kiln_path_suffix(s->o->output) || kiln_opt_given(s->cli, "format"))
        return format;
    const kiln_picture_format f = kiln_picture_format_of(s->o->output);
    return same_suffix(f, format) ? format : f;
}

/* No link leads out of the bake's folder on the way to a picture's own folder. Looks once for
 * several pictures in a row. */
static kiln_status look_at_folder(const kiln_render_plan *s, const char *name,
                                  kiln_render_made *made, kiln_error *err)
{
    char parent[KILN_PATH_MAX], path[KILN_PATH_MAX];
    const size_t n = (size_t)(kiln_path_base(name) - name);
    if (n == 0 || (strncmp(made->looked_at, name, n) == 0 && !made->looked_at[n])) return KILN_OK;
    (void)snprintf(parent, sizeof parent, "%.*s", (int)n - 1, name);
    KILN_TRY(kiln_path_inside(path, sizeof path, s->folder, parent, "-o", err));
    memcpy(made->looked_at, name, n);
    made->looked_at[n] = '\0';
    return KILN_OK;
}

/* A place in the bake's folder. It is made several times for a picture, and its folder is looked at
 * the first time. */
static kiln_status place_inside(const kiln_render_plan *s, const kiln_render_job *j,
                                kiln_render_made *made, char *out, size_t size, const char *name,
                                kiln_error *err)
{
    if (!j->placed) KILN_TRY(look_at_folder(s, name, made, err));
    return kiln_path_join(out, size, s->folder, name, err);
}

/* Beside the picture. */
static kiln_status place_depth(const kiln_render_plan *s, const kiln_render_job *j,
                               kiln_render_made *made, const char *suffix, kiln_error *err)
{
    char name[KILN_PATH_MAX];
    kiln_render_unit *u = &made->unit;
    const char *picture = s->o->output ? u->picture : made->relative,
               *dot = strrchr(kiln_path_base(picture), '.');
    const int stem = dot ? (int)(dot - picture) : (int)strlen(picture);
    if ((size_t)snprintf(name, sizeof name, "%.*s.depth.%s", stem, picture, suffix) >= sizeof name)
        return kiln_fail(err, KILN_E_INPUT, "the path of '%.80s...' is too long", picture);
    if (!s->o->output) return place_inside(s, j, made, u->depth, sizeof u->depth, name, err);
    snprintf(u->depth, sizeof u->depth, "%s", name);
    return KILN_OK;
}

kiln_status kiln_pictures_place(const kiln_render_plan *s, const kiln_render_job *j,
                                kiln_render_made *made, kiln_error *err)
{
    const uint32_t format = format_now(s);
    char name[KILN_PATH_MAX];
    kiln_render_unit *u = &made->unit;
    if (s->against) return kiln_against_place(s, j, format, u, err);
    u->format = format;
    u->alpha = s->o->alpha;
    u->fast = s->o->fast;
    if (format == KILN_RENDER_NO_FILE) return KILN_OK;
    const char *suffix = kiln_picture_suffix((kiln_picture_format)format);
    if (output_is_file(s)) {
        const kiln_render_crop *c = &s->viewpoints.crop;
        const uint32_t width = c->width ? c->width : j->camera->width,
                       height = c->width ? c->height : j->camera->height;
        KILN_TRY(kiln_picture_format_check((kiln_picture_format)format, s->o->output, width, height,
                                           err));
        snprintf(u->picture, sizeof u->picture, "%s", s->o->output);
    } else {
        if ((size_t)snprintf(name, sizeof name, "%s%s.%s", s->o->output ? "" : "renders/",
                             j->camera->name, suffix) >= sizeof name)
            return kiln_fail(err, KILN_E_INPUT,
                             "the name of camera '%.80s...' is too long for a file",
                             j->camera->name);
        if (s->o->output)
            KILN_TRY(kiln_path_join(u->picture, sizeof u->picture, s->o->output, name, err));
        else
            KILN_TRY(place_inside(s, j, made, u->picture, sizeof u->picture, name, err));
        if (!s->o->output) snprintf(made->relative, sizeof made->relative, "%s", name);
    }
    u->depth_colours = s->o->depth_colours;
    if (s->o->depth_colours || format >= KILN_JPEG) suffix = kiln_picture_suffix(KILN_PNG8);
    return s->o->depth || s->o->depth_colours ? place_depth(s, j, made, suffix, err) : KILN_OK;
}

/* `path` is a place in the bake's folder, or "". */
static kiln_status check_place(const kiln_render_plan *s, const char *path, kiln_error *err)
{
    char same[KILN_PATH_MAX];
    const char *relative = path + strlen(s->folder);
    return *path ? kiln_path_inside(same, sizeof same, s->folder, relative + strspn(relative, "/"),
                                    "-o", err)
                 : KILN_OK;
}

kiln_status kiln_pictures_check_places(const kiln_render_plan *s, kiln_error *err)
{
    if (s->o->output || s->against) return KILN_OK;
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const kiln_render_unit *u = kiln_render_unit_of(&s->jobs[i]);
        KILN_TRY(check_place(s, u->picture, err));
        KILN_TRY(check_place(s, u->depth, err));
    }
    return KILN_OK;
}
