/* The spacing of the source layer, in one unit or in ranges.
 *
 * In ranges: the partition puts the layer along the curve into scratch, with a record for every
 * page of it (pages.h). A range is a stretch of places there; it answers its own points (range.h)
 * and cuts the result, sorted by source row, at the borders of groups of source blocks. The way
 * back takes from every range what belongs to its group. So what a range has found is in the
 * manifest, where it outlives scratch, and the blocks get the bytes that they would have got from
 * the whole layer at once. */
#include "base/file.h"
#include "base/memory.h"
#include "kernels/sort/sort.h"
#include "stages/engine/json_text.h"
#include "stages/engine/parent/run_layers.h"
#include "stages/knn/range.h"
#include "stages/knn/knn_units.h"
#include "stages/knn/pages.h"
#include "stages/spatial/partition.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---------------------------------------------------------------------------------- */
/* Values that are missing (fewer points than neighbours), infinite or beyond what later sums can
 * take give way to the fallback. */
kiln_knn_summary kiln_knn_finish(float *spacing2, uint64_t n, uint64_t n_all,
                                 const kiln_knn_unit *u)
{
    kiln_knn_summary s = {0};
    for (uint64_t i = 0; i < n; i++) {
        if (!(spacing2[i] <= u->most2) || n_all <= u->neighbors) {
            spacing2[i] = u->fallback2;
            s.fallbacks++;
        }
        if (i == 0 || spacing2[i] < s.min2) s.min2 = spacing2[i];
        if (i == 0 || spacing2[i] > s.max2) s.max2 = spacing2[i];
    }
    return s;
}

static kiln_status put_spacing_counters(kiln_worker *w, json_t *c, kiln_error *err)
{
    if (!c) return kiln_fail(err, KILN_E_NOMEM, "cannot write the counters of the spacing");
    const kiln_status st = kiln_worker_counters(w, c, err);
    json_decref(c);
    return st;
}

kiln_status kiln_knn_put_summary(kiln_worker *w, const kiln_knn_summary *s, float median2,
                                 kiln_error *err)
{
    return put_spacing_counters(
        w,
        json_pack("{s:o, s:o, s:o, s:I}", "min2", kiln_json_real((double)s->min2), "median2",
                  kiln_json_real((double)median2), "max2", kiln_json_real((double)s->max2),
                  "fallbacks", (json_int_t)s->fallbacks),
        err);
}

/* ---- the whole layer ------------------------------------------------------------------------- */
static kiln_status median_of(kiln_worker *w, const float *values, uint64_t n, float *out,
                             kiln_error *err)
{
    uint64_t *counts, rank = (n - 1) / 2;
    KILN_TRY(KILN_ALLOC(&counts, KILN_RANK_BINS, "the bins of a median", err));
    kiln_ranks_args a = {.n = n, .values = values, .pass = 0, .counts = counts};
    kiln_status st = KILN_WORK(w, ranks, &a, err);
    if (st == KILN_OK) {
        a.high = kiln_rank_pick(counts, &rank);
        a.pass = 1;
        memset(counts, 0, KILN_RANK_BINS * sizeof *counts);
        st = KILN_WORK(w, ranks, &a, err);
    }
    if (st == KILN_OK) *out = kiln_rank_value(a.high << 16 | kiln_rank_pick(counts, &rank));
    free(counts);
    return st;
}

kiln_status kiln_knn_whole(kiln_worker *w, const kiln_layer *l, const kiln_knn_unit *u,
                           kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_manifest *m;
    float *means = NULL, *spacing2 = NULL, median2 = 0;
    uint64_t first = 0;
    KILN_GO(kiln_worker_manifest(w, &m, err));
    KILN_GO(kiln_layer_means(m, l, &means, err));
    KILN_GO(KILN_ALLOC(&spacing2, l->count, "the spacing of a layer", err));
    const kiln_knn_args a = {
        .n = l->count, .k = u->neighbors, .means = means, .spacing2 = spacing2};
    if (l->count) KILN_GO(KILN_WORK(w, knn, &a, err));
    free(means);
    means = NULL;
    const kiln_knn_summary s = kiln_knn_finish(spacing2, l->count, l->count, u);
    if (l->count) KILN_GO(median_of(w, spacing2, l->count, &median2, err));
    KILN_GO(kiln_knn_put_summary(w, &s, median2, err));
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        const kiln_chunk *c = &l->chunks[i];
        KILN_GO(kiln_worker_put(w, c->name, spacing2 + first, c->count * sizeof *spacing2,
                                sizeof *spacing2, err));
        first += c->count;
    }
