#include "stages/cameras/orbit.h"

#include "base/vec3.h"
#include "stages/select/up_axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Constants instead of calls: libm's last bit differs between systems, and a camera's pose is
 * stored. */
#define TAN_HALF_FOV 0.46630765815499859 /* tan 25 degrees: a vertical field of view of 50 */
#define SIN_HALF_FOV 0.42261826174069944
#define SQRT_HALF 0.70710678118654752
static const double circle[KILN_ORBIT_CAMERAS][2] = {
    {1, 0},  {SQRT_HALF, SQRT_HALF},   {0, 1},  {-SQRT_HALF, SQRT_HALF},
    {-1, 0}, {-SQRT_HALF, -SQRT_HALF}, {0, -1}, {SQRT_HALF, -SQRT_HALF}};
static const uint32_t width = 1280, height = 720;

/* Two directions that span the plane of the circle. */
static void plane_of(const double up[3], double e0[3], double e1[3])
{
    double least[3] = {0, 0, 0};
    int a = 0;
    for (int i = 1; i < 3; i++)
        if (fabs(up[i]) < fabs(up[a])) a = i;
    least[a] = 1;
    kiln_vec3_cross(up, least, e0);
    (void)kiln_vec3_normalise(e0); /* up is at least 54 degrees from that axis */
    kiln_vec3_cross(up, e0, e1);
}

static void aim_camera(kiln_camera *c, const double eye[3], const double target[3],
                       const double up[3])
{
    double forward[3], right[3], down[3];
    for (int i = 0; i < 3; i++) forward[i] = target[i] - eye[i];
    (void)kiln_vec3_normalise(forward);
    kiln_vec3_cross(forward, up, right);
    (void)kiln_vec3_normalise(right);
    kiln_vec3_cross(forward, right, down);
    memcpy(c->r, right, sizeof right);
    memcpy(c->r + 3, down, sizeof down);
    memcpy(c->r + 6, forward, sizeof forward);
    kiln_pose_translation(c->r, eye, c->t);
}

static void set_lens(kiln_camera *c)
{
    c->width = width;
    c->height = height;
    c->fx = c->fy = height / 2.0 / TAN_HALF_FOV;
    c->cx = width / 2.0;
    c->cy = height / 2.0;
    snprintf(c->model, sizeof c->model, "PINHOLE");
    c->n_params = 4;
    c->params[0] = c->fx;
    c->params[1] = c->fy;
    c->params[2] = c->cx;
    c->params[3] = c->cy;
}

/* A circle about the centre. */
typedef struct {
    const char *const *names; /* [KILN_ORBIT_CAMERAS] */
    double centre[3];
    double distance, across, above; /* the latter two in units of the first */
} circle_of_eyes;

static void place_cameras(const circle_of_eyes *o, const char *up,
                          kiln_camera out[KILN_ORBIT_CAMERAS])
{
    double u[3], e0[3], e1[3];
    kiln_up_vector(up, u);
    plane_of(u, e0, e1);
    for (uint32_t k = 0; k < KILN_ORBIT_CAMERAS; k++) {
        kiln_camera *c = &out[k];
        double eye[3];
        *c = (kiln_camera){.name = o->names[k], .photo = "", .mask = ""};
        snprintf(c->split, sizeof c->split, "train");
        c->synthetic = true;
        for (int i = 0; i < 3; i++)
            eye[i] = o->centre[i] +
                     o->distance * (o->across * (circle[k][0] * e0[i] + circle[k][1] * e1[i]) +
                                    o->above * u[i]);
        aim_camera(c, eye, o->centre, u);
        set_lens(c);
    }
}

void kiln_orbit(const char *up, const double lo[3], const double hi[3],
                kiln_camera out[KILN_ORBIT_CAMERAS])
{
    static const char *const names[KILN_ORBIT_CAMERAS] = {
        "orbit_0", "orbit_1", "orbit_2", "orbit_3", "orbit_4", "orbit_5", "orbit_6", "orbit_7"};
    circle_of_eyes o = {.names = names, .across = KILN_ORBIT_ACROSS, .above = KILN_ORBIT_ABOVE};
    double radius = 0, farthest = 0;
    for (int i = 0; i < 3; i++) {
        o.centre[i] = (lo[i] + hi[i]) / 2;
        radius += (hi[i] - lo[i]) * (hi[i] - lo[i]) / 4;
        farthest = fmax(farthest, fabs(o.centre[i]));
    }
    /* Around a single place the radius is 1, unless that is lost beside its coordinates: the eye
     * would be at the centre. */
    radius = radius > 0 ? sqrt(radius) : fmax(1, farthest * 0x1p-30);
    o.distance = radius / SIN_HALF_FOV;
    place_cameras(&o, up, out);
}

static const char inner_name[] = "inner_";

void kiln_orbit_inner(const char *up, const double middle[3], double radius,
                      kiln_camera out[KILN_ORBIT_CAMERAS])
{
    static const char *const names[KILN_ORBIT_CAMERAS] = {
        "inner_0", "inner_1", "inner_2", "inner_3", "inner_4", "inner_5", "inner_6", "inner_7"};
    circle_of_eyes o = {.names = names,
                        .distance = radius,
                        .across = KILN_ORBIT_INNER_ACROSS,
                        .above = KILN_ORBIT_INNER_ABOVE};
    memcpy(o.centre, middle, sizeof o.centre);
    place_cameras(&o, up, out);
}

bool kiln_orbit_is_inner(const kiln_camera *c)
{
    return c->synthetic && strncmp(c->name, inner_name, sizeof inner_name - 1) == 0;
}
