/* stage_calls -- the command line of each stage of a bake. A stage that runs in this process reads
 * its own, after which nobody knows what was given to `kiln pipeline`: so all of them are made
 * before the first stage runs. */
#ifndef KILN_STAGES_FRONT_STAGE_CALLS_H
#define KILN_STAGES_FRONT_STAGE_CALLS_H

#include "stages/front/bake.h"

/* Fills b->call of the stages that run. KILN_E_NOMEM. Released after a failure, too. */
kiln_status kiln_stage_calls_make(kiln_bake *b, kiln_error *err) KILN_MUST_CHECK;
void kiln_stage_calls_release(kiln_bake *b);
/* Prints them, quoted for a shell. KILN_E_USAGE: one has a line break. */
kiln_status kiln_stage_calls_print(const kiln_bake *b, kiln_error *err) KILN_MUST_CHECK;

#endif
