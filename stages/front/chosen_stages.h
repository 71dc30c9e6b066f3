/* chosen_stages -- which stages a bake runs, and that every option that was given reaches one of
 * them: something else than was meant would be baked otherwise.
 *
 * A stage runs if --stages names it; without --stages, if every bake has it, if its own option asks
 * for it (--lod), if this bake has it already, or if what is to be drawn or exported is made by
 * it. */
#ifndef KILN_STAGES_FRONT_CHOSEN_STAGES_H
#define KILN_STAGES_FRONT_CHOSEN_STAGES_H

#include "stages/front/bake.h"

/* Those that the command line alone tells. KILN_E_USAGE: there is no such stage, or --stages leaves
 * out one that is asked for. */
kiln_status kiln_chosen_stages_begin(kiln_bake *b, kiln_error *err) KILN_MUST_CHECK;
/* Adds those that the manifest tells of, which is known now, and checks the options. KILN_E_USAGE:
 * one is of a stage that does not run, or leaves a later stage nothing to read. */
kiln_status kiln_chosen_stages_end(kiln_bake *b, kiln_error *err) KILN_MUST_CHECK;
/* The text of an option that this bake gives to a stage; NULL: it gives none. */
const char *kiln_bake_option(const kiln_bake *b, const char *stage, const char *name, char *text,
                             size_t size);
/* Says whether this stage, which the table has, runs. */
bool kiln_bake_runs(const kiln_bake *b, const char *stage);

#endif
