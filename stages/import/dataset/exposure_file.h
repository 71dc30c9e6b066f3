/* exposure_file -- the exposure.json of a data set. */
#ifndef KILN_STAGES_IMPORT_EXPOSURE_FILE_H
#define KILN_STAGES_IMPORT_EXPOSURE_FILE_H

#include "stages/import/dataset/dataset.h"

/* Looks for the file in the folder of the Gaussians, then in that of `cameras` (--cameras; NULL:
 * not given), once cameras are known: a finding and a source. One that cannot be read is told and
 * not used. */
kiln_status kiln_exposures_find(kiln_dataset *d, const char *cameras,
                                kiln_error *err) KILN_MUST_CHECK;

#endif
