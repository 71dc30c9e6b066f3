/* row_sort -- see the header. Scratch: all rows, each chunk's at the place that baked order gives
 * it; behind them their keys. */
#include "stages/formats/row_sort.h"

#include "base/checked.h"
#include "base/minmax.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKET_SAMPLES = 256, BUCKETS_MAX = 1024 };

/* A row, by its key and where it lies: in which chunk, and there in the order of keys. */
typedef struct {
    uint64_t key;
    uint32_t chunk, place;
} mark;

/* The plan. Behind it in round 1 the samples; then n_buckets - 1 cuts; in round 3 behind these u32
 * before[n_chunks][n_buckets + 1]: how many rows of a chunk lie in the buckets before. */
typedef struct {
    uint32_t row_bytes, n_buckets;
} sort_plan;

static const sort_plan *sort_plan_of(const kiln_export *e) { return e->plan; }
static const mark *cuts_of(const kiln_export *e)
{
    return (const mark *)(const void *)(sort_plan_of(e) + 1);
}

static uint32_t rows_before(const kiln_export *e, uint64_t chunk, uint64_t bucket)
{
    const sort_plan *s = sort_plan_of(e);
    const uint32_t *before = (const uint32_t *)(const void *)(cuts_of(e) + (s->n_buckets - 1));
    return before[chunk * (s->n_buckets + 1ull) + bucket];
}

static uint64_t row_place(const kiln_export *e, uint64_t row)
{
    return row * sort_plan_of(e)->row_bytes;
}
static uint64_t key_place(const kiln_export *e, uint64_t row)
{
    return row_place(e, e->n_rows) + row * sizeof(uint64_t);
}

