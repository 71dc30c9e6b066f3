/* dataparser -- dataparser_transforms.json of nerfstudio: cameras are moved into the Gaussians'
 * world. The rule: dataset.h. */
#ifndef KILN_STAGES_IMPORT_DATAPARSER_H
#define KILN_STAGES_IMPORT_DATAPARSER_H

#include "stages/import/dataset/dataset.h"

/* Looks for the file beside the rows of d and in its folder. Where the rule says so, moves all
 * cameras, and appends what was done to d->set.transforms. forgone: --no-dataparser. The file is a
 * finding in any case. KILN_E_INPUT: it would be used and cannot be.
 */
kiln_status kiln_dataparser_apply(kiln_dataset *d, bool forgone, kiln_error *err) KILN_MUST_CHECK;

#endif
