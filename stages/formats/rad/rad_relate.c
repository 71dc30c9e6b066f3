/* rad_relate -- see rad_relate.h. */
#include "stages/formats/rad/rad_relate.h"

#include "base/memory.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Rows to either side along x among which a near one is looked for: of n rows that lack members the
 * nearest is some n^(2/3) away.
 */
enum { NONE = UINT32_MAX, LOOKS = 1024 };

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
    end_row *ends; /* [coarse->n] */
    along *line;   /* [n_line] coarse rows along x */
    uint64_t n_line;
    int64_t *lacks; /* [coarse->n] source rows */
    double *weight; /* [coarse->n] that it lacks */
    along *left;    /* [fine->n] rows without a row above, along x */
} work;

uint64_t kiln_rad_relate_ram(uint64_t n_fine, uint64_t n_coarse)
{
    return n_fine * sizeof(along) +
           n_coarse * (sizeof(end_row) + sizeof(along) + sizeof(int64_t) + sizeof(double));
}

/* ---- members at the ends --------------------------------------------------------------------- */

static int by_source(const void *a, const void *b)
{
    const end_row *x = a, *y = b;
    return (x->source > y->source) - (x->source < y->source);
}

static uint32_t find_end(const work *w, uint32_t source)
{
    const end_row key = {source, 0},
                  *found = bsearch(&key, w->ends, w->coarse->n, sizeof *w->ends, by_source);
    return found ? found->row : NONE;
}

static void assign_parent(work *w, uint64_t i, uint32_t row)
{
    w->parent[i] = row;
    w->lacks[row] -= w->fine->count[i];
    w->weight[row] -= (double)w->fine->weights[i];
}

static bool range_holds(const work *w, uint32_t row, uint64_t i)
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
        if (row != NONE && range_holds(w, row, i)) assign_parent(w, i, row);
    }
}

/* ---- members between ------------------------------------------------------------------------- */

static int by_x(const void *a, const void *b)
{
    const along *p = a, *q = b;
    if (p->x != q->x) return p->x < q->x ? -1 : 1;
    return (p->row > q->row) - (p->row < q->row);
}

typedef bool fits_fn(const work *w, uint32_t row, uint64_t i);

/* Weights are sums in float32, of few rows at a time: off by some 1e-7. A wider tolerance takes any
 * row that weighs nothing. */
static bool fits_exactly(const work *w, uint32_t row, uint64_t i)
{
    const double lacks = w->weight[row], has = (double)w->fine->weights[i];
    return range_holds(w, row, i) && w->lacks[row] >= w->fine->count[i] &&
           fabs(lacks - has) <= 1e-6 * (double)w->coarse->weights[row];
}
static bool fits_count(const work *w, uint32_t row, uint64_t i)
{
    return range_holds(w, row, i) && w->lacks[row] >= w->fine->count[i];
}
static bool fits_anyhow(const work *w, uint32_t row, uint64_t i)
{
    (void)w, (void)row, (void)i;
    return true;
}

static double distance_of(const work *w, uint32_t row, uint64_t i)
{
    double sum = 0;
    for (uint64_t c = 0; c < 3; c++) {
        const double d =
            (double)w->coarse->means[3 * (uint64_t)row + c] - (double)w->fine->means[3 * i + c];
        sum += d * d;
    }
    return sum;
}

static bool is_farther(double x, float other, double best)
{
    const double d = (double)other - x;
    return d * d > best;
}

static void compare_parent(const work *w, uint64_t at, uint64_t i, fits_fn *fits, double *best,
                           uint32_t *found)
{
    const uint32_t row = w->line[at].row;
    if (!fits(w, row, i)) return;
    const double d = distance_of(w, row, i);
    if (d > *best || (d == *best && row > *found)) return;
    *best = d;
    *found = row;
}

