/* bake_places -- where a bake's scene, folder and manifest are: as the command line says, else
 * bake/ in a scene's folder and NAME.bake beside a scene's file. */
#ifndef KILN_STAGES_FRONT_BAKE_PLACES_H
#define KILN_STAGES_FRONT_BAKE_PLACES_H

#include "stages/front/bake.h"

#define KILN_DEMO_FOLDER "kiln-demo"

/* Fills b->scene, b->out and b->manifest; b->runs says whether a scene is needed. KILN_E_USAGE:
 * there is none. KILN_E_INPUT: a path is too long, or has the slash of a folder and is a file. */
kiln_status kiln_bake_places(const kiln_parsed *parsed, kiln_bake *b,
                             kiln_error *err) KILN_MUST_CHECK;

#endif
