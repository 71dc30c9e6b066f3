/* chunk_size -- host memory of decoded chunks, in bytes. */
#ifndef KILN_STAGES_CHUNK_SIZE_H
#define KILN_STAGES_CHUNK_SIZE_H

#include "schema/layers.h"

uint64_t kiln_frame_largest_chunk(const kiln_layer *layer); /* its number of rows */
/* The decoded planes of a row. */
uint64_t kiln_frame_row_bytes(const kiln_layer *layer, bool colour);
/* The decoded planes of the largest chunk, and the memory to decode them. */
uint64_t kiln_frame_chunk_bytes(const kiln_layer *layer, bool colour);

#endif
