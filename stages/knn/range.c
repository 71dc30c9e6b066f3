#include "stages/knn/range.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { READ_ROWS = 65536, PAGE_ROWS_MIN = 64, PAGES_MOST = 1 << 18 };

/* A page that may help, and from how near. */
typedef struct {
    float near2;
    uint32_t page;
} candidate;

typedef struct {
    const kiln_knn_span *g;
    uint64_t n, n_pages;
    float *buffer; /* [READ_ROWS][3] */
    float *points; /* [3][n] */
    float *best;   /* [k][n] */
    uint8_t *marks;
    kiln_reach_queries queries;
    float *near2;      /* [n_pages] INFINITY: never again */
    candidate *wanted; /* [n_pages] */
    uint64_t n_wanted;
    kiln_range_use use;
} answer;

/* What one batch takes; gone when it is over. */
typedef struct {
    uint64_t n, n_queries;
    float *means, *queries, *best; /* planar */
    uint32_t *rows;                /* of the queries in the range */
    kiln_reach_tree pages;
} batch;

uint64_t kiln_range_pages(uint64_t n, uint32_t page_rows)
{
    return (n + page_rows - 1) / page_rows;
}

uint32_t kiln_range_page_rows(uint64_t n, uint64_t range_rows)
{
    uint32_t rows = PAGE_ROWS_MIN;
    while (kiln_range_pages(n, rows) > PAGES_MOST) rows *= 2;
    return rows < range_rows ? rows : (uint32_t)range_rows;
}

uint64_t kiln_range_ram(uint64_t range_rows, uint64_t batch_rows, uint64_t n_pages, uint32_t k)
{
    /* the CPU's tree is the largest workspace (kernels/knn/DESIGN.md) */
    enum { POINT = 12, INDEXED = 20 + 1 };
    const uint64_t best = k * sizeof(float),
                   most = range_rows > batch_rows ? range_rows : batch_rows;
    const uint64_t query = POINT + best + sizeof(uint32_t); /* every point of the range may ask */
    return range_rows * (POINT + best + 1 + query) + batch_rows * POINT + most * INDEXED +
           kiln_reach_tree_bytes(range_rows / KILN_REACH_WIDE + 1) +
           kiln_reach_tree_bytes(n_pages) + n_pages * (sizeof(float) + sizeof(candidate)) +
           (uint64_t)READ_ROWS * POINT + (1u << 20);
}

/* ---- reading --------------------------------------------------------------------------------- */
/* Places [first, first + count) to places [at, at + count) of planar means [3][n]. */
static kiln_status read_planar(const answer *a, uint64_t first, uint64_t count, float *means,
                               uint64_t n, uint64_t at, kiln_error *err)
{
    const uint64_t most = READ_ROWS - READ_ROWS % a->g->page_rows;
    while (count > 0) {
        const uint64_t some = count < most ? count : most;
        float *x = means + at, *y = x + n, *z = y + n;
        KILN_TRY(a->g->read(a->g->context, first, some, a->buffer, err));
        for (uint64_t i = 0; i < some; i++) {
            x[i] = a->buffer[3 * i];
            y[i] = a->buffer[3 * i + 1];
            z[i] = a->buffer[3 * i + 2];
        }
        first += some;
        at += some;
        count -= some;
    }
    return KILN_OK;
}

static uint64_t page_end(const kiln_knn_span *g, uint64_t page)
{
    const uint64_t end = (page + 1) * g->page_rows;
    return end < g->n ? end : g->n;
}

/* ---- the range's own points ------------------------------------------------------------------ */
static kiln_status ask_each_other(answer *a, kiln_error *err)
{
    const kiln_knn_span *g = a->g;
    KILN_TRY(read_planar(a, g->begin, a->n, a->points, a->n, 0, err));
    const kiln_knn_args args = {.n = a->n, .k = g->k, .means = a->points, .best = a->best};
    KILN_TRY(kiln_runner_run(g->runner, KILN_OP_knn, &args, err));
    a->queries =
        (kiln_reach_queries){.n = a->n, .points = a->points, .bounds = a->best + (g->k - 1) * a->n};
    KILN_TRY(
        kiln_reach_tree_new((a->n + KILN_REACH_WIDE - 1) / KILN_REACH_WIDE, &a->queries.tree, err));
    const uint64_t first = g->begin / g->page_rows,
                   end = first + kiln_range_pages(a->n, g->page_rows);
    for (uint64_t p = first; p < end; p++) a->near2[p] = INFINITY;
    return KILN_OK;
}

