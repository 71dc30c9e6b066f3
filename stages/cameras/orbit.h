/* orbit -- eight cameras for a scene that has none. They stand on a circle, a little above the
 * middle, and look at it: about the robust box with the box's sphere inside the picture, or within
 * a sky or walls that would hide the scene from there. Pure functions; any thread may call them.
 */
#ifndef KILN_STAGES_CAMERAS_ORBIT_H
#define KILN_STAGES_CAMERAS_ORBIT_H

#include "schema/manifest.h"

enum { KILN_ORBIT_CAMERAS = 8 };
/* Radius and height of the circle, by the distance of the cameras from the middle: 20 degrees above
 * it. */
#define KILN_ORBIT_ACROSS 0.93969262078590838
#define KILN_ORBIT_ABOVE 0.34202014332566873
/* Radius and height of the inner circle, by the median distance of the rows from the middle. */
#define KILN_ORBIT_INNER_ACROSS 2.0
#define KILN_ORBIT_INNER_ABOVE 0.5

/* up: "y", "-y", "0 0.5 1", "" (then -y: x right, y down, z forward is what trainers store). Box in
 * world coordinates. Their names are orbit_0 to orbit_7. */
void kiln_orbit(const char *up, const double lo[3], const double hi[3],
                kiln_camera out[KILN_ORBIT_CAMERAS]);
/* Within the scene: middle in world coordinates, radius above 0 is the median distance from it.
 * Their names are inner_0 to inner_7. */
void kiln_orbit_inner(const char *up, const double middle[3], double radius,
                      kiln_camera out[KILN_ORBIT_CAMERAS]);
/* Whether kiln_orbit_inner made it, which its name says. */
bool kiln_orbit_is_inner(const kiln_camera *c);

#endif
