/* voxel_sums -- the second pass of a part: the densities of all rows are added to the voxels that
 * are wanted. Most are solid soon, and nothing is added to those.
 *
 * A row's box may have far more blocks than are wanted. So a row with a large box looks for wanted
 * blocks by cells of 8 x 8 x 8 of them, instead of asking the table for each block of its box. */
#include "stages/prune/voxel_search.h"

#include <stdlib.h>

enum {
    CELL_SHIFT = 3,     /* a cell has 8 blocks along an axis */
    FEW_BLOCKS = 32,    /* of a box, which is looked through without cells */
    CELLS_OF_BLOCK = 8, /* that are passed over while one block is looked for */
};

static int by_cell(const void *a, const void *b)
{
    const kiln_voxel_cell_block *p = a, *q = b;
    return p->cell != q->cell ? (p->cell < q->cell ? -1 : 1) : p->place < q->place ? -1 : 1;
}

static void make_cells(kiln_voxel_search *s)
{
    const uint32_t n = s->table.n;
    int32_t block[3], cell[3];
    for (uint32_t i = 0; i < n; i++) {
        kiln_voxel_unkey(s->table.blocks[i], block);
        for (int a = 0; a < 3; a++) cell[a] = block[a] >> CELL_SHIFT;
        s->order[i] = (kiln_voxel_cell_block){.cell = kiln_voxel_key(cell), .place = i};
    }
    qsort(s->order, n, sizeof *s->order, by_cell);
    s->n_cells = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (i == 0 || s->order[i].cell != s->order[i - 1].cell)
            s->cells[s->n_cells++] = (kiln_voxel_cell){.box = kiln_voxel_box_empty(), .first = i};
        kiln_voxel_cell *last = &s->cells[s->n_cells - 1];
        last->n++;
        kiln_voxel_unkey(s->table.blocks[s->order[i].place], block);
        kiln_voxel_box_add(&last->box, block);
    }
}

static void add_to_block(kiln_voxel_search *s, const kiln_voxel_row *row, uint32_t place,
                         const int32_t block[3])
{
    uint32_t add[KILN_VOXELS];
    const uint64_t open = atomic_load_explicit(&s->table.open[place], memory_order_relaxed);
    if (!open) return;
    const uint64_t some = kiln_voxel_densities(&s->grid, row, block, open, add);
    if (some) kiln_voxel_table_add(&s->table, place, some, add, s->need);
}

/* Both give how many wanted blocks the box has. */
static uint64_t add_by_blocks(kiln_voxel_search *s, const kiln_voxel_row *row,
                              const kiln_voxel_box *box)
{
    uint64_t met = 0;
    int32_t at[3];
    for (at[2] = box->lo[2]; at[2] <= box->hi[2]; at[2]++)
        for (at[1] = box->lo[1]; at[1] <= box->hi[1]; at[1]++)
            for (at[0] = box->lo[0]; at[0] <= box->hi[0]; at[0]++) {
                const uint32_t place = kiln_voxel_table_find(&s->table, kiln_voxel_key(at));
                if (place == KILN_VOXEL_NONE) continue;
                add_to_block(s, row, place, at);
                met++;
            }
    return met;
}

static uint64_t add_by_cells(kiln_voxel_search *s, const kiln_voxel_row *row,
                             const kiln_voxel_box *box)
{
    uint64_t met = 0;
    for (uint32_t c = 0; c < s->n_cells; c++) {
        const kiln_voxel_cell *cell = &s->cells[c];
        if (kiln_voxel_box_is_apart(&cell->box, box)) continue;
        for (uint32_t i = cell->first; i < cell->first + cell->n; i++) {
            const uint32_t place = s->order[i].place;
            int32_t block[3];
            kiln_voxel_unkey(s->table.blocks[place], block);
            if (!kiln_voxel_box_has(box, block)) continue;
            add_to_block(s, row, place, block);
            met++;
        }
    }
    return met;
}

static bool add_densities(kiln_voxel_search *s, const kiln_voxel_row *row,
                          const kiln_voxel_box *part)
{
    const kiln_voxel_box box = kiln_voxel_box_common(&row->touches, part);
    const uint64_t n = kiln_voxel_box_count(&box);
    if (n == 0) return false;
    const bool few = n <= FEW_BLOCKS || n < s->n_cells / CELLS_OF_BLOCK;
    const uint64_t met = few ? add_by_blocks(s, row, &box) : add_by_cells(s, row, &box);
#pragma omp atomic
    s->meetings += met;
    return false;
}

kiln_status kiln_voxel_search_sum(kiln_voxel_search *s, const kiln_voxel_box *part, kiln_error *err)
{
    const kiln_voxel_pass sum = {add_densities, s->touches, NULL};
    make_cells(s);
    KILN_TRY(kiln_voxel_search_pass(s, part, &sum, err));
    kiln_voxel_table_settle(&s->table, s->need);
    return KILN_OK;
}
