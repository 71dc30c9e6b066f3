/* render_options -- the values of the options of kiln-render, whose rows are in stages/render.c.
 * Parts of a run change some: where an option that was stored does not go with one that was given,
 * it counts as not given. */
#ifndef KILN_STAGES_RENDER_OPTIONS_H
#define KILN_STAGES_RENDER_OPTIONS_H

#include "stages/frame/view_request.h"
#include "stages/render/viewpoints.h"

typedef struct {
    kiln_view_options request;
    kiln_viewpoint_options where;
    const char *level, *against, *background, *camera, *output;
    uint32_t format, undistort_filter, exposure; /* the last: kiln_exposure_use */
    const char *video;
    double fps;
    bool alpha, depth, depth_colours, fast, overwrite;
} kiln_render_options;

#endif
