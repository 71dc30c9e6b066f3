/* The merge of sorted runs: a heap of runs by (code of its next place, run), a buffer for each of
 * them and one for what comes out. Every byte is read once and written once, both in the order in
 * which it lies in its file.
 *
 * Threads. Codes are cut into stretches, each merged by a thread with buffers of its own: where a
 * stretch begins in a run is found by halving, and the sum over all runs is its first place of what
 * comes out. Places of one code are in one stretch, so the order among them stays. */
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
    uint64_t capacity; /* places of a buffer */
    run *runs;
    uint32_t *heap; /* [n_heap] runs that have places left, the one with the lowest place first */
    uint64_t n_heap;
    places done;
    uint64_t n_done, out_at;
    void *block;
} merge;

/* ---- buffers --------------------------------------------------------------------------------- */
static places carve(unsigned char **at, uint64_t capacity, bool with_means)
{
    places p;
    p.codes = (uint64_t *)(void *)*at;
    *at += capacity * sizeof *p.codes;
    p.rows = (uint32_t *)(void *)*at;
    *at += capacity * sizeof *p.rows;
    p.means = with_means ? (float *)(void *)*at : NULL;
    *at += with_means ? capacity * KILN_MEAN_BYTES : 0;
    return p;
}

static uint64_t place_bytes(bool with_means)
{
    return KILN_PLACE_BYTES + (with_means ? KILN_MEAN_BYTES : 0);
}

uint64_t kiln_merge_buffer_places(uint64_t ram, uint64_t n_runs, bool with_means)
{
    const uint64_t n = ram / place_bytes(with_means) / (n_runs + 1) / 16 * 16;
    return n < ROWS_MAX ? n : ROWS_MAX;
}

/* Rows in multiples of 16: what follows them in the block stays aligned. */
static kiln_status make_buffers(merge *m, uint64_t n_runs, uint64_t ram, kiln_error *err)
{
    const uint64_t each = place_bytes(m->in->with_means);
    m->capacity = kiln_merge_buffer_places(ram, n_runs, m->in->with_means);
    if (m->capacity < KILN_MERGE_ROWS_MIN) m->capacity = KILN_MERGE_ROWS_MIN;
    KILN_TRY(KILN_ALLOC(&m->runs, n_runs, "the runs of the order", err));
    KILN_TRY(KILN_ALLOC(&m->heap, n_runs, "the runs of the order", err));
    KILN_TRY(kiln_alloc_unset(&m->block, (n_runs + 1) * m->capacity, each, "the merge of the order",
                              err));
    unsigned char *at = m->block;
    m->done = carve(&at, m->capacity, m->in->with_means);
    for (uint64_t i = 0; i < n_runs; i++)
        m->runs[i].at = carve(&at, m->capacity, m->in->with_means);
    return KILN_OK;
}

static kiln_status refill(const merge *m, run *r, kiln_error *err)
{
    r->next = 0;
    r->n = r->end - r->file_at < m->capacity ? r->end - r->file_at : m->capacity;
    if (r->n == 0) return KILN_OK;
    KILN_TRY(kiln_scratch_read(&m->in->codes, r->file_at * sizeof *r->at.codes, r->at.codes,
                               r->n * sizeof *r->at.codes, err));
    KILN_TRY(kiln_scratch_read(&m->in->rows, r->file_at * sizeof *r->at.rows, r->at.rows,
                               r->n * sizeof *r->at.rows, err));
    if (m->in->with_means)
        KILN_TRY(kiln_scratch_read(&m->in->means, r->file_at * KILN_MEAN_BYTES, r->at.means,
                                   r->n * KILN_MEAN_BYTES, err));
    r->file_at += r->n;
    return KILN_OK;
}

static kiln_status flush(merge *m, kiln_error *err)
{
    const uint64_t n = m->n_done, at = m->out_at;
    KILN_TRY(kiln_scratch_write(&m->out->codes, at * sizeof *m->done.codes, m->done.codes,
                                n * sizeof *m->done.codes, err));
    KILN_TRY(kiln_scratch_write(&m->out->rows, at * sizeof *m->done.rows, m->done.rows,
                                n * sizeof *m->done.rows, err));
    if (m->out->with_means)
        KILN_TRY(kiln_scratch_write(&m->out->means, at * KILN_MEAN_BYTES, m->done.means,
                                    n * KILN_MEAN_BYTES, err));
    m->out_at += n;
    m->n_done = 0;
    return KILN_OK;
}

