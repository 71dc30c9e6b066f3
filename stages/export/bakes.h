/* bakes -- the bakes that are exported, and which of their chunks. */
#ifndef KILN_STAGES_EXPORT_BAKES_H
#define KILN_STAGES_EXPORT_BAKES_H

#include "schema/layers.h"
#include "stages/formats/writer.h"

/* Fills *out with scene and layer of a manifest. path: "" for the manifest that was given.
 * KILN_E_INPUT: it has no such layer; KILN_E_STALE: the layer is not there yet. Release also after
 * a failure. */
kiln_status kiln_export_bake_open(kiln_manifest *m, const char *path, kiln_layer_kind kind,
                                  kiln_export_bake *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_export_bake_release(kiln_export_bake *p);

/* Opens the manifest of the run and those of `added`, a list of paths (--add; NULL: none), and
 * fills *bakes with *n of them. Each must have this layer, up to date or, with --allow-partial,
 * partial. The others are only read: nothing locks them, and no connection to them stays open.
 * KILN_E_INPUT: they cannot be one file: points and Gaussians, or with antialiasing and without.
 * Release also after a failure. */
kiln_status kiln_export_bakes_open(kiln_run *r, const char *added, kiln_layer_kind kind,
                                   kiln_export_bake **bakes, uint32_t *n,
                                   kiln_error *err) KILN_MUST_CHECK;
void kiln_export_bakes_release(kiln_export_bake *bakes, uint32_t n); /* frees bakes */
/* Makes the paths of a list absolute where the command line gave it: a later run may start
 * elsewhere. row: the option. */
kiln_status kiln_export_absolute(const kiln_opt *row, kiln_error *err) KILN_MUST_CHECK;

/* Fills e->chunks with the chunks of e->bakes that `list` names (chunk_choice.h; NULL: all) and of
 * which e->filters may keep a row, n_rows, source_first, and by e->edits and e->keep_origin degree
 * and origin. free(e->chunks). KILN_E_USAGE: a name is no chunk's, or a filter's column is none of
 * a layer's. */
kiln_status kiln_export_choose(kiln_export *e, const char *list, kiln_error *err) KILN_MUST_CHECK;
/* There is no row to write, KILN_E_INPUT: names the filters, if there are any. */
kiln_status kiln_export_fail_empty(const kiln_export *e, kiln_error *err);

#endif
