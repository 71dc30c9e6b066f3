/* bake_stored -- the options of earlier runs that the stages of a bake go by, though nobody has
 * typed them now. */
#ifndef KILN_STAGES_FRONT_BAKE_STORED_H
#define KILN_STAGES_FRONT_BAKE_STORED_H

#include "stages/front/bake.h"

/* Fills b->stored: of each stage that runs, the options that the manifest stores, unless they have
 * their default, are given now or are taken back by --reset. Before the first stage runs. A
 * manifest that cannot be read has none: that is for the first stage to complain of.
 * KILN_E_NOMEM. */
kiln_status kiln_bake_stored(kiln_bake *b, kiln_error *err) KILN_MUST_CHECK;

#endif
