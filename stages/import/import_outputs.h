/* import_outputs -- kiln_stage_program.outputs of kiln-import: when stages that read cameras, the
 * scene, its words or tracks become stale. Constant data. */
#ifndef KILN_STAGES_IMPORT_OUTPUTS_H
#define KILN_STAGES_IMPORT_OUTPUTS_H

#include "stages/engine/engine.h"

extern const kiln_stage_output kiln_import_outputs[];

#endif