/* ---- which pages next ------------------------------------------------------------------------ */
static int by_distance(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->near2 < y->near2 || x->near2 > y->near2) return x->near2 < y->near2 ? -1 : 1;
    return (x->page > y->page) - (x->page < y->page);
}

static int by_page(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    return (x->page > y->page) - (x->page < y->page);
}

/* Bounds only shrink: a page that helps no query now never will. */
static void find_wanted(answer *a)
{
    const kiln_knn_span *g = a->g;
    const int64_t n_pages = (int64_t)a->n_pages;
    const int threads = (int)g->threads;
    kiln_reach_queries_build(&a->queries);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 256) if (threads > 1)
    for (int64_t p = 0; p < n_pages; p++)
        if (a->near2[p] < INFINITY) a->near2[p] = kiln_reach_nearest(&a->queries, &g->pages[p]);
    a->n_wanted = 0;
    for (uint64_t p = 0; p < a->n_pages; p++)
        if (a->near2[p] < INFINITY)
            a->wanted[a->n_wanted++] = (candidate){a->near2[p], (uint32_t)p};
}

/* The nearest of them, as many as a batch holds, in the order of places. */
static void take_nearest(answer *a, batch *b)
{
    const kiln_knn_span *g = a->g;
    const uint64_t most = g->batch_rows / g->page_rows;
    if (a->n_wanted > most) {
        qsort(a->wanted, a->n_wanted, sizeof *a->wanted, by_distance);
        a->n_wanted = most;
        qsort(a->wanted, a->n_wanted, sizeof *a->wanted, by_page);
    }
    for (uint64_t i = 0; i < a->n_wanted; i++) {
        const uint64_t p = a->wanted[i].page;
        b->n += page_end(g, p) - p * g->page_rows;
        a->near2[p] = INFINITY;
    }
}

/* ---- a batch --------------------------------------------------------------------------------- */
static void batch_release(batch *b)
{
    kiln_reach_tree_release(&b->pages);
    free(b->rows);
    free(b->best);
    free(b->queries);
    free(b->means);
}

/* Pages that follow each other are read at once. */
static kiln_status read_pages(const answer *a, batch *b, kiln_error *err)
{
    const kiln_knn_span *g = a->g;
    uint64_t at = 0;
    KILN_TRY(KILN_ALLOC_UNSET(&b->means, 3 * b->n, "the pages around a range", err));
    for (uint64_t i = 0, next; i < a->n_wanted; i = next) {
        for (next = i + 1;
             next < a->n_wanted && a->wanted[next].page == a->wanted[next - 1].page + 1;)
            next++;
        const uint64_t first = (uint64_t)a->wanted[i].page * g->page_rows,
                       end = page_end(g, a->wanted[next - 1].page);
        KILN_TRY(read_planar(a, first, end - first, b->means, b->n, at, err));
        at += end - first;
    }
    return KILN_OK;
}

