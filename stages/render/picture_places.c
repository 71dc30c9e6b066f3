/* picture_places -- see the header. */
#include "stages/render/picture_places.h"

#include "base/count.h"

#include "stages/render/against.h"

#include <stdio.h>
#include <string.h>

/* ---- what -o names ------------------------------------------------------------------------------------------------------ */
/* Says whether -o names a folder: it ends with a slash, or the folder exists. */
static bool output_is_folder(const kiln_render_plan *s) { return !kiln_path_base(s->o->output)[0] || kiln_is_dir(s->o->output); }

static bool output_is_file(const kiln_render_plan *s) { return s->o->output && s->n_jobs == 1 && !output_is_folder(s); }

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
    const char *suffix = kiln_path_suffix(s->o->output);
    const kiln_picture_format of_suffix = kiln_picture_format_of(s->o->output);
    if (!kiln_path_has_suffix(s->o->output)) return KILN_OK;
    if (!kiln_picture_suffix_is_written(s->o->output)) {
        list_written(written, sizeof written);
        return kiln_fail(err, KILN_E_USAGE,
                         "-o '%s': '.%s' is no format that kiln-render writes; it writes %s, or a folder of such files (end its "
                         "name with a slash)",
                         s->o->output, suffix, written);
    }
    if (s->n_jobs != 1)
        return kiln_fail(err, KILN_E_USAGE, "-o '%s' names one file but %s to be drawn; name a folder, or one camera with --camera",
                         s->o->output, KILN_COUNT(s->n_jobs, "camera is|cameras are"));
    if (kiln_opt_given(s->cli, "format") && !same_suffix(of_suffix, s->o->format))
        return kiln_fail(err, KILN_E_USAGE, "-o '%s' names the format %s, --format says another one; leave out one of them",
                         s->o->output, kiln_picture_suffix(of_suffix));
    return KILN_OK;
}

/* ---- one stream of all pictures ------------------------------------------------------------------------------------ */
static kiln_status refuse_beside(const kiln_cli *cli, const char *what, const char *const *others, size_t n, kiln_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (kiln_opt_given(cli, others[i]))
            return kiln_fail(err, KILN_E_USAGE, "%s and --%s do not go together; leave out one of them", what, others[i]);
    return KILN_OK;
}

kiln_status kiln_pictures_check_against(kiln_render_options *o, const kiln_cli *cli, kiln_error *err)
{
    static const char *const others[] = {"level", "output", "depth", "depth-colours", "fast", "crop"};
    KILN_TRY(refuse_beside(cli, "--levels-against", others, sizeof others / sizeof *others, err));
    o->fast = o->depth = o->depth_colours = false; /* though they were stored */
    return KILN_OK;
}

static kiln_status check_video(const kiln_render_plan *s, kiln_error *err)
{
    static const char *const others[] = {"output", "format", "depth", "depth-colours", "alpha", "levels-against"};
    KILN_TRY(refuse_beside(s->cli, "--video", others, sizeof others / sizeof *others, err));
    return kiln_encoder_check(s->o->video, err);
}

static kiln_status check_frames(kiln_run *r, const kiln_render_plan *s, kiln_error *err)
{
    static const char *const others[] = {"depth", "depth-colours", "alpha", "levels-against"};
    const char *const what = s->o->format == KILN_RENDER_Y4M ? "--format y4m" : "--format raw";
    KILN_TRY(refuse_beside(s->cli, what, others, sizeof others / sizeof *others, err));
    if (!s->o->output || output_is_folder(s))
        return kiln_fail(err, KILN_E_USAGE, "%s writes one stream; name its file with -o FILE, or stdout with -o -", what);
    if (strcmp(s->o->output, "-") == 0 && kiln_run_json(r))
        return kiln_fail(err, KILN_E_USAGE, "-o - and --json both write to stdout; leave out one of them");
    return KILN_OK;
}

/* Says what the stream is, if all pictures are one. Each of them writes no file then. */
kiln_status kiln_pictures_choose_stream(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    const bool frames = !s->o->video && (s->o->format == KILN_RENDER_Y4M || s->o->format == KILN_RENDER_RAW);
    if (s->o->video) KILN_TRY(check_video(s, err));
    if (frames) KILN_TRY(check_frames(r, s, err));
    if (kiln_opt_given(s->cli, "fps") && !s->o->video && !(frames && s->o->format == KILN_RENDER_Y4M))
        return kiln_fail(err, KILN_E_USAGE, "--fps is of --video and of --format y4m");
    if (!frames && !s->o->video) {
        if (s->o->output && strcmp(s->o->output, "-") == 0)
            return kiln_fail(err, KILN_E_USAGE, "-o - is for --format y4m or raw, a stream of frames");
        return KILN_OK;
    }
    s->stream = (kiln_video_options){.path = s->o->video ? s->o->video : s->o->output,
                                     .encodes = s->o->video != NULL,
                                     .kind = s->o->video || s->o->format == KILN_RENDER_RAW ? KILN_VIDEO_RGB : KILN_VIDEO_Y4M,
                                     .rate = kiln_video_rate_of(s->o->fps)};
    s->o->output = NULL;
    s->o->format = KILN_RENDER_NO_FILE;
    s->o->depth = s->o->depth_colours = s->o->alpha = false; /* though they were stored */
    return KILN_OK;
}

