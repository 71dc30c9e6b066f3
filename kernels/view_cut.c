/* view_cut -- the projection of a part of a picture. */
#include "kernels/view_cut.h"

/* A row of the full projection for a part of an axis. A profile puts a point at pixel ((ndc + 1)
 * whole - 1) / 2; for the part it has to come out `from` less with `part` in place of `whole`. */
static void cut_axis(float *row, const float *w, double whole, double from, double part)
{
    const double by = whole / part, shift = (whole - part - 2 * from) / part;
    for (int k = 0; k < 4; k++) row[k] = (float)(by * (double)row[k] + shift * (double)w[k]);
}

kiln_view_cut kiln_view_cut_to(kiln_view *v, uint32_t left, uint32_t top, uint32_t width,
                               uint32_t height)
{
    const kiln_view_cut cut = {.left = left,
                               .top = top,
                               .right = v->width - left - width,
                               .bottom = v->height - top - height};
    cut_axis(v->proj, v->proj + 12, v->width, left, width);
    cut_axis(v->proj + 4, v->proj + 12, v->height, top, height);
    v->cx -= (float)left;
    v->cy -= (float)top;
    v->width = width;
    v->height = height;
    return cut;
}
