/* contents -- what the rows of each chunk hold, by which the parent keys it.
 *
 * Each block has a unit of its own, keyed by the plan and the block's planes, that says what its
 * rows add to each chunk (row_sums.h). So one changed value makes the sums of one block again, and
 * then the one chunk whose content is another. Where most blocks are due, as in a first bake, the
 * blocks are scattered first and a unit reads what the scatter has left. */
#ifndef KILN_STAGES_CHUNK_CONTENTS_H
#define KILN_STAGES_CHUNK_CONTENTS_H

#include "stages/chunk/row_sums.h"
#include "stages/chunk/spill.h"

/* keys: [layer->n_chunks] of all planes of a block. content: [n_chunks], set. May decide how blocks
 * are grouped, make the order and scatter (spill.h). Fails as kiln_run_units. */
kiln_status kiln_chunk_contents(kiln_run *r, kiln_chunk_spill *y, const kiln_hash *keys,
                                uint64_t n_chunks, kiln_row_sum *content,
                                kiln_error *err) KILN_MUST_CHECK;

#endif
