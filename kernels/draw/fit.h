/* fit -- runs tile_pairs_count, tile_pairs_emit and raster within the device memory that a runner
 * may take (--vram).
 *
 * Problem. An operation on all Gaussians of a view can need more device memory than the cap allows.
 *
 * Constraint. The results are those of one call, bit for bit.
 *
 * Layout. If an operation does not fit, Gaussians that do not touch its tile rows are left out
 * first. Then its tile rows are cut in halves until each part fits; a part gets only the Gaussians
 * that touch it. Count is cut by Gaussians instead. A single tile row that does not fit is computed
 * by the runner on the CPU. On a runner of the CPU everything fits.
 *
 * Host memory during a call: 4 bytes for each Gaussian, 68 for each Gaussian of the current part,
 * and for raster 4 for each of its pairs. Arguments, threads and errors are those of the
 * operations; arrays are host memory.
 */
#ifndef KILN_KERNELS_FIT_H
#define KILN_KERNELS_FIT_H

#include "base/extern_c.h"
#include "kernels/runner.h"

KILN_C_BEGIN

kiln_status kiln_fit_count(kiln_runner *r, const kiln_tile_pairs_count_args *a,
                           kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_fit_emit(kiln_runner *r, const kiln_tile_pairs_emit_args *a,
                          kiln_error *err) KILN_MUST_CHECK;
/* KILN_E_CAP: a fast picture whose single tile row does not fit, because no CPU draws it. */
kiln_status kiln_fit_raster(kiln_runner *r, const kiln_raster_args *a,
                            kiln_error *err) KILN_MUST_CHECK;
/* Lists and blends one band. a is as for raster, without tile_counts and ranks; a->n_pairs is the
 * number of pairs that were counted. counts [tiles of the band] and ranks [n_pairs] are work space;
 * their contents afterwards are undefined. On a device both operations get only the Gaussians that
 * touch the band, because copying all of them for each band took longer than computing. */
kiln_status kiln_fit_band(kiln_runner *r, const kiln_raster_args *a, uint32_t *counts,
                          uint32_t *ranks, kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
