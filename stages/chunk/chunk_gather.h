/* chunk_gather -- the unit that puts the planes of a chunk together, from planes of the blocks or
 * from slices of the groups. */
#ifndef KILN_STAGES_CHUNK_GATHER_H
#define KILN_STAGES_CHUNK_GATHER_H

#include "stages/chunk/groups.h"

enum { KILN_CHUNK_READERS = 64 }; /* connections of a worker at most */

/* What a worker keeps between units. A run has one layer and one plan. */
typedef struct {
    kiln_layer *layer, *spacing; /* spacing: NULL when the layer has the plane itself */
    uint64_t *starts;            /* rows of the layer by blocks */
    kiln_row_parts parts;
    char folder[4096];        /* scratch */
    kiln_spatial_file order;  /* open once it is asked for */
    kiln_scratch_file places; /* likewise, by a scatter */
    kiln_hash plan;           /* of which these are; zero: of none yet */
    uint64_t group_rows;
    kiln_block_groups groups;
    kiln_planned_chunk *chunks;
    uint64_t n_chunks;
    /* store.n_memory of them: where groups lie if they are in shared memory */
    kiln_scratch_file memory[KILN_SHARED_FILES];
    kiln_shared_memory shared; /* whose files those are */
    kiln_group_store store;
    kiln_scatter_arrays arrays;     /* of scatter units; empty while chunks are gathered */
    unsigned char *planes, *slices; /* of a chunk, as large as the largest so far */
    uint64_t planes_bytes, slices_bytes;
    /* [0] borrowed, others opened once they are asked for */
    kiln_manifest *readers[KILN_CHUNK_READERS];
    unsigned n_readers;
} kiln_chunk_kept;

/* Outputs as chunk_units.h says. The order is open, and the groups where u has them. */
kiln_status kiln_chunk_gather(kiln_worker *w, kiln_chunk_kept *k, const kiln_chunk_unit *u,
                              kiln_error *err) KILN_MUST_CHECK;

/* Adds to the sentence of a failed read of the scratch folder, in a task, that the plan has left
 * it. Returns st. */
kiln_status kiln_chunk_blame_plan(const kiln_chunk_unit *u, kiln_status st,
                                  kiln_error *err) KILN_MUST_CHECK;

/* Host memory that it takes for so many rows, outputs included; read: bytes of input that it has in
 * memory meanwhile. */
uint64_t kiln_chunk_gather_ram(const kiln_row_parts *parts, uint64_t rows, uint64_t read);

#endif