/* ---- files ------------------------------------------------------------------------------------------------------------ */
/* Names the option because of which the pictures are not those of the bake. */
static const char *chooser(const kiln_render_plan *s)
{
    static const char *const names[] = {"cameras", "orbit", "interpolate", "scale", "size", "crop"};
    size_t i = 0;
    while (i + 1 < sizeof names / sizeof *names && !kiln_opt_given(s->cli, names[i])) i++;
    return names[i];
}

kiln_status kiln_pictures_check_output(const kiln_render_plan *s, kiln_error *err)
{
    const bool none = s->o->format == KILN_RENDER_NO_FILE;
    if (s->o->output && none && kiln_opt_given(s->cli, "format"))
        return kiln_fail(err, KILN_E_USAGE, "--format none writes no file; leave out -o or name a format");
    if (s->against) return KILN_OK;
    if (!s->viewpoints.own && !s->o->output && !none && s->stream.kind == KILN_VIDEO_NONE)
        return kiln_fail(err, KILN_E_USAGE, "--%s needs -o, a folder (or a file for one camera), or --format none", chooser(s));
    return !s->o->output || output_is_folder(s) ? KILN_OK : check_suffix(s, err);
}

/* -o and --levels-against ask for files although the stored format is none. Given beside --levels-against, none only measures. */
static uint32_t format_now(const kiln_render_plan *s)
{
    const bool asks = s->o->output || (s->against && !kiln_opt_given(s->cli, "format"));
    const uint32_t format = asks && s->o->format == KILN_RENDER_NO_FILE ? KILN_PNG8 : s->o->format;
    if (!output_is_file(s) || !*kiln_path_suffix(s->o->output) || kiln_opt_given(s->cli, "format")) return format;
    const kiln_picture_format f = kiln_picture_format_of(s->o->output);
    return same_suffix(f, format) ? format : f;
}

/* Beside the picture. */
static kiln_status place_depth(const kiln_render_plan *s, kiln_render_job *j, const char *suffix, kiln_error *err)
{
    char name[KILN_PATH_MAX];
    const char *picture = s->o->output ? j->payload.picture : j->relative, *dot = strrchr(kiln_path_base(picture), '.');
    const int stem = dot ? (int)(dot - picture) : (int)strlen(picture);
    if ((size_t)snprintf(name, sizeof name, "%.*s.depth.%s", stem, picture, suffix) >= sizeof name)
        return kiln_fail(err, KILN_E_INPUT, "the path of '%.80s...' is too long", picture);
    if (!s->o->output) return kiln_path_inside(j->payload.depth, sizeof j->payload.depth, s->folder, name, "-o", err);
    snprintf(j->payload.depth, sizeof j->payload.depth, "%s", name);
    return KILN_OK;
}

kiln_status kiln_pictures_place(const kiln_render_plan *s, kiln_render_job *j, kiln_error *err)
{
    const uint32_t format = format_now(s);
    char name[KILN_PATH_MAX];
    if (s->against) return kiln_against_place(s, j, format, err);
    j->payload.format = format;
    j->payload.alpha = s->o->alpha;
    j->payload.fast = s->o->fast;
    if (format == KILN_RENDER_NO_FILE) return KILN_OK;
    const char *suffix = kiln_picture_suffix((kiln_picture_format)format);
    if (output_is_file(s)) {
        snprintf(j->payload.picture, sizeof j->payload.picture, "%s", s->o->output);
    } else {
        if ((size_t)snprintf(name, sizeof name, "%s%s.%s", s->o->output ? "" : "renders/", j->camera->name, suffix) >= sizeof name)
            return kiln_fail(err, KILN_E_INPUT, "the name of camera '%.80s...' is too long for a file", j->camera->name);
        if (s->o->output)
            KILN_TRY(kiln_path_join(j->payload.picture, sizeof j->payload.picture, s->o->output, name, err));
        else
            KILN_TRY(kiln_path_inside(j->payload.picture, sizeof j->payload.picture, s->folder, name, "-o", err));
        if (!s->o->output) snprintf(j->relative, sizeof j->relative, "%s", name);
    }
    j->payload.depth_colours = s->o->depth_colours;
    if (s->o->depth_colours) suffix = kiln_picture_suffix(KILN_PNG8);
    return s->o->depth || s->o->depth_colours ? place_depth(s, j, suffix, err) : KILN_OK;
}
