/* findings -- what the data set holds, for people: as notes on stderr, or with --list as the
 * program's output.
 */
#ifndef KILN_STAGES_IMPORT_FINDINGS_H
#define KILN_STAGES_IMPORT_FINDINGS_H

#include "base/file.h"
#include "stages/engine/engine.h"
#include "stages/import/dataset/dataset.h"

void kiln_findings_say(const kiln_dataset *d);
kiln_status kiln_findings_list(kiln_run *r, const kiln_dataset *d, kiln_error *err) KILN_MUST_CHECK;

/* Adds what is known of all cameras together: split, frames_dropped_by, photos_missing, distorted,
 * cfg_args. */
kiln_status kiln_findings_json(const kiln_dataset *d, json_t *report,
                               kiln_error *err) KILN_MUST_CHECK;

/* The absolute path of the folder that the manifest lies or will lie in: of what exists of it, with
 * the rest behind. "" when the scene itself lies in there, which then cannot be left out. */
kiln_status kiln_folder_to_avoid(const char *scene, const char *manifest, char out[KILN_PATH_MAX],
                                 kiln_error *err) KILN_MUST_CHECK;

/* Warns of lenses whose undistorted photos are empty or lack a part (kiln_pinholes_set counted
 * them). */
void kiln_lenses_warn(const kiln_dataset *d);

#endif
