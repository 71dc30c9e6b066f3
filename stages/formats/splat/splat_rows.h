/* splat_rows -- Gaussians to the rows of .splat (splat.h).
 *
 * Every code is the nearest: what a reader makes of it is within half a step, where antimatter15's
 * own writer, which truncates, stays within one. The one exception is a component of a quaternion
 * above 127.5 / 128, whose code ends at 255: 127 / 128. Nothing here allocates or fails; any
 * thread. */
#ifndef KILN_STAGES_FORMATS_SPLAT_SPLAT_ROWS_H
#define KILN_STAGES_FORMATS_SPLAT_SPLAT_ROWS_H

#include "stages/formats/splat/splat.h"

#include <stdint.h>

/* Planes of n rows, component after component, as a layer has them. */
typedef struct {
    uint64_t n;
    const float *means, *log_scales, *quats, *opacity_logits, *sh0; /* quats w x y z */
} kiln_splat_planes;

typedef struct {
    uint64_t colours; /* values darker than 0 or brighter than 255, moved to these */
    uint64_t scales;  /* too small or too large for a float: 0, or the largest one */
} kiln_splat_moved;

/* rows [n][32] = rows [first, first + n). *moved is added to. */
void kiln_splat_pack(const kiln_splat_planes *p, uint64_t first, uint64_t n, unsigned char *rows,
                     kiln_splat_moved *moved);

/* Volume times opacity of an encoded row; not negative, not NaN. */
double kiln_splat_importance(const unsigned char row[KILN_SPLAT_ROW_BYTES]);

#endif
