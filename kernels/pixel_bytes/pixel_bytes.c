/* pixel_bytes -- what both siblings need on the host: the check of their arguments, and the
 * matrix. */
#include "kernels/pixel_bytes/pixel_bytes_math.h"

#include "kernels/pixel_bytes/pixel_bytes.h"

#include <math.h>
#include <stdbool.h>

static int32_t fixed(double v) { return (int32_t)floor(v * (1 << 20) / 255 + 0.5); }

kiln_yuv_matrix kiln_yuv_matrix_of(uint32_t width, uint32_t height)
{
    const bool high = width >= 1280 || height > 576;
    const double kr = high ? 0.2126 : 0.299, kb = high ? 0.0722 : 0.114, kg = 1 - kr - kb;
    const double b = 112 / (1 - kb), r = 112 / (1 - kr);
    return (kiln_yuv_matrix){.y = {fixed(219 * kr), fixed(219 * kg), fixed(219 * kb)},
                             .cb = {fixed(-b * kr), fixed(-b * kg), fixed(112)},
                             .cr = {fixed(112), fixed(-r * kg), fixed(-r * kb)}};
}

kiln_status kiln_pixel_bytes_check(const kiln_pixel_bytes_args *a, kiln_error *err)
{
    enum { MOST = 1 << 20 };
    if (a->width == 0 || a->height == 0 || a->height > MOST || a->stride > MOST ||
        a->stride < a->width)
        return kiln_fail(err, KILN_E_INPUT,
                         "pixel_bytes: the picture has %u x %u pixels in rows of %u; a side may "
                         "have 1 to 2^20, and rows must be as long",
                         a->width, a->height, a->stride);
    if ((unsigned)a->layout >= KILN_N_PIXEL_LAYOUTS)
        return kiln_fail(err, KILN_E_INPUT, "pixel_bytes: layout %d does not exist",
                         (int)a->layout);
    return KILN_OK;
}
