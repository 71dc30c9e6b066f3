/* row_sums -- what the rows of a chunk hold, as a number that each block adds its part to.
 *
 * Problem. A chunk takes rows of nearly every block, because blocks follow the source and chunks
 * follow space. If a chunk were known by its blocks, one changed value would make nearly every
 * chunk again.
 *
 * Layout. A row has a hash of 128 bits: of its block, its place in it and its values. The hashes of
 * a chunk's rows are added, each half modulo 2^64, so the sum depends neither on the order of the
 * rows nor on how blocks are grouped or shared out. The part of a block is an array,
 * sums[n_chunks]. Which rows they are, and in which order, the plan says (kiln_planned_chunk.rows).
 *
 * Why it is enough. Each step of a row's hash maps values one to one, so a row of which one value
 * (or one pair of neighbouring 32-bit values) changes never keeps its hash; and a hash is mixed
 * before it is added, so two changed rows cancel by chance only, once in 2^128.
 *
 * Pure functions; any thread may call them. */
#ifndef KILN_STAGES_CHUNK_ROW_SUMS_H
#define KILN_STAGES_CHUNK_ROW_SUMS_H

#include "stages/chunk/chunk_rows.h"

typedef struct {
    uint64_t low, high;
} kiln_row_sum;

/* Rows of a block among decoded planes. */
typedef struct {
    const kiln_row_parts *parts;
    const unsigned char *planes; /* part after part, each planar over n_rows */
    uint64_t n_rows;
    uint64_t first, count; /* the rows of the block are [first, first + count) of them */
    uint32_t block;        /* its number in the layer */
    const uint32_t *chunk; /* [n_rows] the chunk of each row */
} kiln_block_rows;

/* Adds the hash of each row of the block to sums[its chunk]. */
void kiln_row_sums_add(const kiln_block_rows *b, kiln_row_sum *sums);

#endif
