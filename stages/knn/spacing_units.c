/* The spacing of the source layer, in one unit or in ranges.
 *
 * In ranges: the partition puts the layer along the curve into scratch, with a box for every page of it. A range is a stretch
 * of places there; it answers its own points (range.h) and cuts the result, sorted by source row, at the borders of groups of
 * source blocks. The way back takes from every range what belongs to its group. So what a range has found is in the manifest,
 * where it outlives scratch, and the blocks get the bytes that they would have got from the whole layer at once. */
#include "base/file.h"
#include "base/memory.h"
#include "kernels/sort/sort.h"
#include "stages/engine/json_text.h"
#include "stages/engine/run_layers.h"
#include "stages/knn/range.h"
#include "stages/knn/knn_units.h"
#include "stages/spatial/partition.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ------------------------------------------------------------------------------------------------------------- */
/* Values that are missing (fewer points than neighbours), infinite or beyond what later sums can take give way to the fallback. */
kiln_knn_summary kiln_knn_finish(float *spacing2, uint64_t n, uint64_t n_all, const kiln_knn_unit *u)
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

static kiln_status put_counters(kiln_worker *w, json_t *c, kiln_error *err)
{
    if (!c) return kiln_fail(err, KILN_E_NOMEM, "cannot write the counters of the spacing");
    const kiln_status st = kiln_worker_counters(w, c, err);
    json_decref(c);
    return st;
}

kiln_status kiln_knn_put_summary(kiln_worker *w, const kiln_knn_summary *s, float median2, kiln_error *err)
{
    return put_counters(w,
                        json_pack("{s:o, s:o, s:o, s:I}", "min2", kiln_json_real((double)s->min2), "median2",
                                  kiln_json_real((double)median2), "max2", kiln_json_real((double)s->max2), "fallbacks",
                                  (json_int_t)s->fallbacks),
                        err);
}

/* ---- the whole layer ---------------------------------------------------------------------------------------------------- */
static kiln_status median_of(kiln_worker *w, const float *values, uint64_t n, float *out, kiln_error *err)
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

kiln_status kiln_knn_whole(kiln_worker *w, const kiln_layer *l, const kiln_knn_unit *u, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_manifest *m;
    float *means = NULL, *spacing2 = NULL, median2 = 0;
    uint64_t first = 0;
    KILN_GO(kiln_worker_manifest(w, &m, err));
    KILN_GO(kiln_layer_means(m, l, &means, err));
    KILN_GO(KILN_ALLOC(&spacing2, l->count, "the spacing of a layer", err));
    const kiln_knn_args a = {.n = l->count, .k = u->neighbors, .means = means, .spacing2 = spacing2};
    if (l->count) KILN_GO(KILN_WORK(w, knn, &a, err));
    free(means);
    means = NULL;
    const kiln_knn_summary s = kiln_knn_finish(spacing2, l->count, l->count, u);
    if (l->count) KILN_GO(median_of(w, spacing2, l->count, &median2, err));
    KILN_GO(kiln_knn_put_summary(w, &s, median2, err));
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        const kiln_chunk *c = &l->chunks[i];
        KILN_GO(kiln_worker_put(w, c->name, spacing2 + first, c->count * sizeof *spacing2, sizeof *spacing2, err));
        first += c->count;
    }
done:
    free(spacing2);
    free(means);
    return st;
}

/* ---- the partition ------------------------------------------------------------------------------------------------------ */
enum { READ_ROWS = 65536 };

static void boxes_name(const kiln_knn_ranges *r, char name[32]) { (void)snprintf(name, 32, "boxes-%u", r->page_rows); }

