/* call_checks -- what is wrong with the command lines of the stages of a bake is found before the
 * first stage runs. A name of the bake, such as that of a camera or a chunk, is looked for again as
 * soon as the bake has some. */
#ifndef KILN_STAGES_FRONT_CALL_CHECKS_H
#define KILN_STAGES_FRONT_CALL_CHECKS_H

#include "stages/front/bake.h"

/* Checks the calls of all stages that run. The sentence names options as they were typed. The
 * status is that with which the stage's own program would end. With --print-commands, which another
 * host may run, only texts are looked at. Names of the bake are, where no stage of this run brings
 * others. Afterwards nothing says which options of `kiln pipeline` were given. */
kiln_status kiln_stage_calls_check(const kiln_bake *b, kiln_error *err) KILN_MUST_CHECK;
/* A stage has been run: checks the names, which it may have brought, in the calls of the stages
 * behind it. */
kiln_status kiln_stage_names_check(const kiln_bake *b, const char *done,
                                   kiln_error *err) KILN_MUST_CHECK;

#endif
