/* row_scatter -- see row_scatter.h. Scratch: all rows, each chunk's at the place that baked order
 * gives it; behind them all source rows, as u32 in the same places. */
#include "stages/formats/row_scatter.h"

#include "base/minmax.h"

#include <stdlib.h>
#include <string.h>

enum {
    BUCKET_ROWS = 65536,
    BUCKETS_MAX = 1024,
    /* of a window: as much as a core's own cache holds while rows are put together in it */
    WINDOW_BYTES = 1024 << 10,
    /* of a chunk's piece of a window: enough to be worth a system call */
    PIECE_BYTES = 2 << 10,
    WORD_ROWS = 64 /* rows of a word of marks */
};

static const kiln_row_scatter *scatter_plan_of(const kiln_export *e) { return e->plan; }
static const uint32_t *table_of(const kiln_export *e)
{
    return (const uint32_t *)(const void *)(scatter_plan_of(e) + 1);
}

/* Of chunk c, the rows that lie in buckets before b. */
static uint32_t rows_before(const kiln_export *e, uint64_t c, uint64_t b)
{
    return table_of(e)[c * (scatter_plan_of(e)->n_buckets + 1ull) + b];
}

static uint64_t row_place(const kiln_export *e, uint64_t row)
{
    return row * scatter_plan_of(e)->row_bytes;
}
static uint64_t source_place(const kiln_export *e, uint64_t row)
{
    return row_place(e, e->n_rows) + row * sizeof(uint32_t);
}

kiln_status kiln_scatter_plan(const kiln_export *e, uint64_t file_first, uint32_t row_bytes,
                              kiln_buffer *plan, kiln_error *err)
{
    const kiln_export_bake *last = &e->bakes[e->n_bakes - 1];
    const uint64_t all = last->source_first + last->n_source_rows;
    kiln_row_scatter s = {
        .file_first = file_first, .bucket_rows = BUCKET_ROWS, .row_bytes = row_bytes};
    while (all / s.bucket_rows >= BUCKETS_MAX) s.bucket_rows *= 2;
    s.n_buckets = (uint32_t)(all / s.bucket_rows + 1);
    const uint64_t window = kiln_max_u64(WINDOW_BYTES, PIECE_BYTES * (uint64_t)e->n_chunks);
    s.window_rows =
        kiln_min_u64(kiln_max_u64(window / kiln_max_u64(row_bytes, 1), WORD_ROWS), s.bucket_rows);
    plan->size = 0;
    return kiln_buffer_put(plan, &s, sizeof s, err);
}

/* ---- round 1 --------------------------------------------------------------------------------- */

/* By radix: a chunk has at most 65,536 rows, their numbers up to 32 bits. */
static void sort_keys(uint64_t *keys, uint64_t *other, uint64_t n)
{
    enum { BITS = 11, SIZE = 1 << BITS };
    for (unsigned shift = 32; shift < 64; shift += BITS) {
        uint32_t at[SIZE + 1] = {0};
        for (uint64_t i = 0; i < n; i++) at[(keys[i] >> shift & (SIZE - 1)) + 1]++;
        for (unsigned d = 0; d < SIZE; d++) at[d + 1] += at[d];
        for (uint64_t i = 0; i < n; i++) other[at[keys[i] >> shift & (SIZE - 1)]++] = keys[i];
        uint64_t *swap = keys;
        keys = other;
        other = swap;
    }
    memcpy(other, keys, n * sizeof *keys); /* three passes: they are in the other array now */
}

