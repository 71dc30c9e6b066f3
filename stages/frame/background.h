/* background -- the colour over which a picture is drawn: "scene", "white", "black" or three
 * numbers. */
#ifndef KILN_STAGES_FRAME_BACKGROUND_H
#define KILN_STAGES_FRAME_BACKGROUND_H

#include "base/status.h"
#include "schema/manifest.h"

/* Parses --background. "r,g,b" is 0 to 1 each or, if any is above 1, 0 to 255 each. "scene" is the
 * scene's background, or black if it has none; scene may be NULL. KILN_E_USAGE: something else; the
 * sentence says what is taken. */
kiln_status kiln_background_parse(const char *text, const kiln_scene *scene, double out[3],
                                  kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_background_check(const char *text, kiln_error *err) KILN_MUST_CHECK;

#endif
