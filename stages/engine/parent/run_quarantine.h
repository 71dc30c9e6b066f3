/* run_quarantine -- the units that this run gave up. For the parent's main thread. */
#ifndef KILN_STAGES_ENGINE_PARENT_RUN_QUARANTINE_H
#define KILN_STAGES_ENGINE_PARENT_RUN_QUARANTINE_H

#include "stages/engine/devices/containment.h"
#include "stages/engine/engine.h"

typedef struct {
    kiln_quarantine_row *rows;
    uint64_t n, capacity;
    uint64_t n_failed; /* optional units that the output lacks */
} kiln_quarantine;
/* Adds a unit that was given up to the run's list and, if the run stores units, to the manifest;
 * warns of it. */
kiln_status kiln_run_quarantine(kiln_run *r, const kiln_unit *u, const kiln_trial *trial,
                                const char *device, const char *reason,
                                kiln_error *err) KILN_MUST_CHECK;
/* Adds an optional unit to the list that an earlier run gave up, so that the output lacks it again;
 * it is not tried. */
kiln_status kiln_run_quarantine_again(kiln_run *r, const kiln_quarantine_row *row,
                                      kiln_error *err) KILN_MUST_CHECK;
/* Replaces the stage's rows in the manifest by those of this run, inside the last transaction. */
kiln_status kiln_run_store_quarantine(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
/* a new array of the rows; NULL if there is no memory */
json_t *kiln_quarantine_json(const kiln_quarantine *q);

#endif
