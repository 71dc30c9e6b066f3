/* chunk_size -- see chunk_size.h. */
#include "stages/frame/chunk_size.h"

#include "base/minmax.h"

uint64_t kiln_frame_largest_chunk(const kiln_layer *layer)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < layer->n_chunks; i++)
        rows = kiln_max_u64(rows, layer->chunks[i].count);
    return rows;
}

static uint64_t floats_of(const kiln_layer *layer, bool colour)
{
    return colour ? 11 + 3 * ((uint64_t)layer->sh_degree + 1) * (layer->sh_degree + 1) : 11;
}

uint64_t kiln_frame_row_bytes(const kiln_layer *layer, bool colour)
{
    return 4 * (floats_of(layer, colour) + 1); /* 1: source_row */
}

/* All planes are decoded. While the largest is decoded it exists three times: as stored, shuffled,
 * and decoded. */
uint64_t kiln_frame_chunk_bytes(const kiln_layer *layer, bool colour)
{
    const uint64_t largest = colour && layer->sh_degree > 0 ? floats_of(layer, true) - 14 : 4;
    return kiln_frame_largest_chunk(layer) *
           (kiln_frame_row_bytes(layer, colour) + 4 * 2 * largest);
}
