/* run_units -- the lists of a run (kiln_run_units). For the parent's main thread. */
#ifndef KILN_STAGES_ENGINE_PARENT_RUN_UNITS_H
#define KILN_STAGES_ENGINE_PARENT_RUN_UNITS_H

#include "base/file.h"
#include "stages/engine/parent/run_devices.h"

typedef struct kiln_job kiln_job; /* job.h */

/* What has become of the lists of a run so far. */
typedef struct {
    kiln_job *beside;             /* kiln_run_units_beside; NULL: no list is open */
    const kiln_unit_taker *taker; /* kiln_run_takes */
    uint64_t n_units;             /* of all lists */
    uint64_t n_done, n_cached, n_stored, n_retried;
    kiln_buffer used;                /* keys of the units of all lists, possibly several times */
    uint64_t store_ns, stored_bytes; /* time and bytes of the transactions that stored units */
} kiln_run_lists;
/* Says whether a list is open beside others (kiln_run_units_beside) and has its workers on this
 * home. */
bool kiln_run_is_beside(const kiln_run_lists *l, const kiln_home *h);

#endif
