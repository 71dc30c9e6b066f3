/* fit -- lists and pictures under the cap of a runner (--vram): what does not fit at once is done in parts, whose
 * results are those of the whole, bit for bit. On the CPU everything fits.
 *
 * Parts are tile rows, cut in halves until they fit, with only the Gaussians that show in them. What does not fit even as
 * one tile row is run by the runner on the CPU. A part takes host memory while it is done: 68 bytes for each of its Gaussians,
 * and for raster 4 bytes for each Gaussian and pair of what it is cut from.
 */
#ifndef KILN_KERNELS_FIT_H
#define KILN_KERNELS_FIT_H

#include "base/extern_c.h"
#include "kernels/runner.h"

KILN_C_BEGIN

kiln_status kiln_fit_count(kiln_runner *r, const kiln_tile_pairs_count_args *a, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_fit_emit(kiln_runner *r, const kiln_tile_pairs_emit_args *a, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_fit_raster(kiln_runner *r, const kiln_raster_args *a, kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
