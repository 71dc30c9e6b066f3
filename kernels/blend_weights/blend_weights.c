/* What both siblings ask of their arguments. */
#include "kernels/blend_weights/blend_weights.h"

kiln_raster_args kiln_blend_weights_raster(const kiln_blend_weights_args *a)
{
    return (kiln_raster_args){.n = a->n,
                              .splats = a->splats,
                              .view = a->view,
                              .profile = a->profile,
                              .row0 = a->row0,
                              .row1 = a->row1,
                              .tile_counts = a->tile_counts,
                              .ranks = a->ranks,
                              .n_pairs = a->n_pairs,
                              .state = a->state};
}
