/* video_plan -- a run of kiln-render whose pictures are one stream of frames (video.h): checks
 * them, draws them in order, reports. In the parent. */
#ifndef KILN_STAGES_RENDER_VIDEO_PLAN_H
#define KILN_STAGES_RENDER_VIDEO_PLAN_H

#include "stages/render/render_plan.h"

/* Can a video have frames of this size, which the option `by` asks for? KILN_E_USAGE: it is not
 * even, or too small. */
kiln_status kiln_video_size_check(const uint32_t size[2], const char *by,
                                  kiln_error *err) KILN_MUST_CHECK;
/* Begins s->stream and gives each unit its place in it. Before memory is planned. KILN_E_USAGE: no
 * pictures, or of several sizes, or an odd size was asked for and the stream is to be encoded. Else
 * as kiln_video_open. */
kiln_status kiln_video_plan_begin(kiln_run *r, kiln_render_plan *s,
                                  kiln_error *err) KILN_MUST_CHECK;
/* Draws all frames and ends the stream. As kiln_run_units and kiln_video_finish. */
kiln_status kiln_video_plan_draw(kiln_run *r, kiln_render_plan *s, kiln_error *err) KILN_MUST_CHECK;
/* Says what has become of them: `video` of the report, and a line for people. KILN_E_NOMEM. */
kiln_status kiln_video_plan_report(kiln_run *r, const kiln_render_plan *s,
                                   kiln_error *err) KILN_MUST_CHECK;

#endif
