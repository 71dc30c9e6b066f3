/* arrivals -- results of a list: taken, and stored in batches. For the parent's main thread. */
#ifndef KILN_STAGES_ENGINE_PARENT_ARRIVALS_H
#define KILN_STAGES_ENGINE_PARENT_ARRIVALS_H

#include "stages/engine/parent/job.h"

/* Says whether the result of the unit is kept in memory only, not stored. */
bool kiln_job_in_memory(const kiln_job *j, const kiln_unit *u);
/* Takes the result of a unit and closes its memfd. Earlier results may be stored first. */
kiln_status kiln_job_take(kiln_job *j, kiln_unit *u, const kiln_message *m, int memfd,
                          kiln_error *err) KILN_MUST_CHECK;
/* Begins to store the batch if it is large or old enough. Returns at once; fails if the transaction
 * before has failed. */
kiln_status kiln_job_store_ripe(kiln_job *j, kiln_error *err) KILN_MUST_CHECK;
/* Stores the batch and waits until that is done. */
kiln_status kiln_job_store(kiln_job *j, kiln_error *err) KILN_MUST_CHECK;
/* Waits for the transaction that runs and returns its failure. Call it before anything else is done
 * with the manifest. */
kiln_status kiln_job_store_end(kiln_job *j, kiln_error *err) KILN_MUST_CHECK;
/* waits for the transaction that runs; releases results that are not stored */
void kiln_job_drop_arrivals(kiln_job *j);

#endif
