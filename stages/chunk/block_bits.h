/* block_bits -- which blocks each chunk of the plan reads.
 *
 * Problem. The parent keys a chunk by the blocks that its rows lie in, so the plan stores them. As lists of block numbers they take
 * 4 bytes for each pair of a chunk and a block: 7.6 GB for 3 billion rows without order in space.
 *
 * Layout. A chunk has one bit for each block of the layer, bit b % 8 of byte b / 8; bits behind the last block are 0. So the size
 * does not depend on how the rows lie. The plan stores the bits of so many chunks as an output of its own, a piece: the parent has
 * one piece in memory at a time, the worker one and its packed result. Why not ranges of blocks: stages/chunk/DESIGN.md.
 *
 * Pure functions; any thread may call them.
 */
#ifndef KILN_STAGES_CHUNK_BLOCK_BITS_H
#define KILN_STAGES_CHUNK_BLOCK_BITS_H

#include <stdbool.h>
#include <stdint.h>

enum { KILN_BITS_PIECE = 4 << 20, KILN_BITS_NAME = 32 };

/* Returns the bytes of a chunk's bits. */
static inline uint64_t kiln_bits_bytes(uint32_t n_blocks) { return ((uint64_t)n_blocks + 7) / 8; }
/* Returns the chunks of a piece, of which the last one may have fewer: as many as fit into KILN_BITS_PIECE bytes, at least 64. */
uint64_t kiln_bits_chunks(uint32_t n_blocks);
/* Writes the name of the output that holds piece i: "blocks 0". */
void kiln_bits_name(uint64_t i, char out[KILN_BITS_NAME]);

static inline void kiln_bits_set(unsigned char *bits, uint32_t block) { bits[block / 8] |= (unsigned char)(1u << block % 8); }
static inline bool kiln_bits_has(const unsigned char *bits, uint32_t block) { return bits[block / 8] >> block % 8 & 1; }
/* Says whether the bits of n chunks name no block behind the last. */
bool kiln_bits_are_sound(const unsigned char *bits, uint64_t n, uint32_t n_blocks);

#endif
