/* orbit -- eight cameras for a scene that has none: on a circle about the robust box, a little
 * above its middle, looking at it, with the box's sphere inside the picture.
 */
#ifndef KILN_STAGES_CAMERAS_ORBIT_H
#define KILN_STAGES_CAMERAS_ORBIT_H

#include "schema/manifest.h"

enum { KILN_ORBIT_CAMERAS = 8 };

/* up: "y", "-y", "0 0.5 1", "" (then -y: x right, y down, z forward is what trainers store). Box in
 * world coordinates. */
void kiln_orbit(const char *up, const double lo[3], const double hi[3],
                kiln_camera out[KILN_ORBIT_CAMERAS]);

#endif
