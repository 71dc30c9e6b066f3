/* blend_totals -- the arrays of blend_weights of a drawing, in host memory or in that of a
 * device. */
#ifndef KILN_KERNELS_BLEND_TOTALS_H
#define KILN_KERNELS_BLEND_TOTALS_H

#include "base/carve.h"
#include "base/extern_c.h"
#include "base/status.h"
#include "kernels/exec.h"

#include <stdint.h>

KILN_C_BEGIN

/* [n] each, all of one memory. Peaks and alphas are NULL where they are not wanted. */
typedef struct {
    uint64_t *weights, *alphas;
    uint32_t *peaks;
} kiln_blend_totals;

/* Takes arrays of n elements, those that `like` has. */
kiln_blend_totals kiln_blend_totals_take(kiln_carve *c, uint64_t n, const kiln_blend_totals *like);
/* Copy to and from a device; does not wait. KILN_E_DEVICE. */
kiln_status kiln_blend_totals_in(const kiln_exec *x, const kiln_blend_totals *there,
                                 const kiln_blend_totals *here, uint64_t n,
                                 kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_blend_totals_out(const kiln_exec *x, const kiln_blend_totals *here,
                                  const kiln_blend_totals *there, uint64_t n,
                                  kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