done:
    free(spacing2);
    free(means);
    return st;
}

/* ---- the partition --------------------------------------------------------------------------- */
/* expected: the sum that a plan has told its tasks, 0: none. Files that a disk has damaged since
 * are made again. */
static kiln_status make_pages(const kiln_spatial_args *a, uint32_t page_rows, uint64_t expected,
                              uint64_t *sum, kiln_error *err)
{
    KILN_TRY(kiln_spatial_partition(a, err));
    KILN_TRY(kiln_knn_pages_make(a->folder, a->layer->count, page_rows, sum, err));
    if (expected == 0 || *sum == expected) return KILN_OK;
    kiln_knn_pages_remove(a->folder, page_rows);
    KILN_TRY(kiln_spatial_partition(a, err));
    KILN_TRY(kiln_knn_pages_make(a->folder, a->layer->count, page_rows, sum, err));
    if (*sum == expected) return KILN_OK;
    return kiln_fail(
        err, KILN_E_IO,
        "the partition in '%s' does not belong to the plan; plan anew with --plan --break-claim",
        a->folder);
}

kiln_status kiln_knn_partition(kiln_worker *w, const kiln_layer *l, const kiln_knn_unit *u,
                               kiln_error *err)
{
    const kiln_knn_ranges *r = &u->ranges;
    char folder[KILN_PATH_MAX];
    kiln_spatial_args a = {.runner = kiln_worker_runner(w),
                           .layer = l,
                           .centre = {r->root_centre[0], r->root_centre[1], r->root_centre[2]},
                           .half = r->root_half,
                           .folder = folder,
                           .with_means = true,
                           .ram = r->ram};
    KILN_TRY(kiln_worker_scratch(w, "knn", r->scratch, folder, err));
    KILN_TRY(kiln_worker_manifest(w, &a.manifest, err));
    uint64_t sum;
    KILN_TRY(make_pages(&a, r->page_rows, r->sum, &sum, err));
    return kiln_worker_put(w, "sum", &sum, sizeof sum, sizeof sum, err);
}

/* ---- a range --------------------------------------------------------------------------------- */
typedef struct {
    uint64_t begin, n;
    kiln_knn_pages pages;
    float *spacing2;
    uint32_t *rows;
    uint64_t *keys; /* rows again, for the sort */
    void *work;
    kiln_range_use use;
} range_state;

static void range_release(range_state *s)
{
    free(s->work);
    free(s->keys);
    free(s->rows);
    free(s->spacing2);
    kiln_knn_pages_close(&s->pages);
}

static kiln_status read_means(void *pages, uint64_t first, uint64_t count, float *xyz,
                              kiln_error *err)
{
    return kiln_knn_pages_means(pages, first, count, xyz, err);
}

static kiln_status answer_range(kiln_worker *w, const kiln_layer *l, const kiln_knn_unit *u,
                                range_state *s, kiln_error *err)
{
    const kiln_knn_ranges *r = &u->ranges;
    char folder[KILN_PATH_MAX];
    KILN_TRY(kiln_worker_scratch(w, "knn", r->scratch, folder, err));
    KILN_TRY(kiln_knn_pages_open(folder, l->count, r->page_rows, r->sum, &s->pages, err));
    KILN_TRY(KILN_ALLOC_UNSET(&s->spacing2, s->n, "the spacing of a range", err));
    const kiln_knn_span g = {.n = l->count,
                             .begin = s->begin,
                             .end = s->begin + s->n,
                             .k = u->neighbors,
                             .page_rows = r->page_rows,
                             .batch_rows = r->batch_rows,
                             .pages = s->pages.boxes,
                             .read = read_means,
                             .context = &s->pages,
                             .runner = kiln_worker_runner(w),
                             .threads = kiln_worker_threads(w)};
    return kiln_range_answer(&g, s->spacing2, &s->use, err);
}

