/* refine_view -- the window of a view on a chunk, at a size. */
#ifndef KILN_STAGES_LOD_REFINE_VIEW_H
#define KILN_STAGES_LOD_REFINE_VIEW_H

#include "kernels/coarsen/coarsen.h"
#include "stages/lod/refine_units.h"

/* Where a view stands, and the point of the chunk that it looks at. */
typedef struct {
    double centre[3], right[3], point[3];
    double focal;         /* pixels, with the camera's footprint at the point */
    double width, height; /* of the camera's picture; the window is no larger */
    bool of_all;          /* the point is the middle of the chunk: a window in which not all of it fits looks elsewhere */
} kiln_refine_view;

typedef struct {
    double box_min[3], box_max[3]; /* of the chunk's rows but the outermost */
    float near_m, far_m;
    uint32_t n, n_cameras; /* views; those of them, the first, that stand where a camera stands */
    kiln_refine_view views[KILN_REFINE_VIEWS];
} kiln_refine_views;

/* Chooses the views of a unit. level0: the chunk's rows. KILN_E_NOMEM. */
kiln_status kiln_refine_views_make(const kiln_refine_unit *u, const kiln_coarsen_rows *level0, kiln_refine_views *out,
                                   kiln_error *err) KILN_MUST_CHECK;

/* A number from 0 to below 1 that looks random and depends on a, b and c alone. */
double kiln_refine_noise(uint32_t a, uint32_t b, uint32_t c);
/* Size `half` halves of an octave below that of the camera: 2^(-half / 2). */
double kiln_refine_size(uint32_t half);
/* Fills the view `which` at that size. Where not all of the chunk fits into the window, the noise of (which, half)
 * picks a part of it. false: the chunk is no more than some pixels wide. */
bool kiln_refine_window(const kiln_refine_views *v, uint32_t which, uint32_t half, kiln_view *out);

#endif
