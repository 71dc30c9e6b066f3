/* What both siblings ask of their arguments. */
#include "kernels/metrics/metrics.h"

enum { SIDE_MAX = 1 << 20 };

kiln_status kiln_metrics_check(const kiln_metrics_args *a, kiln_error *err)
{
    if (a->width == 0 || a->height == 0 || a->width > SIDE_MAX || a->height > SIDE_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "metrics: the pictures have %u x %u pixels; a side may have 1 to %d",
                         a->width, a->height, SIDE_MAX);
    if (a->a_step < 3 || a->a_step > 4 || a->b_step < 3 || a->b_step > 4)
        return kiln_fail(err, KILN_E_INPUT,
                         "metrics: the pictures have %u and %u channels; they must be RGB or RGBA",
                         a->a_step, a->b_step);
    if (a->a_row < a->width || a->b_row < a->width)
        return kiln_fail(err, KILN_E_INPUT,
                         "metrics: rows of %u and %u pixels hold no picture of width %u", a->a_row,
                         a->b_row, a->width);
    return KILN_OK;
}
