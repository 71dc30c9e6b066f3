/* html_scene -- what a page knows of the scene that it shows, as JSON (stages/viewer/scene_page.js
 * reads it): name, counts, cameras, which way is up, where the scene is. All coordinates are
 * without kiln_export.base, as the means of a relative format are. */
#ifndef KILN_STAGES_FORMATS_HTML_HTML_SCENE_H
#define KILN_STAGES_FORMATS_HTML_HTML_SCENE_H

#include "stages/formats/export_views.h"
#include "stages/formats/text_sink.h"
#include "stages/formats/writer.h"

enum { KILN_HTML_SCENE_VERSION = 1 };

/* Gives the JSON to `sink` piece by piece, in ASCII and without '<', '>' and '&', so that no text
 * in it ends an element; the same text each time. bytes: of the SOG archive. Cameras are moved as
 * the rows are, and one is in memory at a time. As kiln_cameras_each. */
kiln_status kiln_html_scene_write(const kiln_export *e, uint64_t bytes, kiln_text_sink_fn *sink,
                                  void *context, kiln_error *err) KILN_MUST_CHECK;

#endif
