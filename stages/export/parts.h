/* parts -- the bakes that are exported, and which of their chunks. */
#ifndef KILN_STAGES_EXPORT_PARTS_H
#define KILN_STAGES_EXPORT_PARTS_H

#include "schema/layers.h"
#include "stages/export/writer.h"

/* Fills *out with scene and layer of a manifest. path: "" for the manifest that was given. KILN_E_INPUT: it has no such layer;
 * KILN_E_STALE: the layer is not there yet. Release also after a failure. */
kiln_status kiln_export_part_open(kiln_manifest *m, const char *path, kiln_layer_kind kind, kiln_export_part *out,
                                  kiln_error *err) KILN_MUST_CHECK;
void kiln_export_part_release(kiln_export_part *p);

/* Fills e->chunks with the chunks of e->parts that `list` names (names separated by commas, or #INDEX; NULL: all), n_rows,
 * source_first, degree and origin. free(e->chunks). KILN_E_USAGE: a name is no chunk's. */
kiln_status kiln_export_choose(kiln_export *e, const char *list, kiln_error *err) KILN_MUST_CHECK;

#endif
