/* tally -- see the header. */
#include "stages/stats/tally.h"

#include "kernels/ranks/ranks.h"

#include <math.h>
#include <string.h>

const uint64_t kiln_stats_thousandths[KILN_STATS_QUANTILES] = {1,   10,  20,  250, 500,
                                                               750, 980, 990, 999};

/* of the bits that a pass finds; those above are known */
static const unsigned shifts[KILN_STATS_PASSES] = {20, 10, 0};
enum { LATER_BINS = 1024 };
enum { RUN = 1024, LANES = 4 };

/* At most RUN values of a column, as float32. Nearly always all are finite, and then none of them is
 * tested on its own. */
typedef struct {
    const float *values;
    uint64_t n;
    bool finite;
} value_run;

static bool all_finite(const float *values, uint64_t n)
{
    float zeros[2 * LANES] = {0}, sum = 0; /* 0 times infinity or NaN is NaN */
    uint64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES)
        for (uint64_t k = 0; k < 2 * LANES; k++) zeros[k] += values[i + k] * 0.0f;
    for (; i < n; i++) sum += values[i] * 0.0f;
    for (int k = 0; k < 2 * LANES; k++) sum += zeros[k];
    return !isnan(sum);
}

static value_run values_of(const kiln_stats_column *c, uint64_t first, uint64_t n,
                           float converted[RUN])
{
    value_run r = {.values = converted, .n = n - first < RUN ? n - first : RUN};
    if (c->type == KILN_TYPE_F32)
        r.values = (const float *)c->data + first;
    else
        for (uint64_t i = 0; i < r.n; i++) converted[i] = kiln_stats_value(c, first + i);
    r.finite = all_finite(r.values, r.n);
    return r;
}

/* Sums go by the row's number into LANES partial ones, which need not wait for each other. */
typedef struct {
    double sum[LANES];
    float min[LANES], max[LANES];
} lanes;

static void add_value(float v, int k, lanes *l)
{
    l->sum[k] += (double)v;
    l->min[k] = v < l->min[k] ? v : l->min[k];
    l->max[k] = v > l->max[k] ? v : l->max[k];
}

static void add_moments(const value_run *r, kiln_stats_moments *m, lanes *l)
{
    uint64_t i = 0;
    m->n += r->n;
    for (; r->finite && i + LANES <= r->n; i += LANES)
        for (int k = 0; k < LANES; k++) add_value(r->values[i + (uint64_t)k], k, l);
    for (; i < r->n; i++) {
        const float v = r->values[i];
        if (isfinite(v)) add_value(v, (int)(i % LANES), l);
        m->n -= !isfinite(v);
        m->nan += isnan(v) != 0;
        m->inf += isinf(v) != 0;
    }
}

static void add_squares(const value_run *r, double mean, lanes *l)
{
    uint64_t i = 0;
    for (; r->finite && i + LANES <= r->n; i += LANES)
        for (uint64_t k = 0; k < LANES; k++) {
            const double d = (double)r->values[i + k] - mean;
            l->sum[k] += d * d;
        }
    for (; i < r->n; i++) {
        const double d = (double)r->values[i] - mean;
        if (isfinite(r->values[i])) l->sum[i % LANES] += d * d;
    }
}

static double sum_lanes(const lanes *l)
{
    double sum = 0;
    for (int k = 0; k < LANES; k++) sum += l->sum[k];
    return sum;
}

void kiln_stats_moments_of(const kiln_stats_column *c, uint64_t n, kiln_stats_moments *out)
{
    kiln_stats_moments m = {.min = INFINITY, .max = -INFINITY};
    lanes of = {{0}, {0}, {0}}, squares = {{0}, {0}, {0}};
    float converted[RUN];
    for (int k = 0; k < LANES; k++) of.min[k] = INFINITY, of.max[k] = -INFINITY;
    for (uint64_t i = 0; i < n; i += RUN) {
        const value_run r = values_of(c, i, n, converted);
        add_moments(&r, &m, &of);
    }
    if (m.n) m.mean = sum_lanes(&of) / (double)m.n;
    for (uint64_t i = 0; i < n; i += RUN) {
        const value_run r = values_of(c, i, n, converted);
        add_squares(&r, m.mean, &squares);
    }
    m.m2 = sum_lanes(&squares);
    for (int k = 0; k < LANES; k++) {
        m.min = of.min[k] < m.min ? of.min[k] : m.min;
        m.max = of.max[k] > m.max ? of.max[k] : m.max;
    }
    *out = m;
}

void kiln_stats_moments_add(kiln_stats_moments *a, const kiln_stats_moments *b)
{
    const uint64_t n = a->n + b->n;
    const double d = b->mean - a->mean;
    a->nan += b->nan;
    a->inf += b->inf;
    if (b->n == 0) return;
    a->m2 += b->m2 + d * d * (double)a->n * (double)b->n / (double)n;
    a->mean += d * (double)b->n / (double)n;
    a->min = b->min < a->min ? b->min : a->min;
    a->max = b->max > a->max ? b->max : a->max;
    a->n = n;
}

