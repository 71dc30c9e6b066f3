/* spill -- how kiln-chunk works on a layer that may not fit into memory. This is the parent's side.
 *
 * Problem. A chunk gathers its rows from many blocks. If each chunk took them from the blocks,
 * every worker would decode the whole layer, and more than once if memory cannot hold it.
 *
 * Layout. The rows of all blocks are first scattered, grouped by chunk (groups.h): into memory that
 * the workers share if --ram has room for all planes of the layer, otherwise to the disk. If only a
 * few chunks are due, each reads its blocks itself, because that is cheaper than scattering.
 *
 * Over several hosts --plan scatters to the shared disk, whatever --ram has room for, and decides
 * how groups are cut. A task reads the slices of its chunks and decodes no block. Tasks never write
 * there. --gather makes again what has been lost of it.
 */
#ifndef KILN_STAGES_CHUNK_SPILL_H
#define KILN_STAGES_CHUNK_SPILL_H

#include "stages/chunk/chunk_rows.h"
#include "stages/chunk/chunk_units.h"

typedef struct {
    const kiln_layer *layer;
    /* payload of the planning unit: the fields that all units share */
    const kiln_chunk_unit *model;
    kiln_row_parts parts;
    uint64_t unit_ram; /* most bytes that a unit may take */
    bool fits;         /* all planes fit into memory, once */
    bool in_memory;    /* the groups are there: they fit, and no other host reads them */
    bool is_cached;    /* all planes fit into the page cache */
    bool is_decided, is_scattered;
    uint64_t group_rows; /* rows of a group; 0: nothing is scattered */
    kiln_run *run;
    kiln_shared_memory memory; /* of the groups, if they are in memory */
    uint64_t order_ram;
    char folder[4096];
} kiln_chunk_spill;

/* Chooses by --ram between memory and disk. r, layer, spacing and model are borrowed; model may
 * still be filled until the next call. Release also after a failure. KILN_E_CAP. */
kiln_status kiln_chunk_spill_make(kiln_run *r, const kiln_layer *layer, const kiln_layer *spacing,
                                  const kiln_chunk_unit *model, kiln_chunk_spill *out,
                                  kiln_error *err) KILN_MUST_CHECK;
void kiln_chunk_spill_release(kiln_chunk_spill *y);

/* Counts the units that this run will compute, because they are not stored or --force is given.
 * KILN_E_IO. */
kiln_status kiln_chunk_due(kiln_run *r, const kiln_unit *units, uint64_t n, uint64_t *due,
                           kiln_error *err) KILN_MUST_CHECK;
/* Makes the scratch folder and stores the order of the rows in it. Call it before the plan or a
 * gather is computed. Where the folder is only read, finds it. KILN_E_CAP, KILN_E_IO. */
kiln_status kiln_chunk_spill_order(kiln_run *r, kiln_chunk_spill *y,
                                   kiln_error *err) KILN_MUST_CHECK;
/* Decides, with the plan that stands, how blocks are grouped if `due` of n_chunks chunks are to be
 * made. The first call decides; it is made on every host. KILN_E_STALE. */
kiln_status kiln_chunk_spill_decide(kiln_chunk_spill *y, uint64_t n_chunks, uint64_t due,
                                    kiln_error *err) KILN_MUST_CHECK;
/* Scatters the blocks if that was decided, once. Call it behind kiln_chunk_spill_order, before
 * chunks are gathered. Fails as kiln_run_units. */
kiln_status kiln_chunk_spill_scatter(kiln_chunk_spill *y, uint64_t n_chunks,
                                     kiln_error *err) KILN_MUST_CHECK;
/* Return kiln_unit.ram of a chunk of so many rows, and of the sums of a block. */
uint64_t kiln_chunk_spill_ram(const kiln_chunk_spill *y, uint64_t rows);
uint64_t kiln_chunk_spill_sums_ram(const kiln_chunk_spill *y, uint64_t rows, uint64_t n_chunks);

#endif
