/* stray_unit -- --outlier-sor: which rows of the whole layer are far from their neighbours.
 *
 * The value of a row is the mean distance to its K nearest others (kernels/knn). The limit is the
 * mean of all values plus S standard deviations, with n - 1 as the divisor of the variance. Rows
 * above it are stray. This is what point clouds know as statistical outlier removal.
 *
 * The layer may be larger than memory. Then it is partitioned along the curve, and ranges of places
 * are answered one after the other (stages/knn/range.h). Values go to a scratch file as they are
 * found: in the order of rows without ranges, else in the order of places.
 *
 * The limit must not depend on that order, so sums are integers. Values are counted in 2^-31 of the
 * power of two above the largest; n of them and of their squares fit 64 and 128 bits. */
#include "base/file.h"
#include "base/memory.h"
#include "kernels/knn/knn.h"
#include "stages/knn/pages.h"
#include "stages/knn/range.h"
#include "stages/prune/prune_units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STRAY_PIECE_ROWS = 1 << 16, SUM_BITS = 31 };
__extension__ typedef unsigned __int128 stray_total;

typedef struct {
    kiln_worker *w;
    const kiln_layer *layer;
    kiln_prune_sor sor;
    uint64_t largest;     /* rows of the largest block */
    uint64_t *starts;     /* [n_chunks + 1] rows before each block */
    kiln_knn_pages pages; /* with ranges */
    int fd, reads;        /* of the values: one f32 a place */
    char path[64];
    float *piece;   /* [STRAY_PIECE_ROWS] */
    uint32_t *rows; /* [STRAY_PIECE_ROWS] of the layer */
    uint8_t *strays;
} stray_search;

static void stray_search_release(stray_search *s)
{
    if (s->fd >= 0) (void)close(s->fd);
    if (s->reads >= 0) (void)close(s->reads);
    kiln_knn_pages_close(&s->pages);
    free(s->starts);
    free(s->piece);
    free(s->rows);
    free(s->strays);
}

static kiln_status open_stray_search(stray_search *s, kiln_error *err)
{
    const kiln_layer *l = s->layer;
    kiln_manifest *m;
    for (uint32_t i = 0; i < l->n_chunks; i++)
        if (l->chunks[i].count > s->largest) s->largest = l->chunks[i].count;
    KILN_TRY(kiln_worker_manifest(s->w, &m, err));
    KILN_TRY(KILN_ALLOC(&s->starts, (uint64_t)l->n_chunks + 1, "the blocks", err));
    for (uint32_t i = 0; i < l->n_chunks; i++) s->starts[i + 1] = s->starts[i] + l->chunks[i].count;
    KILN_TRY(KILN_ALLOC(&s->piece, STRAY_PIECE_ROWS, "distances", err));
    KILN_TRY(KILN_ALLOC(&s->rows, STRAY_PIECE_ROWS, "rows", err));
    KILN_TRY(KILN_ALLOC(&s->strays, l->n_chunks * kiln_prune_stray_bytes(s->largest), "stray rows",
                        err));
    KILN_TRY(kiln_scratch_unnamed(kiln_manifest_path(m), &s->fd, s->path, err));
    return kiln_file_open(s->path, &s->reads, err);
}

/* ---- values ---------------------------------------------------------------------------------- */
static kiln_status measure_all(const stray_search *s, kiln_error *err)
{
    const uint64_t n = s->layer->count;
    const uint32_t k = s->sor.neighbors;
    kiln_manifest *m;
    float *means = NULL, *best = NULL, *values;
    kiln_status st;
    KILN_GO(kiln_worker_manifest(s->w, &m, err));
    KILN_GO(kiln_layer_means(m, s->layer, &means, err));
    KILN_GO(KILN_ALLOC_UNSET(&best, k * n, "the nearest distances", err));
    const kiln_knn_args a = {.n = n, .k = k, .means = means, .best = best};
    KILN_GO(KILN_WORK(s->w, knn, &a, err));
    values = means; /* they are needed no more */
    kiln_knn_mean_distance(best, n, k, values);
    KILN_GO(kiln_file_write_at(s->fd, s->path, 0, values, n * sizeof *values, err));
done:
    free(best);
    free(means);
    return st;
}