static kiln_status write_boxes(const kiln_spatial_file *places, const kiln_knn_ranges *r, const kiln_scratch_file *out,
                               kiln_error *err)
{
    const uint64_t pages = READ_ROWS / r->page_rows ? READ_ROWS / r->page_rows : 1, some = pages * r->page_rows;
    kiln_status st = KILN_OK;
    float *xyz = NULL;
    kiln_knn_box *boxes = NULL;
    KILN_GO(KILN_ALLOC_UNSET(&xyz, 3 * some, "the points of a page", err));
    KILN_GO(KILN_ALLOC_UNSET(&boxes, pages, "the boxes of pages", err));
    for (uint64_t first = 0; first < places->n; first += some) {
        const uint64_t n = places->n - first < some ? places->n - first : some;
        const uint64_t n_boxes = kiln_range_pages(n, r->page_rows);
        KILN_GO(kiln_spatial_means(places, first, n, xyz, err));
        for (uint64_t b = 0; b < n_boxes; b++) {
            const uint64_t at = b * r->page_rows;
            boxes[b] = kiln_knn_box_of(xyz + 3 * at, n - at < r->page_rows ? n - at : r->page_rows);
        }
        KILN_GO(kiln_scratch_write(out, first / r->page_rows * sizeof *boxes, boxes, n_boxes * sizeof *boxes, err));
    }
done:
    free(boxes);
    free(xyz);
    return st;
}

static kiln_status make_boxes(const char *folder, uint64_t n, const kiln_knn_ranges *r, kiln_error *err)
{
    char name[32];
    kiln_spatial_file places;
    kiln_scratch_file out = {0};
    const uint64_t bytes = kiln_range_pages(n, r->page_rows) * sizeof(kiln_knn_box);
    boxes_name(r, name);
    if (kiln_scratch_is_whole(folder, name, bytes)) return KILN_OK;
    KILN_TRY(kiln_spatial_open(folder, n, true, &places, err));
    kiln_status st = kiln_scratch_create(folder, name, bytes, &out, err);
    if (st == KILN_OK) {
        st = write_boxes(&places, r, &out, err);
        if (st == KILN_OK) st = kiln_scratch_finish(&out, err);
        kiln_scratch_drop(&out);
    }
    kiln_spatial_close(&places);
    return st;
}

kiln_status kiln_knn_partition(kiln_worker *w, const kiln_layer *l, const kiln_knn_unit *u, kiln_error *err)
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
    KILN_TRY(kiln_spatial_partition(&a, err));
    return make_boxes(folder, l->count, r, err);
}

/* ---- a range ------------------------------------------------------------------------------------------------------------ */
typedef struct {
    uint64_t begin, n;
    kiln_spatial_file places;
    kiln_knn_box *boxes;
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
    free(s->boxes);
    kiln_spatial_close(&s->places);
}

static kiln_status read_means(void *places, uint64_t first, uint64_t count, float *xyz, kiln_error *err)
{
    return kiln_spatial_means(places, first, count, xyz, err);
}

static kiln_status read_boxes(const char *folder, uint64_t n, const kiln_knn_ranges *r, kiln_knn_box **out, kiln_error *err)
{
    char name[32];
    kiln_scratch_file f;
    const uint64_t n_pages = kiln_range_pages(n, r->page_rows);
    boxes_name(r, name);
    KILN_TRY(KILN_ALLOC_UNSET(out, n_pages, "the boxes of pages", err));
    KILN_TRY(kiln_scratch_open(folder, name, n_pages * sizeof **out, &f, err));
    const kiln_status st = kiln_scratch_read(&f, 0, *out, n_pages * sizeof **out, err);
    kiln_scratch_drop(&f);
    return st;
}

/* Of a range of places: the partition's files and the boxes. */
static kiln_status open_partition(const kiln_layer *l, const kiln_knn_ranges *r, const char *folder, range_state *s, kiln_error *err)
{
    kiln_status st = kiln_spatial_open(folder, l->count, true, &s->places, err);
    if (st == KILN_OK) st = read_boxes(folder, l->count, r, &s->boxes, err);
    if (st != KILN_OK && r->of_plan) kiln_note(err, "what the plan has made is damaged or gone; plan anew with --plan --break-claim");
    return st;
}

