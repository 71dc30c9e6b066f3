/* survey -- what a writer has to know of all rows before it writes the first: how many there are,
 * and between which values. */
#ifndef KILN_STAGES_EXPORT_SURVEY_H
#define KILN_STAGES_EXPORT_SURVEY_H

#include "stages/formats/writer.h"

/* A unit: chunk `index` of x->e, its planes of `planes` (KILN_ROWS_...) and means. The result is a
 * kiln_chunk_survey. */
kiln_status kiln_survey_chunk(kiln_export_worker *x, unsigned planes, uint64_t index,
                              kiln_error *err) KILN_MUST_CHECK;
typedef struct {
    uint64_t n; /* rows that are written */
    kiln_export_survey of;
} kiln_chunk_survey;

/* Has this export to be surveyed for `planes`, or do the layer's own bounds of its chunks say it
 * all? */
bool kiln_survey_is_needed(const kiln_export *e, unsigned planes);
void kiln_survey_begin(kiln_export_survey *s);
void kiln_survey_add(kiln_export_survey *s, const kiln_export_survey *other);
/* The means alone, from the bounds of the chunks, without reading a row. */
void kiln_survey_of_bounds(const kiln_export *e, kiln_export_survey *s);

#endif
