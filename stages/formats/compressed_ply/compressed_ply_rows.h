/* compressed_ply_rows -- Gaussians to the rows of a PLY as PlayCanvas packs it (compressed_ply.h).
 *
 * A group's bounds need all of its rows, which may be found in several chunks of a layer. So a row
 * is first made half ready, by itself (kiln_half_packed), and then packed with its group. SH needs
 * no bounds.
 *
 * Every code is the nearest: what a reader makes of it is within half a step. Nothing here
 * allocates or fails; any thread. */
#ifndef KILN_STAGES_FORMATS_COMPRESSED_PLY_COMPRESSED_PLY_ROWS_H
#define KILN_STAGES_FORMATS_COMPRESSED_PLY_COMPRESSED_PLY_ROWS_H

#include "stages/formats/compressed_ply/compressed_ply.h"

#include <stdint.h>

/* A row that waits for its group's bounds. No padding: it is written to scratch as it lies. */
typedef struct {
    float position[3], log_scale[3], colour[3]; /* colour: 0.5 + C0 sh0 */
    uint32_t rotation;                          /* packed */
    uint32_t alpha;                             /* its code */
} kiln_half_packed;

/* Planes of n rows, component after component, as a layer has them. */
typedef struct {
    uint64_t n;
    /* quats w x y z; shN coefficient-major */
    const float *means, *log_scales, *quats, *opacity_logits, *sh0, *shN;
} kiln_packing_planes;

/* out[0..n) = rows [first, first + n). Returns how many of their log scales lie outside -20 .. 20,
 * the limits of the format, and are moved to the nearer one. */
uint64_t kiln_half_pack(const kiln_packing_planes *p, uint64_t first, uint64_t n,
                        kiln_half_packed *out);

/* Bounds and packed rows of one group: rows[0..n), 1 <= n <= KILN_PACKED_GROUP. Returns how many
 * rows are smaller, in their largest scale, than the largest step of the group's positions. */
uint64_t kiln_pack_group(const kiln_half_packed *rows, uint32_t n,
                         unsigned char bounds[KILN_PACKED_BOUNDS_BYTES], unsigned char *vertices);

/* sh [n][3 n_coefficients] of rows [first, first + n). Returns how many values lie beyond -4 .. 4
 * and are moved to the nearer one.
 */
uint64_t kiln_pack_sh(const kiln_packing_planes *p, uint64_t first, uint64_t n,
                      uint32_t n_coefficients, uint8_t *sh);

#endif
