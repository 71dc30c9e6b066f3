/* vec3 -- vectors of three doubles, and where a camera stands whose pose is cam_from_world: rows
 * right, down, forward of a rotation r, row by row, and a translation t, so that r * world + t is
 * in the camera's frame.
 *
 * Only + - * / and sqrt: the same bits on every machine. Functions are pure. `out` may not be one
 * of the inputs.
 */
#ifndef KILN_BASE_VEC3_H
#define KILN_BASE_VEC3_H

#include <math.h>
#include <stdbool.h>

static inline double kiln_vec3_dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static inline void kiln_vec3_cross(const double a[3], const double b[3], double out[3])
{
    for (int i = 0; i < 3; i++)
        out[i] = a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3];
}

static inline double kiln_vec3_length(const double v[3]) { return sqrt(kiln_vec3_dot(v, v)); }

static inline double kiln_vec3_distance_squared(const double a[3], const double b[3])
{
    const double d[3] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
    return kiln_vec3_dot(d, d);
}

static inline double kiln_vec3_distance(const double a[3], const double b[3])
{
    return sqrt(kiln_vec3_distance_squared(a, b));
}

/* Gives the vector the length 1. Returns false and leaves it alone if it has hardly any length, or
 * too much to be squared. */
static inline bool kiln_vec3_normalise(double v[3])
{
    const double length = kiln_vec3_length(v);
    if (!(length > 1e-300) || !(length < 1e300)) return false;
    for (int i = 0; i < 3; i++) v[i] /= length;
    return true;
}

/* Returns the camera's place in the world, -r^T t. */
static inline void kiln_pose_centre(const double r[9], const double t[3], double out[3])
{
    for (int i = 0; i < 3; i++) out[i] = -(r[i] * t[0] + r[3 + i] * t[1] + r[6 + i] * t[2]);
}

/* Returns the translation of a camera that stands at `centre`, -r centre. */
static inline void kiln_pose_translation(const double r[9], const double centre[3], double out[3])
{
    for (int i = 0; i < 3; i++) out[i] = -kiln_vec3_dot(r + 3 * i, centre);
}

/* Returns a point of the world in the camera's frame, r world + t. */
static inline void kiln_pose_apply(const double r[9], const double t[3], const double world[3],
                                   double out[3])
{
    for (int i = 0; i < 3; i++)
        out[i] = r[3 * i] * world[0] + r[3 * i + 1] * world[1] + r[3 * i + 2] * world[2] + t[i];
}

#endif
