/* levels_info -- what kiln-info --lod says of levels of detail: rows, bytes and errors by level.
 *
 * The row of level K is about the layer `levels` (nodes that have this level, their Gaussians,
 * bytes of their blobs in the file), and about the scene drawn at that level (kiln_level_choose:
 * each chunk at level K, or the cells above whose levels begin at K or below): how many Gaussians
 * that takes, and what the measured errors foretell of pictures ("psnr", dB): of three cameras of
 * the bake, those that have the smallest, the median and the largest footprint on the scene, at
 * full, half and quarter size ("figures").
 *
 * For one thread, as manifest.h. */
#ifndef KILN_STAGES_LOD_LEVELS_INFO_H
#define KILN_STAGES_LOD_LEVELS_INFO_H

#include "schema/manifest.h"

#include <jansson.h>

/* Makes the JSON of it: JSON's null where there are no levels. "current" is false where they are
 * not of the layer that is drawn; then nothing of the scene is said. The caller releases *out. */
kiln_status kiln_levels_info(kiln_manifest *m, json_t **out, kiln_error *err) KILN_MUST_CHECK;
/* Prints it for people, at most 110 columns wide. */
void kiln_levels_info_print(const json_t *info);

#endif
