/* stats_unit -- exact order statistics of the whole input: ranks of the means, median spacing, median longest axis. In
 * fixed memory but for decoded planes; two passes of counting for each. And the scales of another bake, for --against. */
#include "stages/prune/tally.h"
#include "stages/prune/units.h"

#include <stdlib.h>
#include <string.h>

typedef enum { SERIES_X, SERIES_Y, SERIES_Z, SERIES_SPACING, SERIES_SCALE, N_SERIES } series;

typedef struct {
    kiln_worker *w;
    kiln_prune_input *in;
    float *longest;   /* of one block */
    uint64_t *counts; /* [KILN_RANK_BINS] */
} counting;

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

static kiln_status count_pass(counting *c, series s, uint32_t pass, uint32_t high, kiln_error *err)
{
    memset(c->counts, 0, KILN_RANK_BINS * sizeof *c->counts);
    for (uint32_t i = 0; i < c->in->layer->n_chunks; i++) {
        kiln_ranks_args a = {.n = c->in->layer->chunks[i].count, .pass = pass, .high = high, .counts = c->counts};
        if (a.n == 0) continue;
        KILN_TRY(values_of(c, s, i, &a.values, err));
        KILN_TRY(KILN_WORK(c->w, ranks, &a, err));
    }
    return KILN_OK;
}

/* The elements of these ranks. */
static kiln_status elements_at(counting *c, series s, unsigned n, const uint64_t *ranks, float *out, kiln_error *err)
{
    uint64_t within[2];
    uint32_t high[2];
    KILN_TRY(count_pass(c, s, 0, 0, err));
    for (unsigned i = 0; i < n; i++) {
        within[i] = ranks[i];
        high[i] = kiln_rank_pick(c->counts, &within[i]);
    }
    for (unsigned i = 0; i < n; i++) {
        if (i == 0 || high[i] != high[i - 1]) KILN_TRY(count_pass(c, s, 1, high[i], err));
        out[i] = kiln_rank_value(high[i] << 16 | kiln_rank_pick(c->counts, &within[i]));
    }
    return KILN_OK;
}

static kiln_status statistics(counting *c, kiln_prune_stats *s, kiln_error *err)
{
    const uint64_t ends[2] = {kiln_rank_nearest(s->n, 1), kiln_rank_nearest(s->n, 999)}, middle = kiln_rank_nearest(s->n, 500);
    for (int a = 0; a < 3; a++) {
        float v[2];
        KILN_TRY(elements_at(c, (series)(SERIES_X + a), 2, ends, v, err));
        s->lo[a] = v[0];
        s->hi[a] = v[1];
    }
    KILN_TRY(elements_at(c, SERIES_SPACING, 1, &middle, &s->median_spacing2, err));
    return elements_at(c, SERIES_SCALE, 1, &middle, &s->median_log_scale, err);
}

kiln_status kiln_prune_stats_unit(kiln_worker *w, const kiln_prune_request *q, kiln_error *err)
{
    counting c = {.w = w};
    kiln_prune_stats s = {0};
    kiln_status st;
    KILN_TRY(kiln_prune_input_get(w, q->head, &c.in, err));
    s.n = c.in->layer->count;
    KILN_GO(KILN_ALLOC(&c.longest, c.in->largest, "scales", err));
    KILN_GO(KILN_ALLOC(&c.counts, KILN_RANK_BINS, "rank counts", err));
    if (s.n) KILN_GO(statistics(&c, &s, err));
    KILN_GO(kiln_worker_put(w, "statistics", &s, sizeof s, 4, err));
done:
    free(c.counts);
    free(c.longest);
    return st;
}

/* ---- another bake --------------------------------------------------------------------------------------------------- */
/* What a renderer would get of it: the first of these layers that it has. */
static kiln_status drawn_layer(kiln_manifest *m, kiln_layer **out, kiln_error *err)
{
    static const char *const kinds[] = {"baked", "pruned", "initial", "source"};
    kiln_status st = KILN_E_STALE;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && st == KILN_E_STALE; i++) st = kiln_layer_get(m, kinds[i], out, err);
    return st;
}

static kiln_status tally_layer(kiln_manifest *m, const kiln_layer *l, kiln_tally *t, kiln_error *err)
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
        if (st == KILN_OK) kiln_tally_rows(t, 0, c->count, planes, logits, NULL);
        t->rows += c->count;
        free(planes);
        KILN_TRY(st);
    }
    return KILN_OK;
}

kiln_status kiln_prune_scales_unit(kiln_worker *w, const kiln_prune_request *q, kiln_error *err)
{
    kiln_manifest *m = NULL;
    kiln_layer *l = NULL;
    kiln_tally *t = NULL;
    kiln_status st;
    KILN_GO(KILN_ALLOC(&t, 1, "a tally", err));
    KILN_GO(kiln_manifest_open(q->text, KILN_OPEN_READ, "prune", true, &m, err));
    KILN_GO(drawn_layer(m, &l, err));
    KILN_GO(tally_layer(m, l, t, err));
    KILN_GO(kiln_worker_put(w, "tally", t, sizeof *t, 8, err));
done:
    if (st != KILN_OK) kiln_note(err, "--against '%s'", q->text);
    kiln_layer_free(l);
    kiln_manifest_close(m);
    free(t);
    return st;
}
