/* tally -- numbers over a column that arrives in blocks: moments in the blocks' order, so that they
 * have the same bits whoever counted which block, and exact quantiles by nearest rank. Of finite
 * values; others are counted.
 *
 * Quantiles are looked for in three passes over the values, each of which finds some bits of their
 * keys (kernels/ranks): 12, 10 and
 * 10. The first pass counts all, the later ones what begins with the bits that are known. */
#ifndef KILN_STAGES_STATS_TALLY_H
#define KILN_STAGES_STATS_TALLY_H

#include "stages/stats/columns.h"

enum {
    KILN_STATS_QUANTILES = 9,
    KILN_STATS_MEDIAN = 4,
    KILN_STATS_PASSES = 3,
    KILN_STATS_BINS = 4096,
    KILN_STATS_BARS = 16
};
/* 1 10 20 250 500 750 980 990 999 */
extern const uint64_t kiln_stats_thousandths[KILN_STATS_QUANTILES];

/* Of a column, of one block. */
typedef struct {
    uint64_t n, nan, inf; /* n: finite */
    float min, max;
    double mean, m2;
} kiln_stats_moments;
void kiln_stats_moments_of(const kiln_stats_column *c, uint64_t n, kiln_stats_moments *out);
/* The moments of both, b behind a. */
void kiln_stats_moments_add(kiln_stats_moments *a, const kiln_stats_moments *b);

/* What is known of a column while its quantiles are looked for. */
typedef struct {
    uint64_t rank[KILN_STATS_QUANTILES]; /* among those that begin alike */
    uint32_t key[KILN_STATS_QUANTILES];  /* the bits that are known, at the end of the word */
    float min, max;
} kiln_stats_search;
void kiln_stats_search_begin(kiln_stats_search *s, const kiln_stats_moments *of);
/* Counters of a pass over a column: 4096 bins in pass 0; later, for each quantile, 1024. bars:
 * counted in pass 1, of equal width.
 */
uint32_t kiln_stats_counters(unsigned pass);
void kiln_stats_count(const kiln_stats_column *c, uint64_t n, const kiln_stats_search *s,
                      unsigned pass, uint32_t *counts);
void kiln_stats_bars(const kiln_stats_column *c, uint64_t n, const kiln_stats_search *s,
                     uint64_t bars[KILN_STATS_BARS]);
/* The bits that the pass has found. counts: summed over all blocks. */
void kiln_stats_search_pass(kiln_stats_search *s, unsigned pass, const uint64_t *counts);
/* Behind the last pass. */
float kiln_stats_quantile(const kiln_stats_search *s, uint32_t which);

#endif