/* counts of kernels/ranks as an output: a layer has no more than 2^32 rows */
static kiln_status put_ranks(kiln_worker *w, const float *values, uint64_t n, uint32_t pass,
                             uint32_t high, kiln_error *err)
{
    kiln_status st = KILN_OK;
    uint64_t *counts = NULL;
    uint32_t *bins = NULL;
    KILN_GO(KILN_ALLOC(&counts, KILN_RANK_BINS, "the bins of a median", err));
    KILN_GO(KILN_ALLOC(&bins, KILN_RANK_BINS, "the bins of a median", err));
    const kiln_ranks_args a = {
        .n = n, .values = values, .pass = pass, .high = high, .counts = counts};
    KILN_GO(KILN_WORK(w, ranks, &a, err));
    for (uint32_t i = 0; i < KILN_RANK_BINS; i++) bins[i] = (uint32_t)counts[i];
    KILN_GO(kiln_worker_put(w, "ranks", bins, KILN_RANK_BINS * sizeof *bins, sizeof *bins, err));
done:
    free(bins);
    free(counts);
    return st;
}

static kiln_status sort_by_row(kiln_worker *w, range_state *s, kiln_error *err)
{
    const unsigned threads = kiln_worker_threads(w);
    uint32_t *values = (uint32_t *)(void *)s->spacing2; /* the sort moves their bits */
    KILN_TRY(KILN_ALLOC_UNSET(&s->rows, s->n, "the rows of a range", err));
    KILN_TRY(KILN_ALLOC_UNSET(&s->keys, s->n, "the rows of a range", err));
    KILN_TRY(
        kiln_alloc_unset(&s->work, kiln_sort_bytes(s->n, threads), 1, "the rows of a range", err));
    KILN_TRY(kiln_knn_pages_rows(&s->pages, s->begin, s->n, s->rows, err));
    for (uint64_t i = 0; i < s->n; i++) s->keys[i] = s->rows[i];
    kiln_sort_pairs(s->n, s->keys, values, threads, s->work);
    return KILN_OK;
}

/* Rows and values [from, to) as one output; rows: memory for it, of which all is used by now. */
static kiln_status put_piece(kiln_worker *w, const range_state *s, uint64_t from, uint64_t to,
                             uint32_t block, uint64_t first_row, kiln_error *err)
{
    const uint64_t n = to - from;
    uint32_t *piece = s->work;
    char name[32];
    for (uint64_t i = 0; i < n; i++) piece[i] = (uint32_t)(s->keys[from + i] - first_row);
    memcpy(piece + n, s->spacing2 + from, n * sizeof *s->spacing2);
    (void)snprintf(name, sizeof name, KILN_KNN_TO, block);
    return kiln_worker_put(w, name, piece, 2 * n * sizeof *piece, sizeof *piece, err);
}

static kiln_status put_pieces(kiln_worker *w, const kiln_layer *l, const kiln_knn_ranges *r,
                              const range_state *s, kiln_error *err)
{
    uint64_t from = 0, first_row = 0, rows;
    for (uint32_t block = 0, next; block < l->n_chunks; block = next, first_row += rows) {
        next = kiln_knn_group_end(l, block, r->group_rows, &rows);
        uint64_t to = from;
        while (to < s->n && s->keys[to] < first_row + rows) to++;
        if (to > from) KILN_TRY(put_piece(w, s, from, to, block, first_row, err));
        from = to;
    }
    return from == s->n ? KILN_OK
                        : kiln_fail(err, KILN_E_BUG, "row %" PRIu64 " is beyond the source layer",
                                    s->keys[from]);
}

static kiln_status compute_range(kiln_worker *w, const kiln_layer *l, const kiln_knn_unit *u,
                                 range_state *s, kiln_error *err)
{
    KILN_TRY(answer_range(w, l, u, s, err));
    const kiln_knn_summary v = kiln_knn_finish(s->spacing2, s->n, l->count, u);
    KILN_TRY(put_spacing_counters(
        w,
        json_pack("{s:o, s:o, s:I, s:I, s:I, s:I}", "min2", kiln_json_real((double)v.min2), "max2",
                  kiln_json_real((double)v.max2), "fallbacks", (json_int_t)v.fallbacks, "batches",
                  (json_int_t)s->use.batches, "candidates", (json_int_t)s->use.candidates,
                  "queries", (json_int_t)s->use.queries),
        err));
    KILN_TRY(put_ranks(w, s->spacing2, s->n, 0, 0, err));
    KILN_TRY(sort_by_row(w, s, err));
    return put_pieces(w, l, &u->ranges, s, err);
}

