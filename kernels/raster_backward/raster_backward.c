/* What both siblings ask of their arguments. */
#include "kernels/raster_backward/raster_backward.h"

kiln_status kiln_raster_backward_check(const kiln_raster_backward_args *a, kiln_error *err)
{
    const kiln_raster_args same = {
        .view = a->view, .row0 = a->row0, .row1 = a->row1, .profile = a->profile};
    KILN_TRY(kiln_raster_check(&same, err));
    if (kiln_raster_pixels(&same) > KILN_BACKWARD_PIXELS_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "raster_backward: the picture has %llu pixels; at most %d are possible",
                         (unsigned long long)kiln_raster_pixels(&same), KILN_BACKWARD_PIXELS_MAX);
    return KILN_OK;
}
