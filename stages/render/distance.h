/* distance -- measures a unit's picture against its photo, or against the same picture drawn in
 * another way. */
#ifndef KILN_STAGES_RENDER_DISTANCE_H
#define KILN_STAGES_RENDER_DISTANCE_H

#include "stages/render/outside.h"
#include "stages/render/photo.h"

/* A picture of the unit's size. */
typedef struct {
    const float *data; /* [height][width][step] */
    uint32_t step;     /* 3 or more */
} kiln_compared;
/* Compares two pictures in the first three channels. mask: as in kiln_metrics_args. */
kiln_status kiln_distance(kiln_worker *w, const kiln_render_unit *u, kiln_compared a,
                          kiln_compared b, const uint8_t *mask, kiln_metrics *out,
                          kiln_error *err) KILN_MUST_CHECK;
/* Compares with the unit's photo, as that was exposed (exposure.h), all of it or its right half. If
 * the photo is damaged, the call succeeds, `damage` says how (kiln_photo) and *out is unchanged.
 * *outside (outside.h) is all 0 for a photo with alpha, which is put over the background, and for
 * one with an exposure. KILN_E_NOMEM, KILN_E_INPUT as kiln_photo_read. */
kiln_status kiln_distance_photo(kiln_worker *w, const kiln_render_unit *u, const float *rgba,
                                kiln_metrics *out, kiln_outside *outside,
                                char damage[KILN_PHOTO_DAMAGE], kiln_error *err) KILN_MUST_CHECK;

#endif
