/* view_cut -- a view that is a part of a picture. */
#ifndef KILN_KERNELS_VIEW_CUT_H
#define KILN_KERNELS_VIEW_CUT_H

#include "kernels/view.h"

KILN_C_BEGIN

/* Pixels of the whole picture beyond each border of its part. All 0: the view is the whole
 * picture. */
typedef struct {
    uint32_t left, top, right, bottom;
} kiln_view_cut;

/* Turns the view of a whole picture into that of its part of width x height pixels from pixel
 * (left, top) on. Also says what was cut off. The part lies within the picture and has pixels.
 * project and project_backward take both: a Gaussian has the shape that it has in the whole
 * picture, because profiles bound the Jacobian by the whole field of view. Double, rounded once. */
kiln_view_cut kiln_view_cut_to(kiln_view *v, uint32_t left, uint32_t top, uint32_t width,
                               uint32_t height);

/* The width, height and principal point of the whole picture; the rest is the part's. */
static inline kiln_view kiln_view_uncut(const kiln_view *v, const kiln_view_cut *cut)
{
    kiln_view whole = *v;
    whole.width += cut->left + cut->right;
    whole.height += cut->top + cut->bottom;
    whole.cx += (float)cut->left;
    whole.cy += (float)cut->top;
    return whole;
}

KILN_C_END

#endif