static kiln_status read_places(void *pages, uint64_t first, uint64_t count, float *xyz,
                               kiln_error *err)
{
    return kiln_knn_pages_means(pages, first, count, xyz, err);
}

static kiln_status measure_range(stray_search *s, uint64_t begin, float *values, kiln_error *err)
{
    const uint64_t n = s->layer->count, rows = s->sor.range_rows,
                   end = begin + (n - begin < rows ? n - begin : rows);
    kiln_range_use use;
    const kiln_knn_span g = {.n = n,
                             .begin = begin,
                             .end = end,
                             .k = s->sor.neighbors,
                             .page_rows = s->sor.page_rows,
                             .batch_rows = rows,
                             .pages = s->pages.boxes,
                             .read = read_places,
                             .context = &s->pages,
                             .runner = kiln_worker_runner(s->w),
                             .threads = kiln_worker_threads(s->w),
                             .distances = true};
    KILN_TRY(kiln_range_answer(&g, values, &use, err));
    return kiln_file_write_at(s->fd, s->path, begin * sizeof *values, values,
                              (end - begin) * sizeof *values, err);
}

static kiln_status measure_ranges(stray_search *s, const kiln_prune_unit *head, kiln_error *err)
{
    char folder[KILN_PATH_MAX];
    const kiln_prune_sor *o = &s->sor;
    kiln_spatial_args a = {.runner = kiln_worker_runner(s->w),
                           .layer = s->layer,
                           .centre = {o->root_centre[0], o->root_centre[1], o->root_centre[2]},
                           .half = o->root_half,
                           .folder = folder,
                           .with_means = true,
                           .ram =
                               head->ram - kiln_prune_strays_held(s->layer->n_chunks, s->largest)};
    float *values = NULL;
    uint64_t sum;
    kiln_status st;
    KILN_TRY(kiln_worker_scratch(s->w, "prune", o->scratch, folder, err));
    KILN_TRY(kiln_worker_manifest(s->w, &a.manifest, err));
    KILN_TRY(kiln_spatial_partition(&a, err));
    KILN_TRY(kiln_knn_pages_make(folder, s->layer->count, o->page_rows, &sum, err));
    KILN_TRY(kiln_knn_pages_open(folder, s->layer->count, o->page_rows, sum, &s->pages, err));
    /* open files stay, and a run that ends in whatever way leaves none */
    kiln_knn_pages_remove(folder, o->page_rows);
    KILN_GO(KILN_ALLOC_UNSET(&values, o->range_rows, "distances", err));
    for (uint64_t at = 0; at < s->layer->count; at += o->range_rows)
        KILN_GO(measure_range(s, at, values, err));
done:
    free(values);
    return st;
}

/* ---- the limit ------------------------------------------------------------------------------- */
static kiln_status read_stray_piece(const stray_search *s, uint64_t first, uint64_t *n,
                                    kiln_error *err)
{
    const uint64_t left = s->layer->count - first;
    *n = left < STRAY_PIECE_ROWS ? left : STRAY_PIECE_ROWS;
    return kiln_file_read_at(s->reads, s->path, first * sizeof *s->piece, s->piece,
                             *n * sizeof *s->piece, err);
}