static int by_mark(const void *a, const void *b)
{
    const mark *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    if (x->chunk != y->chunk) return x->chunk < y->chunk ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

kiln_status kiln_row_sort_plan(kiln_buffer *plan, uint32_t row_bytes, kiln_error *err)
{
    const sort_plan s = {.row_bytes = row_bytes};
    plan->size = 0;
    return kiln_buffer_put(plan, &s, sizeof s, err);
}

/* ---- round 1 --------------------------------------------------------------------------------- */

static uint64_t sample_count(uint64_t n) { return kiln_div_up(n, KILN_SORT_STEP); }

uint64_t kiln_row_sort_put_ram(const kiln_export *e, uint64_t unit, uint32_t row_bytes)
{
    const uint64_t n = e->chunks[unit].n;
    return n * (row_bytes + sizeof(mark) + sizeof(uint64_t)) +
           kiln_outputs_ram(sample_count(n) * sizeof(mark));
}

kiln_status kiln_row_sort_put(kiln_export_worker *x, uint64_t unit, const uint64_t *keys,
                              const unsigned char *rows, uint64_t n, kiln_error *err)
{
    kiln_status st = KILN_OK;
    const uint64_t size = sort_plan_of(x->e)->row_bytes, first = x->e->chunks[unit].first;
    mark *marks = NULL;
    uint64_t *sorted = NULL, n_samples = 0;
    unsigned char *out = NULL;
    KILN_GO(KILN_ALLOC_UNSET(&marks, n, "the order of rows", err));
    KILN_GO(KILN_ALLOC_UNSET(&sorted, n, "the order of rows", err));
    KILN_GO(kiln_alloc_unset((void **)&out, n, size, "rows", err));
    for (uint64_t i = 0; i < n; i++) marks[i] = (mark){keys[i], (uint32_t)unit, (uint32_t)i};
    if (n) qsort(marks, n, sizeof *marks, by_mark);
    for (uint64_t i = 0; i < n; i++) {
        sorted[i] = marks[i].key;
        memcpy(out + i * size, rows + marks[i].place * size, size);
    }
    KILN_GO(kiln_export_scratch_write(x, out, n * size, row_place(x->e, first), err));
    KILN_GO(kiln_export_scratch_write(x, sorted, n * sizeof *sorted, key_place(x->e, first), err));
    for (uint64_t i = 0; i < n; i += KILN_SORT_STEP)
        marks[n_samples++] = (mark){sorted[i], (uint32_t)unit, (uint32_t)i};
    KILN_GO(kiln_export_result(x, marks, n_samples * sizeof *marks, err));
done:
    free(out);
    free(sorted);
    free(marks);
    return st;
}

kiln_status kiln_row_sort_gather(kiln_export_parent *p, uint64_t unit, const void *result,
                                 size_t bytes, kiln_error *err)
{
    if (bytes != sample_count(p->e->chunks[unit].n) * sizeof(mark))
        return kiln_fail(err, KILN_E_BUG, "chunk %llu has %zu bytes of samples",
                         (unsigned long long)unit, bytes);
    return kiln_buffer_put(p->plan, result, bytes, err);
}

kiln_status kiln_row_sort_end(kiln_export_parent *p, kiln_error *err)
{
    kiln_buffer *plan = p->plan;
    sort_plan *s = (void *)plan->data;
    mark *marks = (mark *)(void *)(s + 1);
    const uint64_t n = (plan->size - sizeof *s) / sizeof *marks;
    uint64_t every = BUCKET_SAMPLES, n_cuts = 0;
    (void)err;
    if (n) qsort(marks, n, sizeof *marks, by_mark);
    while (n / every >= BUCKETS_MAX) every *= 2;
    for (uint64_t i = every; i < n; i += every) marks[n_cuts++] = marks[i];
    s->n_buckets = (uint32_t)n_cuts + 1;
    plan->size = sizeof *s + n_cuts * sizeof *marks;
    return KILN_OK;
}

/* ---- round 2 --------------------------------------------------------------------------------- */

static uint64_t counts_bytes(const kiln_export *e)
{
    return (sort_plan_of(e)->n_buckets + 1ull) * sizeof(uint32_t);
}

uint64_t kiln_row_sort_count_ram(const kiln_export *e, uint64_t unit)
{
    return e->chunks[unit].n * sizeof(uint64_t) + counts_bytes(e) +
           kiln_outputs_ram(counts_bytes(e));
}

/* Buckets, before the samples are there. */
static uint64_t most_buckets(const kiln_export *e)
{
    const uint64_t samples = kiln_div_up(e->n_rows, KILN_SORT_STEP) + e->n_chunks;
    return kiln_min_u64(samples / BUCKET_SAMPLES + 1, BUCKETS_MAX);
}

static uint64_t largest_chunk(const kiln_export *e)
{
    uint64_t n = 0;
    for (uint32_t c = 0; c < e->n_chunks; c++) n = kiln_max_u64(n, e->chunks[c].n);
    return n;
}

uint64_t kiln_row_sort_count_foresee(const kiln_export *e)
{
    const uint64_t counts = (most_buckets(e) + 1) * sizeof(uint32_t),
                   samples = kiln_div_up(e->n_rows, KILN_SORT_STEP) + e->n_chunks;
    return largest_chunk(e) * sizeof(uint64_t) + counts + kiln_outputs_ram(counts) +
           kiln_export_shared_ram(e, samples * sizeof(mark));
}

/* How many of the chunk's sorted keys lie before the cut. */
static uint32_t count_before(const uint64_t *keys, uint64_t n, uint32_t chunk, const mark *cut)
{
    uint64_t lo = 0, hi = n;
    while (lo < hi) {
        const uint64_t mid = lo + (hi - lo) / 2;
        const mark at = {keys[mid], chunk, (uint32_t)mid};
        if (by_mark(&at, cut) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return (uint32_t)lo;
}

kiln_status kiln_row_sort_count(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_status st = KILN_OK;
    const sort_plan *s = sort_plan_of(x->e);
    const uint64_t n = x->e->chunks[unit].n;
    uint64_t *keys = NULL;
    uint32_t *before = NULL;
    KILN_GO(KILN_ALLOC_UNSET(&keys, n, "keys of a chunk", err));
    KILN_GO(KILN_ALLOC(&before, s->n_buckets + 1ull, "buckets", err));
    KILN_GO(kiln_export_scratch_read(x, keys, n * sizeof *keys,
                                     key_place(x->e, x->e->chunks[unit].first), err));
    for (uint32_t b = 1; b < s->n_buckets; b++)
        before[b] = count_before(keys, n, (uint32_t)unit, &cuts_of(x->e)[b - 1]);
    before[s->n_buckets] = (uint32_t)n;
    KILN_GO(kiln_export_result(x, before, counts_bytes(x->e), err));
done:
    free(before);
    free(keys);
    return st;
}

kiln_status kiln_row_sort_count_gather(kiln_export_parent *p, uint64_t unit, const void *result,
                                       size_t bytes, kiln_error *err)
{
    if (bytes != counts_bytes(p->e))
        return kiln_fail(err, KILN_E_BUG, "chunk %llu has %zu bytes of counts",
                         (unsigned long long)unit, bytes);
    return kiln_buffer_put(p->plan, result, bytes, err);
}

/* ---- round 3 --------------------------------------------------------------------------------- */

uint64_t kiln_row_sort_buckets(const kiln_export *e) { return sort_plan_of(e)->n_buckets; }

/* Rows of all chunks in buckets before b: the rank of the first row of b. */
static uint64_t first_rank(const kiln_export *e, uint64_t b)
{
    uint64_t n = 0;
    for (uint32_t c = 0; c < e->n_chunks; c++) n += rows_before(e, c, b);
    return n;
}

static uint64_t bucket_ram(uint64_t n, uint64_t row_bytes)
{
    return n * (2 * row_bytes + sizeof(uint64_t) + sizeof(mark));
}

uint64_t kiln_row_sort_bucket_ram(const kiln_export *e, uint64_t unit)
{
    return bucket_ram(first_rank(e, unit + 1) - first_rank(e, unit), sort_plan_of(e)->row_bytes);
}

/* Between two cuts each chunk has less than a step besides what the samples between them stand
 * for. */
uint64_t kiln_row_sort_bucket_foresee(const kiln_export *e)
{
    const uint64_t samples = kiln_div_up(e->n_rows, KILN_SORT_STEP) + e->n_chunks;
    uint64_t every = BUCKET_SAMPLES;
    while (samples / every >= BUCKETS_MAX) every *= 2;
    const uint64_t rows = kiln_min_u64(e->n_rows, (every + e->n_chunks) * KILN_SORT_STEP);
    return bucket_ram(rows, sort_plan_of(e)->row_bytes) +
           kiln_export_shared_ram(e, most_buckets(e) *
                                         (sizeof(mark) + (e->n_chunks + 1ull) * sizeof(uint32_t)));
}

typedef struct {
    uint64_t n;
    uint64_t *keys;               /* [n] piece after piece */
    unsigned char *rows, *sorted; /* [n][row_bytes] */
    mark *marks;                  /* [n] place: in rows */
} bucket;

static void release_sort_bucket(bucket *k)
{
    free(k->keys);
    free(k->rows);
    free(k->sorted);
    free(k->marks);
}

static kiln_status read_pieces(kiln_export_worker *x, uint64_t unit, bucket *k, kiln_error *err)
{
    const kiln_export *e = x->e;
    const uint64_t size = sort_plan_of(e)->row_bytes;
    uint64_t done = 0;
    for (uint32_t c = 0; c < e->n_chunks; c++) {
        const uint64_t at = rows_before(e, c, unit), n = rows_before(e, c, unit + 1) - at,
                       from = e->chunks[c].first + at;
        if (n == 0) continue;
        KILN_TRY(
            kiln_export_scratch_read(x, k->rows + done * size, n * size, row_place(e, from), err));
        KILN_TRY(kiln_export_scratch_read(x, k->keys + done, n * sizeof *k->keys,
                                          key_place(e, from), err));
        for (uint64_t i = 0; i < n; i++)
            k->marks[done + i] = (mark){k->keys[done + i], c, (uint32_t)(done + i)};
        done += n;
    }
    return KILN_OK;
}

kiln_status kiln_row_sort_bucket(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_status st = KILN_OK;
    const uint64_t size = sort_plan_of(x->e)->row_bytes, rank = first_rank(x->e, unit),
                   n = first_rank(x->e, unit + 1) - rank;
    bucket k = {.n = n};
    if (n == 0) return KILN_OK;
    KILN_GO(KILN_ALLOC_UNSET(&k.keys, n, "a bucket of rows", err));
    KILN_GO(KILN_ALLOC_UNSET(&k.marks, n, "a bucket of rows", err));
    KILN_GO(kiln_alloc_unset((void **)&k.rows, n, size, "a bucket of rows", err));
    KILN_GO(kiln_alloc_unset((void **)&k.sorted, n, size, "a bucket of rows", err));
    KILN_GO(read_pieces(x, unit, &k, err));
    qsort(k.marks, n, sizeof *k.marks, by_mark);
    for (uint64_t i = 0; i < n; i++)
        memcpy(k.sorted + i * size, k.rows + k.marks[i].place * size, size);
    KILN_GO(kiln_export_write(x, k.sorted, n * size, rank * size, err));
done:
    release_sort_bucket(&k);
    return st;
}
