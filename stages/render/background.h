/* background -- what a picture is drawn over: "scene", "white", "black" or three numbers. */
#ifndef KILN_STAGES_RENDER_BACKGROUND_H
#define KILN_STAGES_RENDER_BACKGROUND_H

#include "base/status.h"
#include "schema/manifest.h"

/* "r,g,b" is 0..1 each, or, when any is above 1, 0..255 each. "scene": what the scene says, else black.
 * KILN_E_USAGE with what it takes. */
kiln_status kiln_background_parse(const char *text, const kiln_scene *scene, double out[3], kiln_error *err) KILN_MUST_CHECK;

#endif
