/* rad_rows -- see rad_rows.h. */
#include "stages/formats/rad/rad_rows.h"

#include "base/endian.h"
#include "base/harmonics.h"
#include "kernels/math/ellipsoid_math.h"
#include "kernels/math/half_math.h"
#include "kernels/math/real64.h"
#include "stages/formats/linear.h"

#include <math.h>
#include <string.h>

uint64_t kiln_rad_record_bytes(const kiln_export *e)
{
    return KILN_RAD_RECORD + kiln_sh_components(kiln_rad_degree(e));
}

double kiln_rad_surface(const kiln_rad_row *row) { return kiln_ellipsoid_area(row->log_scale); }

/* ---- rotations ------------------------------------------------------------------------------- */

static unsigned char code_of(double v, double lo, double hi)
{
    const double at = (v - lo) / (hi - lo) * 255 + 0.5;
    return (unsigned char)(!(at > 0) ? 0 : at > 255 ? 255 : (int)at);
}

/* 255 / pi of the angle whose half has this cosine, rounded: as many steps as lie half a step
 * before it. */
static unsigned char angle_of(double cosine)
{
    int low = 0, high = 255;
    while (low < high) {
        const int middle = (low + high) / 2;
        double s, c;
        kiln_sincos_degrees((middle + 0.5) / 255 * 90, &s, &c);
        if (cosine < c)
            low = middle + 1;
        else
            high = middle;
    }
    return (unsigned char)low;
}

void kiln_rad_rotation(const double quat[4], unsigned char code[3])
{
    const double sign = quat[0] < 0 ? -1 : 1;
    const double x = sign * quat[1], y = sign * quat[2], z = sign * quat[3],
                 sum = fabs(x) + fabs(y) + fabs(z);
    double u = sum > 0 ? x / sum : 1, v = sum > 0 ? y / sum : 0;
    if (z < 0) { /* the lower half of the octahedron folds outwards */
        const double folded = (1 - fabs(v)) * (u >= 0 ? 1 : -1);
        v = (1 - fabs(u)) * (v >= 0 ? 1 : -1);
        u = folded;
    }
    code[0] = code_of(u, -1, 1);
    code[1] = code_of(v, -1, 1);
    code[2] = angle_of(sign * quat[0]);
}

/* ---- records --------------------------------------------------------------------------------- */

static double coded_opacity(double opacity)
{
    if (!(opacity > 1)) return opacity;
    const double d = sqrt(1 + 2.718281828459045 * kiln_log_f64(opacity));
    return d < 5 ? (d + 3) / 4 : 2;
}

static void put_half(unsigned char *at, double v) { kiln_put_u16(at, kiln_half_of((float)v)); }

static void put_coefficients(const kiln_rad_row *row, const kiln_rad_coding *c, uint32_t degree,
                             unsigned char *at)
{
    for (uint32_t d = 1, i = 0; d <= degree; d++)
        for (const uint32_t end = kiln_sh_components(d); i < end; i++) {
            const int most = KILN_RAD_SH_MOST;
            const double v = row->shN[i] / (double)c->sh_max[d - 1] * most;
            const int code = !(v < most)    ? most
                             : !(v > -most) ? -most
                                            : (int)(v < 0 ? v - 0.5 : v + 0.5);
            at[i] = (unsigned char)(code & 0xff);
        }
}

void kiln_rad_put(const kiln_rad_row *row, const kiln_rad_coding *c, uint32_t degree,
                  uint32_t n_below, uint32_t first_below, unsigned char *record)
{
    memset(record, 0, KILN_RAD_RECORD);
    for (uint64_t k = 0; k < 3; k++) {
        kiln_put_f32(record + KILN_RAD_CENTRE_AT + 4 * k, (float)row->mean[k]);
        put_half(record + KILN_RAD_RGB_AT + 2 * k, 0.5 + KILN_SH_C0_F64 * row->sh0[k]);
        put_half(record + KILN_RAD_SCALES_AT + 2 * k, row->log_scale[k]);
    }
    put_half(record + KILN_RAD_ALPHA_AT, coded_opacity(row->opacity));
    kiln_rad_rotation(row->quat, record + KILN_RAD_ROTATION_AT);
    kiln_put_u16(record + KILN_RAD_BELOW_AT, n_below);
    kiln_put_u32(record + KILN_RAD_FIRST_BELOW_AT, first_below);
    put_coefficients(row, c, degree, record + KILN_RAD_RECORD);
}

void kiln_rad_take(const kiln_export *e, const kiln_export_rows *rows, uint64_t i,
                   kiln_rad_row *out)
{
    const uint64_t n = rows->n;
    const uint32_t components = kiln_sh_components(kiln_rad_degree(e));
    float alpha;
    for (uint64_t c = 0; c < 3; c++) {
        out->mean[c] = (double)rows->means[c * n + i] + e->origin[c];
        out->log_scale[c] = (double)rows->log_scales[c * n + i];
        out->sh0[c] = (double)rows->sh0[c * n + i];
    }
    kiln_unit_quat((const float[4]){rows->quats[i], rows->quats[n + i], rows->quats[2 * n + i],
                                    rows->quats[3 * n + i]},
                   out->quat);
    for (uint64_t c = 0; c < components; c++) out->shN[c] = (double)rows->shN[c * n + i];
    (void)kiln_alphas(1, &rows->opacity_logits[i], &alpha);
    out->opacity = (double)alpha;
    if (!rows->weights) return;
    const double scale = e->edits.moves ? e->edits.move.scale : 1; /* weights are as stored */
    const double over = (double)rows->weights[i] * scale * scale / kiln_rad_surface(out);
    if (over > 1 && alpha > 0.999f) out->opacity = over;
}