/* ---- the heap -------------------------------------------------------------------------------- */
static bool is_before(const merge *m, uint32_t a, uint32_t b)
{
    const uint64_t x = m->runs[a].at.codes[m->runs[a].next],
                   y = m->runs[b].at.codes[m->runs[b].next];
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

/* begin[n_runs], end[n_runs]: the stretch in each run. */
static kiln_status fill_heap(merge *m, const uint64_t *begin, const uint64_t *end, uint64_t n_runs,
                             kiln_error *err)
{
    for (uint64_t i = 0; i < n_runs; i++) {
        run *r = &m->runs[i];
        r->file_at = begin[i];
        r->end = end[i];
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
        if (m->n_done == m->capacity) KILN_TRY(flush(m, err));
    }
    return flush(m, err);
}

/* ---- stretches ------------------------------------------------------------------------------- */
typedef struct {
    const kiln_place_files *in, *out;
    const uint64_t *starts;
    uint64_t n_runs, ram; /* ram: of one thread */
    unsigned n;
    uint64_t *cuts; /* [n + 1][n_runs] places at which stretches begin, and the ends of the runs */
} stretches;

static kiln_status code_at(const stretches *s, uint64_t place, uint64_t *out, kiln_error *err)
{
    return kiln_scratch_read(&s->in->codes, place * sizeof *out, out, sizeof *out, err);
}

/* The first place of a run that is not below the code. */
static kiln_status find_code(const stretches *s, uint64_t r, uint64_t code, uint64_t *out,
                             kiln_error *err)
{
    uint64_t lo = s->starts[r], hi = s->starts[r + 1];
    while (lo < hi) {
        const uint64_t middle = lo + (hi - lo) / 2;
        uint64_t there;
        KILN_TRY(code_at(s, middle, &there, err));
        if (there < code)
            lo = middle + 1;
        else
            hi = middle;
    }
    *out = lo;
    return KILN_OK;
}

/* The first run is a sample of them all: runs that are unlike each other make stretches of other
 * lengths, no other result. */
static kiln_status cut_stretches(stretches *s, kiln_error *err)
{
    const uint64_t first = s->starts[0], n_first = s->starts[1] - first;
    KILN_TRY(KILN_ALLOC(&s->cuts, (s->n + (uint64_t)1) * s->n_runs, "the runs of the order", err));
    for (uint64_t r = 0; r < s->n_runs; r++) {
        s->cuts[r] = s->starts[r];
        s->cuts[s->n * s->n_runs + r] = s->starts[r + 1];
    }
    for (unsigned i = 1; i < s->n; i++) {
        uint64_t code;
        KILN_TRY(code_at(s, first + n_first / s->n * i, &code, err));
        for (uint64_t r = 0; r < s->n_runs; r++)
            KILN_TRY(find_code(s, r, code, &s->cuts[i * s->n_runs + r], err));
    }
    return KILN_OK;
}

static kiln_status merge_stretch(const stretches *s, unsigned i, kiln_error *err)
{
    const uint64_t *begin = s->cuts + i * s->n_runs, *end = begin + s->n_runs;
    merge m = {.in = s->in, .out = s->out};
    for (uint64_t r = 0; r < s->n_runs; r++) m.out_at += begin[r] - s->starts[r];
    kiln_status st = make_buffers(&m, s->n_runs, s->ram, err);
    if (st == KILN_OK) st = fill_heap(&m, begin, end, s->n_runs, err);
    if (st == KILN_OK) st = pour(&m, err);
    free(m.block);
    free(m.heap);
    free(m.runs);
    return st;
}

/* If several fail, *err is that of one of them. */
static kiln_status merge_stretches(const stretches *s, kiln_error *err)
{
    kiln_status st = KILN_OK;
#pragma omp parallel for num_threads(s->n) schedule(static, 1) if (s->n > 1)
    for (unsigned i = 0; i < s->n; i++) {
        kiln_error why = {0};
        const kiln_status one = merge_stretch(s, i, &why);
        if (one == KILN_OK) continue;
#pragma omp critical(kiln_merge)
        {
            st = one;
            if (err) *err = why;
        }
    }
    return st;
}

/* Returns how many threads have room for the least buffers; one has it in any case. */
static unsigned threads_with_room(const kiln_place_files *f, uint64_t n_runs, uint64_t ram,
                                  unsigned threads)
{
    const uint64_t most = ram / ((n_runs + 1) * KILN_MERGE_ROWS_MIN * place_bytes(f->with_means));
    return most < 1 || threads < 1 ? 1 : most < threads ? (unsigned)most : threads;
}

kiln_status kiln_merge_runs(const kiln_place_files *runs, const uint64_t *starts, uint64_t n_runs,
                            uint64_t ram, unsigned threads, const kiln_place_files *out,
                            kiln_error *err)
{
    stretches s = {.in = runs, .out = out, .starts = starts, .n_runs = n_runs};
    s.n = threads_with_room(runs, n_runs, ram, threads);
    s.ram = ram / s.n;
    kiln_status st = cut_stretches(&s, err);
    if (st == KILN_OK) st = merge_stretches(&s, err);
    free(s.cuts);
    return st;
}
