/* The plan: the codes cut into chunks; for each chunk a hash of the rows that it takes. Codes and
 * rows are read from the order's files as they are needed. */
#include "stages/chunk/plan.h"

#include "base/memory.h"
#include "base/minmax.h"
#include "stages/chunk/chunk_rows.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 1 << 19 }; /* codes in memory at a time: 4 MiB */

/* The rows of the chunk that a thread describes. */
typedef struct {
    uint32_t rows[KILN_CHUNK_ROWS_MAX];
    uint32_t pairs[KILN_CHUNK_ROWS_MAX][2]; /* of them: block, row in it */
} chunk_rows;

typedef struct {
    const kiln_layer *layer;
    const uint64_t *starts;
    const kiln_spatial_file *order;
    unsigned threads;
    kiln_cell_list cells;
    kiln_planned_chunk *chunks;
    chunk_rows *scratch; /* [threads] */
} plan;

static void plan_release(plan *p)
{
    free(p->scratch);
    free(p->chunks);
    kiln_cell_list_release(&p->cells);
}

uint64_t kiln_chunk_plan_ram_thread(void) { return sizeof(chunk_rows); }

uint64_t kiln_chunk_plan_ram(const kiln_layer *l, uint32_t max)
{
    /* groups have a quarter of max at least, by and large; their list grows by doubling and is
     * copied when put */
    const uint64_t likely = 8 * (l->count / max) + 64, n = kiln_min_u64(likely, l->count);
    const uint64_t each = 3 * sizeof(kiln_cell_group) + sizeof(kiln_planned_chunk);
    return WINDOW * sizeof(uint64_t) + sizeof(chunk_rows) + n * each +
           kiln_outputs_ram(n * sizeof(kiln_planned_chunk));
}

static kiln_status read_codes(void *context, uint64_t first, uint64_t n, uint64_t *out,
                              kiln_error *err)
{
    return kiln_spatial_codes(context, first, n, out, err);
}

static kiln_status describe_chunk(const plan *p, kiln_planned_chunk *c, chunk_rows *d,
                                  kiln_error *err)
{
    const uint64_t n = c->cells.end - c->cells.begin;
    KILN_TRY(kiln_spatial_rows(p->order, c->cells.begin, n, d->rows, err));
    for (uint64_t i = 0; i < n; i++) {
        if (d->rows[i] >= p->layer->count)
            return kiln_fail(err, KILN_E_IO,
                             "scratch '%s' names row %u of %llu; run the same command again",
                             p->order->rows.path, d->rows[i], (unsigned long long)p->layer->count);
        kiln_row_pair(p->starts, p->layer->n_chunks, d->rows[i], d->pairs[i]);
    }
    c->rows = kiln_hash_of(d->pairs, n * sizeof *d->pairs);
    KILN_TRY(kiln_spatial_codes(p->order, c->cells.begin, 1, &c->hilbert_lo, err));
    return kiln_spatial_codes(p->order, c->cells.end - 1, 1, &c->hilbert_hi, err);
}

/* If several fail, *err is that of one of them. */
static kiln_status describe_chunks(plan *p, kiln_error *err)
{
    const uint64_t n = p->cells.n;
    kiln_status st = KILN_OK;
#pragma omp parallel for num_threads(p->threads) schedule(dynamic) if (n > 1)
    for (uint64_t i = 0; i < n; i++) {
        kiln_error why = {0};
        const kiln_status one =
            describe_chunk(p, &p->chunks[i], &p->scratch[omp_get_thread_num()], &why);
        if (one == KILN_OK) continue;
#pragma omp critical(kiln_chunk_plan)
        {
            st = one;
            if (err) *err = why;
        }
    }
    return st;
}

static kiln_status fill_plan(kiln_worker *w, const kiln_chunk_unit *u, plan *p, kiln_error *err)
{
    kiln_spatial_file order = *p->order; /* the source takes no const context */
    const kiln_code_source codes = {
        .n = p->layer->count, .read = read_codes, .context = &order, .window = WINDOW};
    KILN_TRY(kiln_cells_cut_from(&codes, u->max, u->min, &p->cells, err));
    KILN_TRY(KILN_ALLOC(&p->chunks, p->cells.n, "the plan of the chunks", err));
    KILN_TRY(KILN_ALLOC_UNSET(&p->scratch, p->threads, "the rows of a chunk", err));
    for (uint64_t i = 0; i < p->cells.n; i++) p->chunks[i].cells = p->cells.items[i];
    KILN_TRY(describe_chunks(p, err));
    return kiln_worker_put(w, "chunks", p->chunks, p->cells.n * sizeof *p->chunks, 1, err);
}

kiln_status kiln_chunk_plan(kiln_worker *w, const kiln_layer *l, const uint64_t *starts,
                            const kiln_spatial_file *order, const kiln_chunk_unit *u,
                            kiln_error *err)
{
    plan p = {.layer = l, .starts = starts, .order = order, .threads = kiln_worker_threads(w)};
    kiln_status st = fill_plan(w, u, &p, err);
    plan_release(&p);
    return st;
}
