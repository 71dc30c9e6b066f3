/* cfg_args -- the options that INRIA's train.py leaves beside its model. */
#ifndef KILN_STAGES_IMPORT_CFG_ARGS_H
#define KILN_STAGES_IMPORT_CFG_ARGS_H

#include "stages/import/dataset/dataset.h"

/* Reads d->set.root/cfg_args where there is one: background, image folder, and d->cfg_args as
 * JSON. */
kiln_status kiln_cfg_args_read(kiln_dataset *d, kiln_error *err) KILN_MUST_CHECK;

#endif
