/* float_places -- positions of formats that hold them as float32. */
#ifndef KILN_STAGES_EXPORT_FLOAT_PLACES_H
#define KILN_STAGES_EXPORT_FLOAT_PLACES_H

#include "stages/export/rows.h"

/* Adds e->origin to the means of rows, in double, and rounds once. */
void kiln_float_places(const kiln_export *e, kiln_export_rows *rows);
/* If the scene has an origin other than 0: notes how coarse absolute positions are, or with --keep-origin what they are relative
 * to. */
kiln_status kiln_float_places_note(kiln_export_parent *p, kiln_error *err) KILN_MUST_CHECK;

#endif
