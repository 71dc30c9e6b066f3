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

void kiln_stats_moments_of(const kiln_stats_column *c, uint64_t n, kiln_stats_moments *out)
{
    kiln_stats_moments m = {.min = INFINITY, .max = -INFINITY};
    for (uint64_t i = 0; i < n; i++) {
        const float v = kiln_stats_value(c, i);
        if (!isfinite(v)) {
            m.nan += isnan(v) != 0;
            m.inf += isinf(v) != 0;
            continue;
        }
        const double d = (double)v - m.mean;
        m.n++;
        m.mean += d / (double)m.n;
        m.m2 += d * ((double)v - m.mean);
        m.min = v < m.min ? v : m.min;
        m.max = v > m.max ? v : m.max;
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

void kiln_stats_count(const kiln_stats_column *c, uint64_t n, const kiln_stats_search *s,
                      unsigned pass, uint32_t *counts)
{
    const unsigned shift = shifts[pass], known = pass ? shifts[pass - 1] : 32;
    for (uint64_t i = 0; i < n; i++) {
        const float v = kiln_stats_value(c, i);
        if (!isfinite(v)) continue;
        const uint32_t key = kiln_rank_key(v);
        if (pass == 0) {
            counts[key >> shift]++;
            continue;
        }
        for (int q = 0; q < KILN_STATS_QUANTILES; q++)
            if (key >> known == s->key[q]) counts[q * LATER_BINS + (key >> shift) % LATER_BINS]++;
    }
}

void kiln_stats_bars(const kiln_stats_column *c, uint64_t n, const kiln_stats_search *s,
                     uint64_t bars[KILN_STATS_BARS])
{
    const double width = ((double)s->max - (double)s->min) / KILN_STATS_BARS;
    for (uint64_t i = 0; i < n; i++) {
        const float v = kiln_stats_value(c, i);
        if (!isfinite(v)) continue;
        const double at = width > 0 ? ((double)v - (double)s->min) / width : KILN_STATS_BARS / 2;
        bars[at < KILN_STATS_BARS ? (unsigned)at : KILN_STATS_BARS - 1]++;
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
