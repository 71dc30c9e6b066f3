/* frame_size -- the host memory of a unit that looks through a camera: the planes of the largest chunk while they are decoded, and
 * the frame (kernels/draw/draw_size.c) or what is made of it. The rest of the worker's memory keeps more planes. */
#include "stages/frame/ahead.h"

#include "base/minmax.h"
#include "stages/engine/parent/run_layers.h"

uint64_t kiln_frame_largest_chunk(const kiln_layer *layer)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < layer->n_chunks; i++) rows = kiln_max_u64(rows, layer->chunks[i].count);
    return rows;
}

kiln_draw_size kiln_frame_bound(const kiln_view_request *s, const kiln_layer *layer, const kiln_view_chunks *c)
{
    kiln_draw_size size = {.visible = c->rows, .largest_chunk = kiln_frame_largest_chunk(layer), .in_parts = true};
    const uint64_t tiles = (uint64_t)kiln_view_tiles_x(&s->view) * kiln_view_tiles_y(&s->view);
    size.band_tiles = tiles;
    size.band_pairs = KILN_BAND_PAIRS;
    if (tiles > 0 && size.visible < KILN_BAND_PAIRS / tiles) size.band_pairs = size.visible * tiles;
    return size;
}

static uint64_t floats_of(const kiln_layer *layer, bool colour)
{
    return colour ? 11 + 3 * ((uint64_t)layer->sh_degree + 1) * (layer->sh_degree + 1) : 11;
}

uint64_t kiln_frame_row_bytes(const kiln_layer *layer, bool colour)
{
    return 4 * (floats_of(layer, colour) + 1); /* 1: source_row */
}

/* All planes are decoded. While the largest is decoded it exists three times: as stored, shuffled, and decoded. */
uint64_t kiln_frame_chunk_bytes(const kiln_layer *layer, bool colour)
{
    const uint64_t largest = colour && layer->sh_degree > 0 ? floats_of(layer, true) - 14 : 4;
    return kiln_frame_largest_chunk(layer) * (kiln_frame_row_bytes(layer, colour) + 4 * 2 * largest);
}

uint64_t kiln_frame_kept_free(uint64_t ram) { return 2 * ram; }

uint64_t kiln_frame_cache_ram(const kiln_layer *layer, uint64_t ram)
{
    return kiln_frame_kept_free(ram) + kiln_layer_size_of(layer).all +
           KILN_AHEAD_THREADS * (KILN_CONNECTION_RAM + kiln_frame_chunk_bytes(layer, true));
}

uint64_t kiln_frame_count_ram(const kiln_layer *layer, const kiln_view_request *s)
{
    const kiln_draw_size none = {0};
    return kiln_frame_chunk_bytes(layer, false) + kiln_frame_largest_chunk(layer) * sizeof(kiln_splat2d) +
           kiln_draw_picture_bytes(&none, &s->view);
}

uint64_t kiln_frame_ram(const kiln_layer *layer, const kiln_draw_size *size, bool colour, uint64_t with_frame)
{
    return kiln_frame_chunk_bytes(layer, colour) +
           kiln_max_u64(kiln_draw_collect_bytes(size), kiln_draw_kept_bytes(size) + with_frame);
}

uint64_t kiln_frame_slabs_ram(const kiln_layer *layer, const kiln_view_request *s, const kiln_draw_size *size, uint64_t beside)
{
    return kiln_frame_chunk_bytes(layer, true) + kiln_draw_slabs_bytes(size, &s->view, layer->n_chunks) + beside;
}
