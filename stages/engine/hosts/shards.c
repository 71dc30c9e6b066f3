/* Cutting a list into ranges of about equal cost. Costs are added as doubles in one order, so that
 * every host comes to the same. */
#include "stages/engine/hosts/shards.h"

#include <stdbool.h>
#include <stdlib.h>

static double weight(const kiln_share *u) { return u->cost ? (double)u->cost : 1.0; }

static uint32_t shard_at(double middle, double total, uint32_t n_shards)
{
    const double at = middle / total * n_shards;
    return at >= n_shards ? n_shards - 1 : (uint32_t)at;
}

static int by_place(const void *a, const void *b)
{
    const kiln_share *x = a, *y = b;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

void kiln_shares_sort(kiln_share *units, uint64_t n)
{
    if (n) qsort(units, n, sizeof *units, by_place);
}

void kiln_shards_cut(const kiln_share *units, uint64_t n, uint32_t n_shards, uint32_t *shard_of)
{
    double total = 0, before = 0;
    for (uint64_t i = 0; i < n; i++) total += weight(&units[i]);
    for (uint64_t first = 0, end; first < n; first = end) {
        double together = weight(&units[first]);
        for (end = first + 1;
             end < n && units[first].group && units[end].group == units[first].group; end++)
            together += weight(&units[end]);
        const bool stays = together * n_shards * 2 < total;
        const uint32_t shard = shard_at(before + together / 2, total, n_shards);
        for (uint64_t i = first; i < end; i++) {
            const double own = weight(&units[i]);
            shard_of[units[i].number] =
                stays || end == first + 1 ? shard : shard_at(before + own / 2, total, n_shards);
            before += own;
        }
    }
}
