/* plan -- the planning unit of kiln-chunk: which chunks there are. */
#ifndef KILN_STAGES_CHUNK_PLAN_H
#define KILN_STAGES_CHUNK_PLAN_H

#include "stages/chunk/chunk_units.h"
#include "stages/spatial/partition.h"

/* starts: rows of the layer by their blocks (chunk_rows.h). */
kiln_status kiln_chunk_plan(kiln_worker *w, const kiln_layer *l, const uint64_t *starts,
                            const kiln_spatial_file *order, const kiln_chunk_unit *u,
                            kiln_error *err) KILN_MUST_CHECK;

#endif
