/* distance -- how far a unit's picture is from its photo, or from the same one drawn otherwise. */
#ifndef KILN_STAGES_RENDER_DISTANCE_H
#define KILN_STAGES_RENDER_DISTANCE_H

#include "stages/render/outside.h"
#include "stages/render/photo.h"

/* rgba [height][width][4] of the unit; other [height][width][step], of which the first three are compared. */
kiln_status kiln_distance(kiln_worker *w, const kiln_render_unit *u, const float *rgba, const float *other, uint32_t step,
                          kiln_metrics *out, kiln_error *err) KILN_MUST_CHECK;
/* From the unit's photo. Where it is damaged, damage (kiln_photo's) says how and *out stays as it is. *outside: all 0 for a photo
 * with alpha, which is put over the background. */
kiln_status kiln_distance_photo(kiln_worker *w, const kiln_render_unit *u, const float *rgba, kiln_metrics *out,
                                kiln_outside *outside, char damage[KILN_PHOTO_DAMAGE], kiln_error *err) KILN_MUST_CHECK;

#endif
