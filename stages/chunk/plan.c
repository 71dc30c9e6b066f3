/* The plan: the codes cut into chunks; for each chunk a hash of the rows that it takes and the blocks that they lie in,
 * so that the parent can key a chunk by what it reads and nothing else. Codes and rows are read from the order's files
 * as they are needed. */
#include "stages/chunk/plan.h"

#include "base/memory.h"
#include "stages/chunk/chunk_rows.h"

#include <stdlib.h>

enum { WINDOW = 1 << 19 }; /* codes in memory at a time: 4 MiB */

typedef struct {
    const kiln_layer *layer;
    const uint64_t *starts;
    const kiln_spatial_file *order;
    kiln_cell_list cells;
    kiln_planned_chunk *chunks;
    kiln_buffer blocks;     /* u32 */
    unsigned char *is_read; /* [n_blocks] */
    uint32_t *rows;         /* of the chunk in hand */
    uint32_t (*pairs)[2];   /* of the same: block, row in it */
} plan;

static void plan_release(plan *p)
{
    free(p->pairs);
    free(p->rows);
    free(p->is_read);
    kiln_buffer_release(&p->blocks);
    free(p->chunks);
    kiln_cell_list_release(&p->cells);
}

uint64_t kiln_chunk_plan_ram(const kiln_layer *l, uint32_t max)
{
    const uint64_t fixed = WINDOW * sizeof(uint64_t) + 16 * (uint64_t)KILN_CHUNK_ROWS_MAX;
    /* groups have a quarter of max at least, by and large; the lists grow by doubling and are copied when put */
    const uint64_t likely = 8 * (l->count / max) + 64, n = likely < l->count ? likely : l->count;
    const uint64_t each = 3 * sizeof(kiln_cell_group) + sizeof(kiln_planned_chunk) + 3 * l->n_chunks * sizeof(uint32_t);
    return fixed + n * each + kiln_outputs_ram(n * (sizeof(kiln_planned_chunk) + l->n_chunks * sizeof(uint32_t)));
}

static kiln_status read_codes(void *context, uint64_t first, uint64_t n, uint64_t *out, kiln_error *err)
{
    return kiln_spatial_codes(context, first, n, out, err);
}

static kiln_status describe_chunk(plan *p, kiln_planned_chunk *c, kiln_error *err)
{
    const uint32_t n_blocks = p->layer->n_chunks;
    const uint64_t n = c->cells.end - c->cells.begin;
    KILN_TRY(kiln_spatial_rows(p->order, c->cells.begin, n, p->rows, err));
    for (uint64_t i = 0; i < n; i++) {
        if (p->rows[i] >= p->layer->count)
            return kiln_fail(err, KILN_E_IO, "the order names row %u of %llu", p->rows[i], (unsigned long long)p->layer->count);
        uint32_t block = kiln_piece_of(p->starts, n_blocks, p->rows[i]);
        p->pairs[i][0] = block;
        p->pairs[i][1] = (uint32_t)(p->rows[i] - p->starts[block]);
        p->is_read[block] = 1;
    }
    c->rows = kiln_hash_of(p->pairs, n * sizeof *p->pairs);
    KILN_TRY(kiln_spatial_codes(p->order, c->cells.begin, 1, &c->hilbert_lo, err));
    KILN_TRY(kiln_spatial_codes(p->order, c->cells.end - 1, 1, &c->hilbert_hi, err));
    c->first_block = p->blocks.size / sizeof(uint32_t);
    for (uint32_t b = 0; b < n_blocks; b++) {
        if (!p->is_read[b]) continue;
        KILN_TRY(kiln_buffer_put(&p->blocks, &b, sizeof b, err));
        p->is_read[b] = 0;
    }
    c->n_blocks = p->blocks.size / sizeof(uint32_t) - c->first_block;
    return KILN_OK;
}

static kiln_status make_plan(kiln_worker *w, const kiln_chunk_unit *u, plan *p, kiln_error *err)
{
    kiln_spatial_file order = *p->order; /* the source takes no const context */
    const kiln_code_source codes = {.n = p->layer->count, .read = read_codes, .context = &order, .window = WINDOW};
    KILN_TRY(kiln_cells_cut_from(&codes, u->max, u->min, &p->cells, err));
    KILN_TRY(KILN_ALLOC(&p->chunks, p->cells.n, "the plan of the chunks", err));
    KILN_TRY(KILN_ALLOC(&p->is_read, p->layer->n_chunks, "the blocks of a chunk", err));
    KILN_TRY(KILN_ALLOC(&p->rows, u->max, "the rows of a chunk", err));
    KILN_TRY(KILN_ALLOC(&p->pairs, u->max, "the rows of a chunk", err));
    for (uint64_t i = 0; i < p->cells.n; i++) {
        p->chunks[i].cells = p->cells.items[i];
        KILN_TRY(describe_chunk(p, &p->chunks[i], err));
    }
    KILN_TRY(kiln_worker_put(w, "chunks", p->chunks, p->cells.n * sizeof *p->chunks, 1, err));
    return kiln_worker_put(w, "blocks", p->blocks.data, p->blocks.size, sizeof(uint32_t), err);
}

kiln_status kiln_chunk_plan(kiln_worker *w, const kiln_layer *l, const uint64_t *starts, const kiln_spatial_file *order,
                            const kiln_chunk_unit *u, kiln_error *err)
{
    plan p = {.layer = l, .starts = starts, .order = order};
    kiln_status st = make_plan(w, u, &p, err);
    plan_release(&p);
    return st;
}
