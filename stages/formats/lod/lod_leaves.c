/* lod_leaves -- see lod_leaves.h. Only + - * / and sqrt decide a bit, beside exp of scales
 * (linear.h). */
#include "stages/formats/lod/lod_leaves.h"

#include "stages/formats/linear.h"

#include <math.h>
#include <string.h>

/* Squared distance of a point to a box; 0 inside. */
static double distance_to(const kiln_lod_leaf *leaf, const double p[3])
{
    double sum = 0;
    for (int c = 0; c < 3; c++) {
        const double low = (double)leaf->mean_lo[c] - p[c], high = p[c] - (double)leaf->mean_hi[c];
        const double d = low > 0 ? low : high > 0 ? high : 0;
        sum += d * d;
    }
    return sum;
}

void kiln_lod_leaf_of_rows(const kiln_lod_leaf *leaves, uint32_t first, uint32_t end, uint64_t n,
                           const float *means, uint32_t *leaf)
{
    for (uint64_t i = 0; i < n; i++) {
        const double p[3] = {(double)means[i], (double)means[n + i], (double)means[2 * n + i]};
        double best = INFINITY;
        leaf[i] = first;
        for (uint32_t k = first; k < end && best > 0; k++) {
            const double d = distance_to(&leaves[k], p);
            if (d >= best) continue;
            best = d;
            leaf[i] = k;
        }
    }
}

void kiln_lod_sort_rows(uint64_t n, const uint32_t *leaf, uint32_t first, uint32_t end,
                        uint32_t *next, uint32_t *order)
{
    uint32_t at = 0;
    memset(next, 0, (end - first) * sizeof *next);
    for (uint64_t i = 0; i < n; i++) next[leaf[i] - first]++;
    for (uint32_t k = 0; k < end - first; k++) {
        const uint32_t here = next[k];
        next[k] = at;
        at += here;
    }
    for (uint64_t i = 0; i < n; i++) order[next[leaf[i] - first]++] = (uint32_t)i;
}

/* Half the sides of the box around an ellipsoid of one sigma: |R| times its axes. */
static void extent_of(const kiln_export_rows *rows, uint64_t i, float half[3])
{
    const uint64_t n = rows->n;
    float scales[3];
    double q[4];
    for (uint64_t c = 0; c < 3; c++) scales[c] = rows->log_scales[c * n + i];
    kiln_linear_scales(3, scales, scales);
    kiln_unit_quat((const float[4]){rows->quats[i], rows->quats[n + i], rows->quats[2 * n + i],
                                    rows->quats[3 * n + i]},
                   q);
    const double w = q[0], x = q[1], y = q[2], z = q[3];
    const double r[9] = {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
                         2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                         2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
    for (int c = 0; c < 3; c++)
        half[c] =
            (float)(fabs(r[3 * c]) * (double)scales[0] + fabs(r[3 * c + 1]) * (double)scales[1] +
                    fabs(r[3 * c + 2]) * (double)scales[2]);
}

static void begin_tally(kiln_lod_tally *t)
{
    *t = (kiln_lod_tally){0};
    for (int c = 0; c < 3; c++) {
        t->mean_lo[c] = t->lo[c] = INFINITY;
        t->mean_hi[c] = t->hi[c] = -INFINITY;
    }
}

void kiln_lod_tally_rows(const kiln_export_rows *rows, const uint32_t *leaf, uint32_t first,
                         uint32_t end, kiln_lod_tally *tallies)
{
    for (uint32_t k = 0; k < end - first; k++) begin_tally(&tallies[k]);
    for (uint64_t i = 0; i < rows->n; i++) {
        kiln_lod_tally *t = &tallies[leaf ? leaf[i] - first : 0];
        float half[3];
        extent_of(rows, i, half);
        t->n++;
        for (uint64_t c = 0; c < 3; c++) {
            const float m = rows->means[c * rows->n + i];
            t->mean_lo[c] = fminf(t->mean_lo[c], m);
            t->mean_hi[c] = fmaxf(t->mean_hi[c], m);
            t->lo[c] = fminf(t->lo[c], m - half[c]);
            t->hi[c] = fmaxf(t->hi[c], m + half[c]);
        }
    }
}
