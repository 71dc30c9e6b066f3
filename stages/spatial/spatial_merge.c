/* The merge of sorted runs: a heap of runs by (code of its next place, run), a buffer for each of them and one for what
 * comes out. Every byte is read once and written once, both in the order in which it lies in its file. */
#include "stages/spatial/spatial_merge.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 65536 }; /* read at once: longer reads win nothing */

/* Places in memory. */
typedef struct {
    uint64_t *codes;
    uint32_t *rows;
    float *means; /* [][3] */
} places;

typedef struct {
    places at;             /* [n] read so far */
    uint64_t next, n;      /* places of the buffer: the next one, and how many are there */
    uint64_t file_at, end; /* places of the files: what is read next, where the run ends */
} run;

typedef struct {
    const kiln_place_files *in, *out;
    uint64_t room; /* places of a buffer */
    run *runs;
    uint32_t *heap; /* [n_heap] runs that have places left, the one with the lowest place first */
    uint64_t n_heap;
    places done;
    uint64_t n_done, out_at;
    void *block;
} merge;

/* ---- buffers ------------------------------------------------------------------------------------------------------------ */
static places carve(unsigned char **at, uint64_t room, bool with_means)
{
    places p;
    p.codes = (uint64_t *)(void *)*at;
    *at += room * sizeof *p.codes;
    p.rows = (uint32_t *)(void *)*at;
    *at += room * sizeof *p.rows;
    p.means = with_means ? (float *)(void *)*at : NULL;
    *at += with_means ? room * KILN_MEAN_BYTES : 0;
    return p;
}

/* Rows in multiples of 16: what follows them in the block stays aligned. */
static kiln_status make_buffers(merge *m, uint64_t n_runs, uint64_t ram, kiln_error *err)
{
    const uint64_t each = KILN_PLACE_BYTES + (m->in->with_means ? KILN_MEAN_BYTES : 0);
    m->room = ram / each / (n_runs + 1) / 16 * 16;
    if (m->room > ROWS_MAX) m->room = ROWS_MAX;
    if (m->room < KILN_MERGE_ROWS_MIN) m->room = KILN_MERGE_ROWS_MIN;
    KILN_TRY(KILN_ALLOC(&m->runs, n_runs, "the runs of the order", err));
    KILN_TRY(KILN_ALLOC(&m->heap, n_runs, "the runs of the order", err));
    KILN_TRY(kiln_alloc_unset(&m->block, (n_runs + 1) * m->room, each, "the merge of the order", err));
    unsigned char *at = m->block;
    m->done = carve(&at, m->room, m->in->with_means);
    for (uint64_t i = 0; i < n_runs; i++) m->runs[i].at = carve(&at, m->room, m->in->with_means);
    return KILN_OK;
}

static kiln_status refill(const merge *m, run *r, kiln_error *err)
{
    r->next = 0;
    r->n = r->end - r->file_at < m->room ? r->end - r->file_at : m->room;
    if (r->n == 0) return KILN_OK;
    KILN_TRY(kiln_scratch_read(&m->in->codes, r->file_at * sizeof *r->at.codes, r->at.codes, r->n * sizeof *r->at.codes, err));
    KILN_TRY(kiln_scratch_read(&m->in->rows, r->file_at * sizeof *r->at.rows, r->at.rows, r->n * sizeof *r->at.rows, err));
    if (m->in->with_means)
        KILN_TRY(kiln_scratch_read(&m->in->means, r->file_at * KILN_MEAN_BYTES, r->at.means, r->n * KILN_MEAN_BYTES, err));
    r->file_at += r->n;
    return KILN_OK;
}

static kiln_status flush(merge *m, kiln_error *err)
{
    const uint64_t n = m->n_done, at = m->out_at;
    KILN_TRY(kiln_scratch_write(&m->out->codes, at * sizeof *m->done.codes, m->done.codes, n * sizeof *m->done.codes, err));
    KILN_TRY(kiln_scratch_write(&m->out->rows, at * sizeof *m->done.rows, m->done.rows, n * sizeof *m->done.rows, err));
    if (m->out->with_means)
        KILN_TRY(kiln_scratch_write(&m->out->means, at * KILN_MEAN_BYTES, m->done.means, n * KILN_MEAN_BYTES, err));
    m->out_at += n;
    m->n_done = 0;
    return KILN_OK;
}

/* ---- the heap ----------------------------------------------------------------------------------------------------------- */
static bool is_before(const merge *m, uint32_t a, uint32_t b)
{
    const uint64_t x = m->runs[a].at.codes[m->runs[a].next], y = m->runs[b].at.codes[m->runs[b].next];
    return x != y ? x < y : a < b;
}

static void sift_down(merge *m, uint64_t i)
{
    const uint32_t moving = m->heap[i];
    for (uint64_t child; (child = 2 * i + 1) < m->n_heap; i = child) {
        if (child + 1 < m->n_heap && is_before(m, m->heap[child + 1], m->heap[child])) child++;
        if (is_before(m, moving, m->heap[child])) break;
        m->heap[i] = m->heap[child];
    }
    m->heap[i] = moving;
}

static kiln_status fill_heap(merge *m, const uint64_t *starts, uint64_t n_runs, kiln_error *err)
{
    for (uint64_t i = 0; i < n_runs; i++) {
        run *r = &m->runs[i];
        r->file_at = starts[i];
        r->end = starts[i + 1];
        KILN_TRY(refill(m, r, err));
        if (r->n) m->heap[m->n_heap++] = (uint32_t)i;
    }
    for (uint64_t i = m->n_heap / 2; i-- > 0;) sift_down(m, i);
    return KILN_OK;
}

static kiln_status pour(merge *m, kiln_error *err)
{
    while (m->n_heap) {
        run *r = &m->runs[m->heap[0]];
        const uint64_t from = r->next++, to = m->n_done++;
        m->done.codes[to] = r->at.codes[from];
        m->done.rows[to] = r->at.rows[from];
        if (m->done.means) memcpy(m->done.means + 3 * to, r->at.means + 3 * from, KILN_MEAN_BYTES);
        if (r->next == r->n) KILN_TRY(refill(m, r, err));
        if (r->n == 0) m->heap[0] = m->heap[--m->n_heap];
        sift_down(m, 0);
        if (m->n_done == m->room) KILN_TRY(flush(m, err));
    }
    return flush(m, err);
}

kiln_status kiln_merge_runs(const kiln_place_files *runs, const uint64_t *starts, uint64_t n_runs, uint64_t ram,
                            const kiln_place_files *out, kiln_error *err)
{
    merge m = {.in = runs, .out = out};
    kiln_status st = make_buffers(&m, n_runs, ram, err);
    if (st == KILN_OK) st = fill_heap(&m, starts, n_runs, err);
    if (st == KILN_OK) st = pour(&m, err);
    free(m.block);
    free(m.heap);
    free(m.runs);
    return st;
}
