/* picture_places -- where the pictures of a run go: into files beside the bake or where -o says, or
 * all into one stream of frames; and which options do not go together because of that. In the
 * parent, before anything is drawn. */
#ifndef KILN_STAGES_RENDER_PICTURE_PLACES_H
#define KILN_STAGES_RENDER_PICTURE_PLACES_H

#include "stages/render/render_plan.h"

/* Finds options that do not go together, as far as no bake is needed to see it; and whether there
 * is an encoder for --video. json: --json. KILN_E_USAGE, or as kiln_encoder_check and
 * kiln_encoder_find. */
kiln_status kiln_pictures_check_options(const kiln_render_options *o, const kiln_cli *cli,
                                        bool json, kiln_error *err) KILN_MUST_CHECK;
/* Fills s->stream if all pictures are one; each of them writes no file then. The options have been
 * checked. */
void kiln_pictures_choose_stream(kiln_render_plan *s);
/* When the number of pictures is known. KILN_E_USAGE: -o or --format does not fit them. */
kiln_status kiln_pictures_check_output(const kiln_render_plan *s, kiln_error *err) KILN_MUST_CHECK;
/* Sets what the payload of a picture says of its files. KILN_E_INPUT: a path is too long, or its
 * folder is outside of the bake's.
 */
kiln_status kiln_pictures_place(const kiln_render_plan *s, const kiln_render_job *j,
                                kiln_render_made *made, kiln_error *err) KILN_MUST_CHECK;

/* Before any work, and not where there is none: twenty thousand looks take a tenth of a second.
 * KILN_E_INPUT: in the place of a picture is a link, which leads out of the bake's folder. */
kiln_status kiln_pictures_check_places(const kiln_render_plan *s, kiln_error *err) KILN_MUST_CHECK;

#endif
