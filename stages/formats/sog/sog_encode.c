/* sog_encode -- see the header. */
#include "stages/formats/sog/sog_encode.h"

#include "base/minmax.h"
#include "kernels/math/real.h"
#include "kernels/math/real64.h"
#include "kernels/palette/codebook.h"
#include "kernels/palette/palette.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SQRT2 1.4142135623730951

/* ---- positions ------------------------------------------------------------------------------- */

double kiln_sog_position_log(double x)
{
    const double n = kiln_log_f64(fabs(x) + 1);
    return x < 0 ? -n : n;
}

void kiln_sog_encode_means(uint64_t n, const float *means, const double origin[3],
                           const double mins[3], const double maxs[3], uint8_t *low, uint8_t *high)
{
    for (uint32_t a = 0; a < 3; a++) {
        const double span = maxs[a] - mins[a], scale = span > 0 ? KILN_SOG_POSITION_MOST / span : 0;
        for (uint64_t i = 0; i < n; i++) {
            const double at =
                (kiln_sog_position_log((double)means[a * n + i] + origin[a]) - mins[a]) * scale;
            const uint32_t code = (uint32_t)(kiln_clamp_f64(at, 0, KILN_SOG_POSITION_MOST) + 0.5);
            low[a * n + i] = (uint8_t)code;
            high[a * n + i] = (uint8_t)(code >> 8);
        }
    }
}

/* ---- rotations ------------------------------------------------------------------------------- */

/* A component may be the best to leave out if it is below the largest one by less than this.
 * Rounding moves each of the three codes by at most 1 / (255 sqrt 2), and the one that is computed
 * from them by at most three times that. */
static const double NEARLY = 4 / (255 * SQRT2);

/* Codes the unit quaternion q without the component `left`. Returns the squared distance from q of
 * what is decoded. */
static double encode_without(const double q[4], uint32_t left, uint8_t code[4])
{
    const double sign = q[left] < 0 ? -1 : 1;
    double sum = 0, lost = 0;
    for (uint32_t c = 0, k = 0; c < 4; c++) {
        if (c == left) continue;
        code[k] = (uint8_t)(kiln_clamp_f64((sign * q[c] * SQRT2 + 1) * 127.5, 0, 255) + 0.5);
        const double decoded = (code[k++] / 127.5 - 1) / SQRT2, off = decoded - sign * q[c];
        sum += decoded * decoded;
        lost += off * off;
    }
    const double off = sqrt(sum < 1 ? 1 - sum : 0) - sign * q[left];
    code[3] = (uint8_t)(KILN_SOG_QUAT_TAG + left);
    return lost + off * off;
}

static void encode_quat(const double q[4], uint8_t code[4])
{
    double least = HUGE_VAL;
    uint32_t largest = 0;
    for (uint32_t c = 1; c < 4; c++) largest = fabs(q[c]) > fabs(q[largest]) ? c : largest;
    for (uint32_t k = 0; k < 4; k++) {
        /* the largest first, so that it wins where another loses as much */
        const uint32_t c = (largest + k) & 3;
        uint8_t tried[4];
        if (fabs(q[c]) < fabs(q[largest]) - NEARLY) continue;
        const double lost = encode_without(q, c, tried);
        if (lost >= least) continue;
        least = lost;
        memcpy(code, tried, sizeof tried);
    }
}

void kiln_sog_encode_quats(uint64_t n, const float *quats, uint8_t *codes)
{
    for (uint64_t i = 0; i < n; i++) {
        double q[4], length2 = 0;
        uint8_t code[4] = {0};
        for (uint32_t c = 0; c < 4; c++) {
            q[c] = (double)quats[c * n + i];
            length2 += q[c] * q[c];
        }
        const double scale = length2 > 0 ? 1 / sqrt(length2) : 0;
        for (uint32_t c = 0; c < 4; c++) q[c] *= scale;
        if (!(length2 > 0)) q[0] = 1;
        encode_quat(q, code);
        for (uint32_t c = 0; c < 4; c++) codes[c * n + i] = code[c];
    }
}

/* ---- the rest -------------------------------------------------------------------------------- */

void kiln_sog_encode_opacities(uint64_t n, const float *opacity_logits, uint8_t *codes)
{
    for (uint64_t i = 0; i < n; i++)
        codes[i] = (uint8_t)(kiln_sigmoidf(opacity_logits[i]) * 255.0f + 0.5f);
}

/* ---- spherical harmonics --------------------------------------------------------------------- */

enum { TILE = 256 }; /* rows that are turned from planes into rows at once */

void kiln_sog_encode_rows_levels(uint64_t n, uint32_t d, const float *shN, uint64_t stride,
                                 const float codebook[256], const int16_t levels[256],
                                 int16_t *rows)
{
    uint8_t codes[TILE];
    for (uint64_t at = 0; at < n; at += TILE) {
        const uint64_t m = kiln_min_u64(TILE, n - at);
        for (uint32_t k = 0; k < d; k++) {
            kiln_codebook_codes(codebook, shN + k * stride + at, m, codes);
            for (uint64_t i = 0; i < m; i++) rows[(at + i) * d + k] = levels[codes[i]];
        }
    }
}

uint64_t kiln_sog_encode_rows_scaled(uint64_t n, uint32_t d, const float *shN, uint64_t stride,
                                     double scale, int16_t *rows)
{
    uint64_t clamped = 0;
    for (uint64_t at = 0; at < n; at += TILE) {
        const uint64_t m = kiln_min_u64(TILE, n - at);
        for (uint32_t k = 0; k < d; k++)
            for (uint64_t i = 0; i < m; i++) {
                const double v = (double)shN[k * stride + at + i] * scale;
                clamped += v > KILN_PALETTE_LIMIT + 0.5 || v < -KILN_PALETTE_LIMIT - 0.5;
                const double in = kiln_clamp_f64(v, -KILN_PALETTE_LIMIT, KILN_PALETTE_LIMIT);
                rows[(at + i) * d + k] = (int16_t)(int32_t)(in < 0 ? in - 0.5 : in + 0.5);
            }
    }
    return clamped;
}

void kiln_sog_encode_palette(uint32_t p, uint32_t d, const int16_t levels[256], int16_t *centroids,
                             uint8_t *codes)
{
    uint8_t nearest[2 * KILN_PALETTE_LIMIT + 1];
    uint32_t k = 0;
    for (int v = -KILN_PALETTE_LIMIT; v <= KILN_PALETTE_LIMIT; v++) {
        for (uint32_t next = k + 1; next < 256 && abs(levels[next] - v) <= abs(levels[k] - v);
             next++)
            if (levels[next] != levels[k] && abs(levels[next] - v) < abs(levels[k] - v)) k = next;
        nearest[v + KILN_PALETTE_LIMIT] = (uint8_t)k;
    }
    for (uint64_t i = 0; i < p; i++)
        for (uint32_t c = 0; c < d; c++) {
            const uint8_t code = nearest[centroids[i * d + c] + KILN_PALETTE_LIMIT];
            codes[c * (uint64_t)p + i] = code;
            centroids[i * d + c] = levels[code];
        }
}
