/* rank_code -- how a band's pairs are stored (SCHEMA.md): for each tile the increasing positions in
 * `visible`, the first itself, then differences, as LEB128, tiles one after the other. */
#ifndef KILN_STAGES_TILES_RANK_CODE_H
#define KILN_STAGES_TILES_RANK_CODE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* At most so many bytes can the code of so many pairs in so many tiles take, ranks being below
 * n_visible. */
uint64_t kiln_ranks_code_most(uint64_t pairs, uint64_t n_tiles, uint64_t n_visible);
/* out has room for that many bytes. tile_bytes [n_tiles] is filled; returns the bytes written. */
size_t kiln_ranks_encode(uint32_t n_tiles, const uint32_t *tile_counts, const uint32_t *ranks,
                         unsigned char *out, uint32_t *tile_bytes);
/* A band as it is stored. */
typedef struct {
    uint32_t n_tiles;
    const uint32_t *tile_counts, *tile_bytes; /* [n_tiles] */
    const unsigned char *code;                /* [code_bytes] */
    size_t code_bytes;
} kiln_ranks_code;
/* The inverse; every count and bound is checked: KILN_E_IO says what is wrong. ranks has room for
 * the sum of tile_counts; all ranks are below n_visible and increase within a tile. */
kiln_status kiln_ranks_decode(const kiln_ranks_code *c, uint64_t n_visible, uint32_t *ranks,
                              kiln_error *err) KILN_MUST_CHECK;

#endif
