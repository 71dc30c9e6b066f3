/* exposure -- INRIA's exposures (stages/cameras/exposures.h) where pictures are drawn and measured.
 * A picture is compared as the photo was exposed, because a trainer that learnt exposures compared
 * so: without them photos measure the exposure's error. What is written is the picture as drawn,
 * unless --exposure on.
 *
 * The matrices are not in the manifest. The file is a source, as photos are: if it is gone or
 * another one, what needs it is not measured, with a sentence. */
#ifndef KILN_STAGES_RENDER_EXPOSURE_H
#define KILN_STAGES_RENDER_EXPOSURE_H

#include "stages/cameras/exposures.h"
#include "stages/render/render_plan.h"

/* Reads the file of exposures and whether test views were trained on with their left halves, once
 * scene and sources are known. A file that is not what import hashed is `lost`. KILN_E_NOMEM. */
kiln_status kiln_render_exposures_get(kiln_render_plan *s, kiln_error *err) KILN_MUST_CHECK;
/* Gives each camera of the plan its exposure. KILN_E_NOMEM. */
kiln_status kiln_render_exposures_match(kiln_render_plan *s, kiln_error *err) KILN_MUST_CHECK;
/* Fills the fields of the unit's payload. */
void kiln_render_exposure_set(const kiln_render_plan *s, const kiln_render_job *j,
                              kiln_render_unit *u);
/* KILN_E_INPUT: pictures are to be drawn with exposures that are lost. */
kiln_status kiln_render_exposures_check(const kiln_render_plan *s, kiln_error *err) KILN_MUST_CHECK;
/* Adds what a picture depends on to its key; nothing without exposures. */
void kiln_render_exposure_key(kiln_hasher *h, const kiln_render_plan *s, const kiln_render_job *j);
/* Says what was done, and reports it as "exposure". */
kiln_status kiln_render_exposures_report(const kiln_render_plan *s, json_t *out,
                                         kiln_error *err) KILN_MUST_CHECK;

/* out[n][out_step] = in[n][4] as the photo was exposed, in three channels; out may be in, where
 * out_step is 4. */
void kiln_exposure_apply(const double m[12], const float *in, uint64_t n, float *out,
                         uint32_t out_step);

#endif