kiln_status kiln_scatter_sort(kiln_export_worker *x, kiln_export_rows *rows, kiln_error *err)
{
    const uint64_t n = rows->n, limit = x->e->bakes[rows->chunk->bake].n_source_rows;
    uint64_t *keys;
    uint32_t *order;
    for (uint64_t i = 0; i < n; i++)
        if (rows->source_row[i] >= limit)
            return kiln_fail(err, KILN_E_INPUT,
                             "the layer names source row %u, but its source has %llu rows",
                             rows->source_row[i], (unsigned long long)limit);
    KILN_TRY(kiln_export_keep(x, KILN_KEPT_KEYS, 2 * n * sizeof *keys, "the order of rows",
                              (void **)&keys, err));
    KILN_TRY(kiln_export_keep(x, KILN_KEPT_ORDER, n * sizeof *order, "the order of rows",
                              (void **)&order, err));
    for (uint64_t i = 0; i < n; i++) keys[i] = (uint64_t)rows->source_row[i] << 32 | i;
    sort_keys(keys, keys + n, n);
    for (uint64_t i = 0; i < n; i++) order[i] = (uint32_t)keys[i];
    _Static_assert(sizeof *keys == KILN_ROWS_ORDER_BYTES, "keys have room for the work");
    kiln_export_rows_order(x->e, rows, order, keys);
    return KILN_OK;
}

kiln_status kiln_scatter_put(kiln_export_worker *x, const kiln_export_rows *rows, uint64_t at,
                             uint64_t n, const void *encoded, kiln_error *err)
{
    return kiln_export_scratch_write(x, encoded, n * scatter_plan_of(x->e)->row_bytes,
                                     row_place(x->e, rows->first + at), err);
}

kiln_status kiln_scatter_put_end(kiln_export_worker *x, const kiln_export_rows *rows,
                                 kiln_error *err)
{
    const kiln_row_scatter *s = scatter_plan_of(x->e);
    const uint64_t first = x->e->bakes[rows->chunk->bake].source_first;
    kiln_status st = KILN_OK;
    uint32_t *at = NULL;
    KILN_GO(KILN_ALLOC(&at, s->n_buckets + 1ull, "buckets", err));
    for (uint64_t i = 0; i < rows->n; i++) at[(first + rows->source_row[i]) / s->bucket_rows + 1]++;
    for (uint32_t b = 0; b < s->n_buckets; b++) at[b + 1] += at[b];
    KILN_GO(kiln_export_scratch_write(x, rows->source_row, rows->n * sizeof *rows->source_row,
                                      source_place(x->e, rows->first), err));
    KILN_GO(kiln_export_result(x, at, (s->n_buckets + 1ull) * sizeof *at, err));
done:
    free(at);
    return st;
}

kiln_status kiln_scatter_gather(kiln_export_parent *p, uint64_t unit, const void *result,
                                size_t bytes, kiln_error *err)
{
    const kiln_row_scatter *s = scatter_plan_of(p->e);
    (void)unit;
    if (bytes != (s->n_buckets + 1ull) * sizeof(uint32_t))
        return kiln_fail(err, KILN_E_BUG, "%zu bytes of counts for %u buckets", bytes,
                         s->n_buckets);
    return kiln_buffer_put(p->plan, result, bytes, err);
}

uint64_t kiln_scatter_put_ram(const kiln_export *e, uint64_t unit)
{
    const uint64_t n = e->chunks[unit].n,
                   counts = (scatter_plan_of(e)->n_buckets + 1ull) * sizeof(uint32_t);
    return n * (2 * sizeof(uint64_t) + sizeof(uint32_t)) + counts + kiln_outputs_ram(counts);
}

/* ---- round 2 --------------------------------------------------------------------------------- */

/* Rows of all chunks in buckets before b: the rank of the first row of b. */
static uint64_t first_rank(const kiln_export *e, uint64_t b)
{
    uint64_t n = 0;
    for (uint32_t c = 0; c < e->n_chunks; c++) n += rows_before(e, c, b);
    return n;
}

static uint64_t largest_piece(const kiln_export *e, uint64_t b)
{
    uint64_t n = 0;
    for (uint32_t c = 0; c < e->n_chunks; c++)
        n = kiln_max_u64(n, rows_before(e, c, b + 1) - rows_before(e, c, b));
    return n;
}

uint64_t kiln_scatter_buckets(const kiln_export *e) { return scatter_plan_of(e)->n_buckets; }

