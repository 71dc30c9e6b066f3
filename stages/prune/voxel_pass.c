/* voxel_pass -- a pass of a search over the rows of the layer, and the refusal of too much work.
 *
 * With voxels that are far smaller than Gaussians a search would take hours. Two counts bound it:
 *
 *   asked     blocks that rows ask for in first passes. What one round asks for at most is foretold
 *             before any pass.
 *   meetings  wanted blocks that boxes of rows meet in second passes. Nothing foretells them.
 *
 * Both may be so many a row on average, or what a small scene may have in all. Neither depends on
 * parts or threads, because each block is in one part. */
#include "stages/prune/voxel_search.h"

#include "base/minmax.h"

#include <math.h>

#define ASKED_OF_ROW 0x1p7
#define ASKED_OF_SCENE 0x1p24
#define MEETINGS_OF_ROW 0x1p12
#define MEETINGS_OF_SCENE 0x1p29

/* ---- too much work --------------------------------------------------------------------------- */
/* The blocks that all rows would ask for in voxels of this size. */
static kiln_status count_asked(const kiln_voxel_search *s, double size, double *out,
                               kiln_error *err)
{
    const kiln_voxel_grid g = kiln_voxel_grid_of(size, s->o.origin, s->middle);
    double sum = 0;
    for (uint32_t b = 0; b < s->in->layer->n_chunks; b++) {
        kiln_geometry rows;
        if (s->in->layer->chunks[b].count == 0) continue;
        KILN_TRY(kiln_prune_geometry(s->w, s->in, b, &rows, err));
        for (uint64_t i = 0; i < rows.n; i++) {
            kiln_voxel_row row;
            kiln_voxel_row_get(&g, &rows, i, &row);
            if (row.inside) sum += (double)kiln_voxel_box_count(&row.meets);
        }
    }
    *out = sum;
    return KILN_OK;
}

static bool asks_too_much(const kiln_voxel_search *s, double asked)
{
    return asked > fmax(ASKED_OF_SCENE, ASKED_OF_ROW * (double)s->in->layer->count);
}

static bool meets_too_often(kiln_voxel_search *s)
{
    uint64_t meetings;
#pragma omp atomic read
    meetings = s->meetings;
    return (double)meetings >
           fmax(MEETINGS_OF_SCENE, MEETINGS_OF_ROW * (double)s->in->layer->count);
}

/* Names a size, doubled from the given one, with which rows would not ask for too much. */
static kiln_status refuse_size(const kiln_voxel_search *s, kiln_error *err)
{
    const char *option = s->o.cluster ? "cluster" : "floaters";
    double size = s->o.size, asked;
    do {
        size *= 2;
        KILN_TRY(count_asked(s, size, &asked, err));
    } while (asks_too_much(s, asked));
    return kiln_fail(
        err, KILN_E_INPUT,
        "--filter-%s: voxels of %g are so much smaller than the scene's Gaussians that "
        "the search would take hours; take --filter-%s %g",
        option, s->o.size, option, size);
}

kiln_status kiln_voxel_search_check_size(const kiln_voxel_search *s, kiln_error *err)
{
    double asked = 0;
    KILN_TRY(count_asked(s, s->o.size, &asked, err));
    return asks_too_much(s, asked) ? refuse_size(s, err) : KILN_OK;
}

/* ---- a pass ---------------------------------------------------------------------------------- */
/* Rows of a block of the layer, on all threads, which leave rows out once the search is to be
 * refused. */
static void pass_block(kiln_voxel_search *s, uint32_t block, const kiln_geometry *rows,
                       const kiln_voxel_box *part, const kiln_voxel_pass *pass)
{
    const uint64_t bits = block * kiln_prune_stray_bytes(s->in->largest);
#pragma omp parallel for num_threads(s->threads) schedule(dynamic, 1)
    for (uint64_t first = 0; first < rows->n; first += KILN_VOXEL_ROWS_AT_A_TIME) {
        const uint64_t end = kiln_min_u64(first + KILN_VOXEL_ROWS_AT_A_TIME, rows->n);
        for (uint64_t i = first; i < end && !meets_too_often(s); i++) {
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
        if (asks_too_much(s, (double)s->asked) || meets_too_often(s)) return refuse_size(s, err);
    }
    return KILN_OK;
}
