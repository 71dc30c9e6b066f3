/* blend_totals -- see blend_totals.h. */
#include "kernels/draw/blend_totals.h"

#include "kernels/device.h"

kiln_blend_totals kiln_blend_totals_take(kiln_carve *c, uint64_t n, const kiln_blend_totals *like)
{
    kiln_blend_totals t = {.weights = kiln_take(c, n, sizeof *t.weights)};
    if (like->alphas) t.alphas = kiln_take(c, n, sizeof *t.alphas);
    if (like->peaks) t.peaks = kiln_take(c, n, sizeof *t.peaks);
    return t;
}

kiln_status kiln_blend_totals_in(const kiln_exec *x, const kiln_blend_totals *there,
                                 const kiln_blend_totals *here, uint64_t n, kiln_error *err)
{
    KILN_TRY(kiln_device_copy_in(x, there->weights, here->weights, n * sizeof *here->weights, err));
    if (here->alphas)
        KILN_TRY(
            kiln_device_copy_in(x, there->alphas, here->alphas, n * sizeof *here->alphas, err));
    return here->peaks
               ? kiln_device_copy_in(x, there->peaks, here->peaks, n * sizeof *here->peaks, err)
               : KILN_OK;
}

kiln_status kiln_blend_totals_out(const kiln_exec *x, const kiln_blend_totals *here,
                                  const kiln_blend_totals *there, uint64_t n, kiln_error *err)
{
    KILN_TRY(
        kiln_device_copy_out(x, here->weights, there->weights, n * sizeof *here->weights, err));
    if (here->alphas)
        KILN_TRY(
            kiln_device_copy_out(x, here->alphas, there->alphas, n * sizeof *here->alphas, err));
    return here->peaks
               ? kiln_device_copy_out(x, here->peaks, there->peaks, n * sizeof *here->peaks, err)
               : KILN_OK;
}
