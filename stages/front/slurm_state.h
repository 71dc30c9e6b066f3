/* slurm_state -- what the manifest of a bake over hosts says about it, as kiln-info reads it. */
#ifndef KILN_STAGES_FRONT_SLURM_STATE_H
#define KILN_STAGES_FRONT_SLURM_STATE_H

#include "stages/front/slurm_bake.h"

#include <jansson.h>

/* What kiln-info says; NULL: it says nothing, or there is no manifest. json_decref. KILN_E_IO: it
 * could not be run. */
kiln_status kiln_slurm_ask_info(const kiln_slurm_bake *b, json_t **out,
                                kiln_error *err) KILN_MUST_CHECK;
/* "fresh" and so on; "not begun": the manifest does not have the stage. Borrowed from info. */
const char *kiln_slurm_stage_state(const json_t *info, const char *stage);
/* Writes which cameras have no distance from their photo, where some were to have one, into
 * out[size]; "": there are none. */
void kiln_slurm_unmeasured_text(const json_t *info, char *out, size_t size);

#endif
