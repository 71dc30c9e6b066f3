/* lens -- what a lens shows where: COLMAP's camera models 0 to 17 (src/colmap/sensor/models.h), and
 * the pinhole that shows the same.
 *
 * A ray is (x, y, 1) in the camera's axes, so it is in front of the camera; a pixel's centre is at
 * +0.5. All arithmetic is double, without libm (trig_math.h), so a pixel has the same bits on every
 * machine. The arithmetic of a single ray is in lens_math.h.
 *
 * Threads: no function keeps anything. Nothing is owned.
 */
#ifndef KILN_KERNELS_LENS_H
#define KILN_KERNELS_LENS_H

#include "base/extern_c.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

KILN_C_BEGIN

/* How rays reach the plane on which the other terms bend them. */
typedef enum {
    KILN_LENS_PLANE,    /* straight: pinholes and the OpenCV models */
    KILN_LENS_FISHEYE,  /* at a distance that is the angle */
    KILN_LENS_FOV,      /* shape: 2 tan(omega/2), omega */
    KILN_LENS_DIVISION, /* shape: k */
    KILN_LENS_EUCM,     /* shape: alpha, beta */
    KILN_LENS_PANORAMA, /* by longitude and latitude */
} kiln_lens_projection;

/* A camera model's parameters, sorted by what they do; terms that a model lacks are 0. */
typedef struct {
    uint32_t projection; /* kiln_lens_projection */
    /* 1: tangential and prism terms are of the point that the radial terms give */
    uint32_t after;
    uint32_t width, height; /* of the photo in pixels */
    double fx, fy, cx, cy;
    double shape[2];
    /* factor (1 + sum radial[i] q^(i+1)) / (1 + sum under[i] q^(i+1)), q = u^2 + v^2 */
    double radial[6], under[3];
    double tangential[2]; /* a, b: u + 2 a u v + b (q + 2 u^2), v + 2 b u v + a (q + 2 v^2) */
    double prism[4];      /* u + prism[0] q + prism[1] q^2, v + prism[2] q + prism[3] q^2 */
    /* Rays farther off the axis (tangent of the angle) do not count as shown, because there the
     * terms fold the picture back; 10^4 where they do not. */
    double limit;
} kiln_lens;

typedef struct {
    double fx, fy, cx, cy;
    uint32_t width, height;
} kiln_pinhole;

/* Fills a lens from COLMAP's parameters. model: COLMAP's id, 0 to 17; params: all of that model's,
 * for a photo of width x height pixels, finite, focal lengths above 0. KILN_E_INPUT: no such
 * model. */
kiln_status kiln_lens_init(kiln_lens *out, int64_t model, const double *params, uint32_t width,
                           uint32_t height, kiln_error *err) KILN_MUST_CHECK;

/* Returns the pinhole that shows what the lens shows, as COLMAP's image_undistorter chooses it: the
 * same focal lengths, the size scaled by 0.2 to 2. blank 0: as large as it can be with no pixel
 * that the photo does not show; 1: as small as it can be with all of the photo; between: between.
 * Borders that no ray in front of the camera reaches count as infinitely far. A panorama gives the
 * 90 degrees ahead, with as many pixels for a degree in the middle as the photo has. */
kiln_pinhole kiln_lens_target(const kiln_lens *lens, double blank);

/* Finds the ray of a pixel position by Newton's method with the exact Jacobian, steps halved where
 * they lead away. False: no ray in front of the camera and within lens->limit reaches the
 * position. */
bool kiln_lens_ray(const kiln_lens *lens, const double pixel[2], double ray[2]);

KILN_C_END

#endif
