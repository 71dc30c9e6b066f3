/* commit -- the summary and the record of a run; engine.h has the commit itself. For the parent's
 * main thread. */
#ifndef KILN_STAGES_ENGINE_PARENT_COMMIT_H
#define KILN_STAGES_ENGINE_PARENT_COMMIT_H

#include "stages/engine/parent/report_rows.h"

/* What a run says of itself. The run owns the objects. */
typedef struct {
    json_t *own;           /* of the stage (kiln_run_report) */
    kiln_report_rows rows; /* of its list of many rows */
    /* an entry for each list of units that had work, for the run's record; NULL: none had */
    json_t *lists;
    /* if there was nothing to do: the report of the run that made the output */
    json_t *stored;
} kiln_run_reports;
/* Returns a new object with report, counts of units and times, for --json and the run record. NULL
 * if there is no memory. */
json_t *kiln_run_summary(const kiln_run *r, const char *status);
/* Adds the run to the manifest, or to its part, inside a transaction. end: its status; sentence: of
 * its failure, or NULL. */
kiln_status kiln_run_record(kiln_run *r, kiln_status end, const char *sentence,
                            kiln_error *err) KILN_MUST_CHECK;

#endif
