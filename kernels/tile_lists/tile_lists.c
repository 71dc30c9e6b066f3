/* tile_lists -- checks that both siblings share. */
#include "kernels/tile_lists/tile_lists.h"

#include "kernels/tile_pairs/tile_pairs.h"

kiln_status kiln_tile_lists_check(const kiln_tile_lists_args *a, kiln_error *err)
{
    const kiln_tile_pairs_emit_args pairs = {
        .n = a->n, .view = a->view, .row0 = a->row0, .row1 = a->row1};
    return kiln_tile_pairs_emit_check(&pairs, err);
}
