/* stats_unit -- exact order statistics of the whole input: ranks of the means, median spacing,
 * median longest axis. In fixed memory but for decoded planes; two passes of counting. And the
 * scales of another bake, for --against.
 *
 * It is the one unit of its list, so it takes all threads: several blocks are decoded at a time, as
 * many as the cache of planes has room for, then each thread counts whole blocks into a table of
 * its own. Counting is a few integers a row, so it stays on the CPU whatever the worker's device
 * is. */
#include "stages/prune/prune_tally.h"
#include "stages/prune/prune_units.h"
#include "stages/engine/memory/plane_cache.h"

#include "kernels/ops.h"
#include "schema/row_check.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

typedef enum { SERIES_X, SERIES_Y, SERIES_Z, SERIES_SPACING, SERIES_SCALE } series;

/* An element by its rank; those of one series follow each other. */
typedef struct {
    series of;
    uint64_t rank; /* later: within its bin */
    uint32_t high; /* upper half of its code, after the first pass */
    float *to;
} element;
enum { ELEMENTS = 8 };

/* A block whose planes are decoded. */
typedef struct {
    uint64_t n;
    const float *means, *log_scales, *spacing2;
} ready;
enum { BATCH_MOST = 64 };

typedef struct {
    kiln_worker *w;
    kiln_prune_input *in;
    element elements[ELEMENTS];
    unsigned threads;
    float *longest;   /* [threads][largest] of one block */
    uint64_t *counts; /* [threads][ELEMENTS][KILN_RANK_BINS] */
    uint32_t batch;   /* blocks that the cache has room for at a time */
    /* [largest] of a batch of one: the cache may hold no more than the planes of one chunk */
    float *spacing2;
} counting;

static uint64_t *counts_of(const counting *c, unsigned thread, unsigned i)
{
    return c->counts + ((size_t)thread * ELEMENTS + i) * KILN_RANK_BINS;
}

/* Counts of an earlier element that serve this one too: in the first pass those of its series, in
 * the second of its bin. */
static unsigned counted_by(const counting *c, uint32_t pass, unsigned i)
{
    const element *e = c->elements;
    return i > 0 && e[i].of == e[i - 1].of && (pass == 0 || e[i].high == e[i - 1].high) ? i - 1 : i;
}

/* The values of a series in one block; `longest` has room for one. */
static const float *values_of(const ready *b, series s, float *longest)
{
    if (s == SERIES_SPACING) return b->spacing2;
    if (s != SERIES_SCALE) return b->means + (uint64_t)s * b->n;
    for (uint64_t i = 0; i < b->n; i++) {
        float v = b->log_scales[i];
        for (uint64_t a = 1; a < 3; a++)
            v = b->log_scales[a * b->n + i] > v ? b->log_scales[a * b->n + i] : v;
        longest[i] = v;
    }
    return longest;
}

/* All series at once, so that each block is decoded twice in all, whatever the cache holds. */
static kiln_status count_block(const counting *c, uint32_t pass, const ready *b, unsigned thread,
                               kiln_error *err)
{
    const kiln_exec x = {.device = KILN_RUNNER_CPU, .threads = 1};
    float *longest = c->longest + thread * c->in->largest;
    for (unsigned i = 0; i < ELEMENTS; i++) {
        if (counted_by(c, pass, i) != i) continue;
        char work;
        size_t work_bytes = 0;
        const kiln_ranks_args a = {.n = b->n,
                                   .values = values_of(b, c->elements[i].of, longest),
                                   .pass = pass,
                                   .high = c->elements[i].high,
                                   .counts = counts_of(c, thread, i)};
        KILN_TRY(kiln_ops_cpu()->ranks(&x, &a, &work, &work_bytes, err));
    }
    return KILN_OK;
}

static kiln_status count_blocks(const counting *c, uint32_t pass, const ready *blocks, uint32_t n,
                                kiln_error *err)
{
    kiln_status st = KILN_OK;
#pragma omp parallel for num_threads(c->threads) schedule(dynamic, 1) if (n > 1)
    for (uint32_t i = 0; i < n; i++) {
        kiln_error why = {0};
        const kiln_status one =
            count_block(c, pass, &blocks[i], (unsigned)omp_get_thread_num(), &why);
        if (one == KILN_OK) continue;
#pragma omp critical(kiln_prune_stats)
        {
            st = one;
            if (err) *err = why;
        }
    }
    return st;
}

