/* row_scatter -- see row_scatter.h. Scratch: all rows, each chunk's at the place that baked order
 * gives it; behind them all source rows, as u32 in the same places. */
#include "stages/formats/row_scatter.h"

#include "base/minmax.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKET_ROWS = 65536, BUCKETS_MAX = 1024 };

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

kiln_status kiln_scatter_order(kiln_export_worker *x, const kiln_export_rows *rows, uint32_t *order,
                               kiln_error *err)
{
    const uint64_t n = rows->n, limit = x->e->bakes[rows->chunk->bake].n_source_rows;
    uint64_t *keys;
    for (uint64_t i = 0; i < n; i++)
        if (rows->source_row[i] >= limit)
            return kiln_fail(err, KILN_E_INPUT,
                             "the layer names source row %u, but its source has %llu rows",
                             rows->source_row[i], (unsigned long long)limit);
    KILN_TRY(kiln_export_keep(x, KILN_KEPT_KEYS, 2 * n * sizeof *keys, "the order of rows",
                              (void **)&keys, err));
    for (uint64_t i = 0; i < n; i++) keys[i] = (uint64_t)rows->source_row[i] << 32 | i;
    sort_keys(keys, keys + n, n);
    for (uint64_t i = 0; i < n; i++) order[i] = (uint32_t)keys[i];
    return KILN_OK;
}

kiln_status kiln_scatter_put(kiln_export_worker *x, const kiln_export_rows *rows, uint64_t at,
                             uint64_t n, const void *encoded, kiln_error *err)
{
    return kiln_export_scratch_write(x, encoded, n * scatter_plan_of(x->e)->row_bytes,
                                     row_place(x->e, rows->first + at), err);
}

kiln_status kiln_scatter_put_end(kiln_export_worker *x, const kiln_export_rows *rows,
                                 const uint32_t *order, kiln_error *err)
{
    const kiln_row_scatter *s = scatter_plan_of(x->e);
    const uint64_t first = x->e->bakes[rows->chunk->bake].source_first;
    kiln_status st = KILN_OK;
    uint32_t *sorted = NULL, *at = NULL;
    KILN_GO(KILN_ALLOC_UNSET(&sorted, rows->n, "source rows", err));
    KILN_GO(KILN_ALLOC(&at, s->n_buckets + 1ull, "buckets", err));
    for (uint64_t i = 0; i < rows->n; i++) {
        sorted[i] = rows->source_row[order[i]];
        at[(first + sorted[i]) / s->bucket_rows + 1]++;
    }
    for (uint32_t b = 0; b < s->n_buckets; b++) at[b + 1] += at[b];
    KILN_GO(kiln_export_scratch_write(x, sorted, rows->n * sizeof *sorted,
                                      source_place(x->e, rows->first), err));
    KILN_GO(kiln_export_result(x, at, (s->n_buckets + 1ull) * sizeof *at, err));
done:
    free(at);
    free(sorted);
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
    return n * (2 * sizeof(uint64_t) + 2 * sizeof(uint32_t)) + counts + kiln_outputs_ram(counts);
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

/* A bucket of n rows, of which a chunk has at most `piece`. */
static uint64_t ram_of(const kiln_row_scatter *s, uint64_t n, uint64_t piece)
{
    const uint64_t words = s->bucket_rows / 64 + 1;
    return (n + piece) * s->row_bytes + n * sizeof(uint32_t) +
           words * (sizeof(uint64_t) + sizeof(uint32_t));
}

uint64_t kiln_scatter_bucket_ram(const kiln_export *e, uint64_t unit)
{
    return ram_of(scatter_plan_of(e), first_rank(e, unit + 1) - first_rank(e, unit),
                  largest_piece(e, unit));
}

uint64_t kiln_scatter_foresee(const kiln_export *e)
{
    const kiln_row_scatter *s = scatter_plan_of(e);
    uint64_t piece = 0;
    for (uint32_t c = 0; c < e->n_chunks; c++)
        piece = kiln_max_u64(piece, kiln_min_u64(e->chunks[c].n, s->bucket_rows));
    return ram_of(s, kiln_min_u64(e->n_rows, s->bucket_rows), piece);
}

/* Which source rows of a bucket there are; from that the place of each. */
typedef struct {
    uint64_t first, n;  /* the bucket's first row of all sources; its rows */
    uint64_t *bits;     /* [bucket_rows / 64 + 1] */
    uint32_t *before;   /* likewise: rows before the word */
    uint32_t *rows;     /* [n] source rows, piece after piece; kept */
    unsigned char *out; /* [n][row_bytes]; kept */
    unsigned char *piece;
} bucket;

static void release_scatter_bucket(bucket *k)
{
    free(k->bits);
    free(k->before);
    free(k->piece);
}

static kiln_status mark_source_rows(bucket *k, uint64_t source_first, const uint32_t *rows,
                                    uint64_t n, kiln_error *err)
{
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t at = source_first + rows[i] - k->first, bit = 1ull << at % 64;
        if (k->bits[at / 64] & bit)
            return kiln_fail(
                err, KILN_E_IO,
                "source row %u occurs twice in the layer; export it with --order baked", rows[i]);
        k->bits[at / 64] |= bit;
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
        KILN_TRY(kiln_export_scratch_read(x, k->rows + done, n * sizeof *k->rows,
                                          source_place(e, e->chunks[c].first + at), err));
        KILN_TRY(
            mark_source_rows(k, e->bakes[e->chunks[c].bake].source_first, k->rows + done, n, err));
        done += n;
    }
    const uint64_t words = scatter_plan_of(e)->bucket_rows / 64;
    for (uint64_t w = 0; w < words; w++)
        k->before[w + 1] = k->before[w] + (uint32_t)__builtin_popcountll(k->bits[w]);
    return KILN_OK;
}

