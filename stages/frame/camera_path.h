/* camera_path -- cameras that nobody photographed: on a circle around a scene, and between cameras
 * that there are; and cameras for pictures of another size.
 *
 * World coordinates are those of kiln_camera: scene units, the origin not subtracted; poses are
 * cam_from_world, x right, y down, z forward. Pixels count from 0 at the outer edge of the first
 * one, whose centre is 0.5.
 *
 * All arithmetic is in double, by + - * /, sqrt and the sine and cosine of kernels/math/real64.h,
 * so paths have the same bits on every machine. Functions are pure: any thread may call them, they
 * keep nothing and print nothing. Every camera that they make has neither a name, photo, mask nor
 * lens; its caller names it.
 *
 * Sources. Centripetal Catmull-Rom: Yuksel, Schaefer, Keyser, Parameterization and applications of
 * Catmull-Rom curves, CAD 43 (2011), evaluated by Barry and Goldman's pyramid (1988): the only
 * exponent whose curve has no cusps and no loops within a segment. Spherical interpolation:
 * Shoemake, Animating rotation with quaternion curves (1985).
 */
#ifndef KILN_STAGES_CAMERA_PATH_H
#define KILN_STAGES_CAMERA_PATH_H

#include "schema/manifest.h"

/* ---- size ------------------------------------------------------------------------------------ */
/* The most pixels on an axis, as of camera files. */
#define KILN_CAMERA_SIZE_MAX ((uint32_t)1 << 20)

/* Returns a size times a scale, rounded to the nearest of 1 to KILN_CAMERA_SIZE_MAX. */
uint32_t kiln_camera_scaled(uint32_t pixels, double scale);
/* Gives the camera a picture of this size with the same view: each axis is scaled by itself, by
 * nearly the same where the size is kiln_camera_scaled of its own. Photo, mask and lens stay as
 * they are. width and height are above 0. */
void kiln_camera_rescale(kiln_camera *c, uint32_t width, uint32_t height);
/* Does the same and makes the camera a pinhole without photo and mask, because a photo no longer
 * fits. */
void kiln_camera_resize(kiln_camera *c, uint32_t width, uint32_t height);
/* Gives the camera a picture of this size that shows at least what it showed, in the middle, not
 * stretched: both focal lengths are multiplied by the smaller of the two ratios, and a picture of
 * another shape shows more on two sides. Drops the same. */
void kiln_camera_fit(kiln_camera *c, uint32_t width, uint32_t height);

/* Gives the camera the picture that a level of detail is for: level k has about 1 / 2^k of the
 * Gaussians, so its picture has 2^(-k/2) of the width and height, as from 2^(k/2) times as far
 * away. Drops the same. */
void kiln_camera_for_level(kiln_camera *c, uint32_t level);

/* ---- orbit ----------------------------------------------------------------------------------- */
/* Where cameras stand on an orbit. */
typedef struct {
    double centre[3]; /* what they look at */
    double up[3];     /* of length 1: the axis of the circle */
    double radius;    /* from the axis to the cameras, scene units, above 0 */
    double height;    /* of the cameras above the centre, scene units */
    /* the first camera is on this side of the axis; along the axis or zero: a side is chosen */
    double start[3];
} kiln_orbit_shape;

/* Poses of n cameras: r, and t behind it, each `stride` bytes after the one before. */
typedef struct {
    const double *first; /* r[9], t[3]; NULL without cameras */
    size_t stride;
    uint32_t n;
} kiln_poses;
/* Of an array of kiln_camera, or of other rows with r[9] and t[3] behind it. */
#define KILN_POSES(rows, count) ((kiln_poses){(count) ? (rows)->r : NULL, sizeof *(rows), (count)})

/* Says which way is up, as a vector of length 1: what the scene says (up_axis as in kiln_scene),
 * else what is vertical for most cameras if they are held level, else the mean of their own, else
 * -y. */
void kiln_camera_path_up(const char *up_axis, kiln_poses poses, double up[3]);
/* Finds the point that is nearest to the optical axes of all cameras, by least squares. False:
 * there is none, as of parallel axes, of a single camera, or where most cameras have it behind
 * them. */
bool kiln_camera_path_focus(kiln_poses poses, double point[3]);
/* Fills radius, height and start from cameras that stand around shape->centre; shape->up is set.
 * Radius and height are medians, so a few cameras elsewhere do not count. *found is false, and
 * nothing is set, if there is no camera, or if they stand above or at the centre. KILN_E_NOMEM. */
kiln_status kiln_camera_path_around(const kiln_camera *cameras, uint32_t n, kiln_orbit_shape *shape,
                                    bool *found, kiln_error *err) KILN_MUST_CHECK;
/* Fills radius and height so that a sphere of this radius (scene units) about the centre is within
 * the picture of such a camera, which looks down on it by 20 degrees. */
void kiln_camera_path_contain(const kiln_camera *lens, double sphere, kiln_orbit_shape *shape);
/* Camera i of n on the orbit, counter-clockwise as seen from above, i * 360 / n degrees behind the
 * first. It is upright and looks at the centre. Size and focal lengths are those of `lens`, the
 * principal point is the middle. */
void kiln_camera_path_orbit(const kiln_orbit_shape *shape, const kiln_camera *lens, uint32_t i,
                            uint32_t n, kiln_camera *out);
/* The camera of an orbit where a scene has none: 1280 x 720, 50 degrees high. */
void kiln_camera_path_lens(kiln_camera *out);

/* ---- between cameras ------------------------------------------------------------------------- */
/* Fills n cameras on the path through n_through others, from the first to the last, both included;
 * n_through is at least 2. All have the size of the first, to which the others are fitted
 * (kiln_camera_fit).
 *
 *   centres      on the centripetal Catmull-Rom curve through theirs. Beyond its ends it goes on as
 *                mirrored; if the last place is the first, it is closed, without a bend there
 *   rotations    from one to the next along the shortest arc, at the same share of it as the
 *                curve's parameter
 *   intrinsics   linear
 *
 * Steps are of one length of the curve's parameter, whose square is the distance of two cameras:
 * longer where cameras are farther apart, and growing and shrinking without a jump. With
 * constant_speed they are of one length along the curve. A segment without length, a turn on the
 * spot, takes as long as the mean of the others. The first and last pose are those of the cameras,
 * bit by bit. KILN_E_NOMEM. */
kiln_status kiln_camera_path_between(const kiln_camera *through, uint32_t n_through,
                                     bool constant_speed, uint32_t n, kiln_camera *out,
                                     kiln_error *err) KILN_MUST_CHECK;

/* Turns the camera to a point in world coordinates, upright as `up` (of length 1) says. Where it
 * looks along that, its own way up counts. A camera that stands at the point is left as it is. */
void kiln_camera_path_look_at(const double point[3], const double up[3], kiln_camera *c);

/* One step of it: the rotation at this share (0 to 1) of the shortest arc between two quaternions
 * w, x, y, z of length 1. Halves the arc as many times as a double has bits, for which neither an
 * angle nor its sine is needed. */
void kiln_slerp(const double a[4], const double b[4], double share, double out[4]);
/* The point of the segment p[1] to p[2] of the curve through four points, at this share (0 to 1) of
 * its parameter. Where p[1] and p[2] are one place, it is that. */
void kiln_catmull_rom(const double p[4][3], double share, double out[3]);

#endif
