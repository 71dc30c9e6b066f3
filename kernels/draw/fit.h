/* fit -- lists and pictures under the cap of a runner (--vram): what does not fit at once is done in parts, whose
 * results are those of the whole, bit for bit. On the CPU everything fits.
 *
 * First the Gaussians that do not show are left out; then tile rows are cut in halves until they fit, each half with only
 * what shows in it. What does not fit even as one tile row is run by the runner on the CPU. Host memory while it is done:
 * 4 bytes for each Gaussian, 68 for each of the part in hand, and for raster 4 for each pair of the part.
 */
#ifndef KILN_KERNELS_FIT_H
#define KILN_KERNELS_FIT_H

#include "base/extern_c.h"
#include "kernels/runner.h"

KILN_C_BEGIN

kiln_status kiln_fit_count(kiln_runner *r, const kiln_tile_pairs_count_args *a, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_fit_emit(kiln_runner *r, const kiln_tile_pairs_emit_args *a, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_fit_raster(kiln_runner *r, const kiln_raster_args *a, kiln_error *err) KILN_MUST_CHECK;
/* Emit and raster of one band: a is raster's but for the lists, of which n_pairs were counted; counts [tiles] and ranks [n_pairs]
 * are room for them and hold afterwards what means nothing to the caller. On a device both get only the Gaussians that show in the
 * band: copies of all of them, for every band twice, took longer than all that is computed. */
kiln_status kiln_fit_band(kiln_runner *r, const kiln_raster_args *a, uint32_t *counts, uint32_t *ranks,
                          kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
