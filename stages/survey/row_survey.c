/* row_survey -- see the header. */
#include "stages/survey/row_survey.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const kiln_survey_info kiln_survey_infos[KILN_SURVEY_KINDS] = {
#define X(name, ...) {__VA_ARGS__},
    KILN_SURVEY_MAP(X)
#undef X
};

static double border(kiln_survey_kind kind, int bin)
{
    return kiln_survey_infos[kind].low + bin * kiln_survey_infos[kind].width;
}
static double for_people(kiln_survey_kind kind, double v)
{
    return kiln_survey_infos[kind].is_log ? exp(v) : v;
}

double kiln_survey_border(kiln_survey_kind kind, int bin)
{
    return for_people(kind, border(kind, bin));
}

double kiln_distribution_at(const kiln_distribution *d, kiln_survey_kind kind, double share)
{
    uint64_t sum = 0;
    const double wanted = share * (double)d->rows;
    if (d->rows == 0) return NAN;
    for (int i = 0; i < KILN_SURVEY_BINS; i++) {
        sum += d->bins[i];
        if ((double)sum >= wanted && sum)
            return fmin(fmax(border(kind, i) + kiln_survey_infos[kind].width / 2, d->least),
                        d->most);
    }
    return d->most;
}

double kiln_distribution_value(const kiln_distribution *d, kiln_survey_kind kind, double share)
{
    return for_people(kind, share <= 0   ? d->least
                            : share >= 1 ? d->most
                                         : kiln_distribution_at(d, kind, share));
}

/* ---- bars ------------------------------------------------------------------------------------ */
static bool is_in(const kiln_distribution *const d[2], int bin)
{
    return d[0]->bins[bin] || d[1]->bins[bin];
}

void kiln_survey_join(kiln_survey_kind kind, const kiln_distribution *const d[2], int most_bars,
                      kiln_survey_bars *out)
{
    const bool whole = kind == KILN_SURVEY_OPACITY;
    int first = 0, last = whole ? 99 : KILN_SURVEY_BINS - 1;
    *out = (kiln_survey_bars){.first = 0};
    while (!whole && first < last && !is_in(d, first)) first++;
    while (!whole && last > first && !is_in(d, last)) last--;
    out->join = (last - first) / most_bars + 1;
    out->n = whole ? 100 / out->join + (100 % out->join != 0) : most_bars;
    out->first = first - (most_bars * out->join - (last - first + 1)) / 2;
    if (whole || out->first < 0) out->first = 0;
    for (int side = 0; side < 2; side++)
        for (int i = first; i <= last; i++)
            out->bars[side][(i - out->first) / out->join] += d[side]->bins[i];
    /* just 1 */
    for (int side = 0; whole && side < 2; side++)
        out->bars[side][out->n - 1] += d[side]->bins[last + 1];
    for (int i = 0; i < 2 * most_bars; i++)
        if (out->bars[i % 2][i / 2] > out->most) out->most = out->bars[i % 2][i / 2];
}

/* ---- rows ------------------------------------------------------------------------------------ */
static void add_survey_value(kiln_row_survey *s, kiln_survey_kind kind, double v)
{
    kiln_distribution *d = &s->of[kind];
    if (!isfinite(v)) return;
    const double bin = (v - kiln_survey_infos[kind].low) / kiln_survey_infos[kind].width;
    d->bins[bin < 0 ? 0 : bin >= KILN_SURVEY_BINS ? KILN_SURVEY_BINS - 1 : (int)bin]++;
    d->least = d->rows ? fmin(d->least, v) : v;
    d->most = d->rows ? fmax(d->most, v) : v;
    d->rows++;
}

/* ---- a block --------------------------------------------------------------------------------- */
typedef struct {
    float *log_scales, *logits, *spacing2; /* planar; spacing2 NULL: not known */
    uint64_t n;
} block;

static void block_release(block *b)
{
    free(b->log_scales);
    free(b->logits);
    free(b->spacing2);
}

