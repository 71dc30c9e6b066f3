/* splat_rows -- see the header. Column by column over tiles whose rows stay in the cache. */
#include "stages/formats/splat/splat_rows.h"

#include "base/endian.h"
#include "base/harmonics.h"
#include "stages/formats/linear.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

enum { TILE = 512, ROW = KILN_SPLAT_ROW_BYTES };

static void pack_scales(const float *logs, uint64_t n, unsigned char *to, kiln_splat_moved *moved)
{
    float linear[TILE];
    kiln_linear_scales(n, logs, linear);
    for (uint64_t i = 0; i < n; i++) {
        const float v = linear[i] <= FLT_MAX ? linear[i] : FLT_MAX;
        moved->scales += v != linear[i] || v == 0;
        kiln_put_f32(to + i * ROW, v);
    }
}

/* 255 (0.5 + C0 sh0), to the nearest. */
static void pack_colours(const float *sh0, uint64_t n, unsigned char *to, kiln_splat_moved *moved)
{
    int32_t codes[TILE], beyond = 0;
#pragma omp simd reduction(+ : beyond)
    for (uint64_t i = 0; i < n; i++) {
        double u = ((double)sh0[i] * KILN_SH_C0_F64 + 0.5) * 255.0 + 0.5;
        beyond += !(u >= 0 && u < 256.0);
        u = u > 0 ? u : 0;
        codes[i] = (int32_t)(u < 255.0 ? u : 255.0);
    }
    for (uint64_t i = 0; i < n; i++) to[i * ROW] = (unsigned char)codes[i];
    moved->colours += (uint64_t)beyond;
}

/* A quaternion that came from codes is written with these again, though its length is not 1:
 * readers normalise. */
static bool keep_codes(const float q[4], unsigned char codes[4])
{
    bool any = false;
    for (int c = 0; c < 4; c++) {
        const float u = q[c] * KILN_SPLAT_QUAT_STEPS + KILN_SPLAT_QUAT_STEPS;
        if (!(u >= 0 && u <= 255.0f)) return false;
        const int32_t code = (int32_t)u;
        if (((float)code - KILN_SPLAT_QUAT_STEPS) / KILN_SPLAT_QUAT_STEPS != q[c]) return false;
        codes[c] = (unsigned char)code;
        any |= q[c] != 0;
    }
    return any;
}

static void pack_quat(const float q[4], unsigned char codes[4])
{
    double unit[4];
    if (keep_codes(q, codes)) return;
    kiln_unit_quat(q, unit);
    for (int c = 0; c < 4; c++) {
        const double u =
            unit[c] * (double)KILN_SPLAT_QUAT_STEPS + ((double)KILN_SPLAT_QUAT_STEPS + 0.5);
        codes[c] = (unsigned char)(u < 255.0 ? u : 255.0); /* at least 0.5 */
    }
}

void kiln_splat_pack(const kiln_splat_planes *p, uint64_t first, uint64_t n, unsigned char *rows,
                     kiln_splat_moved *moved)
{
    for (uint64_t at = 0; at < n; at += TILE, rows += TILE * ROW) {
        const uint64_t m = n - at < TILE ? n - at : TILE, row = first + at;
        for (uint64_t c = 0; c < 3; c++) {
            for (uint64_t i = 0; i < m; i++)
                kiln_put_f32(rows + i * ROW + c * 4, p->means[c * p->n + row + i]);
            pack_scales(p->log_scales + c * p->n + row, m, rows + KILN_SPLAT_SCALE_AT + c * 4,
                        moved);
            pack_colours(p->sh0 + c * p->n + row, m, rows + KILN_SPLAT_COLOUR_AT + c, moved);
        }
        kiln_opacity_codes(m, p->opacity_logits + row, rows + KILN_SPLAT_ALPHA_AT, ROW);
        for (uint64_t i = 0; i < m; i++) {
            float q[4];
            for (uint64_t c = 0; c < 4; c++) q[c] = p->quats[c * p->n + row + i];
            pack_quat(q, rows + i * ROW + KILN_SPLAT_QUAT_AT);
        }
    }
}

double kiln_splat_importance(const unsigned char row[KILN_SPLAT_ROW_BYTES])
{
    const unsigned char *scale = row + KILN_SPLAT_SCALE_AT;
    return (double)kiln_get_f32(scale) * (double)kiln_get_f32(scale + 4) *
           (double)kiln_get_f32(scale + 8) * (double)row[KILN_SPLAT_ALPHA_AT];
}
