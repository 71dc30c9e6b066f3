/* voxel_want -- the first pass of a part: which blocks are wanted, and of floaters which of their
 * voxels. Of a cluster those are all that rows meet. Of floaters they are those that undecided rows
 * may hit, in the round's distance from their means. */
#include "stages/prune/voxel_search.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Of floaters the voxels that the row may hit, and its own. */
static uint64_t wanted_of_row(const kiln_voxel_search *s, const kiln_voxel_row *row, double limit2,
                              const int32_t block[3])
{
    int32_t own[3];
    if (s->o.cluster) return UINT64_MAX;
    const int at = kiln_voxel_centre(&s->grid, row, own);
    const bool is_own = memcmp(own, block, sizeof own) == 0;
    return kiln_voxel_hits(&s->grid, row, block, UINT64_MAX, limit2) | (uint64_t)is_own << at;
}

/* The largest distance along an axis, in blocks. */
static int32_t blocks_between(const int32_t a[3], const int32_t b[3])
{
    int32_t most = 0;
    for (int i = 0; i < 3; i++) most = abs(a[i] - b[i]) > most ? abs(a[i] - b[i]) : most;
    return most;
}

/* Of the row's near box what this round is about. */
static kiln_voxel_box box_of_round(const kiln_voxel_search *s, const kiln_voxel_row *row,
                                   const int32_t own[3])
{
    kiln_voxel_box box = row->meets;
    for (int a = 0; a < 3; a++) {
        if (box.lo[a] < own[a] - s->to) box.lo[a] = own[a] - s->to;
        if (box.hi[a] > own[a] + s->to) box.hi[a] = own[a] + s->to;
    }
    return box;
}

static bool want_row(kiln_voxel_search *s, const kiln_voxel_row *row, const kiln_voxel_box *part)
{
    int32_t at[3], own[3];
    if (kiln_voxel_table_is_full(&s->table)) return false;
    const double limit2 = kiln_voxel_limit2(row->alpha, s->o.min);
    (void)kiln_voxel_centre(&s->grid, row, own);
    kiln_voxel_box box = box_of_round(s, row, own);
    box = kiln_voxel_box_common(&box, part);
    const uint64_t asked = kiln_voxel_box_count(&box);
#pragma omp atomic
    s->asked_of_part += asked;
    for (at[2] = box.lo[2]; at[2] <= box.hi[2]; at[2]++)
        for (at[1] = box.lo[1]; at[1] <= box.hi[1]; at[1]++)
            for (at[0] = box.lo[0]; at[0] <= box.hi[0]; at[0]++) {
                if (blocks_between(at, own) < s->from) continue;
                const uint64_t wanted = wanted_of_row(s, row, limit2, at);
                if (!wanted) continue;
                const uint32_t place = kiln_voxel_table_take(&s->table, kiln_voxel_key(at));
                if (place == KILN_VOXEL_NONE) return false;
                kiln_voxel_table_want(&s->table, place, wanted);
            }
    return false;
}

kiln_status kiln_voxel_search_want(kiln_voxel_search *s, const kiln_voxel_box *part,
                                   kiln_error *err)
{
    const kiln_voxel_pass want = {want_row, s->meets, s->undecided};
    kiln_voxel_table_clear(&s->table);
    s->asked_of_part = 0;
    KILN_TRY(kiln_voxel_search_pass(s, part, &want, err));
    if (!kiln_voxel_table_is_full(&s->table)) s->asked += s->asked_of_part;
    return KILN_OK;
}

/* ---- a part with too many -------------------------------------------------------------------- */
static int by_coordinate(const void *a, const void *b)
{
    const int32_t p = *(const int32_t *)a, q = *(const int32_t *)b;
    return p < q ? -1 : p > q;
}

/* Along the axis on which the blocks in the table lie farthest apart, at their median. */
kiln_status kiln_voxel_search_halve(const kiln_voxel_search *s, const kiln_voxel_box *part,
                                    kiln_voxel_box halves[2], kiln_error *err)
{
    const uint32_t n = s->table.capacity;
    kiln_voxel_box box = kiln_voxel_box_empty();
    int32_t block[3], *along;
    int axis = 0;
    for (uint32_t i = 0; i < n; i++) {
        kiln_voxel_unkey(s->table.blocks[i], block);
        kiln_voxel_box_add(&box, block);
    }
    for (int a = 1; a < 3; a++)
        if (box.hi[a] - box.lo[a] > box.hi[axis] - box.lo[axis]) axis = a;
    KILN_TRY(KILN_ALLOC_UNSET(&along, n, "places of blocks", err));
    for (uint32_t i = 0; i < n; i++) {
        kiln_voxel_unkey(s->table.blocks[i], block);
        along[i] = block[axis];
    }
    qsort(along, n, sizeof *along, by_coordinate);
    const int32_t middle = along[n / 2] > along[0] ? along[n / 2] : along[0] + 1;
    free(along);
    halves[0] = halves[1] = *part;
    halves[0].hi[axis] = middle - 1;
    halves[1].lo[axis] = middle;
    return KILN_OK;
}
