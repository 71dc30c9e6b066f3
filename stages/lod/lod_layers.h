/* lod_layers -- the layer `levels`, made of the results of units. For the parent's main thread. */
#ifndef KILN_STAGES_LOD_LAYERS_H
#define KILN_STAGES_LOD_LAYERS_H

#include "stages/frame/frame.h"
#include "stages/lod/node_units.h"

/* Makes the layer, not yet stored. request: what errors were measured under. Results that cannot be
 * used are refused (kiln_unit_refuse). Releases the results. The caller frees *out, after a failure
 * too. */
kiln_status kiln_lod_layer_make(kiln_run *r, const kiln_lod_plan *p,
                                const kiln_view_request *request, kiln_layer **out,
                                kiln_error *err) KILN_MUST_CHECK;

#endif