/* The rows of a chunk in a bucket. */
typedef struct {
    uint64_t first, source_first; /* the first's place in scratch; as kiln_export_bake has it */
    const uint32_t *rows;         /* [n] their source rows, ascending */
    uint64_t n, done;             /* done: those that have been put into windows */
} chunk_piece;

/* A bucket of n rows, of which a chunk has at most `piece`. */
static uint64_t ram_of(const kiln_export *e, uint64_t n, uint64_t piece)
{
    const kiln_row_scatter *s = scatter_plan_of(e);
    const uint64_t words = s->bucket_rows / WORD_ROWS + 1,
                   in_window =
                       kiln_min_u64(n, s->window_rows) + kiln_min_u64(piece, s->window_rows);
    return in_window * s->row_bytes + n * sizeof(uint32_t) + e->n_chunks * sizeof(chunk_piece) +
           words * (sizeof(uint64_t) + sizeof(uint32_t));
}

uint64_t kiln_scatter_bucket_ram(const kiln_export *e, uint64_t unit)
{
    return ram_of(e, first_rank(e, unit + 1) - first_rank(e, unit), largest_piece(e, unit));
}

uint64_t kiln_scatter_foresee(const kiln_export *e)
{
    const kiln_row_scatter *s = scatter_plan_of(e);
    uint64_t piece = 0;
    for (uint32_t c = 0; c < e->n_chunks; c++)
        piece = kiln_max_u64(piece, kiln_min_u64(e->chunks[c].n, s->bucket_rows));
    return ram_of(e, kiln_min_u64(e->n_rows, s->bucket_rows), piece);
}

/* Which source rows of a bucket there are; from that the place of each. */
typedef struct {
    uint64_t first, n;   /* the bucket's first row of all sources; its rows */
    uint64_t *bits;      /* [bucket_rows / WORD_ROWS + 1] */
    uint32_t *before;    /* likewise: rows before the word */
    uint32_t *rows;      /* [n] source rows, piece after piece; kept */
    chunk_piece *pieces; /* [n_pieces] of the chunks that have rows in it */
    uint32_t n_pieces;
    unsigned char *out;   /* [window_rows][row_bytes]; kept */
    unsigned char *piece; /* likewise, or as large as the largest piece */
} bucket;

static void release_scatter_bucket(bucket *k)
{
    free(k->bits);
    free(k->before);
    free(k->pieces);
    free(k->piece);
}

static kiln_status allocate_bucket(kiln_export_worker *x, uint64_t unit, bucket *k, kiln_error *err)
{
    const kiln_row_scatter *s = scatter_plan_of(x->e);
    const uint64_t words = s->bucket_rows / WORD_ROWS + 1;
    const char *const what = "a bucket of rows";
    KILN_TRY(KILN_ALLOC(&k->bits, words, what, err));
    KILN_TRY(KILN_ALLOC(&k->before, words, what, err));
    KILN_TRY(KILN_ALLOC(&k->pieces, x->e->n_chunks, what, err));
    KILN_TRY(kiln_export_keep(x, KILN_KEPT_BUCKET_ROWS, k->n * sizeof *k->rows, what,
                              (void **)&k->rows, err));
    KILN_TRY(kiln_export_keep(x, KILN_KEPT_BUCKET,
                              kiln_min_u64(k->n, s->window_rows) * s->row_bytes, what,
                              (void **)&k->out, err));
    return kiln_alloc_unset((void **)&k->piece,
                            kiln_min_u64(largest_piece(x->e, unit), s->window_rows), s->row_bytes,
                            what, err);
}

static kiln_status mark_source_rows(bucket *k, const chunk_piece *p, kiln_error *err)
{
    for (uint64_t i = 0; i < p->n; i++) {
        const uint64_t at = p->source_first + p->rows[i] - k->first, bit = 1ull << at % WORD_ROWS;
        if (k->bits[at / WORD_ROWS] & bit)
            return kiln_fail(
                err, KILN_E_IO,
                "source row %u occurs twice in the layer; export it with --order baked",
                p->rows[i]);
        k->bits[at / WORD_ROWS] |= bit;
    }
    return KILN_OK;
}

