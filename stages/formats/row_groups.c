/* row_groups -- see the header. Rows are cut in two, again and again, until a group is left. A cut
 * lies across an axis between two groups, where the diagonals of both sides, each as often as it
 * has rows, have the least sum: that is what rounding between bounds moves the rows by, together.
 * Rows far away from the others are so cut off in groups of their own, which halving would leave in
 * a wide one. Squared diagonals would be spent on those far rows (DESIGN.md).
 *
 * The rows are sorted by each axis once. A cut keeps these orders in both parts, so the box of a
 * part's beginning or end is found by walking along. */
#include "stages/formats/row_groups.h"

#include "base/memory.h"
#include "kernels/sort/sort.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const float *means[3];
    double weights[3];
    uint32_t *sorted[3]; /* [n] rows by coordinate; a part has the same place in each */
    uint32_t *moved;     /* [n] */
    uint8_t *behind;     /* [n] of a row: does it lie behind the cut? */
    double *ends;        /* [groups] cost of the rows behind the cut that follows this group */
} cutter;

typedef struct {
    float lo[3], hi[3];
} box;

typedef struct {
    int axis;
    uint64_t n; /* rows before it; 0: none was found */
    double cost;
} cut;

uint64_t kiln_row_groups_ram(uint64_t n)
{
    const uint64_t sort = kiln_sort_bytes(n, 1) + n * sizeof(uint64_t);
    return n * (4 * sizeof(uint32_t) + 1) + (n / KILN_ROW_GROUP + 1) * sizeof(double) + sort;
}

static void start_box(const cutter *k, uint32_t row, box *b)
{
    for (int c = 0; c < 3; c++) b->lo[c] = b->hi[c] = k->means[c][row];
}

static void widen_group_box(const cutter *k, const uint32_t *rows, uint64_t n, box *b)
{
    for (int c = 0; c < 3; c++) {
        const float *v = k->means[c];
        float lo = b->lo[c], hi = b->hi[c];
        for (uint64_t i = 0; i < n; i++) {
            const float x = v[rows[i]];
            lo = x < lo ? x : lo;
            hi = x > hi ? x : hi;
        }
        b->lo[c] = lo;
        b->hi[c] = hi;
    }
}

static double box_cost(const cutter *k, const box *b, uint64_t n)
{
    double sum = 0;
    for (int c = 0; c < 3; c++) {
        const double extent = ((double)b->hi[c] - (double)b->lo[c]) * k->weights[c];
        sum += extent * extent;
    }
    return sqrt(sum) * (double)n;
}

/* The cut with the least cost of rows [first, first + n), n > KILN_ROW_GROUP, across one axis; of
 * equal ones that nearest the middle. */
static void try_axis(const cutter *k, int axis, uint64_t first, uint64_t n, cut *best)
{
    const uint32_t *rows = k->sorted[axis] + first;
    const uint64_t groups = (n + KILN_ROW_GROUP - 1) / KILN_ROW_GROUP, middle = groups / 2;
    box b;
    start_box(k, rows[n - 1], &b);
    for (uint64_t g = groups - 1, end = n; g > 0; end = g-- * KILN_ROW_GROUP) {
        widen_group_box(k, rows + g * KILN_ROW_GROUP, end - g * KILN_ROW_GROUP, &b);
        k->ends[g] = box_cost(k, &b, n - g * KILN_ROW_GROUP);
    }
    start_box(k, rows[0], &b);
    for (uint64_t g = 1; g < groups; g++) {
        widen_group_box(k, rows + (g - 1) * KILN_ROW_GROUP, KILN_ROW_GROUP, &b);
        const double cost = box_cost(k, &b, g * KILN_ROW_GROUP) + k->ends[g];
        const uint64_t off = g < middle ? middle - g : g - middle, at = best->n / KILN_ROW_GROUP;
        const uint64_t best_off = at < middle ? middle - at : at - middle;
        if (best->n == 0 || cost < best->cost || (cost == best->cost && off < best_off))
            *best = (cut){.axis = axis, .n = g * KILN_ROW_GROUP, .cost = cost};
    }
}

/* Each axis' rows before the cut, in their order, and then those behind it. */
static void partition_rows(const cutter *k, uint64_t first, uint64_t n, const cut *c)
{
    for (uint64_t i = 0; i < n; i++) k->behind[k->sorted[c->axis][first + i]] = i >= c->n;
    for (int axis = 0; axis < 3; axis++) {
        if (axis == c->axis) continue;
        uint32_t *rows = k->sorted[axis] + first;
        uint64_t before = 0, behind = 0;
        for (uint64_t i = 0; i < n; i++) {
            const uint32_t row = rows[i], is_behind = k->behind[row];
            rows[before] = row; /* before <= i: what stood there was read */
            k->moved[behind] = row;
            before += !is_behind;
            behind += is_behind;
        }
        memcpy(rows + before, k->moved, behind * sizeof *rows);
    }
}

/* The larger part is cut on in place, so that this calls itself at most as often as rows can be
 * halved. */
static void cut_up(const cutter *k, uint64_t first, uint64_t n)
{
    while (n > KILN_ROW_GROUP) {
        cut best = {0};
        for (int axis = 0; axis < 3; axis++) try_axis(k, axis, first, n, &best);
        partition_rows(k, first, n, &best);
        const uint64_t rest = n - best.n;
        if (best.n < rest) {
            cut_up(k, first, best.n);
            first += best.n;
            n = rest;
        } else {
            cut_up(k, first + best.n, rest);
            n = best.n;
        }
    }
}

/* In an order of unsigned numbers that is that of the floats; -0 as 0. */
static uint64_t float_key(float v)
{
    uint32_t bits;
    v += 0.0f;
    memcpy(&bits, &v, sizeof bits);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

static kiln_status sort_axes(const cutter *k, uint64_t n, kiln_error *err)
{
    kiln_status st = KILN_OK;
    uint64_t *keys = NULL;
    void *work = NULL;
    KILN_GO(KILN_ALLOC_UNSET(&keys, n, "keys of rows", err));
    KILN_GO(kiln_alloc_unset(&work, kiln_sort_bytes(n, 1), 1, "keys of rows", err));
    for (int axis = 0; axis < 3; axis++) {
        for (uint64_t i = 0; i < n; i++)
            keys[i] = float_key(k->means[axis][i]), k->sorted[axis][i] = (uint32_t)i;
        kiln_sort_pairs(n, keys, k->sorted[axis], 1, work);
    }
done:
    free(work);
    free(keys);
    return st;
}

kiln_status kiln_row_groups(const float *const means[3], uint64_t n, const double weights[3],
                            uint32_t *order, kiln_error *err)
{
    kiln_status st = KILN_OK;
    cutter k = {.sorted = {order, NULL, NULL}};
    memcpy(k.means, means, sizeof k.means);
    memcpy(k.weights, weights, sizeof k.weights);
    KILN_GO(KILN_ALLOC_UNSET(&k.sorted[1], n, "rows", err));
    KILN_GO(KILN_ALLOC_UNSET(&k.sorted[2], n, "rows", err));
    KILN_GO(KILN_ALLOC_UNSET(&k.moved, n, "rows", err));
    KILN_GO(KILN_ALLOC_UNSET(&k.behind, n, "rows", err));
    KILN_GO(KILN_ALLOC_UNSET(&k.ends, n / KILN_ROW_GROUP + 1, "rows", err));
    KILN_GO(sort_axes(&k, n, err));
    cut_up(&k, 0, n);
done:
    free(k.ends);
    free(k.behind);
    free(k.moved);
    free(k.sorted[2]);
    free(k.sorted[1]);
    return st;
}
