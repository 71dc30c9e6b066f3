/* units -- what kiln-chunk computes in its worker: the plan (which rows go into which chunk) and the planes of a chunk. */
#ifndef KILN_STAGES_CHUNK_UNITS_H
#define KILN_STAGES_CHUNK_UNITS_H

#include "stages/chunk/cells.h"
#include "stages/engine/engine.h"

typedef enum { KILN_CHUNK_PLAN, KILN_CHUNK_GATHER } kiln_chunk_unit_kind;

/* Payload of both kinds. */
typedef struct {
    kiln_chunk_unit_kind unit;
    uint32_t max, min;                /* plan */
    double root_centre[3], root_half; /* plan */
    char kind[16];                    /* of the input layer */
    kiln_hash layer;                  /* its digest */
    kiln_hash spacing;                /* gather: digest of the layer whose spacing2 goes along; zero: the layer has its own */
    kiln_hash plan;                   /* gather: key of the plan, whose output `order` is read */
    uint64_t begin, end;              /* gather: rows [begin, end) of the order */
} kiln_chunk_unit;

/* One record of the plan's output `chunks`. */
typedef struct {
    kiln_cell_group cells;
    uint64_t hilbert_lo, hilbert_hi; /* codes of the first and last row */
    uint64_t first_block, n_blocks;  /* [first_block, first_block + n_blocks) of the output `blocks` */
    kiln_hash rows;                  /* of its (block, row) pairs in order */
} kiln_planned_chunk;

/* Outputs of the plan: chunks (kiln_planned_chunk); order (u32: rows of the layer along the curve); blocks (u32: blocks
 * that each chunk reads, ascending). Of a gather: every plane of the input, and bounds (a kiln_bounds). */
kiln_status kiln_chunk_compute(kiln_worker *w, const char *name, const void *payload, size_t payload_bytes, kiln_error *err);

#endif
