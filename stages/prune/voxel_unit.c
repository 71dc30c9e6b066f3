/* voxel_unit -- --filter-floaters and --filter-cluster: which rows of the whole layer touch no
 * solid voxel, or none of the cluster (voxel_math.h says what that means).
 *
 * The grid may have more blocks than memory. So it is taken in parts, boxes of blocks whose sums
 * have room. Of each part
 *
 *   want   a pass over the layer takes in the blocks that decide something. A part with too many is
 *          halved where half of its blocks lie, and begun again.
 *   sum    another pass adds the densities of all rows to what is wanted.
 *   keep   of floaters: a third pass keeps rows. Of the cluster: solid voxels go to a scratch file,
 *          and one pass keeps rows after all parts.
 *
 * Most rows of floaters are decided near their mean. So all parts are taken several times, in
 * rounds: first with the blocks of means, at last with all.
 *
 * Sums are integers, and any part may keep a row, so no bit depends on parts or threads.
 *
 * voxel_search.h has the state, and says which file does what. */
#include "stages/prune/voxel_search.h"

#include "base/file.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t strays_bytes(const kiln_voxel_search *s)
{
    return s->in->layer->n_chunks * kiln_prune_stray_bytes(s->in->largest);
}

static void voxel_search_release(kiln_voxel_search *s)
{
    if (s->fd >= 0) (void)close(s->fd);
    if (s->reads >= 0) (void)close(s->reads);
    kiln_voxel_table_release(&s->table);
    free(s->meets);
    free(s->touches);
    free(s->order);
    free(s->cells);
    free(s->parts);
    free(s->strays);
    free(s->undecided);
}

static kiln_status open_voxel_search(kiln_voxel_search *s, kiln_error *err)
{
    const kiln_layer *l = s->in->layer;
    kiln_manifest *m;
    const uint64_t bytes = kiln_prune_stray_bytes(s->in->largest);
    const unsigned threads = kiln_worker_threads(s->w);
    s->threads = threads < KILN_VOXEL_TABLE_THREADS ? threads : KILN_VOXEL_TABLE_THREADS;
    s->need = kiln_voxel_need(s->o.opacity);
    KILN_TRY(KILN_ALLOC(&s->meets, l->n_chunks, "the blocks", err));
    KILN_TRY(KILN_ALLOC(&s->touches, l->n_chunks, "the blocks", err));
    KILN_TRY(KILN_ALLOC_UNSET(&s->order, s->o.capacity, "cells of voxels", err));
    KILN_TRY(KILN_ALLOC_UNSET(&s->cells, s->o.capacity, "cells of voxels", err));
    KILN_TRY(KILN_ALLOC(&s->strays, strays_bytes(s), "stray rows", err));
    KILN_TRY(KILN_ALLOC(&s->undecided, strays_bytes(s), "stray rows", err));
    for (uint32_t b = 0; b < l->n_chunks; b++)
        for (uint64_t i = 0; i < l->chunks[b].count; i++)
            s->strays[b * bytes + (i >> 3)] |= (uint8_t)(1u << (i & 7));
    KILN_TRY(kiln_worker_manifest(s->w, &m, err));
    if (!s->o.cluster) return KILN_OK;
    KILN_TRY(kiln_scratch_unnamed(kiln_manifest_path(m), &s->fd, s->path, err));
    return kiln_file_open(s->path, &s->reads, err);
}

/* ---- parts ----------------------------------------------------------------------------------- */
static kiln_status put_part(kiln_voxel_search *s, const kiln_voxel_box *part, kiln_error *err)
{
    void *parts = s->parts;
    KILN_TRY(kiln_grow(&parts, s->n_parts, sizeof *s->parts, "parts of the grid", err));
    s->parts = parts;
    s->parts[s->n_parts++] = *part;
    return KILN_OK;
}

