/* rad_relate -- see rad_relate.h. */
#include "stages/export/rad_relate.h"

#include "base/memory.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = UINT32_MAX };

/* A source row and the row of the coarse level that has it as an end. */
typedef struct {
    uint32_t source, row;
} end_row;

/* A coarse row by its place along x. */
typedef struct {
    float x;
    uint32_t row;
} along;

typedef struct {
    const kiln_rad_level *fine, *coarse;
    uint32_t *parent;
    end_row *ends;  /* [coarse->n] */
    along *line;    /* [coarse->n] ascending */
    int64_t *lacks; /* [coarse->n] source rows */
    double *weight; /* [coarse->n] that it lacks */
} work;

uint64_t kiln_rad_relate_ram(uint64_t n_fine, uint64_t n_coarse)
{
    (void)n_fine;
    return n_coarse * (sizeof(end_row) + sizeof(along) + sizeof(int64_t) + sizeof(double));
}

/* ---- members at the ends ---------------------------------------------------------------------------------------------------- */

static int by_source(const void *a, const void *b)
{
    const end_row *x = a, *y = b;
    return (x->source > y->source) - (x->source < y->source);
}

static uint32_t find_end(const work *w, uint32_t source)
{
    const end_row key = {source, 0}, *found = bsearch(&key, w->ends, w->coarse->n, sizeof *w->ends, by_source);
    return found ? found->row : NONE;
}

static void assign(work *w, uint64_t i, uint32_t row)
{
    w->parent[i] = row;
    w->lacks[row] -= w->fine->count[i];
    w->weight[row] -= (double)w->fine->weights[i];
}

static bool holds(const work *w, uint32_t row, uint64_t i)
{
    return w->coarse->first[row] <= w->fine->first[i] && w->fine->last[i] <= w->coarse->last[row];
}

/* Rows that have the first or the last source row of a coarse one. */
static void assign_ends(work *w, const uint32_t *ends, const uint32_t *of)
{
    for (uint64_t i = 0; i < w->coarse->n; i++) w->ends[i] = (end_row){ends[i], (uint32_t)i};
    qsort(w->ends, w->coarse->n, sizeof *w->ends, by_source);
    for (uint64_t i = 0; i < w->fine->n; i++) {
        if (w->parent[i] != NONE) continue;
        const uint32_t row = find_end(w, of[i]);
        if (row != NONE && holds(w, row, i)) assign(w, i, row);
    }
}

/* ---- members between -------------------------------------------------------------------------------------------------------- */

static int by_x(const void *a, const void *b)
{
    const along *p = a, *q = b;
    if (p->x != q->x) return p->x < q->x ? -1 : 1;
    return (p->row > q->row) - (p->row < q->row);
}

typedef bool fits_fn(const work *w, uint32_t row, uint64_t i);

/* Weights are float32 sums of up to a few hundred members. */
static bool fits_exactly(const work *w, uint32_t row, uint64_t i)
{
    const double lacks = w->weight[row], has = (double)w->fine->weights[i];
    return holds(w, row, i) && w->lacks[row] >= w->fine->count[i] && fabs(lacks - has) <= 1e-5 * (double)w->coarse->weights[row];
}
static bool fits_count(const work *w, uint32_t row, uint64_t i) { return holds(w, row, i) && w->lacks[row] >= w->fine->count[i]; }
static bool fits_anyhow(const work *w, uint32_t row, uint64_t i)
{
    (void)w, (void)row, (void)i;
    return true;
}

static double distance_of(const work *w, uint32_t row, uint64_t i)
{
    double sum = 0;
    for (uint64_t c = 0; c < 3; c++) {
        const double d = (double)w->coarse->means[3 * (uint64_t)row + c] - (double)w->fine->means[3 * i + c];
        sum += d * d;
    }
    return sum;
}

static bool is_farther(double x, float other, double best)
{
    const double d = (double)other - x;
    return d * d > best;
}

static void look_at(const work *w, uint64_t at, uint64_t i, fits_fn *fits, double *best, uint32_t *found)
{
    const uint32_t row = w->line[at].row;
    if (!fits(w, row, i)) return;
    const double d = distance_of(w, row, i);
    if (d > *best || (d == *best && row > *found)) return;
    *best = d;
    *found = row;
}

/* The nearest row that fits, from the row's own place along x outwards. */
static uint32_t nearest(const work *w, uint64_t i, fits_fn *fits)
{
    const uint64_t n = w->coarse->n;
    const double x = (double)w->fine->means[3 * i];
    double best = INFINITY;
    uint32_t found = NONE;
    uint64_t low = 0, high = n;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if ((double)w->line[middle].x < x)
            low = middle + 1;
        else
            high = middle;
    }
    for (uint64_t up = low; up < n && !is_farther(x, w->line[up].x, best); up++) look_at(w, up, i, fits, &best, &found);
    for (uint64_t down = low; down-- > 0 && !is_farther(x, w->line[down].x, best);) look_at(w, down, i, fits, &best, &found);
    return found;
}

static void assign_nearest(work *w, fits_fn *fits)
{
    for (uint64_t i = 0; i < w->fine->n; i++) {
        if (w->parent[i] != NONE) continue;
        const uint32_t row = nearest(w, i, fits);
        if (row != NONE) assign(w, i, row);
    }
}

static void relate(work *w)
{
    for (uint64_t i = 0; i < w->fine->n; i++) w->parent[i] = NONE;
    for (uint64_t i = 0; i < w->coarse->n; i++) {
        w->lacks[i] = w->coarse->count[i];
        w->weight[i] = (double)w->coarse->weights[i];
        w->line[i] = (along){w->coarse->means[3 * i], (uint32_t)i};
    }
    qsort(w->line, w->coarse->n, sizeof *w->line, by_x);
    assign_ends(w, w->coarse->first, w->fine->first);
    assign_ends(w, w->coarse->last, w->fine->last);
    assign_nearest(w, fits_exactly);
    assign_nearest(w, fits_count);
    assign_nearest(w, fits_anyhow);
}

kiln_status kiln_rad_relate(const kiln_rad_level *fine, const kiln_rad_level *coarse, uint32_t *parent, kiln_error *err)
{
    work w = {.fine = fine, .coarse = coarse, .parent = parent};
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC_UNSET(&w.ends, coarse->n, "ends of merged rows", err));
    KILN_GO(KILN_ALLOC_UNSET(&w.line, coarse->n, "merged rows", err));
    KILN_GO(KILN_ALLOC_UNSET(&w.lacks, coarse->n, "merged rows", err));
    KILN_GO(KILN_ALLOC_UNSET(&w.weight, coarse->n, "merged rows", err));
    relate(&w);
done:
    free(w.ends);
    free(w.line);
    free(w.lacks);
    free(w.weight);
    return st;
}
