/* float_places -- positions of formats that hold them as float32, and what is said of a scene with
 * an origin. */
#ifndef KILN_STAGES_FORMATS_FLOAT_PLACES_H
#define KILN_STAGES_FORMATS_FLOAT_PLACES_H

#include "stages/formats/rows.h"

/* Adds e->origin to the means of rows, in double, and rounds once. */
void kiln_float_places(const kiln_export *e, kiln_export_rows *rows);
/* With --keep-origin, if the scene has an origin other than 0: notes what positions are relative
 * to. Every format whose file does not say that itself calls it, or the next one. */
kiln_status kiln_origin_note(kiln_export_parent *p, kiln_error *err) KILN_MUST_CHECK;
/* The same; without --keep-origin: notes how coarse absolute positions are that readers hold as
 * float32. */
kiln_status kiln_float_places_note(kiln_export_parent *p, kiln_error *err) KILN_MUST_CHECK;

#endif
