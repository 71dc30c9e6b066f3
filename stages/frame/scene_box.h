/* scene_box -- where a scene is, without the few rows far out that most scenes have. */
#ifndef KILN_STAGES_FRAME_SCENE_BOX_H
#define KILN_STAGES_FRAME_SCENE_BOX_H

#include "schema/manifest.h"

/* The box of the layer's chunks without the outermost hundredth of them at each side, in the world
 * (the scene's origin added), and within the root cube, which holds nothing of the outermost
 * thousandth of the rows. A layer without rows: a point. KILN_E_NOMEM.
 */
kiln_status kiln_scene_box(const kiln_scene *scene, const kiln_layer *layer, double lo[3],
                           double hi[3], kiln_error *err) KILN_MUST_CHECK;

#endif