/* The first of a line at or behind x. */
static uint64_t place_along(const along *line, uint64_t n, double x)
{
    uint64_t low = 0, high = n;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if ((double)line[middle].x < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The nearest row that fits, from the row's own place along x outwards, of LOOKS to either side. */
static uint32_t nearest_parent(const work *w, uint64_t i, fits_fn *fits)
{
    const double x = (double)w->fine->means[3 * i];
    const uint64_t from = place_along(w->line, w->n_line, x);
    const uint64_t end = w->n_line - from < LOOKS ? w->n_line : from + LOOKS,
                   begin = from < LOOKS ? 0 : from - LOOKS;
    double best = INFINITY;
    uint32_t found = NONE;
    for (uint64_t up = from; up < end && !is_farther(x, w->line[up].x, best); up++)
        compare_parent(w, up, i, fits, &best, &found);
    for (uint64_t down = from; down-- > begin && !is_farther(x, w->line[down].x, best);)
        compare_parent(w, down, i, fits, &best, &found);
    return found;
}

static void assign_nearest(work *w, fits_fn *fits)
{
    for (uint64_t i = 0; i < w->fine->n; i++) {
        if (w->parent[i] != NONE) continue;
        const uint32_t row = nearest_parent(w, i, fits);
        if (row != NONE) assign_parent(w, i, row);
    }
}

/* The coarse rows along x: those that lack any, or all. */
static void line_up(work *w, bool all)
{
    w->n_line = 0;
    for (uint64_t i = 0; i < w->coarse->n; i++)
        if (all || w->lacks[i] > 0)
            w->line[w->n_line++] = (along){w->coarse->means[3 * i], (uint32_t)i};
    qsort(w->line, w->n_line, sizeof *w->line, by_x);
}

/* ---- several members between ----------------------------------------------------------------- */

/* The nearest rows without a parent that a coarse row may have. */
enum { NEAR = 16 };
typedef struct {
    uint32_t row[NEAR];
    double distance[NEAR];
    uint32_t n;
} choice;

static void offer_parent(choice *c, uint32_t row, double distance)
{
    uint32_t at = c->n;
    if (at == NEAR && !(distance < c->distance[--at])) return;
    if (c->n < NEAR) c->n++;
    for (; at > 0 && c->distance[at - 1] > distance; at--) {
        c->row[at] = c->row[at - 1];
        c->distance[at] = c->distance[at - 1];
    }
    c->row[at] = row;
    c->distance[at] = distance;
}

/* Do these members have just the count and the weight that the row lacks? */
static bool completes_parent(const work *w, uint32_t row, const uint32_t *members, uint32_t n)
{
    int64_t count = 0;
    double weight = 0;
    for (uint32_t i = 0; i < n; i++) {
        count += w->fine->count[members[i]];
        weight += (double)w->fine->weights[members[i]];
    }
    return count == w->lacks[row] &&
           fabs(weight - w->weight[row]) <= 1e-6 * (double)w->coarse->weights[row];
}

/* The first of all sets of one, two and three that fits; those of nearer rows come first. */
static uint32_t find_members(const work *w, uint32_t row, const choice *c, uint32_t members[3])
{
    for (uint32_t i = 0; i < c->n; i++) {
        members[0] = c->row[i];
        if (completes_parent(w, row, members, 1)) return 1;
    }
    for (uint32_t i = 1; i < c->n; i++)
        for (uint32_t k = 0; k < i; k++) {
            members[0] = c->row[k], members[1] = c->row[i];
            if (completes_parent(w, row, members, 2)) return 2;
        }
    for (uint32_t i = 2; i < c->n; i++)
        for (uint32_t k = 1; k < i; k++)
            for (uint32_t j = 0; j < k; j++) {
                members[0] = c->row[j], members[1] = c->row[k], members[2] = c->row[i];
                if (completes_parent(w, row, members, 3)) return 3;
            }
    return 0;
}

/* Those near a coarse row of the rows without one, which are in `left` along x. */
static void find_near(const work *w, uint32_t row, uint64_t n_left, choice *c)
{
    const double x = (double)w->coarse->means[3 * (uint64_t)row];
    const uint64_t from = place_along(w->left, n_left, x);
    const uint64_t end = n_left - from < LOOKS ? n_left : from + LOOKS,
                   begin = from < LOOKS ? 0 : from - LOOKS;
    c->n = 0;
    for (uint64_t k = from;
         k < end && !(c->n == NEAR && is_farther(x, w->left[k].x, c->distance[NEAR - 1])); k++) {
        const uint32_t one = w->left[k].row;
        if (w->parent[one] == NONE && fits_count(w, row, one))
            offer_parent(c, one, distance_of(w, row, one));
    }
    for (uint64_t k = from;
         k-- > begin && !(c->n == NEAR && is_farther(x, w->left[k].x, c->distance[NEAR - 1]));) {
        const uint32_t one = w->left[k].row;
        if (w->parent[one] == NONE && fits_count(w, row, one))
            offer_parent(c, one, distance_of(w, row, one));
    }
}

static void assign_sets(work *w)
{
    uint64_t n_left = 0;
    for (uint64_t i = 0; i < w->fine->n; i++)
        if (w->parent[i] == NONE) w->left[n_left++] = (along){w->fine->means[3 * i], (uint32_t)i};
    qsort(w->left, n_left, sizeof *w->left, by_x);
    for (uint32_t row = 0; row < w->coarse->n && n_left; row++) {
        choice c;
        uint32_t members[3];
        if (w->lacks[row] <= 0) continue;
        find_near(w, row, n_left, &c);
        const uint32_t n = find_members(w, row, &c, members);
        for (uint32_t i = 0; i < n; i++) assign_parent(w, members[i], row);
    }
}

static void find_parents(work *w)
{
    for (uint64_t i = 0; i < w->fine->n; i++) w->parent[i] = NONE;
    for (uint64_t i = 0; i < w->coarse->n; i++) {
        w->lacks[i] = w->coarse->count[i];
        w->weight[i] = (double)w->coarse->weights[i];
    }
    assign_ends(w, w->coarse->first, w->fine->first);
    assign_ends(w, w->coarse->last, w->fine->last);
    line_up(w, false);
    assign_nearest(w, fits_exactly);
    assign_sets(w);
    line_up(w, false);
    assign_nearest(w, fits_count);
    line_up(w, true);
    assign_nearest(w, fits_anyhow);
}

kiln_status kiln_rad_relate(const kiln_rad_level *fine, const kiln_rad_level *coarse,
                            uint32_t *parent, kiln_error *err)
{
    work w = {.fine = fine, .coarse = coarse, .parent = parent};
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC_UNSET(&w.ends, coarse->n, "ends of merged rows", err));
    KILN_GO(KILN_ALLOC_UNSET(&w.line, coarse->n, "merged rows", err));
    KILN_GO(KILN_ALLOC_UNSET(&w.lacks, coarse->n, "merged rows", err));
    KILN_GO(KILN_ALLOC_UNSET(&w.weight, coarse->n, "merged rows", err));
    KILN_GO(KILN_ALLOC_UNSET(&w.left, fine->n, "rows of a level", err));
    find_parents(&w);
done:
    free(w.left);
    free(w.ends);
    free(w.line);
    free(w.lacks);
    free(w.weight);
    return st;
}
