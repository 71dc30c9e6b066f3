/* distance -- how far a unit's picture is from its photo, or from the same one drawn otherwise. */
#ifndef KILN_STAGES_RENDER_DISTANCE_H
#define KILN_STAGES_RENDER_DISTANCE_H

#include "stages/render/units.h"

/* rgba [height][width][4] of the unit; other [height][width][step], of which the first three are compared. */
kiln_status kiln_distance(kiln_worker *w, const kiln_render_unit *u, const float *rgba, const float *other, uint32_t step,
                          kiln_metrics *out, kiln_error *err) KILN_MUST_CHECK;
/* From the unit's photo, which must be as import hashed it. *out stays as it is, and note says why, where it is of another size. */
kiln_status kiln_distance_photo(kiln_worker *w, const kiln_render_unit *u, const float *rgba, kiln_metrics *out, char *note,
                                size_t note_size, kiln_error *err) KILN_MUST_CHECK;

#endif
