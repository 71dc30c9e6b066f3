/* What both siblings ask of their arguments. */
#include "kernels/pixel_hashes/pixel_hashes.h"

kiln_status kiln_pixel_hashes_check(const kiln_pixel_hashes_args *a, kiln_error *err)
{
    if (kiln_pixel_hashes_can(a->pixels)) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "pixel_hashes: the last of %llu pieces has %u pixels; it needs %d",
                     (unsigned long long)kiln_pixel_pieces(a->pixels),
                     (unsigned)(a->pixels % KILN_PIXEL_PIECE), KILN_PIXEL_PIECE_LEAST);
}
