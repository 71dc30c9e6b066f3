/* meaning -- sentences about what changes the meaning of results: a background that does not fit,
 * exposures, photos that are missing, points that were never trained. A stage says each where it
 * finds it and puts it into its run's report as "meaning"; kiln pipeline says all of them again at
 * its end, and kiln-report shows them first, because a line among hundreds is not read. */
#ifndef KILN_STAGES_ENGINE_MEANING_H
#define KILN_STAGES_ENGINE_MEANING_H

#include "base/status.h"

#include <jansson.h>

/* Gaussians that kiln-knn made of points. */
#define KILN_UNTRAINED "untrained: scales from neighbours, for a trainer to begin with"

/* Appends a sentence to the report's "meaning". KILN_E_NOMEM. */
kiln_status kiln_meaning_put(json_t *report, kiln_error *err, const char *fmt, ...)
    KILN_PRINTF(3, 4) KILN_MUST_CHECK;
/* The sentence i of a report, which may be a stranger's; NULL behind the last. What is no text is
 * "". */
const char *kiln_meaning_get(const json_t *report, size_t i);
/* For kiln pipeline, which runs stages in its own process: what is so in this run and in no report,
 * because the stage may have had nothing to do. The last one is kept; "" forgets it. */
void kiln_meaning_pass_on(const char *sentence);
const char *kiln_meaning_passed_on(void);

#endif
