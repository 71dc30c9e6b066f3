/* The plan: all means sorted along the curve, cut into chunks; for each chunk a hash of the rows that it takes and the
 * blocks that they lie in, so that the parent can key a chunk by what it reads and nothing else. */
#include "stages/chunk/plan.h"

#include "base/memory.h"
#include "stages/engine/layers.h"

#include <stdlib.h>
#include <string.h>

kiln_status kiln_block_starts(const kiln_layer *l, uint64_t **out, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(out, (uint64_t)l->n_chunks + 1, "the blocks of a layer", err));
    for (uint32_t i = 0; i < l->n_chunks; i++) (*out)[i + 1] = (*out)[i] + l->chunks[i].count;
    return KILN_OK;
}

uint32_t kiln_block_of(const uint64_t *starts, uint32_t n_blocks, uint64_t row)
{
    uint32_t lo = 0, hi = n_blocks; /* starts[lo] <= row < starts[hi] */
    while (hi - lo > 1) {
        uint32_t middle = lo + (hi - lo) / 2;
        if (starts[middle] <= row)
            lo = middle;
        else
            hi = middle;
    }
    return lo;
}

typedef struct {
    float *means;
    uint32_t *order;
    uint64_t *codes, *starts;
    kiln_cell_list cells;
    kiln_planned_chunk *chunks;
    kiln_buffer blocks;     /* u32 */
    unsigned char *is_read; /* [n_blocks] */
    uint32_t (*pairs)[2];   /* of the chunk in hand */
} plan;

static void plan_release(plan *p)
{
    free(p->pairs);
    free(p->is_read);
    kiln_buffer_release(&p->blocks);
    free(p->chunks);
    kiln_cell_list_release(&p->cells);
    free(p->starts);
    free(p->codes);
    free(p->order);
    free(p->means);
}

static kiln_status sort_rows(kiln_worker *w, const kiln_layer *l, const kiln_chunk_unit *u, plan *p, kiln_error *err)
{
    kiln_manifest *m;
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_TRY(kiln_layer_means(m, l, &p->means, err));
    KILN_TRY(KILN_ALLOC(&p->order, l->count, "the order of the rows", err));
    KILN_TRY(KILN_ALLOC(&p->codes, l->count, "the codes of the rows", err));
    if (l->count == 0) return KILN_OK;
    kiln_spatial_order_args a = {.n = l->count, .means = p->means, .half = u->root_half, .order = p->order, .codes = p->codes};
    memcpy(a.centre, u->root_centre, sizeof a.centre);
    KILN_TRY(KILN_WORK(w, spatial_order, &a, err));
    free(p->means); /* the largest of the arrays, and done with */
    p->means = NULL;
    return KILN_OK;
}

static kiln_status describe_chunk(const kiln_layer *l, plan *p, kiln_planned_chunk *c, kiln_error *err)
{
    uint64_t n = c->cells.end - c->cells.begin;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t row = p->order[c->cells.begin + i];
        uint32_t block = kiln_block_of(p->starts, l->n_chunks, row);
        p->pairs[i][0] = block;
        p->pairs[i][1] = (uint32_t)(row - p->starts[block]);
        p->is_read[block] = 1;
    }
    c->rows = kiln_hash_of(p->pairs, n * sizeof *p->pairs);
    c->hilbert_lo = p->codes[c->cells.begin];
    c->hilbert_hi = p->codes[c->cells.end - 1];
    c->first_block = p->blocks.size / sizeof(uint32_t);
    for (uint32_t b = 0; b < l->n_chunks; b++) {
        if (!p->is_read[b]) continue;
        KILN_TRY(kiln_buffer_put(&p->blocks, &b, sizeof b, err));
        p->is_read[b] = 0;
    }
    c->n_blocks = p->blocks.size / sizeof(uint32_t) - c->first_block;
    return KILN_OK;
}

static kiln_status make_plan(kiln_worker *w, const kiln_layer *l, const kiln_chunk_unit *u, plan *p, kiln_error *err)
{
    KILN_TRY(sort_rows(w, l, u, p, err));
    KILN_TRY(kiln_cells_cut(p->codes, l->count, u->max, u->min, &p->cells, err));
    KILN_TRY(kiln_block_starts(l, &p->starts, err));
    KILN_TRY(KILN_ALLOC(&p->chunks, p->cells.n, "the plan of the chunks", err));
    KILN_TRY(KILN_ALLOC(&p->is_read, l->n_chunks, "the blocks of a chunk", err));
    KILN_TRY(KILN_ALLOC(&p->pairs, u->max, "the rows of a chunk", err));
    for (uint64_t i = 0; i < p->cells.n; i++) {
        p->chunks[i].cells = p->cells.items[i];
        KILN_TRY(describe_chunk(l, p, &p->chunks[i], err));
    }
    KILN_TRY(kiln_worker_put(w, "chunks", p->chunks, p->cells.n * sizeof *p->chunks, 1, err));
    KILN_TRY(kiln_worker_put(w, "blocks", p->blocks.data, p->blocks.size, sizeof(uint32_t), err));
    return kiln_worker_put(w, "order", p->order, l->count * sizeof *p->order, sizeof *p->order, err);
}

kiln_status kiln_chunk_plan(kiln_worker *w, const kiln_layer *l, const kiln_chunk_unit *u, kiln_error *err)
{
    plan p = {0};
    kiln_status st = make_plan(w, l, u, &p, err);
    plan_release(&p);
    return st;
}
