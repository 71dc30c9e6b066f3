/* merge_find -- near-duplicates by cells as large as the distance, sorted by cell; a row looks into
 * its own and the 26 around it. Cells are counted inside the robust box and cut off at its border,
 * so that one outlier costs nothing. */
#include "kernels/prune/merge.h"

#include "base/carve.h"
#include "kernels/sort/sort.h"

#include <math.h>
#include <string.h>

enum { AXIS_BITS = 21, AXIS_CELLS = 1 << AXIS_BITS };

typedef struct {
    uint64_t *keys; /* cell of rows[i], ascending */
    uint32_t *rows;
    void *sort_work;
    size_t bytes;
} layout;

static layout lay_out_cells(uint64_t n, void *work)
{
    kiln_carve c = {work, 0};
    layout l;
    l.keys = kiln_take(&c, n, sizeof *l.keys);
    l.rows = kiln_take(&c, n, sizeof *l.rows);
    l.sort_work = kiln_take(&c, kiln_sort_bytes(n, 1), 1);
    l.bytes = c.used;
    return l;
}

size_t kiln_merge_find_bytes(uint64_t n) { return lay_out_cells(n, NULL).bytes; }

/* At least the distance, and no more cells than an axis can count. */
static double cell_size(const kiln_merge_find_args *a, int axis)
{
    const double least = ((double)a->hi[axis] - (double)a->lo[axis]) / (AXIS_CELLS - 2);
    const double size = (double)a->distance > least ? (double)a->distance : least;
    return size > 0 ? size : 1;
}

static uint64_t cell_of(const kiln_merge_find_args *a, uint64_t row, int axis)
{
    const double at =
        ((double)a->means[(uint64_t)axis * a->n + row] - (double)a->lo[axis]) / cell_size(a, axis);
    if (!(at > 0)) return 0;
    return at >= AXIS_CELLS - 1 ? AXIS_CELLS - 1 : (uint64_t)at;
}

static uint64_t pack_cell(const int64_t cell[3])
{
    return (uint64_t)cell[2] << (2 * AXIS_BITS) | (uint64_t)cell[1] << AXIS_BITS |
           (uint64_t)cell[0];
}

static uint64_t first_at_least(const uint64_t *keys, uint64_t n, uint64_t key)
{
    uint64_t lo = 0, hi = n;
    while (lo < hi) {
        const uint64_t mid = lo + (hi - lo) / 2;
        if (keys[mid] < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void sorted_axes(const kiln_merge_find_args *a, uint64_t row, float s[3])
{
    for (uint64_t c = 0; c < 3; c++) s[c] = a->log_scales[c * a->n + row];
    for (int pass = 0; pass < 3; pass++) {
        const int i = pass % 2; /* 0, 1, 0: a network of three */
        if (s[i] > s[i + 1]) {
            const float t = s[i];
            s[i] = s[i + 1];
            s[i + 1] = t;
        }
    }
}

static int is_near(const kiln_merge_find_args *a, uint64_t p, uint64_t q)
{
    double d2 = 0;
    for (uint64_t c = 0; c < 3; c++) {
        const double d = (double)a->means[c * a->n + p] - (double)a->means[c * a->n + q];
        d2 += d * d;
    }
    return d2 <= (double)a->distance * (double)a->distance;
}

static int is_alike(const kiln_merge_find_args *a, uint64_t p, uint64_t q)
{
    float s[3], t[3];
    double dot = 0, pp = 0, qq = 0;
    sorted_axes(a, p, s);
    sorted_axes(a, q, t);
    for (uint64_t c = 0; c < 3; c++) {
        /* 1/(2 sqrt pi), Y_0^0 */
        const float colour = (a->sh0[c * a->n + p] - a->sh0[c * a->n + q]) * 0.28209479f;
        if (!(fabsf(s[c] - t[c]) <= 0.25f) || !(fabsf(colour) <= 0.05f)) return 0;
    }
    for (uint64_t c = 0; c < 4; c++) {
        const double u = a->quats[c * a->n + p], v = a->quats[c * a->n + q];
        dot += u * v;
        pp += u * u;
        qq += v * v;
    }
    return dot * dot >= 0.98 * 0.98 * pp * qq;
}

static void take_from_cell(const kiln_merge_find_args *a, const layout *l, const int64_t cell[3],
                           uint32_t row)
{
    for (int c = 0; c < 3; c++)
        if (cell[c] < 0 || cell[c] >= AXIS_CELLS) return;
    const uint64_t key = pack_cell(cell);
    for (uint64_t i = first_at_least(l->keys, a->n, key); i < a->n && l->keys[i] == key; i++) {
        const uint32_t other = l->rows[i];
        if (other <= row || a->into[other] != other || (a->skip && a->skip[other])) continue;
        if (is_near(a, row, other) && is_alike(a, row, other)) a->into[other] = row;
    }
}

void kiln_merge_find(const kiln_merge_find_args *a, void *work)
{
    const layout l = lay_out_cells(a->n, work);
    for (uint64_t i = 0; i < a->n; i++) {
        const int64_t cell[3] = {(int64_t)cell_of(a, i, 0), (int64_t)cell_of(a, i, 1),
                                 (int64_t)cell_of(a, i, 2)};
        l.keys[i] = pack_cell(cell);
        l.rows[i] = a->into[i] = (uint32_t)i;
    }
    kiln_sort_pairs(a->n, l.keys, l.rows, 1, l.sort_work);
    for (uint64_t i = 0; i < a->n; i++) {
        if (a->into[i] != i || (a->skip && a->skip[i])) continue;
        for (int k = 0; k < 27; k++) {
            const int64_t cell[3] = {(int64_t)cell_of(a, i, 0) + k % 3 - 1,
                                     (int64_t)cell_of(a, i, 1) + k / 3 % 3 - 1,
                                     (int64_t)cell_of(a, i, 2) + k / 9 - 1};
            take_from_cell(a, &l, cell, (uint32_t)i);
        }
    }
}
