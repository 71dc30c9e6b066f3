/* in_picture -- whether a camera has a point in its picture, as levels choose their cameras. */
#ifndef KILN_STAGES_IN_PICTURE_H
#define KILN_STAGES_IN_PICTURE_H

#include "base/vec3.h"
#include "schema/manifest.h"

/* Is the point (world coordinates) in the camera's picture and deeper than near_m? Lens distortion
 * is left out. */
static inline bool kiln_lod_in_picture(const kiln_camera *c, double near_m, const double world[3])
{
    double p[3];
    kiln_pose_apply(c->r, c->t, world, p);
    if (!(p[2] > near_m)) return false;
    const double x = c->fx * (p[0] / p[2]) + c->cx, y = c->fy * (p[1] / p[2]) + c->cy;
    return x >= 0 && x <= c->width && y >= 0 && y <= c->height;
}

#endif
