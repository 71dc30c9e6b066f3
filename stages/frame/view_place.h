/* view_place -- where the chunks of a view lie, as one number: for tasks, which decode the chunks
 * that their cameras see. */
#ifndef KILN_STAGES_VIEW_PLACE_H
#define KILN_STAGES_VIEW_PLACE_H

#include "stages/frame/drawn.h"

/* Returns the place of a view for kiln_unit.place: the Hilbert code of the mean of its rows, by the
 * boxes of their chunks. Views of the same chunks have one place, and those of much the same chunks
 * are near each other, however their cameras are named. 0, which is the order of the list: nothing
 * is seen, or the scene has no root cube. The same on every host. */
uint64_t kiln_view_place(const kiln_scene *scene, const kiln_layer *chunks,
                         const kiln_view_chunks *seen);

#endif