static kiln_status find_limit(const stray_search *s, double *limit, kiln_error *err)
{
    const uint64_t n = s->layer->count;
    float largest = 0;
    uint64_t some, sum = 0;
    stray_total squares = 0;
    int exponent;
    for (uint64_t at = 0; at < n; at += some) {
        KILN_TRY(read_stray_piece(s, at, &some, err));
        for (uint64_t i = 0; i < some; i++) largest = s->piece[i] > largest ? s->piece[i] : largest;
    }
    (void)frexp((double)largest, &exponent);
    for (uint64_t at = 0; at < n; at += some) {
        KILN_TRY(read_stray_piece(s, at, &some, err));
        for (uint64_t i = 0; i < some; i++) {
            const uint64_t value =
                (uint64_t)(ldexp((double)s->piece[i], SUM_BITS - exponent) + 0.5);
            sum += value;
            squares += (stray_total)value * value;
        }
    }
    const double rows = (double)n,
                 variance = (double)(n * squares - (stray_total)sum * sum) / (rows * (rows - 1));
    *limit = ldexp((double)sum / rows + s->sor.sigmas * sqrt(variance), exponent - SUM_BITS);
    return KILN_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */
static void mark_stray(const stray_search *s, uint64_t row)
{
    uint32_t lo = 0, hi = s->layer->n_chunks;
    while (hi - lo > 1) { /* the last block that begins at the row or before */
        const uint32_t mid = lo + (hi - lo) / 2;
        *(s->starts[mid] <= row ? &lo : &hi) = mid;
    }
    const uint64_t at = row - s->starts[lo];
    s->strays[lo * kiln_prune_stray_bytes(s->largest) + (at >> 3)] |= (uint8_t)(1u << (at & 7));
}

static kiln_status mark_strays(stray_search *s, double limit, kiln_error *err)
{
    uint64_t some;
    for (uint64_t at = 0; at < s->layer->count; at += some) {
        KILN_TRY(read_stray_piece(s, at, &some, err));
        if (s->sor.range_rows)
            KILN_TRY(kiln_spatial_rows(&s->pages.places, at, some, s->rows, err));
        for (uint64_t i = 0; i < some; i++)
            if ((double)s->piece[i] > limit) mark_stray(s, s->sor.range_rows ? s->rows[i] : at + i);
    }
    return KILN_OK;
}

uint64_t kiln_prune_strays_held(uint32_t n_blocks, uint64_t largest)
{
    const uint64_t strays = n_blocks * kiln_prune_stray_bytes(largest);
    return strays + kiln_outputs_ram(strays) + ((uint64_t)n_blocks + 1) * sizeof(uint64_t) +
           (uint64_t)STRAY_PIECE_ROWS * (sizeof(float) + sizeof(uint32_t)) + KILN_CONNECTION_RAM;
}

uint64_t kiln_prune_strays_ram(const kiln_layer *l, uint64_t largest, uint32_t neighbors,
                               uint64_t range_rows)
{
    /* as stages/knn counts a tree */
    enum { POINT = 12, INDEXED = 20 + 1, VALUE = 4, SLACK = 4 << 20 };
    const uint64_t n = l->count, held = kiln_prune_strays_held(l->n_chunks, largest);
    if (range_rows == 0)
        return held + n * (POINT + INDEXED + neighbors * sizeof(float)) +
               kiln_read_ram(POINT * largest) + SLACK;
    const uint64_t pages = kiln_range_pages(n, kiln_range_page_rows(n, range_rows)),
                   least = kiln_spatial_least_ram(l);
    const uint64_t range = kiln_range_ram(range_rows, range_rows, pages, neighbors) +
                           range_rows * VALUE + pages * KILN_KNN_PAGE_BYTES + SLACK;
    return held + (range > least ? range : least);
}

/* With no more rows than neighbours nothing is far from others. */
kiln_status kiln_prune_strays_unit(kiln_worker *w, const kiln_prune_request *q, kiln_error *err)
{
    stray_search s = {.w = w, .fd = -1, .reads = -1};
    kiln_manifest *m;
    kiln_layer *l = NULL;
    double limit;
    kiln_status st;
    if (q->head->text_bytes != sizeof s.sor)
        return kiln_fail(err, KILN_E_BUG, "a search for stray rows has no options");
    memcpy(&s.sor, q->text, sizeof s.sor);
    KILN_GO(kiln_worker_manifest(w, &m, err));
    KILN_GO(kiln_layer_get_digest(m, kiln_layer_kinds[q->head->layer_kind].name, q->head->layer, &l,
                                  err));
    s.layer = l;
    KILN_GO(open_stray_search(&s, err));
    if (l->count > s.sor.neighbors) {
        KILN_GO(s.sor.range_rows ? measure_ranges(&s, q->head, err) : measure_all(&s, err));
        KILN_GO(find_limit(&s, &limit, err));
        KILN_GO(mark_strays(&s, limit, err));
    }
    KILN_GO(kiln_worker_put(w, "strays", s.strays, l->n_chunks * kiln_prune_stray_bytes(s.largest),
                            1, err));
done:
    stray_search_release(&s);
    kiln_layer_free(l);
    return st;
}
