/* What both siblings ask of their arguments, and the memory that they take. */
#include "kernels/undistort/undistort_math.h"

enum { SIDE_MAX = 1 << 20 };

static bool is_side(uint32_t n) { return n > 0 && n <= SIDE_MAX; }

kiln_status kiln_undistort_check(const kiln_undistort_args *a, kiln_error *err)
{
    if (!is_side(a->lens.width) || !is_side(a->lens.height) || !is_side(a->target.width) ||
        !is_side(a->target.height))
        return kiln_fail(
            err, KILN_E_INPUT,
            "undistort: cannot warp %u x %u to %u x %u pixels; a side may have 1 to %d",
            a->lens.width, a->lens.height, a->target.width, a->target.height, SIDE_MAX);
    if (a->channels == 0 || a->channels > KILN_UNDISTORT_CHANNELS)
        return kiln_fail(err, KILN_E_INPUT,
                         "undistort: the photo has %u channels; 1 to %d can be warped", a->channels,
                         KILN_UNDISTORT_CHANNELS);
    if (a->filter > KILN_UNDISTORT_LANCZOS)
        return kiln_fail(err, KILN_E_INPUT, "undistort: filter %u does not exist", a->filter);
    return KILN_OK;
}

uint64_t kiln_undistort_bytes(const kiln_undistort_args *a)
{
    kiln_carve c = {0};
    (void)kiln_undistort_plan_of(a, &c);
    return c.used;
}
