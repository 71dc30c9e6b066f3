/* commit -- the summary and the record of a run; engine.h has the commit itself. For the parent's main thread. */
#ifndef KILN_STAGES_ENGINE_PARENT_COMMIT_H
#define KILN_STAGES_ENGINE_PARENT_COMMIT_H

#include "stages/engine/engine.h"

/* Returns a new object with report, counts of units and times, for --json and the run record. NULL if there is no memory. */
json_t *kiln_run_summary(const kiln_run *r, const char *status);
/* Adds the run to the manifest, or to its part, inside a transaction. end: its status; sentence: of its failure, or NULL. */
kiln_status kiln_run_record(kiln_run *r, kiln_status end, const char *sentence, kiln_error *err) KILN_MUST_CHECK;

#endif