static kiln_status read_marks(kiln_export_worker *x, uint64_t unit, bucket *k, kiln_error *err)
{
    const kiln_export *e = x->e;
    uint64_t done = 0;
    for (uint32_t c = 0; c < e->n_chunks; c++) {
        const uint64_t at = rows_before(e, c, unit), n = rows_before(e, c, unit + 1) - at;
        if (n == 0) continue;
        chunk_piece *const p = &k->pieces[k->n_pieces++];
        *p = (chunk_piece){.first = e->chunks[c].first + at,
                           .source_first = e->bakes[e->chunks[c].bake].source_first,
                           .rows = k->rows + done,
                           .n = n};
        KILN_TRY(kiln_export_scratch_read(x, k->rows + done, n * sizeof *k->rows,
                                          source_place(e, p->first), err));
        KILN_TRY(mark_source_rows(k, p, err));
        done += n;
    }
    const uint64_t words = scatter_plan_of(e)->bucket_rows / WORD_ROWS;
    for (uint64_t w = 0; w < words; w++)
        k->before[w + 1] = k->before[w] + (uint32_t)__builtin_popcountll(k->bits[w]);
    return KILN_OK;
}

static uint64_t place_in_bucket(const bucket *k, uint64_t at)
{
    const uint64_t lower = (1ull << at % WORD_ROWS) - 1;
    return k->before[at / WORD_ROWS] +
           (uint64_t)__builtin_popcountll(k->bits[at / WORD_ROWS] & lower);
}

/* The words from `begin` on whose rows have room in a window. */
static uint64_t end_of_window(const bucket *k, uint64_t begin, uint64_t words, uint64_t most)
{
    uint64_t end = begin + 1;
    while (end < words && k->before[end + 1] - k->before[begin] <= most) end++;
    return end;
}

/* Rows whose place in the bucket is from `first` on, up to the row `end` of all sources. */
static kiln_status fill_bucket_window(kiln_export_worker *x, bucket *k, uint64_t first,
                                      uint64_t end, kiln_error *err)
{
    const uint64_t size = scatter_plan_of(x->e)->row_bytes;
    for (chunk_piece *p = k->pieces; p < k->pieces + k->n_pieces; p++) {
        const uint32_t *rows = p->rows + p->done;
        uint64_t n = 0;
        while (p->done + n < p->n && p->source_first + rows[n] < end) n++;
        if (n == 0) continue;
        KILN_TRY(kiln_export_scratch_read(x, k->piece, n * size,
                                          row_place(x->e, p->first + p->done), err));
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t place = place_in_bucket(k, p->source_first + rows[i] - k->first);
            memcpy(k->out + (place - first) * size, k->piece + i * size, size);
        }
        p->done += n;
    }
    return KILN_OK;
}

kiln_status kiln_scatter_bucket(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const kiln_row_scatter *s = scatter_plan_of(x->e);
    const uint64_t rank = first_rank(x->e, unit), words = s->bucket_rows / WORD_ROWS;
    bucket k = {.first = unit * s->bucket_rows, .n = first_rank(x->e, unit + 1) - rank};
    kiln_status st = KILN_OK;
    if (k.n == 0) return KILN_OK;
    KILN_GO(allocate_bucket(x, unit, &k, err));
    KILN_GO(read_marks(x, unit, &k, err));
    for (uint64_t begin = 0, end; begin < words; begin = end) {
        end = end_of_window(&k, begin, words, s->window_rows);
        const uint64_t first = k.before[begin], n = k.before[end] - first;
        KILN_GO(fill_bucket_window(x, &k, first, k.first + end * WORD_ROWS, err));
        KILN_GO(kiln_export_write(x, k.out, n * s->row_bytes,
                                  s->file_first + (rank + first) * s->row_bytes, err));
    }
    kiln_export_written(x, s->file_first + rank * s->row_bytes, k.n * s->row_bytes);
done:
    release_scatter_bucket(&k);
    return st;
}
