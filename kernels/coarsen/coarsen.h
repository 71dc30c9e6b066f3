/* coarsen -- merges Gaussians into fewer that look alike: the levels of detail of one chunk.
 *
 *   means, log_scales, sh0 [3][n]  quats [4][n]  opacity_logits [n]  f32, planar, finite, as in the
 *                                                                    planes
 *   shN                            [3 ((degree + 1)^2 - 1)][n] f32; NULL with sh_degree 0
 *   weights                        [n] f32  W: what a row covers, opacity times the surface of its
 *                                           1-sigma ellipsoid, scene units
 *                                  squared; of a merged row the sum of its sources, whatever its own opacity could hold, each
 *                                  times (v / v')^0.1 where the row that it merged with has a higher v'
 *   visibility                     [n] f32  v in (0, 1]: the share of it that cameras saw; NULL: 1
 *                                           everywhere and not written
 *   prominence                     [n] f32 above 0: what merging a row away would change in
 *                                  pictures; of a merged row the sum of its sources. NULL: W v to a
 *                                  power stands for it, and nothing is written
 *   source_first, source_last, source_count [n] u32  lowest and highest baked row that a row stands
 *                                                    for, and how many; all three
 *                                  NULL: not written
 *
 * Each merge takes the pair that costs least. Mean and covariance of the merged row are those of
 * the mixture of both, weighted by w = W v (antialiased: W v^1/2); colours are averaged with the
 * same shares; opacity is what spreads W over the merged ellipsoid. Where that would be t > 1,
 * opacity is 0.999994 and the ellipsoid t^1/2 times as large (antialiased: t^2/5; coarsen_state.h).
 * Cost, candidates and order of merging: DESIGN.md. A row that was not merged keeps its bits. Rows
 * of a level come in the order of their first member in `in`, so that an order along a curve stays
 * one.
 *
 * The same bits on every machine and in both builds (baseline, AVX2): doubles and floats by + - *
 * /, sqrt and our own exp and log. One thread: a caller has many chunks. Nothing is allocated and
 * no pointer is kept.
 *
 * KILN_E_INPUT  sh_degree above 4, more than 2^32 - 2 rows, a count of 0 for rows that exist
 * KILN_E_CAP    work_bytes is less than kiln_coarsen_bytes
 *
 * Source of the rule: greedy merging by Bhattacharyya distance under moment matching, LOD
 * measurements in DESIGN.md; Thomsen's surface of an ellipsoid (kernels/math/ellipsoid_math.h).
 */
#ifndef KILN_KERNELS_COARSEN_H
#define KILN_KERNELS_COARSEN_H

#include "base/extern_c.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

typedef struct {
    uint64_t n;
    uint32_t sh_degree;
    /* of `in`: levels are for pictures in which a Gaussian smaller than a pixel is fainter
     * (mip-splatting) */
    bool antialiased;
    float *means, *log_scales, *quats, *opacity_logits, *sh0, *shN;
    float *weights, *visibility, *prominence;
    uint32_t *source_first, *source_last, *source_count;
} kiln_coarsen_rows;

/* Fills rows->weights of level 0 from log_scales and opacity_logits; between the least normal float
 * and 1e37. Largest error: 3 ulp, all but 0.51 of it the sigmoid's. */
void kiln_coarsen_weights(const kiln_coarsen_rows *rows);

/* Bytes of work that kiln_coarsen needs beside the arrays of `in` and `out`; SIZE_MAX: kiln_coarsen
 * refuses them. */
size_t kiln_coarsen_bytes(uint64_t n, uint32_t sh_degree, uint32_t n_levels);

/* The levels that are to be made. */
typedef struct {
    uint32_t n;
    const uint64_t *counts; /* [n] rows of each, falling */
    kiln_coarsen_rows *out; /* [n] */
} kiln_coarsen_levels;

/* Makes the levels of `in`, each from the one before. out[i] has room for counts[i] rows in arrays
 * of the caller's and the same arrays NULL as `in`; its n, sh_degree and antialiased are set here.
 * Level i has min(counts[i], rows of the level before) rows. threads: those that load and store
 * rows, look for neighbours and begin the heap, about half of the work; merging itself has one.
 * Results do not depend on them. */
kiln_status kiln_coarsen(const kiln_coarsen_rows *in, const kiln_coarsen_levels *levels, void *work,
                         size_t work_bytes, unsigned threads, kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
