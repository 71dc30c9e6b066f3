/* draw_tally -- counts what a view sees before it is drawn. */
#ifndef KILN_KERNELS_DRAW_TALLY_H
#define KILN_KERNELS_DRAW_TALLY_H

#include "kernels/draw/draw_types.h"

KILN_C_BEGIN

/* Counts the visible Gaussians and pairs of a view without drawing it. Chunks need no colour. Host
 * memory: 64 bytes for each row of the largest chunk. */
kiln_status kiln_draw_count_all(kiln_runner *r, const kiln_draw_scene *s, kiln_draw_tally *t,
                                kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
