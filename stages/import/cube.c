/* cube -- the root cube of the scene, fixed at import so that pruning moves no border: exact nearest ranks
 * of each axis over all blocks, in two passes over their means and 6 MiB of counts. */
#include "base/memory.h"
#include "stages/import/blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4 }; /* per axis: 0.1 %, 99.9 %, 2 %, 98 % */

typedef struct {
    uint64_t rank; /* reduced as bins are found */
    uint32_t high;
    float value;
} rank_search;

typedef struct {
    kiln_worker *w;
    const kiln_cube_part *parts;
    uint64_t n_parts, n;
    float *means;     /* [3][largest part] */
    uint64_t *counts; /* [3 * RANKS][KILN_RANK_BINS]; pass 0 uses the first of each axis */
    rank_search search[3][RANKS];
} cube_work;

static uint64_t *counts_of(const cube_work *c, uint32_t axis, uint32_t rank)
{
    return c->counts + (axis * RANKS + rank) * (size_t)KILN_RANK_BINS;
}

static kiln_status count_part(cube_work *c, const kiln_cube_part *part, uint32_t pass, kiln_error *err)
{
    for (uint32_t a = 0; a < 3; a++)
        for (uint32_t k = 0; k < (pass == 0 ? 1u : RANKS); k++) {
            kiln_ranks_args args = {.n = part->n,
                                    .values = c->means + a * part->n,
                                    .pass = pass,
                                    .high = c->search[a][k].high,
                                    .counts = counts_of(c, a, k)};
            KILN_TRY(KILN_WORK(c->w, ranks, &args, err));
        }
    return KILN_OK;
}

static kiln_status count_all(cube_work *c, uint32_t pass, kiln_error *err)
{
    kiln_manifest *m;
    KILN_TRY(kiln_worker_manifest(c->w, &m, err));
    memset(c->counts, 0, 3 * RANKS * (size_t)KILN_RANK_BINS * sizeof *c->counts);
    for (uint64_t p = 0; p < c->n_parts; p++) {
        if (c->parts[p].n == 0) continue;
        KILN_TRY(kiln_manifest_get_blob(m, c->parts[p].means, c->means, c->parts[p].n * 3 * sizeof *c->means, err));
        KILN_TRY(count_part(c, &c->parts[p], pass, err));
    }
    return KILN_OK;
}

static kiln_status find_ranks(cube_work *c, kiln_error *err)
{
    static const uint64_t thousandths[RANKS] = {1, 999, 20, 980};
    KILN_TRY(count_all(c, 0, err));
    for (uint32_t a = 0; a < 3; a++)
        for (uint32_t k = 0; k < RANKS; k++) {
            rank_search *s = &c->search[a][k];
            s->rank = kiln_rank_nearest(c->n, thousandths[k]);
            s->high = kiln_rank_pick(counts_of(c, a, 0), &s->rank);
        }
    KILN_TRY(count_all(c, 1, err));
    for (uint32_t a = 0; a < 3; a++)
        for (uint32_t k = 0; k < RANKS; k++) {
            rank_search *s = &c->search[a][k];
            s->value = kiln_rank_value(s->high << 16 | kiln_rank_pick(counts_of(c, a, k), &s->rank));
        }
    return KILN_OK;
}

void kiln_root_cube(const float lo[3], const float hi[3], double centre[3], double *half)
{
    double widest = 0, h = 0x1p-20;
    for (uint32_t a = 0; a < 3; a++) widest = fmax(widest, ((double)hi[a] - (double)lo[a]) / 2);
    while (h < 1.01 * widest) h *= 2;
    for (uint32_t a = 0; a < 3; a++) {
        double step = h / 1024;
        centre[a] = floor(((double)lo[a] + (double)hi[a]) / 2 / step + 0.5) * step;
    }
    *half = h;
}

uint64_t kiln_cube_ram(uint64_t largest_block)
{
    const uint64_t means = 3 * largest_block * sizeof(float);
    return 3 * RANKS * (uint64_t)KILN_RANK_BINS * sizeof(uint64_t) + means + kiln_read_ram(means);
}

kiln_status kiln_cube_unit(kiln_worker *w, const kiln_cube_part *parts, uint64_t n, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_cube out;
    cube_work c = {.w = w, .parts = parts, .n_parts = n};
    uint64_t largest = 0;
    memset(&out, 0, sizeof out);
    for (uint64_t p = 0; p < n; p++) {
        c.n += parts[p].n;
        largest = parts[p].n > largest ? parts[p].n : largest;
    }
    if (c.n == 0) return kiln_fail(err, KILN_E_BUG, "the root cube of no rows");
    KILN_GO(KILN_ALLOC(&c.means, 3 * largest, "means of a block", err));
    KILN_GO(KILN_ALLOC(&c.counts, 3 * RANKS * (uint64_t)KILN_RANK_BINS, "ranks of the means", err));
    KILN_GO(find_ranks(&c, err));
    float lo[3], hi[3];
    for (uint32_t a = 0; a < 3; a++) {
        lo[a] = c.search[a][0].value;
        hi[a] = c.search[a][1].value;
        out.inner_lo[a] = c.search[a][2].value;
        out.inner_hi[a] = c.search[a][3].value;
    }
    kiln_root_cube(lo, hi, out.centre, &out.half);
    KILN_GO(kiln_worker_put(w, "cube", &out, sizeof out, 1, err));
done:
    free(c.counts);
    free(c.means);
    return st;
}
