/* options -- the rows of the options that the engine adds to programs (engine_options.h has their
 * values). */
#ifndef KILN_STAGES_ENGINE_PARENT_OPTIONS_H
#define KILN_STAGES_ENGINE_PARENT_OPTIONS_H

#include "stages/engine/engine.h"
#include "stages/engine/engine_options.h"

/* Sets all options of the engine to zero, which an earlier stage of this process may have set. */
void kiln_engine_options_forget(void);
/* Gives the program's option table with the engine's rows in front of the common ones. The rows are
 * static: the next call replaces them. */
kiln_status kiln_engine_options_merge(const kiln_stage_program *p, kiln_cli *out,
                                      kiln_error *err) KILN_MUST_CHECK;
/* Says of --shard, --units and the options of rounds why a stage has them not, which "unknown
 * option" would leave open. Before parsing. KILN_E_USAGE. */
kiln_status kiln_engine_options_refuse(const kiln_stage_program *p, int argc, char **argv,
                                       kiln_error *err) KILN_MUST_CHECK;

#endif
