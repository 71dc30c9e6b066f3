/* plan -- the planning unit of kiln-chunk. */
#ifndef KILN_STAGES_CHUNK_PLAN_H
#define KILN_STAGES_CHUNK_PLAN_H

#include "stages/chunk/units.h"

/* Rows of a layer by their blocks: starts[i] is the first row of block i, starts[n_blocks] the count. free(*out). */
kiln_status kiln_block_starts(const kiln_layer *l, uint64_t **out, kiln_error *err) KILN_MUST_CHECK;
uint32_t kiln_block_of(const uint64_t *starts, uint32_t n_blocks, uint64_t row);

kiln_status kiln_chunk_plan(kiln_worker *w, const kiln_layer *l, const kiln_chunk_unit *u, kiln_error *err) KILN_MUST_CHECK;

#endif
