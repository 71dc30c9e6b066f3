/* merge -- near-duplicates: which rows are the same thing twice, and the one Gaussian that stands
 * for several. Plain functions on host memory, one thread, the same bits everywhere (double and
 * pinned float arithmetic only).
 *
 * Two rows are near-duplicates if all of this holds. Their means are at most `distance` apart.
 * Their sorted axes differ by at most a quarter in the logarithm, and their colours (degree 0) by
 * at most 0.05 of 0..1 in each channel. Their rotations differ by at most about 23 degrees: the
 * quaternions' product is at least 0.98 in absolute value.
 */
#ifndef KILN_KERNELS_PRUNE_MERGE_H
#define KILN_KERNELS_PRUNE_MERGE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t n;
    const float *means, *log_scales, *quats, *sh0; /* planar [3][n], [3][n], [4][n], [3][n] */
    const uint8_t *skip;                           /* [n], 1: takes no part; or NULL */
    float distance;                                /* scene units, >= 0 */
    /* robust box of the means: only speed depends on it */
    float lo[3], hi[3];
    /* [n] out: the row that this one goes into; itself where it stays */
    uint32_t *into;
} kiln_merge_find_args;

size_t kiln_merge_find_bytes(uint64_t n);
/* Greedy in row order: a row that is still free takes all later free ones that are its
 * near-duplicates. */
void kiln_merge_find(const kiln_merge_find_args *a, void *work);

typedef struct {
    float mean[3], log_scale[3], quat[4], opacity_logit;
} kiln_merge_gaussian;

/* Same mean and covariance as the mixture weighted by opacity; opacity 1 - product of (1 -
 * opacity), as of layers one behind the other, at most 254.75/255. weights [n] out: shares that sum
 * to 1, for colours. n >= 1. */
void kiln_merge_moments(const kiln_merge_gaussian *g, uint32_t n, double *weights,
                        kiln_merge_gaussian *out);

#endif