/* Decodes the planes of blocks with all readers, if there is room. */
static kiln_status decode_ahead(const counting *c, const uint32_t *blocks, uint32_t n,
                                kiln_error *err)
{
    static const char *const names[] = {"means", "log_scales", "spacing2"};
    const kiln_chunk *chunks[2 * BATCH_MOST];
    const kiln_ahead *a = &c->in->ahead;
    uint32_t n_chunks = 0;
    if (a->n < 2 || n < 2) return KILN_OK;
    for (uint32_t i = 0; i < n; i++) {
        chunks[n_chunks++] = &c->in->layer->chunks[blocks[i]];
        if (c->in->spacing)
            chunks[n_chunks++] = kiln_prune_plane_chunk(c->in, blocks[i], "spacing2");
    }
    const kiln_planes_of_chunks wanted = {.chunks = chunks,
                                          .n_chunks = n_chunks,
                                          .planes = names,
                                          .n_planes = sizeof names / sizeof *names};
    return kiln_plane_cache_ahead(c->in->planes, a->readers, a->n, &wanted, err);
}

static kiln_status get_planes(const counting *c, uint32_t block, ready *out, kiln_error *err)
{
    const struct {
        const char *name;
        const float **to;
    } planes[] = {
        {"spacing2", &out->spacing2}, {"means", &out->means}, {"log_scales", &out->log_scales}};
    out->n = c->in->layer->chunks[block].count;
    for (size_t i = 0; i < sizeof planes / sizeof *planes; i++) {
        const void *data;
        KILN_TRY(kiln_prune_plane(c->w, c->in, block, planes[i].name, &data, err));
        *planes[i].to = data;
        if (i > 0 || c->batch > 1) continue;
        memcpy(c->spacing2, data, out->n * sizeof *c->spacing2);
        *planes[i].to = c->spacing2;
    }
    return KILN_OK;
}

static kiln_status count_batch(const counting *c, uint32_t pass, const uint32_t *blocks, uint32_t n,
                               kiln_error *err)
{
    ready b[BATCH_MOST];
    KILN_TRY(decode_ahead(c, blocks, n, err));
    for (uint32_t i = 0; i < n; i++) KILN_TRY(get_planes(c, blocks[i], &b[i], err));
    return count_blocks(c, pass, b, n, err);
}

static void add_tables(const counting *c)
{
    uint64_t *sum = c->counts;
    for (unsigned t = 1; t < c->threads; t++)
        for (size_t i = 0; i < ELEMENTS * (size_t)KILN_RANK_BINS; i++)
            sum[i] += counts_of(c, t, 0)[i];
}

static kiln_status count_pass(const counting *c, uint32_t pass, kiln_error *err)
{
    uint32_t blocks[BATCH_MOST], n = 0;
    memset(c->counts, 0, c->threads * ELEMENTS * (size_t)KILN_RANK_BINS * sizeof *c->counts);
    for (uint32_t b = 0; b < c->in->layer->n_chunks; b++) {
        if (c->in->layer->chunks[b].count == 0 || !kiln_prune_has_block(c->in, b)) continue;
        blocks[n++] = b;
        if (n < c->batch) continue;
        KILN_TRY(count_batch(c, pass, blocks, n, err));
        n = 0;
    }
    KILN_TRY(count_batch(c, pass, blocks, n, err));
    add_tables(c);
    return KILN_OK;
}

static kiln_status statistics(counting *c, kiln_prune_stats *s, kiln_error *err)
{
    const uint64_t lo = kiln_rank_nearest(s->n, 1), hi = kiln_rank_nearest(s->n, 999),
                   middle = kiln_rank_nearest(s->n, 500);
    for (unsigned a = 0; a < 3; a++) {
        c->elements[2 * a] = (element){.of = (series)a, .rank = lo, .to = &s->lo[a]};
        c->elements[2 * a + 1] = (element){.of = (series)a, .rank = hi, .to = &s->hi[a]};
    }
    c->elements[6] = (element){.of = SERIES_SPACING, .rank = middle, .to = &s->median_spacing2};
    c->elements[7] = (element){.of = SERIES_SCALE, .rank = middle, .to = &s->median_log_scale};
    KILN_TRY(count_pass(c, 0, err));
    for (unsigned i = 0; i < ELEMENTS; i++)
        c->elements[i].high =
            kiln_rank_pick(counts_of(c, 0, counted_by(c, 0, i)), &c->elements[i].rank);
    KILN_TRY(count_pass(c, 1, err));
    for (unsigned i = 0; i < ELEMENTS; i++) {
        element *e = &c->elements[i];
        *e->to = kiln_rank_value(e->high << 16 |
                                 kiln_rank_pick(counts_of(c, 0, counted_by(c, 1, i)), &e->rank));
    }
    return KILN_OK;
}

static uint64_t table_ram(const kiln_prune_size *s)
{
    return ELEMENTS * (uint64_t)KILN_RANK_BINS * sizeof(uint64_t) + s->blocks.rows * sizeof(float);
}

static uint64_t stats_planes_bytes(uint64_t rows) { return 7 * rows * sizeof(float); }

uint64_t kiln_prune_stats_ram(const kiln_prune_size *s)
{
    return table_ram(s) + stats_planes_bytes(s->blocks.rows) + s->blocks.rows * sizeof(float) +
           kiln_read_ram(3 * s->blocks.rows * sizeof(float));
}

