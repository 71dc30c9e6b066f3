/* What both siblings ask of their arguments, and pictures of what slabs left. */
#include "kernels/raster/raster.h"

#include "kernels/raster/raster_math.h"

enum { SIDE_MAX = 1 << 20 };

kiln_status kiln_raster_check(const kiln_raster_args *a, kiln_error *err)
{
    const kiln_view *v = a->view;
    if (v->width == 0 || v->height == 0 || v->width > SIDE_MAX || v->height > SIDE_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "raster: the view has %u x %u pixels; a side may have 1 to 2^20", v->width,
                         v->height);
    if (a->row0 > a->row1 || a->row1 > kiln_view_tiles_y(v) || a->profile >= KILN_PROFILE_COUNT)
        return kiln_fail(err, KILN_E_BUG,
                         "raster: cannot draw tile rows %u to %u of %u with profile %d", a->row0,
                         a->row1, kiln_view_tiles_y(v), (int)a->profile);
    if (kiln_raster_from(a) > kiln_raster_to(a) || kiln_raster_from(a) < a->row0 ||
        kiln_raster_to(a) > a->row1)
        return kiln_fail(err, KILN_E_BUG, "raster: tile rows %u to %u are not within %u to %u",
                         a->part0, a->part1, a->row0, a->row1);
    if (a->state && (a->rgba || a->depth))
        return kiln_fail(err, KILN_E_BUG, "raster: a slab cannot be drawn as a picture");
    return KILN_OK;
}

void kiln_raster_finish(const kiln_raster_state *state, uint64_t n, const float background[3],
                        unsigned threads, float *rgba, float *depth)
{
#pragma omp parallel for num_threads(threads)
    for (uint64_t i = 0; i < n; i++) {
        const kiln_raster_state *s = &state[i];
        const float left = kiln_state_left(s->left);
        rgba[4 * i] = s->red + left * background[0];
        rgba[4 * i + 1] = s->green + left * background[1];
        rgba[4 * i + 2] = s->blue + left * background[2];
        rgba[4 * i + 3] = 1.0f - left;
        if (depth) depth[i] = kiln_expected_depth(s->weight, s->depth);
    }
}
