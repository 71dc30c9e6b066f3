/* way -- how the parent of kiln-chunk goes about a layer that memory may not hold: what is on the disk before the plan and before
 * the chunks, and what units take.
 *
 * Where --ram has room for all planes of the layer, a chunk gathers its rows from decoded planes. Where it has not, blocks are
 * scattered to the disk first (groups.h), unless so few chunks are due that each may read its blocks itself.
 */
#ifndef KILN_STAGES_CHUNK_SPILL_H
#define KILN_STAGES_CHUNK_SPILL_H

#include "stages/chunk/chunk_rows.h"
#include "stages/chunk/chunk_units.h"

typedef struct {
    const kiln_layer *layer;
    const kiln_chunk_unit *model; /* payload of the plan: what all units share */
    kiln_row_parts parts;
    uint64_t unit_ram;    /* what a unit may take at most */
    uint64_t cache_bytes; /* gather from the layer: decoded planes that are kept; 0: none */
    bool in_memory;       /* the cache has room for all planes */
    uint64_t group_rows;  /* of a scatter; 0: none was made */
    uint64_t order_ram;
    char folder[4096];
} kiln_chunk_spill;

/* model is borrowed and may still be filled until the next call. Release also after a failure. */
kiln_status kiln_chunk_spill_make(kiln_run *r, const kiln_layer *layer, const kiln_layer *spacing, const kiln_chunk_unit *model,
                                  kiln_chunk_spill *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_chunk_spill_release(kiln_chunk_spill *y);

/* How many of the units will be computed. */
kiln_status kiln_chunk_due(kiln_run *r, const kiln_unit *units, uint64_t n, uint64_t *due, kiln_error *err) KILN_MUST_CHECK;
/* Before the plan or a gather is due: the scratch folder with the order in it. Says what room it takes. */
kiln_status kiln_chunk_spill_order(kiln_run *r, kiln_chunk_spill *y, kiln_error *err) KILN_MUST_CHECK;
/* Before `due` gathers of n_chunks: scatters where that is the way. */
kiln_status kiln_chunk_spill_scatter(kiln_run *r, kiln_chunk_spill *y, uint64_t n_chunks, uint64_t due,
                                     kiln_error *err) KILN_MUST_CHECK;
/* For a gather of so many rows. */
uint64_t kiln_chunk_spill_ram(const kiln_chunk_spill *y, uint64_t rows);

#endif
