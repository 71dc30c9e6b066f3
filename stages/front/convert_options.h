/* convert_options -- the options of `kiln convert`: rows of kiln-import, kiln-export and the
 * engine, and a few of its own. What such a row is called, takes and says stands where its stage
 * has it. */
#ifndef KILN_STAGES_FRONT_CONVERT_OPTIONS_H
#define KILN_STAGES_FRONT_CONVERT_OPTIONS_H

#include "base/option.h"
#include "stages/engine/engine.h"
#include "stages/front/words.h"

typedef struct {
    const char *scratch_dir;
    const char *import_format; /* of standard input; NULL: its content says it */
    bool filter_nan;           /* which changes nothing: such rows are dropped in any case */
} kiln_convert_options;
extern kiln_convert_options kiln_convert_given;

/* Fills *out; the table lives as long as the process. Where options are passed on, another call of
 * it must not come between parsing and kiln_convert_pass. */
kiln_status kiln_convert_cli(kiln_cli *out, kiln_error *err) KILN_MUST_CHECK;
/* Appends the options that were given, or whose default is not the stage's, and that this stage
 * has, as --NAME=VALUE; of a stage between import and export those that all stages have. NULL: all,
 * as they are called here. */
kiln_status kiln_convert_pass(const kiln_cli *cli, const kiln_stage_program *stage, kiln_words *out,
                              kiln_error *err) KILN_MUST_CHECK;

#endif
