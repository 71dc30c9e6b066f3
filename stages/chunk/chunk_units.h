/* chunk_units -- what the parent of kiln-chunk asks its workers for.
 *
 * order    volatile; leaves the rows along the curve in the scratch folder (stages/spatial)
 * plan     reads them; says which chunks there are
 * check    volatile; removes the file of a group that an earlier run has left, if it is not sound
 * scatter  volatile; leaves the planes of a group of blocks, in the order of the chunks, in memory
 *          that the workers share or, where the layer's planes do not fit into memory or tasks on
 *          other hosts read them, in the scratch folder (groups.h)
 * sums     what the rows of a block add to each chunk (row_sums.h): read from its group, or from
 *          the block where nothing is scattered
 * gather   the planes of a chunk
 */
#ifndef KILN_STAGES_CHUNK_UNITS_H
#define KILN_STAGES_CHUNK_UNITS_H

#include "stages/chunk/cells.h"
#include "stages/engine/engine.h"

typedef enum {
    KILN_CHUNK_ORDER,
    KILN_CHUNK_PLAN,
    KILN_CHUNK_CHECK,
    KILN_CHUNK_SCATTER,
    KILN_CHUNK_SUMS,
    KILN_CHUNK_GATHER
} kiln_chunk_unit_kind;

/* Payload of all kinds. */
typedef struct {
    kiln_chunk_unit_kind unit;
    uint32_t max, min;                /* plan */
    kiln_scratch_use use;             /* of the scratch folder */
    double root_centre[3], root_half; /* order */
    char kind[16];                    /* of the input layer */
    kiln_hash layer;                  /* its digest */
    /* digest of the layer whose spacing2 goes along; zero: the layer has its own */
    kiln_hash spacing;
    kiln_hash plan;      /* key of the plan and of the scratch folder */
    uint64_t ram;        /* order: memory of the partition */
    uint64_t begin, end; /* gather: places [begin, end) of the order */
    /* gather: as in kiln_planned_chunk; the order must still say so */
    kiln_hash rows;
    /* check, scatter, sums, gather: how the groups of blocks are cut; 0: there are none */
    uint64_t group_rows;
    /* check, scatter: of the group; sums: of the block; gather: of the chunk in the plan */
    uint64_t index;
    /* scatter, sums, gather: where the groups are; none: in the scratch folder */
    kiln_shared_memory memory;
} kiln_chunk_unit;

/* One record of the plan's output `chunks`. */
typedef struct {
    kiln_cell_group cells;
    uint64_t hilbert_lo, hilbert_hi; /* codes of the first and last row */
    kiln_hash rows;                  /* of its (block, row) pairs in order */
} kiln_planned_chunk;

/* Is this record, read from a manifest, a chunk that begins at a row and has at most `max` of them?
 * Names end with NUL. */
bool kiln_planned_chunk_is_sound(const kiln_planned_chunk *c, uint64_t begin, uint32_t max);

/* Outputs of the plan: chunks (kiln_planned_chunk). Of sums: sums (kiln_row_sum [chunks]). Of a
 * gather: every plane of the input, and bounds (a kiln_bounds). The others have none. */
kiln_status kiln_chunk_compute(kiln_worker *w, const char *name, const void *payload,
                               size_t payload_bytes, kiln_error *err);

/* Host memory that a plan takes on one thread, and for each further one. */
uint64_t kiln_chunk_plan_ram(const kiln_layer *l, uint32_t max);
uint64_t kiln_chunk_plan_ram_thread(void);

#endif
