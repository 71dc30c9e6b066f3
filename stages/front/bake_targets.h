/* bake_targets -- whether the files of a bake may be written, asked before its first stage runs: a
 * stage at the end would ask after hours of work. What is not known yet, such as the names of the
 * cameras of a scene that was never imported, is asked again by the stages. */
#ifndef KILN_STAGES_FRONT_BAKE_TARGETS_H
#define KILN_STAGES_FRONT_BAKE_TARGETS_H

#include "stages/front/bake.h"

/* When the calls of the stages are known. KILN_E_USAGE: something stands where this bake would
 * write, and may not be replaced. */
kiln_status kiln_bake_targets_check(const kiln_bake *b, bool overwrite,
                                    kiln_error *err) KILN_MUST_CHECK;

#endif
