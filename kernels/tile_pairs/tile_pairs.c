/* tile_pairs -- checks that both siblings share. */
#include "kernels/tile_pairs/tile_pairs.h"

kiln_status kiln_tile_pairs_check(uint64_t n, const kiln_view *v, uint32_t row0, uint32_t row1,
                                  kiln_error *err)
{
    if (n > UINT32_MAX - 1)
        return kiln_fail(err, KILN_E_INPUT,
                         "tile_pairs: %llu Gaussians are visible; at most 2^32 - 2 can be listed",
                         (unsigned long long)n);
    if (v->width == 0 || v->height == 0 || v->width > 1u << 20 || v->height > 1u << 20)
        return kiln_fail(err, KILN_E_INPUT,
                         "tile_pairs: the view has %u x %u pixels; a side may have 1 to 2^20",
                         v->width, v->height);
    if (row0 > row1 || row1 > kiln_view_tiles_y(v))
        return kiln_fail(err, KILN_E_BUG, "tile_pairs: tile rows %u to %u are not within %u", row0,
                         row1, kiln_view_tiles_y(v));
    return KILN_OK;
}

kiln_status kiln_tile_pairs_emit_check(const kiln_tile_pairs_emit_args *a, kiln_error *err)
{
    KILN_TRY(kiln_tile_pairs_check(a->n, a->view, a->row0, a->row1, err));
    const uint64_t tiles = (uint64_t)(a->row1 - a->row0) * kiln_view_tiles_x(a->view);
    if (tiles > UINT32_MAX)
        return kiln_fail(
            err, KILN_E_INPUT,
            "tile_pairs_emit: there are %llu tiles in one call; at most 2^32 - 1 can be numbered",
            (unsigned long long)tiles);
    return KILN_OK;
}