uint64_t kiln_prune_stats_ram_thread(const kiln_prune_size *s) { return table_ram(s); }

/* The planes of a batch stay while it is counted: they take no more than kiln_plane_cache_ahead
 * decodes at a time. */
static uint32_t batch_of(const counting *c, uint64_t budget)
{
    const uint64_t entry = 3 * UINT64_C(4096),
                   most = budget / 3 / (stats_planes_bytes(c->in->largest) + entry);
    const uint32_t want = 4 * c->threads < BATCH_MOST ? 4 * c->threads : BATCH_MOST;
    return c->in->ahead.n < 2 || most < 2 ? 1 : most < want ? (uint32_t)most : want;
}

kiln_status kiln_prune_stats_unit(kiln_worker *w, const kiln_prune_request *q, kiln_error *err)
{
    counting c = {.w = w, .threads = kiln_prune_threads(w, q->head)};
    kiln_prune_stats s = {0};
    kiln_status st = KILN_OK;
    uint64_t budget;
    KILN_TRY(kiln_prune_input_get_ahead(w, q->head, &c.in, &budget, err));
    for (uint32_t b = 0; b < c.in->layer->n_chunks; b++)
        if (kiln_prune_has_block(c.in, b)) s.n += c.in->layer->chunks[b].count;
    c.batch = batch_of(&c, budget);
    KILN_GO(KILN_ALLOC(&c.spacing2, c.batch > 1 ? 0 : c.in->largest, "spacing", err));
    KILN_GO(KILN_ALLOC(&c.longest, c.threads * c.in->largest, "scales", err));
    KILN_GO(KILN_ALLOC_UNSET(&c.counts, c.threads * ELEMENTS * (uint64_t)KILN_RANK_BINS,
                             "rank counts", err));
    if (s.n) KILN_GO(statistics(&c, &s, err));
    KILN_GO(kiln_worker_put(w, "statistics", &s, sizeof s, 4, err));
done:
    free(c.counts);
    free(c.longest);
    free(c.spacing2);
    return st;
}

/* ---- another bake ---------------------------------------------------------------------------- */
static float largest_of(const float *log_scales, uint64_t n, float largest)
{
    for (uint64_t i = 0; i < n; i++) largest = log_scales[i] > largest ? log_scales[i] : largest;
    return largest;
}

/* largest: log of the largest axis, -INFINITY without rows. */
static kiln_status tally_layer(kiln_manifest *m, const kiln_layer *l, kiln_tally *t, float *largest,
                               kiln_error *err)
{
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        const kiln_chunk *c = &l->chunks[i];
        float *planes;
        if (c->count == 0) continue;
        if (!kiln_chunk_plane(c, "log_scales"))
            return kiln_fail(err, KILN_E_INPUT,
                             "it holds points that have no scale yet; run kiln-knn on it first");
        KILN_TRY(KILN_ALLOC(&planes, 4 * c->count, "scales", err));
        float *logits = planes + 3 * c->count;
        kiln_status st =
            kiln_plane_read(m, c, "log_scales", planes, 3 * c->count * sizeof *planes, err);
        if (st == KILN_OK)
            st = kiln_plane_read(m, c, "opacity_logits", logits, c->count * sizeof *planes, err);
        if (st == KILN_OK) {
            kiln_tally_rows(t, 0, c->count, planes, logits, NULL);
            *largest = largest_of(planes, 3 * c->count, *largest);
        }
        t->rows += c->count;
        free(planes);
        KILN_TRY(st);
    }
    return KILN_OK;
}

uint64_t kiln_prune_scales_ram(const kiln_prune_size *s)
{
    (void)s; /* its layer is another one, whose chunks have as many rows at most */
    return 4 * KILN_BLOCK_ROWS * sizeof(float) +
           kiln_read_ram(3 * KILN_BLOCK_ROWS * sizeof(float)) + sizeof(kiln_tally);
}

kiln_status kiln_prune_scales_unit(kiln_worker *w, const kiln_prune_request *q, kiln_error *err)
{
    kiln_manifest *m = NULL;
    kiln_layer *l = NULL;
    kiln_tally *t = NULL;
    float largest = -INFINITY;
    kiln_status st;
    KILN_GO(KILN_ALLOC(&t, 1, "a tally", err));
    KILN_GO(kiln_manifest_open(q->text, KILN_OPEN_READ, "prune", true, &m, err));
    /* what a renderer would get of it */
    KILN_GO(kiln_layer_newest(m, KILN_FORM_DRAWABLE, &l, err));
    KILN_GO(tally_layer(m, l, t, &largest, err));
    KILN_GO(kiln_worker_put(w, "tally", t, sizeof *t, 8, err));
    KILN_GO(kiln_worker_put(w, "largest", &largest, sizeof largest, 4, err));
done:
    if (st != KILN_OK) kiln_note(err, "--against '%s'", q->text);
    kiln_layer_free(l);
    kiln_manifest_close(m);
    free(t);
    return st;
}
