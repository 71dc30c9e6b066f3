/* html_scene -- what a page knows of the scene that it shows, as JSON (stages/viewer/scene_page.js reads it): name, counts,
 * cameras, which way is up, where the scene is. All coordinates are without kiln_export.base, as the means of a relative format
 * are. */
#ifndef KILN_STAGES_EXPORT_HTML_SCENE_H
#define KILN_STAGES_EXPORT_HTML_SCENE_H

#include "stages/export/export_views.h"
#include "stages/export/writer.h"

enum { KILN_HTML_SCENE_VERSION = 1 };

/* Appends the JSON, in ASCII and without '<', '>' and '&', so that no text in it ends an element. bytes: of the SOG archive.
 * Cameras are moved as the rows are. KILN_E_NOMEM. */
kiln_status kiln_html_scene_put(const kiln_export *e, uint64_t bytes, kiln_buffer *out, kiln_error *err) KILN_MUST_CHECK;

#endif
