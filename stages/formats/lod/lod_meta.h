/* lod_meta -- lod-meta.json (lod.h) of a set of levels, from its plan. */
#ifndef KILN_STAGES_FORMATS_LOD_LOD_META_H
#define KILN_STAGES_FORMATS_LOD_LOD_META_H

#include "stages/formats/lod/lod_plan.h"

/* Appends the text.
 *
 * The tree is binary, as viewers have it: the leaves are in the order of a Hilbert curve, each node
 * is one half of its parent's. errors[k] of a leaf is the squared error of level k to level 0 by
 * area: the stored energy at the finest footprint that was measured, of an inner node the leaf's
 * share by rows, over the mean area of the leaf's box as seen from all sides. Nothing where the
 * levels were not measured. */
kiln_status kiln_lod_meta_put(const kiln_export *e, const void *plan, kiln_buffer *out,
                              kiln_error *err) KILN_MUST_CHECK;

#endif