static kiln_status read_survey_plane(kiln_manifest *m, const kiln_chunk *c, const char *name,
                                     uint32_t components, float **out, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC_UNSET(out, c->count * components, "a plane", err));
    return kiln_plane_read(m, c, name, *out, c->count * components * sizeof **out, err);
}

static kiln_status read_survey_block(kiln_manifest *m, const kiln_chunk *c,
                                     const kiln_chunk *spacing, block *out, kiln_error *err)
{
    out->n = c->count;
    KILN_TRY(read_survey_plane(m, c, "log_scales", 3, &out->log_scales, err));
    KILN_TRY(read_survey_plane(m, c, "opacity_logits", 1, &out->logits, err));
    if (!spacing || spacing->count != c->count || !kiln_chunk_plane(spacing, "spacing2"))
        return KILN_OK;
    return read_survey_plane(m, spacing, "spacing2", 1, &out->spacing2, err);
}

typedef struct {
    double longest, middle, logit, opacity, spacing; /* the first two and spacing are logarithms */
} row;

static row survey_row(const block *b, uint64_t i)
{
    const double x = (double)b->log_scales[i], y = (double)b->log_scales[b->n + i],
                 z = (double)b->log_scales[2 * b->n + i];
    const double longest = fmax(x, fmax(y, z)), least = fmin(x, fmin(y, z));
    return (row){.longest = longest,
                 .middle = x + y + z - longest - least,
                 .logit = (double)b->logits[i],
                 .opacity = 1 / (1 + (double)expf(-b->logits[i])),
                 .spacing =
                     b->spacing2 && b->spacing2[i] > 0 ? 0.5 * (double)logf(b->spacing2[i]) : NAN};
}

/* ---- rules at other limits ------------------------------------------------------------------- */
/* try_row has them in this order. */
static const struct {
    const char *name;
    double limits[KILN_SURVEY_LIMITS - 1]; /* that of the bake comes in between */
} tried[KILN_TRIALS] = {
    {"min-opacity", {1.0 / 255, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5}},
    {"max-spacing", {2, 4, 8, 16, 32, 64, 128}},
    {"max-extent", {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1}},
    {"max-needle", {2, 5, 10, 20, 50, 100, 1000}},
};

static void set_limits(kiln_rule_trial *t, const double limits[KILN_SURVEY_LIMITS - 1], double now)
{
    t->now = -1;
    for (int i = 0; i < KILN_SURVEY_LIMITS - 1; i++) {
        const bool same = fabs(limits[i] / now - 1) < 1e-3;
        if (t->now < 0 && (same || now < limits[i])) {
            t->now = t->n;
            t->limits[t->n++] = now;
        }
        if (!same) t->limits[t->n++] = limits[i];
    }
    if (t->now < 0 && isfinite(now) && now > 0) {
        t->now = t->n;
        t->limits[t->n++] = now;
    }
}

static void start_trials(kiln_prune_survey *s, const json_t *record)
{
    const json_t *rules = json_object_get(record, "rules");
    for (int i = 0; i < KILN_TRIALS; i++) {
        kiln_rule_trial *t = &s->trials[i];
        const double limit = kiln_json_number_of(json_object_get(rules, tried[i].name), "limit");
        t->name = tried[i].name;
        set_limits(t, tried[i].limits, limit > 0 ? limit : NAN);
    }
}

/* Limits as rows are compared with them, so that a row costs no exp: logits of opacities,
 * logarithms of the others. */
typedef struct {
    double edges[KILN_TRIALS][KILN_SURVEY_LIMITS];
    double floor, extent; /* logarithms; NAN: not known */
} trial_edges;

static trial_edges edges_of(const kiln_prune_survey *s, const json_t *record)
{
    const double spacing = kiln_json_number_of(record, "median_spacing"),
                 scale = kiln_json_number_of(record, "median_scale");
    trial_edges e = {.floor = log(fmax(spacing, scale)),
                     .extent = log(kiln_json_number_of(record, "extent"))};
    for (int k = 0; k < KILN_TRIALS; k++)
        for (int i = 0; i < s->trials[k].n; i++)
            e.edges[k][i] = log(s->trials[k].limits[i]) - (k ? 0 : log1p(-s->trials[k].limits[i]));
    return e;
}