static kiln_status answer_range(kiln_worker *w, const kiln_layer *l, const kiln_knn_unit *u, range_state *s, kiln_error *err)
{
    const kiln_knn_ranges *r = &u->ranges;
    char folder[KILN_PATH_MAX];
    KILN_TRY(kiln_worker_scratch(w, "knn", r->scratch, folder, err));
    KILN_TRY(open_partition(l, r, folder, s, err));
    KILN_TRY(KILN_ALLOC_UNSET(&s->spacing2, s->n, "the spacing of a range", err));
    const kiln_range g = {.n = l->count,
                          .begin = s->begin,
                          .end = s->begin + s->n,
                          .k = u->neighbors,
                          .page_rows = r->page_rows,
                          .batch_rows = r->batch_rows,
                          .pages = s->boxes,
                          .read = read_means,
                          .context = &s->places,
                          .runner = kiln_worker_runner(w),
                          .threads = kiln_worker_threads(w)};
    return kiln_range_answer(&g, s->spacing2, &s->use, err);
}

/* counts of kernels/ranks as an output: a layer has no more than 2^32 rows */
static kiln_status put_ranks(kiln_worker *w, const float *values, uint64_t n, uint32_t pass, uint32_t high, kiln_error *err)
{
    kiln_status st = KILN_OK;
    uint64_t *counts = NULL;
    uint32_t *bins = NULL;
    KILN_GO(KILN_ALLOC(&counts, KILN_RANK_BINS, "the bins of a median", err));
    KILN_GO(KILN_ALLOC(&bins, KILN_RANK_BINS, "the bins of a median", err));
    const kiln_ranks_args a = {.n = n, .values = values, .pass = pass, .high = high, .counts = counts};
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
    KILN_TRY(kiln_alloc_unset(&s->work, kiln_sort_bytes(s->n, threads), 1, "the rows of a range", err));
    KILN_TRY(kiln_spatial_rows(&s->places, s->begin, s->n, s->rows, err));
    for (uint64_t i = 0; i < s->n; i++) s->keys[i] = s->rows[i];
    kiln_sort_pairs(s->n, s->keys, values, threads, s->work);
    return KILN_OK;
}

/* Rows and values [from, to) as one output; rows: memory for it, of which all is used by now. */
static kiln_status put_piece(kiln_worker *w, const range_state *s, uint64_t from, uint64_t to, uint32_t block, uint64_t first_row,
                             kiln_error *err)
{
    const uint64_t n = to - from;
    uint32_t *piece = s->work;
    char name[32];
    for (uint64_t i = 0; i < n; i++) piece[i] = (uint32_t)(s->keys[from + i] - first_row);
    memcpy(piece + n, s->spacing2 + from, n * sizeof *s->spacing2);
    (void)snprintf(name, sizeof name, KILN_KNN_TO, block);
    return kiln_worker_put(w, name, piece, 2 * n * sizeof *piece, sizeof *piece, err);
}

static kiln_status put_pieces(kiln_worker *w, const kiln_layer *l, const kiln_knn_ranges *r, const range_state *s, kiln_error *err)
{
    uint64_t from = 0, first_row = 0, rows;
    for (uint32_t block = 0, next; block < l->n_chunks; block = next, first_row += rows) {
        next = kiln_knn_group_end(l, block, r->group_rows, &rows);
        uint64_t to = from;
        while (to < s->n && s->keys[to] < first_row + rows) to++;
        if (to > from) KILN_TRY(put_piece(w, s, from, to, block, first_row, err));
        from = to;
    }
    return from == s->n ? KILN_OK : kiln_fail(err, KILN_E_BUG, "row %" PRIu64 " is beyond the source layer", s->keys[from]);
}

