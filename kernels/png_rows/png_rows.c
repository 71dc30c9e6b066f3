/* What both siblings ask of their arguments. */
#include "kernels/png_rows/png_rows.h"

enum { SIDE_MAX = 1 << 20 };

static bool is_side(uint32_t n) { return n > 0 && n <= SIDE_MAX; }

kiln_status kiln_png_rows_check(const kiln_png_rows_args *a, kiln_error *err)
{
    if (!is_side(a->width) || !is_side(a->height))
        return kiln_fail(err, KILN_E_INPUT,
                         "png_rows: the picture has %u x %u pixels; a side may have 1 to %d",
                         a->width, a->height, SIDE_MAX);
    if (a->first > a->height || a->n > a->height - a->first)
        return kiln_fail(err, KILN_E_INPUT, "png_rows: %u rows from row %u on are not within %u",
                         a->n, a->first, a->height);
    if ((a->channels != 1 && a->channels != 3 && a->channels != 4) || a->channels > a->step)
        return kiln_fail(err, KILN_E_INPUT, "png_rows: cannot write %u channels of %u", a->channels,
                         a->step);
    if (a->bits != 8 && a->bits != 16)
        return kiln_fail(err, KILN_E_INPUT,
                         "png_rows: a code has %u bits, which PNG does not allow", a->bits);
    if (a->straight && a->channels != 4)
        return kiln_fail(err, KILN_E_INPUT, "png_rows: pixels of %u channels have no alpha",
                         a->channels);
    return KILN_OK;
}
