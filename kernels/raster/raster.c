/* What both siblings ask of their arguments. */
#include "kernels/raster/raster.h"

enum { SIDE_MAX = 1 << 20 };

kiln_status kiln_raster_check(const kiln_raster_args *a, kiln_error *err)
{
    const kiln_view *v = a->view;
    if (v->width == 0 || v->height == 0 || v->width > SIDE_MAX || v->height > SIDE_MAX)
        return kiln_fail(err, KILN_E_INPUT, "raster: a view of %u x %u pixels; 1 to 2^20 each way is possible", v->width,
                         v->height);
    if (a->row0 > a->row1 || a->row1 > kiln_view_tiles_y(v) || a->profile >= KILN_PROFILE_COUNT)
        return kiln_fail(err, KILN_E_BUG, "raster: tile rows %u to %u of %u, profile %d", a->row0, a->row1, kiln_view_tiles_y(v),
                         (int)a->profile);
    return KILN_OK;
}