void kiln_stats_search_begin(kiln_stats_search *s, const kiln_stats_moments *of)
{
    memset(s, 0, sizeof *s);
    s->min = of->min;
    s->max = of->max;
    for (int q = 0; q < KILN_STATS_QUANTILES && of->n; q++)
        s->rank[q] = kiln_rank_nearest(of->n, kiln_stats_thousandths[q]);
}

uint32_t kiln_stats_counters(unsigned pass)
{
    return pass == 0 ? KILN_STATS_BINS : KILN_STATS_QUANTILES * LATER_BINS;
}

/* Bit q: keys that begin with these 12 bits may be those of quantile q. Few keys are any's, so most
 * values cost one look. */
static void mark_prefixes(const kiln_stats_search *s, unsigned known,
                          uint16_t candidates[KILN_STATS_BINS])
{
    memset(candidates, 0, KILN_STATS_BINS * sizeof *candidates);
    for (int q = 0; q < KILN_STATS_QUANTILES; q++)
        candidates[s->key[q] >> (shifts[0] - known)] |= (uint16_t)(1u << q);
}

static void count_first(const value_run *r, uint32_t *counts)
{
    for (uint64_t i = 0; i < r->n; i++)
        if (r->finite || isfinite(r->values[i])) counts[kiln_rank_key(r->values[i]) >> shifts[0]]++;
}

static void count_later(const value_run *r, const kiln_stats_search *s, unsigned pass,
                        const uint16_t *candidates, uint32_t *counts)
{
    const unsigned shift = shifts[pass], known = shifts[pass - 1];
    for (uint64_t i = 0; i < r->n; i++) {
        const uint32_t key = kiln_rank_key(r->values[i]);
        unsigned of = candidates[key >> shifts[0]];
        if (of == 0 || !(r->finite || isfinite(r->values[i]))) continue;
        for (unsigned q = 0; of; q++, of >>= 1)
            if (of % 2 && key >> known == s->key[q])
                counts[q * LATER_BINS + (key >> shift) % LATER_BINS]++;
    }
}

void kiln_stats_count(const kiln_stats_column *c, uint64_t n, const kiln_stats_search *s,
                      unsigned pass, uint32_t *counts)
{
    uint16_t candidates[KILN_STATS_BINS];
    float converted[RUN];
    if (pass) mark_prefixes(s, shifts[pass - 1], candidates);
    for (uint64_t i = 0; i < n; i += RUN) {
        const value_run r = values_of(c, i, n, converted);
        if (pass == 0)
            count_first(&r, counts);
        else
            count_later(&r, s, pass, candidates, counts);
    }
}

static unsigned bar_of(float v, const kiln_stats_search *s, double width)
{
    const double at = width > 0 ? ((double)v - (double)s->min) / width : KILN_STATS_BARS / 2;
    return at < KILN_STATS_BARS ? (unsigned)(int)at : KILN_STATS_BARS - 1;
}

void kiln_stats_bars(const kiln_stats_column *c, uint64_t n, const kiln_stats_search *s,
                     uint64_t bars[KILN_STATS_BARS])
{
    const double width = ((double)s->max - (double)s->min) / KILN_STATS_BARS;
    float converted[RUN];
    for (uint64_t first = 0; first < n; first += RUN) {
        const value_run r = values_of(c, first, n, converted);
        uint32_t counts[LANES][KILN_STATS_BARS] = {{0}}; /* neighbours often fall into one bar */
        for (uint64_t i = 0; i < r.n; i++)
            if (r.finite || isfinite(r.values[i]))
                counts[i % LANES][bar_of(r.values[i], s, width)]++;
        for (int k = 0; k < LANES; k++)
            for (int b = 0; b < KILN_STATS_BARS; b++) bars[b] += counts[k][b];
    }
}

void kiln_stats_search_pass(kiln_stats_search *s, unsigned pass, const uint64_t *counts)
{
    const uint32_t bins = pass ? LATER_BINS : KILN_STATS_BINS;
    for (uint32_t q = 0; q < KILN_STATS_QUANTILES; q++) {
        const uint64_t *of = counts + (pass ? q * LATER_BINS : 0);
        uint32_t bin = 0;
        for (; bin + 1 < bins && s->rank[q] >= of[bin]; bin++) s->rank[q] -= of[bin];
        s->key[q] = pass ? s->key[q] * LATER_BINS + bin : bin;
    }
}

float kiln_stats_quantile(const kiln_stats_search *s, uint32_t which)
{
    return kiln_rank_value(s->key[which]);
}
