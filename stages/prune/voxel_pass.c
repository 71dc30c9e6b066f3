/* voxel_pass -- a pass of a search over the rows of the layer. */
#include "stages/prune/voxel_search.h"

#include "base/minmax.h"

/* Rows of a block of the layer, on all threads, which leave rows out once the search is to be
 * refused. */
static void pass_block(kiln_voxel_search *s, uint32_t block, const kiln_geometry *rows,
                       const kiln_voxel_box *part, const kiln_voxel_pass *pass)
{
    const uint64_t bits = block * kiln_prune_stray_bytes(s->in->largest);
#pragma omp parallel for num_threads(s->threads) schedule(dynamic, 1)
    for (uint64_t first = 0; first < rows->n; first += KILN_VOXEL_ROWS_AT_A_TIME) {
        const uint64_t end = kiln_min_u64(first + KILN_VOXEL_ROWS_AT_A_TIME, rows->n);
        for (uint64_t i = first; i < end && !kiln_voxel_search_meets_too_often(s); i++) {
            const uint64_t at = bits + (i >> 3);
            const uint8_t bit = (uint8_t)(1u << (i & 7));
            kiln_voxel_row row;
            if (pass->asks && !(pass->asks[at] & bit)) continue;
            kiln_voxel_row_get(&s->grid, rows, i, &row);
            if (row.inside && pass->fn(s, &row, part)) s->strays[at] &= (uint8_t)~bit;
        }
    }
}

kiln_status kiln_voxel_search_pass(kiln_voxel_search *s, const kiln_voxel_box *part,
                                   const kiln_voxel_pass *pass, kiln_error *err)
{
    for (uint32_t b = 0; b < s->in->layer->n_chunks; b++) {
        kiln_geometry rows;
        if (kiln_voxel_box_is_apart(&pass->boxes[b], part)) continue;
        KILN_TRY(kiln_prune_geometry(s->w, s->in, b, &rows, err));
        pass_block(s, b, &rows, part, pass);
        KILN_TRY(kiln_voxel_search_check_work(s, err));
    }
    return KILN_OK;
}
