/* frame_size -- see frame_size.h. */
#include "stages/frame/frame_size.h"

#include "base/minmax.h"
#include "stages/engine/parent/run_layers.h"
#include "stages/frame/ahead.h"

kiln_draw_size kiln_frame_bound(const kiln_view_request *s, const kiln_layer *layer,
                                const kiln_view_chunks *c)
{
    kiln_draw_size size = {
        .visible = c->rows, .largest_chunk = kiln_frame_largest_chunk(layer), .in_parts = true};
    const uint64_t tiles = (uint64_t)kiln_view_tiles_x(&s->view) * kiln_view_tiles_y(&s->view);
    size.band_tiles = tiles;
    size.band_pairs = KILN_BAND_PAIRS;
    if (tiles > 0 && size.visible < KILN_BAND_PAIRS / tiles) size.band_pairs = size.visible * tiles;
    return size;
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
    return kiln_frame_chunk_bytes(layer, false) +
           kiln_frame_largest_chunk(layer) * sizeof(kiln_splat2d) +
           kiln_draw_picture_bytes(&none, &s->view);
}

uint64_t kiln_frame_ram(const kiln_layer *layer, const kiln_draw_size *size, bool colour,
                        uint64_t with_frame)
{
    return kiln_frame_chunk_bytes(layer, colour) +
           kiln_max_u64(kiln_draw_collect_bytes(size), kiln_draw_kept_bytes(size) + with_frame);
}

uint64_t kiln_frame_slabs_ram(const kiln_layer *layer, const kiln_view_request *s,
                              const kiln_draw_size *size, uint64_t beside)
{
    return kiln_frame_chunk_bytes(layer, true) +
           kiln_draw_slabs_bytes(size, &s->view, layer->n_chunks) + beside;
}
