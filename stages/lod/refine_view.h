/* refine_view -- the window of a view on a chunk, at a size. */
#ifndef KILN_STAGES_LOD_REFINE_VIEW_H
#define KILN_STAGES_LOD_REFINE_VIEW_H

#include "kernels/coarsen/coarsen.h"
#include "stages/lod/refine_units.h"

/* A part of a camera's picture. */
typedef struct {
    kiln_view view;
    kiln_view_cut cut;
    double size; /* of the whole picture; 1: the camera's */
} kiln_refine_window;

typedef struct {
    float near_m, far_m;
    /* a camera's pixel at the median of the rows that cameras see, scene units; the nearest
     * camera's */
    double footprint;
    uint32_t n, n_cameras; /* views; those of them, the first, that are cameras */
    kiln_refine_camera views[KILN_REFINE_VIEWS];
    uint64_t n_points; /* rows of the chunk, evenly spread: where it is in a picture */
    double points[KILN_REFINE_POINTS][3];
} kiln_refine_views;

/* Chooses the views of a unit. level0: the chunk's rows. */
void kiln_refine_views_make(const kiln_refine_unit *u, const kiln_coarsen_rows *level0,
                            kiln_refine_views *out);

/* A number from 0 to below 1 that looks random and depends on a, b and c alone. */
double kiln_refine_noise(uint32_t a, uint32_t b, uint32_t c);
/* Size `half` halves of an octave below that of the camera: 2^(-half / 2). */
double kiln_refine_size(uint32_t half);
/* Fills the part of the view `which` at that size that has the chunk in it, at most
 * KILN_REFINE_WINDOW pixels across. Where not all of the chunk fits, the noise of (which, half)
 * picks a part of it. false: the view has none of the chunk, or hardly a pixel. */
bool kiln_refine_window_make(const kiln_refine_views *v, uint32_t which, uint32_t half,
                             kiln_refine_window *out);

#endif
