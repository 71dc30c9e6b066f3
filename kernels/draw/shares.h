/* shares -- each Gaussian's share of a picture, the sum of alpha T over its pixels, in the units of
 * blend_weights; with it its peak and the sum of its alpha, where they are wanted. A drawing's
 * shares stand in the drawing's order while its bands are drawn; then each is added to the row that
 * it belongs to.
 *
 * They are those of the picture, and their bits depend on neither memory, device, slabs nor
 * threads.
 */
#ifndef KILN_KERNELS_DRAW_SHARES_H
#define KILN_KERNELS_DRAW_SHARES_H

#include "kernels/draw/blend_totals.h"
#include "kernels/draw/draw_bands.h"
#include "kernels/draw/store.h"

KILN_C_BEGIN

typedef struct {
    kiln_bands_source of;
    const kiln_draw_want *want; /* borrowed */
    kiln_blend_totals totals;   /* [of the drawing] */
    /* the same in device memory, which counts instead while there is one: bands add to it without
     * copies */
    kiln_store_block there;
    kiln_blend_totals totals_there;
    kiln_draw_store *store; /* that has it */
    uint64_t n;
} kiln_shares;
/* Makes shares of 0, on the device if the drawing is there and leaves room. Release them before the
 * drawing, after a failure too.
 */
kiln_status kiln_shares_begin(kiln_runner *r, kiln_drawing *d, const kiln_draw_want *want,
                              kiln_shares *out, kiln_error *err) KILN_MUST_CHECK;
/* The way of its bands: instead of a picture, each Gaussian's share is added. */
kiln_band_way kiln_shares_bands(kiln_shares *s);
/* Adds them to the rows of the wanted sums, peaks and alphas. */
kiln_status kiln_shares_add(kiln_shares *s, kiln_error *err) KILN_MUST_CHECK;
void kiln_shares_release(kiln_shares *s);

KILN_C_END

#endif