/* What a plan has made is kept for its other tasks, which may find it sound. */
static kiln_status advise(kiln_worker *w, const kiln_knn_ranges *r, kiln_status st, bool damaged,
                          kiln_error *err)
{
    char folder[KILN_PATH_MAX];
    if (r->of_plan) {
        if (st == KILN_E_IO)
            kiln_note(err, "data of the plan (--plan --break-claim makes them again)");
        return st;
    }
    if (!damaged) return st;
    if (kiln_worker_scratch(w, "knn", r->scratch, folder, NULL) == KILN_OK)
        kiln_knn_pages_remove(folder, r->page_rows);
    kiln_note(err, "the same command makes it again");
    return st;
}

kiln_status kiln_knn_range(kiln_worker *w, const kiln_layer *l, const kiln_knn_unit *u,
                           kiln_error *err)
{
    const kiln_knn_ranges *r = &u->ranges;
    range_state s = {.begin = r->range * r->range_rows};
    if (s.begin >= l->count)
        return kiln_fail(err, KILN_E_BUG, "there is no range %" PRIu64, r->range);
    s.n = l->count - s.begin < r->range_rows ? l->count - s.begin : r->range_rows;
    kiln_status st = compute_range(w, l, u, &s, err);
    if (st != KILN_OK && (s.pages.damaged || r->of_plan))
        st = advise(w, r, st, s.pages.damaged, err);
    range_release(&s);
    return st;
}

/* ---- the way back ---------------------------------------------------------------------------- */
uint32_t kiln_knn_group_end(const kiln_layer *l, uint32_t first, uint64_t group_rows,
                            uint64_t *rows)
{
    uint32_t end = first;
    for (*rows = 0; end < l->n_chunks && (end == first || *rows < group_rows); end++)
        *rows += l->chunks[end].count;
    return end;
}

/* What one range found for the group that begins with a block; *filled counts. */
static kiln_status take_range_piece(kiln_manifest *m, kiln_hash range, uint32_t block,
                                    float *spacing2, uint64_t rows, uint64_t *filled,
                                    kiln_error *err)
{
    kiln_unit_result found = {0};
    char name[32];
    bool is_there, has = false;
    uint32_t *piece = NULL;
    uint64_t bytes = 0;
    kiln_status st = KILN_OK;
    (void)snprintf(name, sizeof name, KILN_KNN_TO, block);
    KILN_GO(kiln_unit_find(m, range, &is_there, &found, err));
    if (!is_there) KILN_GO(kiln_fail(err, KILN_E_BUG, "the spacing of a range is not stored"));
    for (uint32_t i = 0; i < found.n && !has; i++) has = strcmp(found.outputs[i].name, name) == 0;
    if (!has) goto done;
    KILN_GO(kiln_unit_result_read(m, &found, name, (void **)&piece, &bytes, err));
    const uint64_t n = bytes / (2 * sizeof *piece);
    for (uint64_t i = 0; i < n; i++) {
        if (piece[i] >= rows)
            KILN_GO(kiln_fail(err, KILN_E_IO, "a range names row %u of %" PRIu64, piece[i], rows));
        memcpy(&spacing2[piece[i]], &piece[n + i], sizeof *spacing2);
    }
    *filled += n;
done:
    free(piece);
    kiln_unit_result_release(&found);
    return st;
}

kiln_status kiln_knn_back(kiln_worker *w, const kiln_layer *l, const kiln_knn_unit *u,
                          const kiln_hash *keys, kiln_error *err)
{
    const kiln_knn_ranges *r = &u->ranges;
    kiln_manifest *m;
    uint64_t rows, filled = 0, first = 0;
    float *spacing2;
    kiln_status st = KILN_OK;
    const uint32_t end = kiln_knn_group_end(l, r->first_block, r->group_rows, &rows);
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_TRY(KILN_ALLOC(&spacing2, rows, "the spacing of blocks", err));
    for (uint64_t i = 0; i < r->range; i++)
        KILN_GO(take_range_piece(m, keys[i], r->first_block, spacing2, rows, &filled, err));
    if (filled != rows)
        KILN_GO(kiln_fail(err, KILN_E_IO,
                          "ranges have %" PRIu64 " of %" PRIu64
                          " rows of the blocks from %u; get the manifest again, or import the "
                          "scene into a new one",
                          filled, rows, r->first_block));
    KILN_GO(put_ranks(w, spacing2, rows, 1, r->high, err));
    for (uint32_t i = r->first_block; i < end; i++) {
        const kiln_chunk *c = &l->chunks[i];
        KILN_GO(kiln_worker_put(w, c->name, spacing2 + first, c->count * sizeof *spacing2,
                                sizeof *spacing2, err));
        first += c->count;
    }
done:
    free(spacing2);
    return st;
}
