/* view -- a camera in float32: every product is formed in double and rounded once. The truth
 * pictures come from matrices that are rounded that way, and poses far from the origin would lose
 * digits otherwise. */
#include "kernels/view.h"

/* Near and far plane of INRIA's matrix (scene/cameras.py of graphdeco-inria/gaussian-splatting).
 * They enter the row of clip z alone, which nothing reads; they are not the plane at which a
 * profile culls. */
static const double clip_near = 0.01, clip_far = 100.0;

/* getProjectionMatrix(znear, zfar, fovX, fovY) of utils/graphics_utils.py there, with fov = 2
 * atan(size / (2 f)): 1 / tan(fov / 2) = 2 f / size. It knows no principal point. */
static void full_projection(const double r[9], const double t[3], double fx, double fy,
                            double width, double height, float out[16])
{
    const double sx = 2.0 * fx / width, sy = 2.0 * fy / height;
    const double sz = clip_far / (clip_far - clip_near),
                 tz = -(clip_far * clip_near) / (clip_far - clip_near);
    for (int k = 0; k < 4; k++) {
        const double x = k < 3 ? r[k] : t[0], y = k < 3 ? r[3 + k] : t[1],
                     z = k < 3 ? r[6 + k] : t[2];
        out[k] = (float)(sx * x);
        out[4 + k] = (float)(sy * y);
        out[8 + k] = (float)(k < 3 ? sz * z : sz * z + tz);
        out[12 + k] = (float)z;
    }
}

void kiln_view_init(kiln_view *v, const double r[9], const double t[3], const double origin[3],
                    const double intrinsics[4], uint32_t width, uint32_t height, float near_m,
                    float far_m)
{
    double moved[3]; /* x_cam = R (x + origin) + t */
    for (int i = 0; i < 3; i++)
        moved[i] =
            r[3 * i] * origin[0] + r[3 * i + 1] * origin[1] + r[3 * i + 2] * origin[2] + t[i];
    for (int i = 0; i < 9; i++) v->r[i] = (float)r[i];
    for (int i = 0; i < 3; i++) {
        v->t[i] = (float)moved[i];
        v->centre[i] = (float)-(r[i] * moved[0] + r[3 + i] * moved[1] + r[6 + i] * moved[2]);
    }
    full_projection(r, moved, intrinsics[0], intrinsics[1], width, height, v->proj);
    v->fx = (float)intrinsics[0];
    v->fy = (float)intrinsics[1];
    v->cx = (float)intrinsics[2];
    v->cy = (float)intrinsics[3];
    v->near_m = near_m;
    v->far_m = far_m;
    v->width = width;
    v->height = height;
}