static kiln_status find_queries(answer *a, batch *b, kiln_error *err)
{
    KILN_TRY(kiln_reach_tree_new(a->n_wanted, &b->pages, err));
    for (uint64_t i = 0; i < a->n_wanted; i++)
        b->pages.nodes[0][i].box = a->g->pages[a->wanted[i].page];
    kiln_reach_tree_build(&b->pages);
    memset(a->marks, 0, a->n);
    kiln_reach_mark(&a->queries, &b->pages, a->g->threads, a->marks);
    for (uint64_t i = 0; i < a->n; i++) b->n_queries += a->marks[i];

    const uint64_t m = b->n_queries;
    KILN_TRY(KILN_ALLOC_UNSET(&b->rows, m, "the queries of a range", err));
    KILN_TRY(KILN_ALLOC_UNSET(&b->queries, 3 * m, "the queries of a range", err));
    KILN_TRY(KILN_ALLOC_UNSET(&b->best, a->g->k * m, "the queries of a range", err));
    for (uint64_t i = 0, to = 0; i < a->n; i++)
        if (a->marks[i]) b->rows[to++] = (uint32_t)i;
    for (uint32_t axis = 0; axis < 3; axis++)
        for (uint64_t i = 0; i < m; i++)
            b->queries[axis * m + i] = a->points[axis * a->n + b->rows[i]];
    for (uint32_t j = 0; j < a->g->k; j++)
        for (uint64_t i = 0; i < m; i++) b->best[j * m + i] = a->best[j * a->n + b->rows[i]];
    return KILN_OK;
}

static kiln_status ask_pages(answer *a, batch *b, kiln_error *err)
{
    KILN_TRY(find_queries(a, b, err));
    KILN_TRY(read_pages(a, b, err));
    const kiln_knn_join_args args = {.n = b->n,
                                     .n_queries = b->n_queries,
                                     .k = a->g->k,
                                     .means = b->means,
                                     .queries = b->queries,
                                     .best = b->best};
    KILN_TRY(kiln_runner_run(a->g->runner, KILN_OP_knn_join, &args, err));
    for (uint32_t j = 0; j < a->g->k; j++)
        for (uint64_t i = 0; i < b->n_queries; i++)
            a->best[j * a->n + b->rows[i]] = b->best[j * b->n_queries + i];
    a->use.batches++;
    a->use.candidates += b->n;
    a->use.queries += b->n_queries;
    return KILN_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */
static void answer_release(answer *a)
{
    kiln_reach_tree_release(&a->queries.tree);
    free(a->wanted);
    free(a->near2);
    free(a->marks);
    free(a->best);
    free(a->points);
    free(a->buffer);
}

static kiln_status reserve_answer(answer *a, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC_UNSET(&a->buffer, 3 * (uint64_t)READ_ROWS, "the points of a range", err));
    KILN_TRY(KILN_ALLOC_UNSET(&a->points, 3 * a->n, "the points of a range", err));
    KILN_TRY(KILN_ALLOC_UNSET(&a->best, a->g->k * a->n, "the neighbours of a range", err));
    KILN_TRY(KILN_ALLOC(&a->marks, a->n, "the queries of a range", err));
    KILN_TRY(KILN_ALLOC(&a->near2, a->n_pages, "the pages of a cloud", err));
    return KILN_ALLOC(&a->wanted, a->n_pages, "the pages of a cloud", err);
}

static kiln_status search(answer *a, kiln_error *err)
{
    KILN_TRY(reserve_answer(a, err));
    KILN_TRY(ask_each_other(a, err));
    for (find_wanted(a); a->n_wanted > 0; find_wanted(a)) {
        batch b = {0};
        take_nearest(a, &b);
        const kiln_status st = ask_pages(a, &b, err);
        batch_release(&b);
        if (st != KILN_OK) return st;
    }
    return KILN_OK;
}

kiln_status kiln_range_answer(const kiln_knn_span *g, float *spacing2, kiln_range_use *use,
                              kiln_error *err)
{
    answer a = {.g = g, .n = g->end - g->begin, .n_pages = kiln_range_pages(g->n, g->page_rows)};
    if (g->begin > g->end || g->end > g->n || g->begin % g->page_rows ||
        (g->end % g->page_rows && g->end < g->n) || g->batch_rows < g->page_rows)
        return kiln_fail(err, KILN_E_BUG, "places %llu to %llu are not a range",
                         (unsigned long long)g->begin, (unsigned long long)g->end);
    const kiln_status st = search(&a, err);
    if (st == KILN_OK)
        (g->distances ? kiln_knn_mean_distance : kiln_knn_mean)(a.best, a.n, g->k, spacing2);
    *use = a.use;
    answer_release(&a);
    return st;
}
