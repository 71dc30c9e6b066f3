/* video_plan -- see video_plan.h. */
#include "stages/render/video_plan.h"

#include "base/count.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"
#include "stages/engine/json_text.h"
#include "stages/render/picture_targets.h"

#include <string.h>

/* Returns the size of its frame: of what is cut out of the picture. */
static void frame_size(const kiln_render_plan *s, const kiln_render_job *j, uint32_t size[2])
{
    const kiln_render_crop *c = &s->viewpoints.crop;
    size[0] = c->width ? c->width : j->camera->width;
    size[1] = c->width ? c->height : j->camera->height;
}

kiln_status kiln_video_size_check(const uint32_t size[2], const char *by, kiln_error *err)
{
    const uint32_t width = size[0] & ~1u, height = size[1] & ~1u;
    if (width == 0 || height == 0)
        return kiln_fail(err, KILN_E_USAGE, "%s: a video has at least 2x2 pixels, not %ux%u", by,
                         size[0], size[1]);
    if (width == size[0] && height == size[1]) return KILN_OK;
    return kiln_fail(
        err, KILN_E_USAGE,
        "%s asks for %ux%u pixels, but the size of a video must be even; %ux%u is possible", by,
        size[0], size[1], width, height);
}

/* H.264 and VP9 have a chroma value for 2 x 2 pixels, so a video's size is even. Pixels that were
 * asked for by number are made or refused; photos have whatever size they have, and theirs loses
 * the last column or row. */
static kiln_status make_even(const kiln_viewpoints *v, uint32_t size[2], kiln_error *err)
{
    const uint32_t width = size[0] & ~1u, height = size[1] & ~1u;
    if (v->sized_by) return kiln_video_size_check(size, v->sized_by, err);
    if (width == 0 || height == 0)
        return kiln_fail(err, KILN_E_USAGE, "a video has at least 2x2 pixels, not %ux%u", size[0],
                         size[1]);
    if (width == size[0] && height == size[1]) return KILN_OK;
    kiln_warn("the pictures have %ux%u pixels, but the size of a video must be even: it shows "
              "%ux%u pixels, without the last %s",
              size[0], size[1], width, height,
              height == size[1]  ? "column"
              : width == size[0] ? "row"
                                 : "column and row");
    size[0] = width;
    size[1] = height;
    return KILN_OK;
}

kiln_status kiln_video_plan_begin(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    uint32_t first[2] = {0}, size[2];
    if (s->n_jobs == 0)
        return kiln_fail(err, KILN_E_USAGE,
                         "the bake has no camera, so a video would have no frame");
    KILN_TRY(kiln_picture_targets_check_stream(r, s, err));
    const uint32_t even = s->stream.encodes ? ~1u : ~0u; /* of a size that is made, see make_even */
    frame_size(s, &s->jobs[0], first);
    for (uint32_t i = 1; i < s->n_jobs; i++) {
        frame_size(s, &s->jobs[i], size);
        if (size[0] != first[0] || size[1] != first[1])
            return kiln_fail(err, KILN_E_USAGE,
                             "the frames of a video must have one size, but '%s' has %ux%u and "
                             "'%s' %ux%u; --size %ux%u makes them equal",
                             s->jobs[0].camera->name, first[0], first[1], s->jobs[i].camera->name,
                             size[0], size[1], first[0] & even, first[1] & even);
    }
    if (s->stream.encodes) KILN_TRY(make_even(&s->viewpoints, first, err));
    KILN_TRY(KILN_ALLOC(&s->video, 1, "a video", err));
    KILN_TRY(kiln_video_open(r, &s->stream, first[0], first[1], s->n_jobs, s->video, err));
    /* a video without one of its frames is none */
    for (uint32_t i = 0; i < s->n_jobs; i++) s->units[i].optional = false;
    return KILN_OK;
}

kiln_status kiln_video_plan_draw(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    for (uint32_t i = 0; i < s->n_jobs; i++) s->units[i].cost = 1; /* in the order of the list */
    kiln_video_take(r, s->video);
    const kiln_status st = kiln_run_units(r, "rendering", s->units, s->n_jobs, err);
    kiln_run_takes(r, NULL);
    return st == KILN_OK ? kiln_video_finish(r, s->video, err) : st;
}

kiln_status kiln_video_plan_report(kiln_run *r, const kiln_render_plan *s, kiln_error *err)
{
    const kiln_video *v = s->video;
    const char *path = strcmp(s->stream.path, "-") ? s->stream.path : "stdout";
    const double fps = (double)s->stream.rate.num / s->stream.rate.den;
    json_t *o_video =
        json_pack("{s:o, s:I, s:I, s:I, s:o, s:o}", "file", kiln_json_string(path), "frames",
                  (json_int_t)v->n_written, "width", (json_int_t)v->width, "height",
                  (json_int_t)v->height, "fps", kiln_json_real(fps), "ffmpeg",
                  v->version[0] ? kiln_json_string(v->version) : json_null());
    if (json_object_set_new(kiln_run_report(r), "video", o_video) != 0)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
    if (kiln_run_prints(r))
        kiln_print("%s of %ux%u, %.6g a second -> %s", KILN_COUNT(v->n_written, "frame"), v->width,
                   v->height, fps, path);
    return KILN_OK;
}
