/* single_pass -- a picture without a drawing: its work is put on streams, and its end is waited
 * for, once. */
#ifndef KILN_KERNELS_SINGLE_PASS_H
#define KILN_KERNELS_SINGLE_PASS_H

#include "kernels/draw/draw_types.h"

KILN_C_BEGIN

/* Draws a view without a drawing, if a picture of the same scene was drawn before. a is as for
 * raster, without lists and Gaussians, with the rgba and depth of *to. *done is also false if more
 * is visible than the last pictures let expect. Device memory: 72 bytes for each row of the scene
 * in one piece, else for each visible Gaussian; tile_lists' work space; 4 bytes for each pair; the
 * picture and what is made of it. */
kiln_status kiln_pass_draw(const kiln_draw_scene *s, const kiln_raster_args *a,
                           const kiln_draw_outputs *to, kiln_draw_stats *stats, bool *done,
                           kiln_error *err) KILN_MUST_CHECK;
KILN_C_END

#endif
