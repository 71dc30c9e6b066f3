/* stats_unit -- exact order statistics of the whole input: ranks of the means, median spacing, median longest axis. In
 * fixed memory but for decoded planes; two passes of counting. And the scales of another bake, for --against. */
#include "stages/import/reader.h"
#include "stages/prune/prune_tally.h"
#include "stages/prune/prune_units.h"

#include <math.h>
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

typedef struct {
    kiln_worker *w;
    kiln_prune_input *in;
    element elements[ELEMENTS];
    float *longest;   /* of one block */
    uint64_t *counts; /* [ELEMENTS][KILN_RANK_BINS] */
} counting;

static uint64_t *counts_of(const counting *c, unsigned i) { return c->counts + (size_t)i * KILN_RANK_BINS; }

/* Counts of an earlier element that serve this one too: in the first pass those of its series, in the second of its bin. */
static unsigned counted_by(const counting *c, uint32_t pass, unsigned i)
{
    const element *e = c->elements;
    return i > 0 && e[i].of == e[i - 1].of && (pass == 0 || e[i].high == e[i - 1].high) ? i - 1 : i;
}

/* The values of a series in one block. */
static kiln_status values_of(counting *c, series s, uint32_t block, const float **out, kiln_error *err)
{
    const uint64_t n = c->in->layer->chunks[block].count;
    const char *plane = s == SERIES_SPACING ? "spacing2" : s == SERIES_SCALE ? "log_scales" : "means";
    const void *data;
    KILN_TRY(kiln_prune_plane(c->w, c->in, block, plane, &data, err));
    *out = data;
    if (s <= SERIES_Z) *out += (uint64_t)s * n;
    if (s != SERIES_SCALE) return KILN_OK;
    const float *scales = data;
    for (uint64_t i = 0; i < n; i++) {
        float v = scales[i];
        for (uint64_t a = 1; a < 3; a++) v = scales[a * n + i] > v ? scales[a * n + i] : v;
        c->longest[i] = v;
    }
    *out = c->longest;
    return KILN_OK;
}

/* All series at once, so that each block is decoded twice in all, whatever the cache holds. */
static kiln_status count_pass(counting *c, uint32_t pass, kiln_error *err)
{
    memset(c->counts, 0, ELEMENTS * (size_t)KILN_RANK_BINS * sizeof *c->counts);
    for (uint32_t b = 0; b < c->in->layer->n_chunks; b++) {
        if (c->in->layer->chunks[b].count == 0 || !kiln_prune_has_block(c->in, b)) continue;
        for (unsigned i = 0; i < ELEMENTS; i++) {
            if (counted_by(c, pass, i) != i) continue;
            kiln_ranks_args a = {
                .n = c->in->layer->chunks[b].count, .pass = pass, .high = c->elements[i].high, .counts = counts_of(c, i)};
            KILN_TRY(values_of(c, c->elements[i].of, b, &a.values, err));
            KILN_TRY(KILN_WORK(c->w, ranks, &a, err));
        }
    }
    return KILN_OK;
}

static kiln_status statistics(counting *c, kiln_prune_stats *s, kiln_error *err)
{
    const uint64_t lo = kiln_rank_nearest(s->n, 1), hi = kiln_rank_nearest(s->n, 999), middle = kiln_rank_nearest(s->n, 500);
    for (unsigned a = 0; a < 3; a++) {
        c->elements[2 * a] = (element){.of = (series)a, .rank = lo, .to = &s->lo[a]};
        c->elements[2 * a + 1] = (element){.of = (series)a, .rank = hi, .to = &s->hi[a]};
    }
    c->elements[6] = (element){.of = SERIES_SPACING, .rank = middle, .to = &s->median_spacing2};
    c->elements[7] = (element){.of = SERIES_SCALE, .rank = middle, .to = &s->median_log_scale};
    KILN_TRY(count_pass(c, 0, err));
    for (unsigned i = 0; i < ELEMENTS; i++)
        c->elements[i].high = kiln_rank_pick(counts_of(c, counted_by(c, 0, i)), &c->elements[i].rank);
    KILN_TRY(count_pass(c, 1, err));
    for (unsigned i = 0; i < ELEMENTS; i++) {
        element *e = &c->elements[i];
        *e->to = kiln_rank_value(e->high << 16 | kiln_rank_pick(counts_of(c, counted_by(c, 1, i)), &e->rank));
    }
    return KILN_OK;
}

uint64_t kiln_prune_stats_ram(const kiln_prune_size *s)
{
    const uint64_t n = s->blocks.rows * sizeof(float), planes = 7 * n;
    return ELEMENTS * (uint64_t)KILN_RANK_BINS * sizeof(uint64_t) + n + planes + kiln_read_ram(3 * n);
}

kiln_status kiln_prune_stats_unit(kiln_worker *w, const kiln_prune_request *q, kiln_error *err)
{
    counting c = {.w = w};
    kiln_prune_stats s = {0};
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_prune_input_get(w, q->head, &c.in, err));
    for (uint32_t b = 0; b < c.in->layer->n_chunks; b++)
        if (kiln_prune_has_block(c.in, b)) s.n += c.in->layer->chunks[b].count;
    KILN_GO(KILN_ALLOC(&c.longest, c.in->largest, "scales", err));
    KILN_GO(KILN_ALLOC(&c.counts, ELEMENTS * (uint64_t)KILN_RANK_BINS, "rank counts", err));
    if (s.n) KILN_GO(statistics(&c, &s, err));
    KILN_GO(kiln_worker_put(w, "statistics", &s, sizeof s, 4, err));
done:
    free(c.counts);
    free(c.longest);
    return st;
}

/* ---- another bake --------------------------------------------------------------------------------------------------- */
static float largest_of(const float *log_scales, uint64_t n, float largest)
{
    for (uint64_t i = 0; i < n; i++) largest = log_scales[i] > largest ? log_scales[i] : largest;
    return largest;
}

/* largest: log of the largest axis, -INFINITY without rows. */
static kiln_status tally_layer(kiln_manifest *m, const kiln_layer *l, kiln_tally *t, float *largest, kiln_error *err)
{
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        const kiln_chunk *c = &l->chunks[i];
        float *planes;
        if (c->count == 0) continue;
        if (!kiln_chunk_plane(c, "log_scales"))
            return kiln_fail(err, KILN_E_INPUT, "it holds points that have no scale yet; run kiln-knn on it first");
        KILN_TRY(KILN_ALLOC(&planes, 4 * c->count, "scales", err));
        float *logits = planes + 3 * c->count;
        kiln_status st = kiln_plane_read(m, c, "log_scales", planes, 3 * c->count * sizeof *planes, err);
        if (st == KILN_OK) st = kiln_plane_read(m, c, "opacity_logits", logits, c->count * sizeof *planes, err);
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
    return 4 * KILN_BLOCK_ROWS * sizeof(float) + kiln_read_ram(3 * KILN_BLOCK_ROWS * sizeof(float)) + sizeof(kiln_tally);
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
    KILN_GO(kiln_layer_newest(m, KILN_FORM_DRAWABLE, &l, err)); /* what a renderer would get of it */
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