static kiln_status compute_range(kiln_worker *w, const kiln_layer *l, const kiln_knn_unit *u, range_state *s, kiln_error *err)
{
    KILN_TRY(answer_range(w, l, u, s, err));
    const kiln_knn_summary v = kiln_knn_finish(s->spacing2, s->n, l->count, u);
    KILN_TRY(put_counters(w,
                          json_pack("{s:o, s:o, s:I, s:I, s:I, s:I}", "min2", kiln_json_real((double)v.min2), "max2",
                                    kiln_json_real((double)v.max2), "fallbacks", (json_int_t)v.fallbacks, "batches",
                                    (json_int_t)s->use.batches, "candidates", (json_int_t)s->use.candidates, "queries",
                                    (json_int_t)s->use.queries),
                          err));
    KILN_TRY(put_ranks(w, s->spacing2, s->n, 0, 0, err));
    KILN_TRY(sort_by_row(w, s, err));
    return put_pieces(w, l, &u->ranges, s, err);
}

kiln_status kiln_knn_range(kiln_worker *w, const kiln_layer *l, const kiln_knn_unit *u, kiln_error *err)
{
    const kiln_knn_ranges *r = &u->ranges;
    range_state s = {.begin = r->range * r->range_rows};
    if (s.begin >= l->count) return kiln_fail(err, KILN_E_BUG, "there is no range %" PRIu64, r->range);
    s.n = l->count - s.begin < r->range_rows ? l->count - s.begin : r->range_rows;
    const kiln_status st = compute_range(w, l, u, &s, err);
    range_release(&s);
    return st;
}

/* ---- the way back ------------------------------------------------------------------------------------------------------- */
uint32_t kiln_knn_group_end(const kiln_layer *l, uint32_t first, uint64_t group_rows, uint64_t *rows)
{
    uint32_t end = first;
    for (*rows = 0; end < l->n_chunks && (end == first || *rows < group_rows); end++) *rows += l->chunks[end].count;
    return end;
}

/* What one range found for the group that begins with a block; *filled counts. */
static kiln_status take_piece(kiln_manifest *m, kiln_hash range, uint32_t block, float *spacing2, uint64_t rows, uint64_t *filled,
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
        if (piece[i] >= rows) KILN_GO(kiln_fail(err, KILN_E_IO, "a range names row %u of %" PRIu64, piece[i], rows));
        memcpy(&spacing2[piece[i]], &piece[n + i], sizeof *spacing2);
    }
    *filled += n;
done:
    free(piece);
    kiln_unit_result_release(&found);
    return st;
}

kiln_status kiln_knn_back(kiln_worker *w, const kiln_layer *l, const kiln_knn_unit *u, const kiln_hash *keys, kiln_error *err)
{
    const kiln_knn_ranges *r = &u->ranges;
    kiln_manifest *m;
    uint64_t rows, filled = 0, first = 0;
    float *spacing2;
    kiln_status st = KILN_OK;
    const uint32_t end = kiln_knn_group_end(l, r->first_block, r->group_rows, &rows);
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_TRY(KILN_ALLOC(&spacing2, rows, "the spacing of blocks", err));
    for (uint64_t i = 0; i < r->range; i++) KILN_GO(take_piece(m, keys[i], r->first_block, spacing2, rows, &filled, err));
    if (filled != rows)
        KILN_GO(kiln_fail(err, KILN_E_IO,
                          "ranges have %" PRIu64 " of %" PRIu64
                          " rows of the blocks from %u; get the manifest again, or import the scene into a new one",
                          filled, rows, r->first_block));
    KILN_GO(put_ranks(w, spacing2, rows, 1, r->high, err));
    for (uint32_t i = r->first_block; i < end; i++) {
        const kiln_chunk *c = &l->chunks[i];
        KILN_GO(kiln_worker_put(w, c->name, spacing2 + first, c->count * sizeof *spacing2, sizeof *spacing2, err));
        first += c->count;
    }
done:
    free(spacing2);
    return st;
}
