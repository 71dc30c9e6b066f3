/* shared_memory -- makes and closes memory that the workers of a run share (kiln_run_share_memory).
 * For the parent's main thread.
 */
#ifndef KILN_STAGES_ENGINE_MEMORY_SHARED_MEMORY_H
#define KILN_STAGES_ENGINE_MEMORY_SHARED_MEMORY_H

#include "stages/engine/engine.h"

/* Makes n_files files of `bytes` bytes each, which the caller closes. After a failure nothing is
 * left to close. KILN_E_IO, KILN_E_NOMEM. */
kiln_status kiln_shared_memory_make(uint64_t bytes, uint32_t n_files, kiln_shared_memory *out,
                                    kiln_error *err) KILN_MUST_CHECK;
void kiln_shared_memory_close(kiln_shared_memory *m); /* {0}: does nothing */

#endif