static kiln_status search_part(kiln_voxel_search *s, const kiln_voxel_box *part, kiln_error *err)
{
    kiln_voxel_box halves[2];
    KILN_TRY(kiln_voxel_search_want(s, part, err));
    if (kiln_voxel_table_is_full(&s->table)) {
        KILN_TRY(kiln_voxel_search_halve(s, part, halves, err));
        KILN_TRY(put_part(s, &halves[1], err));
        return put_part(s, &halves[0], err);
    }
    KILN_TRY(kiln_voxel_search_sum(s, part, err));
    return s->o.cluster ? kiln_voxel_search_store(s, err) : kiln_voxel_search_keep(s, part, err);
}

static kiln_status search_round(kiln_voxel_search *s, kiln_error *err)
{
    memcpy(s->undecided, s->strays, strays_bytes(s));
    KILN_TRY(put_part(s, &s->all_meet, err));
    while (s->n_parts > 0) {
        const kiln_voxel_box part = s->parts[--s->n_parts];
        KILN_TRY(search_part(s, &part, err));
    }
    return KILN_OK;
}

/* A cluster has the last round alone. */
static kiln_status search_rounds(kiln_voxel_search *s, kiln_error *err)
{
    static const int32_t ends[] = {0, 1, 3, 2 * KILN_VOXEL_BLOCKS};
    const size_t n = sizeof ends / sizeof *ends;
    KILN_TRY(kiln_voxel_table_make(s->o.capacity, true, &s->table, err));
    for (size_t i = s->o.cluster ? n - 1 : 0; i < n; i++) {
        s->from = i == 0 || s->o.cluster ? 0 : ends[i - 1] + 1;
        s->to = ends[i];
        KILN_TRY(search_round(s, err));
    }
    return KILN_OK;
}

/* ---- the unit -------------------------------------------------------------------------------- */
uint64_t kiln_prune_voxels_table_bytes(uint64_t capacity)
{
    return kiln_voxel_table_bytes(capacity, true) +
           capacity * (sizeof(int32_t) + sizeof(kiln_voxel_cell_block) + sizeof(kiln_voxel_cell));
}

uint64_t kiln_prune_voxels_ram(const kiln_layer *l, uint64_t largest, uint64_t capacity)
{
    enum { FLOATS = 3 + 3 + 4 + 1, WIDEST = 4, SLACK = 4 << 20 };
    const uint64_t strays = l->n_chunks * kiln_prune_stray_bytes(largest);
    return 2 * strays + kiln_outputs_ram(strays) + 2 * l->n_chunks * sizeof(kiln_voxel_box) +
           largest * FLOATS * sizeof(float) + kiln_read_ram(largest * WIDEST * sizeof(float)) +
           kiln_voxel_middle_bytes() + kiln_prune_voxels_table_bytes(capacity) +
           KILN_CONNECTION_RAM + SLACK;
}

kiln_status kiln_prune_voxels_unit(kiln_worker *w, const kiln_prune_request *q, kiln_error *err)
{
    kiln_voxel_search s = {.w = w, .fd = -1, .reads = -1};
    kiln_status st;
    if (q->head->text_bytes != sizeof s.o)
        return kiln_fail(err, KILN_E_BUG, "a search in voxels has no options");
    memcpy(&s.o, q->text, sizeof s.o);
    KILN_TRY(kiln_prune_input_get(w, q->head, &s.in, err));
    KILN_GO(open_voxel_search(&s, err));
    KILN_GO(kiln_voxel_search_find_grid(&s, err));
    KILN_GO(kiln_voxel_search_place_rows(&s, err));
    KILN_GO(kiln_voxel_search_check_size(&s, err));
    KILN_GO(search_rounds(&s, err));
    if (s.o.cluster) KILN_GO(kiln_voxel_search_keep_cluster(&s, err));
    KILN_GO(kiln_worker_put(w, "strays", s.strays, strays_bytes(&s), 1, err));
    KILN_GO(kiln_worker_put(w, "voxels", &s.found, sizeof s.found, 8, err));
done:
    voxel_search_release(&s);
    return st;
}
