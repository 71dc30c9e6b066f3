/* rad_top -- see rad_top.h. A merged row has mean and covariance of the mixture of its rows,
 * weighted by opacity times surface. */
#include "stages/formats/rad/rad_top.h"

#include "base/harmonics.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "kernels/math/ellipsoid_math.h"
#include "kernels/math/real64.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

uint64_t kiln_rad_top_ram(const kiln_rad_head *h)
{
    return (h->n_top[0] + kiln_rad_top_base(h, 0)) * sizeof(kiln_rad_row) +
           kiln_rad_top_base(h, 0) * KILN_RAD_RECORD_MAX;
}

static double weight_of(const kiln_rad_row *row)
{
    return fmax(row->opacity * kiln_rad_surface(row), 1e-300);
}

/* Adds share times (covariance of the row + the product of its distance from the mean with
 * itself). */
static void add_covariance(const kiln_rad_row *row, const double mean[3], double share,
                           double covar[6])
{
    double own[6], d[3];
    kiln_covar_of(row->log_scale, row->quat, own);
    for (int c = 0; c < 3; c++) d[c] = row->mean[c] - mean[c];
    for (int i = 0, at = 0; i < 3; i++)
        for (int j = i; j < 3; j++, at++) covar[at] += share * (own[at] + d[i] * d[j]);
}

static void merge_rad_rows(const kiln_rad_row *rows, uint64_t n, kiln_rad_row *out)
{
    double weights[KILN_RAD_FAN], sum = 0, covar[6] = {0}, values[3], axes[9];
    *out = (kiln_rad_row){.opacity = 0};
    for (uint64_t i = 0; i < n; i++) sum += weights[i] = weight_of(&rows[i]);
    for (uint64_t i = 0; i < n; i++) {
        for (int c = 0; c < 3; c++) {
            out->mean[c] += weights[i] / sum * rows[i].mean[c];
            out->sh0[c] += weights[i] / sum * rows[i].sh0[c];
        }
        for (int c = 0; c < 45; c++) out->shN[c] += weights[i] / sum * rows[i].shN[c];
    }
    for (uint64_t i = 0; i < n; i++) add_covariance(&rows[i], out->mean, weights[i] / sum, covar);
    kiln_covar_axes(covar, values, axes);
    for (int c = 0; c < 3; c++) out->log_scale[c] = 0.5 * kiln_log_f64(fmax(values[c], 1e-34));
    kiln_quat_of_rotation(axes, out->quat);
    out->opacity = sum / kiln_rad_surface(out);
}

/* sizes[t] rows of top size t from those of t - 1, and the records of the former. */
static void put_size(const kiln_export *e, const kiln_rad_head *h, uint32_t t,
                     const kiln_rad_row *below, kiln_rad_row *here, unsigned char *records)
{
    const uint64_t base = kiln_rad_top_base(h, t), first = kiln_rad_top_base(h, t - 1),
                   bytes = kiln_rad_record_bytes(e);
    for (uint64_t i = 0; i < h->n_top[t]; i++) {
        const uint64_t at = i * KILN_RAD_FAN, n = kiln_min_u64(KILN_RAD_FAN, h->n_top[t - 1] - at);
        merge_rad_rows(below + at, n, &here[i]);
        kiln_rad_put(&here[i], &h->coding, kiln_rad_degree(e), (uint32_t)n, (uint32_t)(first + at),
                     records + (base + i) * bytes);
    }
}

kiln_status kiln_rad_top(const kiln_export *e, const kiln_rad_head *h, const kiln_export_rows *rows,
                         unsigned char *records, kiln_error *err)
{
    kiln_rad_row *all;
    KILN_TRY(KILN_ALLOC(&all, h->n_top[0] + kiln_rad_top_base(h, 0),
                        "rows above the coarsest level", err));
    kiln_rad_row *below = all;
    for (uint64_t i = 0; i < rows->n; i++) kiln_rad_take(e, rows, i, &below[i]);
    for (uint32_t t = 1; t < h->n_tops; t++) {
        kiln_rad_row *here = below + h->n_top[t - 1];
        put_size(e, h, t, below, here, records);
        below = here;
    }
    free(all);
    return KILN_OK;
}
