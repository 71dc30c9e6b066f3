/* fit -- lists and pictures under a cap on device memory (--vram): what does not fit at once is done in parts, whose
 * results are those of the whole, bit for bit. On the CPU everything fits.
 *
 * Parts are tile rows, cut in halves until they fit, with only the Gaussians that show in them. What does not fit even as
 * one tile row is run by the runner on the CPU.
 */
#ifndef KILN_STAGES_FIT_H
#define KILN_STAGES_FIT_H

#include "stages/engine/engine.h"

kiln_status kiln_fit_count(kiln_worker *w, const kiln_tile_pairs_count_args *a, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_fit_emit(kiln_worker *w, const kiln_tile_pairs_emit_args *a, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_fit_raster(kiln_worker *w, const kiln_raster_args *a, kiln_error *err) KILN_MUST_CHECK;

#endif
