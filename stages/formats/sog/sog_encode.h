/* sog_encode -- values of Gaussians as the codes of a SOG scene, version 2 (sog.h); sog_rows.h has
 * the way back.
 *
 * Values are rounded to the nearest code. No libm call decides a byte. Nothing here allocates or
 * fails; any thread. Both sides are planar: component c of row i is values[c * n + i], of harmonics
 * values[c * stride + i], and its byte codes[c * n + i].
 */
#ifndef KILN_STAGES_FORMATS_SOG_SOG_ENCODE_H
#define KILN_STAGES_FORMATS_SOG_SOG_ENCODE_H

#include "stages/formats/sog/sog.h"

#include <stdint.h>

/* sign(x) ln(|x| + 1). Readers take bounds of it up to KILN_SOG_POSITION_LOG_MAX. */
double kiln_sog_position_log(double x);

/* low, high [3][n]: the bytes of round((log - mins) / (maxs - mins) * 65535), of the logarithm of
 * means + origin and with bounds of it. Equal bounds give 0. */
void kiln_sog_encode_means(uint64_t n, const float *means, const double origin[3],
                           const double mins[3], const double maxs[3], uint8_t *low, uint8_t *high);
/* codes [4][n]: three components of the unit quaternion w x y z, and 252 + which one is left out.
 * Of the components that are nearly the largest, the one is left out with which the least is lost.
 * So a quaternion that was decoded gets the codes again that it was decoded from. A quaternion of
 * length 0 is no rotation. */
void kiln_sog_encode_quats(uint64_t n, const float *quats, uint8_t *codes);
/* codes [n]: round(255 sigmoid(logit)). */
void kiln_sog_encode_opacities(uint64_t n, const float *opacity_logits, uint8_t *codes);

/* Spherical harmonics as whole numbers, rows [n][d] of |value| <= KILN_PALETTE_LIMIT, from planar
 * shN: component k of row i at shN[k * stride + i]. By levels: each value is one of a codebook, and
 * levels has the number of each. By scale: round(value * scale), clamped; returns how many values
 * were. */
void kiln_sog_encode_rows_levels(uint64_t n, uint32_t d, const float *shN, uint64_t stride,
                                 const float codebook[256], const int16_t levels[256],
                                 int16_t *rows);
uint64_t kiln_sog_encode_rows_scaled(uint64_t n, uint32_t d, const float *shN, uint64_t stride,
                                     double scale, int16_t *rows);
/* Rounds the entries of a palette [p][d] to the nearest of ascending levels, and gives their codes
 * [d][p]. */
void kiln_sog_encode_palette(uint32_t p, uint32_t d, const int16_t levels[256], int16_t *centroids,
                             uint8_t *codes);

#endif