static uint64_t place_in_bucket(const bucket *k, uint64_t at)
{
    return k->before[at / 64] +
           (uint64_t)__builtin_popcountll(k->bits[at / 64] & ((1ull << at % 64) - 1));
}

static kiln_status put_together(kiln_export_worker *x, uint64_t unit, bucket *k, kiln_error *err)
{
    const kiln_export *e = x->e;
    const uint64_t size = scatter_plan_of(e)->row_bytes;
    uint64_t done = 0;
    for (uint32_t c = 0; c < e->n_chunks; c++) {
        const uint64_t at = rows_before(e, c, unit), n = rows_before(e, c, unit + 1) - at;
        const uint64_t source_first = e->bakes[e->chunks[c].bake].source_first;
        if (n == 0) continue;
        KILN_TRY(kiln_export_scratch_read(x, k->piece, n * size,
                                          row_place(e, e->chunks[c].first + at), err));
        for (uint64_t i = 0; i < n; i++)
            memcpy(k->out + place_in_bucket(k, source_first + k->rows[done + i] - k->first) * size,
                   k->piece + i * size, size);
        done += n;
    }
    return KILN_OK;
}

kiln_status kiln_scatter_bucket(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const kiln_row_scatter *s = scatter_plan_of(x->e);
    const uint64_t rank = first_rank(x->e, unit), n = first_rank(x->e, unit + 1) - rank,
                   words = s->bucket_rows / 64 + 1;
    bucket k = {.first = unit * s->bucket_rows, .n = n};
    kiln_status st = KILN_OK;
    if (n == 0) return KILN_OK;
    KILN_GO(KILN_ALLOC(&k.bits, words, "a bucket of rows", err));
    KILN_GO(KILN_ALLOC(&k.before, words, "a bucket of rows", err));
    KILN_GO(kiln_export_keep(x, KILN_KEPT_BUCKET_ROWS, n * sizeof *k.rows, "a bucket of rows",
                             (void **)&k.rows, err));
    KILN_GO(kiln_export_keep(x, KILN_KEPT_BUCKET, n * s->row_bytes, "a bucket of rows",
                             (void **)&k.out, err));
    KILN_GO(kiln_alloc_unset((void **)&k.piece, largest_piece(x->e, unit), s->row_bytes,
                             "a bucket of rows", err));
    KILN_GO(read_marks(x, unit, &k, err));
    KILN_GO(put_together(x, unit, &k, err));
    KILN_GO(
        kiln_export_write(x, k.out, n * s->row_bytes, s->file_first + rank * s->row_bytes, err));
done:
    release_scatter_bucket(&k);
    return st;
}