/* NAN, where a rule does not look at the row, is neither below nor above. */
static void try_row(kiln_prune_survey *s, const trial_edges *e, const row *r)
{
    const double measures[KILN_TRIALS] = {
        r->logit, r->longest - fmax(r->spacing, e->floor) /* fmax ignores a NAN */,
        r->longest - e->extent, r->longest - r->middle};
    for (int k = 0; k < KILN_TRIALS; k++) {
        kiln_rule_trial *t = &s->trials[k];
        for (int i = 0; i < t->n; i++)
            t->touched[i] += k ? measures[k] > e->edges[k][i] : measures[k] < e->edges[k][i];
    }
}

/* ---- a layer --------------------------------------------------------------------------------- */
typedef struct {
    const kiln_bake_facts *bake;
    const kiln_layer *layer;
    kiln_row_survey *to;
    kiln_prune_survey *trials; /* NULL: none are made */
    const trial_edges *edges;
} job;

static void add_block(const job *j, const block *b)
{
    for (uint64_t i = 0; i < b->n; i++) {
        const row r = survey_row(b, i);
        add_survey_value(j->to, KILN_SURVEY_SCALE, r.longest);
        add_survey_value(j->to, KILN_SURVEY_OPACITY, r.opacity);
        add_survey_value(j->to, KILN_SURVEY_NEEDLE, r.longest - r.middle);
        add_survey_value(j->to, KILN_SURVEY_SPACING, r.spacing);
        if (j->trials) try_row(j->trials, j->edges, &r);
    }
    j->to->read += b->n;
}

/* The plane spacing2 is the layer's own, or lies beside the source layer in blocks of the same
 * names. */
static const kiln_chunk *spacing_of(const job *j, uint32_t i)
{
    const kiln_layer *beside = j->bake->layers[KILN_LAYER_spacing];
    const kiln_chunk *c = &j->layer->chunks[i];
    if (kiln_chunk_plane(c, "spacing2")) return c;
    return beside && i < beside->n_chunks && strcmp(beside->chunks[i].name, c->name) == 0
               ? &beside->chunks[i]
               : NULL;
}

static kiln_status survey(const job *j, kiln_error *err)
{
    const uint64_t step = (j->layer->count + KILN_SURVEY_ROWS - 1) / KILN_SURVEY_ROWS;
    j->to->rows = j->layer->count;
    for (uint64_t i = 0; i < j->layer->n_chunks; i += step ? step : 1) {
        block b = {.n = 0};
        const kiln_status st = read_survey_block(j->bake->m, &j->layer->chunks[i],
                                                 spacing_of(j, (uint32_t)i), &b, err);
        if (st == KILN_OK) add_block(j, &b);
        block_release(&b);
        KILN_TRY(st);
    }
    return KILN_OK;
}

static bool has_gaussians(const kiln_layer *l)
{
    return l && l->n_chunks && l->count && kiln_chunk_plane(&l->chunks[0], "log_scales") &&
           kiln_chunk_plane(&l->chunks[0], "opacity_logits");
}

kiln_status kiln_prune_survey_make(const kiln_bake_facts *b, kiln_prune_survey *out,
                                   kiln_error *err)
{
    const kiln_layer *before = b->layers[KILN_LAYER_initial] ? b->layers[KILN_LAYER_initial]
                                                             : b->layers[KILN_LAYER_source];
    const kiln_layer *after = b->layers[KILN_LAYER_pruned];
    const json_t *record = kiln_bake_stage(b, "prune")->counters;
    *out =
        (kiln_prune_survey){.has_before = has_gaussians(before), .has_after = has_gaussians(after)};
    start_trials(out, record);
    if (out->has_before) {
        const trial_edges edges = edges_of(out, record);
        const job j = {
            .bake = b, .layer = before, .to = &out->before, .trials = out, .edges = &edges};
        KILN_TRY(survey(&j, err));
    }
    if (!out->has_after) return KILN_OK;
    return survey(&(job){.bake = b, .layer = after, .to = &out->after}, err);
}
