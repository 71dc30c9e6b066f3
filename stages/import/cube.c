/* cube -- the root cube of the scene, fixed at import so that pruning moves no border: exact
 * nearest ranks of each axis over all blocks, in two passes over their means.
 *
 * Lanes. Each pass decodes all means, so blocks are shared among lanes, at most one for each
 * thread: a lane has a connection, a runner on the CPU and 6 MiB of counts. Counts are whole
 * numbers, so their sums do not depend on who counted what. The worker's own device has no part in
 * it: counting takes less time than copying the means there. */
#include "base/checked.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "stages/import/blocks.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4 }; /* per axis: 0.1 %, 99.9 %, 2 %, 98 % */
enum { COUNTS = 3 * RANKS * KILN_RANK_BINS };
/* of a lane at least: decoding them takes as long as opening a connection and clearing counts */
enum { PARTS_EACH = 4 };

typedef struct {
    uint64_t rank; /* reduced as bins are found */
    uint32_t high;
    float value;
} rank_search;

typedef struct {
    kiln_manifest *manifest;
    kiln_runner *runner;
    float *means;     /* [3][largest part] */
    uint64_t *counts; /* [3 * RANKS][KILN_RANK_BINS]; pass 0 uses the first of each axis */
} lane;

typedef struct {
    const kiln_cube_part *parts;
    uint64_t n_parts, n;
    lane *lanes;
    unsigned n_lanes;
    rank_search search[3][RANKS];
} cube_work;

static uint64_t *counts_of(const lane *l, uint32_t axis, uint32_t rank)
{
    return l->counts + (axis * RANKS + rank) * (size_t)KILN_RANK_BINS;
}

static kiln_status count_part(const cube_work *c, const lane *l, const kiln_cube_part *part,
                              uint32_t pass, kiln_error *err)
{
    if (part->n == 0) return KILN_OK;
    KILN_TRY(kiln_manifest_get_blob(l->manifest, part->means, l->means,
                                    part->n * 3 * sizeof *l->means, err));
    for (uint32_t a = 0; a < 3; a++)
        for (uint32_t k = 0; k < (pass == 0 ? 1u : RANKS); k++) {
            kiln_ranks_args args = {.n = part->n,
                                    .values = l->means + a * part->n,
                                    .pass = pass,
                                    .high = c->search[a][k].high,
                                    .counts = counts_of(l, a, k)};
            KILN_TRY(kiln_runner_run(l->runner, KILN_OP_ranks, &args, err));
        }
    return KILN_OK;
}

/* The sums of all lanes' counts are in the first lane. */
static kiln_status count_all(const cube_work *c, uint32_t pass, kiln_error *err)
{
    kiln_error first_error = {0};
    uint64_t failed = UINT64_MAX;
#pragma omp parallel for schedule(static, 1) num_threads(c->n_lanes) if (c->n_lanes > 1)
    for (unsigned i = 0; i < c->n_lanes; i++)
        memset(c->lanes[i].counts, 0, COUNTS * sizeof *c->lanes[i].counts);
#pragma omp parallel for schedule(dynamic, 1) num_threads(c->n_lanes) if (c->n_lanes > 1)
    for (uint64_t p = 0; p < c->n_parts; p++) {
        kiln_error e = {0};
        if (count_part(c, &c->lanes[omp_get_thread_num()], &c->parts[p], pass, &e) == KILN_OK)
            continue;
#pragma omp critical(kiln_cube_error)
        if (p < failed) {
            failed = p;
            first_error = e;
        }
    }
    if (failed != UINT64_MAX) return kiln_fail(err, first_error.status, "%s", first_error.msg);
#pragma omp parallel for num_threads(c->n_lanes) if (c->n_lanes > 1)
    for (size_t k = 0; k < COUNTS; k++)
        for (unsigned i = 1; i < c->n_lanes; i++) c->lanes[0].counts[k] += c->lanes[i].counts[k];
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
            s->high = kiln_rank_pick(counts_of(&c->lanes[0], a, 0), &s->rank);
        }
    KILN_TRY(count_all(c, 1, err));
    for (uint32_t a = 0; a < 3; a++)
        for (uint32_t k = 0; k < RANKS; k++) {
            rank_search *s = &c->search[a][k];
            s->value = kiln_rank_value(s->high << 16 |
                                       kiln_rank_pick(counts_of(&c->lanes[0], a, k), &s->rank));
        }
    return KILN_OK;
}

/* ---- lanes ----------------------------------------------------------------------------------- */

/* The first lane has the worker's own connection. */
static kiln_status open_lane(lane *l, kiln_worker *w, bool first, uint64_t largest, kiln_error *err)
{
    const kiln_runner_options options = {.device = KILN_RUNNER_CPU, .threads = 1};
    KILN_TRY(first ? kiln_worker_manifest(w, &l->manifest, err)
                   : kiln_worker_reader(w, &l->manifest, err));
    KILN_TRY(kiln_runner_new(&options, &l->runner, err));
    KILN_TRY(KILN_ALLOC_UNSET(&l->means, 3 * largest, "means of a block", err));
    return KILN_ALLOC_UNSET(&l->counts, COUNTS, "ranks of the means", err);
}

static kiln_status open_lanes(cube_work *c, kiln_worker *w, uint64_t largest, kiln_error *err)
{
    const unsigned n =
        (unsigned)kiln_min_u64(kiln_worker_threads(w), kiln_div_up(c->n_parts, PARTS_EACH));
    KILN_TRY(KILN_ALLOC(&c->lanes, n, "lanes of a count", err));
    for (; c->n_lanes < n; c->n_lanes++) {
        const kiln_status st = open_lane(&c->lanes[c->n_lanes], w, c->n_lanes == 0, largest, err);
        if (st == KILN_OK) continue;
        c->n_lanes++; /* for what it has */
        return st;
    }
    return KILN_OK;
}

static void close_lanes(cube_work *c)
{
    for (unsigned i = 0; i < c->n_lanes; i++) {
        if (i > 0) kiln_manifest_close(c->lanes[i].manifest);
        kiln_runner_free(c->lanes[i].runner);
        free(c->lanes[i].means);
        free(c->lanes[i].counts);
    }
    free(c->lanes);
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
    return COUNTS * sizeof(uint64_t) + means + kiln_read_ram(means);
}

kiln_status kiln_cube_unit(kiln_worker *w, const kiln_cube_part *parts, uint64_t n, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_cube out;
    cube_work c = {.parts = parts, .n_parts = n};
    uint64_t largest = 0;
    memset(&out, 0, sizeof out);
    for (uint64_t p = 0; p < n; p++) {
        c.n += parts[p].n;
        largest = kiln_max_u64(largest, parts[p].n);
    }
    if (c.n == 0) return kiln_fail(err, KILN_E_BUG, "no rows have no root cube");
    KILN_GO(open_lanes(&c, w, largest, err));
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
    close_lanes(&c);
    return st;
}
