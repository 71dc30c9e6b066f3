/* stored_options -- the options of earlier runs that a manifest keeps for a stage, as people see
 * them.
 *
 * An option that a stage was given stays in force until --reset. Who opens a bake, or runs a stage
 * again, has not typed it and needs to be told: kiln-info, a stage at its start and `kiln pipeline`
 * at its end do. An option that is stored with its default changes nothing and is not told. For one
 * thread: the values of the stage's table are set on the way. */
#ifndef KILN_STAGES_ENGINE_PARENT_STORED_OPTIONS_H
#define KILN_STAGES_ENGINE_PARENT_STORED_OPTIONS_H

#include "base/memory.h"
#include "stages/engine/engine.h"

/* Finds the row of a stored option; NULL: this version of the stage has no option of this name that
 * is stored. */
const kiln_opt *kiln_stored_option_row(const kiln_cli *cli, const char *name);
/* What a stored value of this option means now. A version before may have stored 0 where this one
 * takes "off" alone; then "off", else `value`. */
const char *kiln_stored_option_value(const kiln_opt *row, const char *value);
/* Appends an option with this canonical text as it is typed, with a blank in front unless it is the
 * first: "--min-opacity 0.3", "--merge", "--no-merge". A long text is cut. The buffer ends with a
 * NUL that its size does not count. */
kiln_status kiln_stored_option_put(const kiln_opt *row, const char *text, kiln_buffer *out,
                                   kiln_error *err) KILN_MUST_CHECK;

/* Called for each stored option whose value is not the default; text: its canonical value. */
typedef kiln_status kiln_stored_option_fn(void *context, const kiln_opt *row, const char *text,
                                          kiln_error *err);
/* Reads what the manifest stores for a stage. Options that the stage does not know, and values that
 * it refuses, are left out: the stage itself complains of them. As manifest.h; else the status of
 * `tell`. */
kiln_status kiln_stored_options_each(kiln_manifest *m, const kiln_stage_program *stage,
                                     kiln_stored_option_fn *tell, void *context,
                                     kiln_error *err) KILN_MUST_CHECK;

#endif
