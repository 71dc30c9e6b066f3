/* worker_open -- where a run with these options has its manifest: its parent and its workers must
 * come to the same. */
#ifndef KILN_STAGES_ENGINE_WORKER_WORKER_OPEN_H
#define KILN_STAGES_ENGINE_WORKER_WORKER_OPEN_H

#include "base/file.h"
#include "schema/manifest.h"
#include "stages/engine/engine_options.h"

/* Says whether the run works on a copy of the manifest at this path, and where that is.
 * KILN_E_USAGE: it would have to, and --scratch-dir names no place for it. KILN_E_IO. */
kiln_status kiln_manifest_copy_find(const kiln_engine_options *o, const char *path, bool *copied,
                                    char copy[KILN_PATH_MAX], kiln_error *err) KILN_MUST_CHECK;
/* Opens the manifest at this path as the parent of this worker has it. Errors as
 * kiln_manifest_open. */
kiln_status kiln_worker_open(const kiln_engine_options *o, const char *path, const char *stage,
                             kiln_manifest **out, kiln_error *err) KILN_MUST_CHECK;

#endif
