/* camera_pose -- rotations from outside: checked, normalised, turned into cam_from_world.
 *
 * A rotation is taken as it stands while its columns are unit to 1e-5 (float32 files are good to
 * 1e-7): what a trainer used is what we draw. Longer or shorter columns, as scaled worlds leave
 * them, are normalised and counted. */
#include "base/vec3.h"
#include "stages/cameras/camera_file.h"

#include <math.h>
#include <string.h>

static double dot_columns(const double r[9], int a, int b)
{
    return r[a] * r[b] + r[3 + a] * r[3 + b] + r[6 + a] * r[6 + b];
}

static double rotation_determinant(const double r[9])
{
    return r[0] * (r[4] * r[8] - r[5] * r[7]) - r[1] * (r[3] * r[8] - r[5] * r[6]) +
           r[2] * (r[3] * r[7] - r[4] * r[6]);
}

static kiln_status check_rotation(kiln_camera_file *f, const double given[9], const double t[3],
                                  double r[9], const char *who, kiln_error *err)
{
    bool scaled = false;
    memcpy(r, given, 9 * sizeof *r);
    for (int i = 0; i < 9; i++)
        if (!isfinite(r[i]) || (i < 3 && !isfinite(t[i])))
            return kiln_fail(err, KILN_E_INPUT, "'%s': the pose of %s is not finite", f->path, who);
    for (int c = 0; c < 3; c++) {
        const double length = sqrt(dot_columns(r, c, c));
        if (!(length > 1e-12 && length < 1e12))
            return kiln_fail(err, KILN_E_INPUT,
                             "'%s': the matrix of %s is not a rotation: a column of length %g",
                             f->path, who, length);
        if (fabs(length - 1) <= 1e-5) continue;
        for (int k = 0; k < 3; k++) r[3 * k + c] /= length;
        scaled = true;
    }
    if (fabs(dot_columns(r, 0, 1)) > 1e-3 || fabs(dot_columns(r, 0, 2)) > 1e-3 ||
        fabs(dot_columns(r, 1, 2)) > 1e-3)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s': the matrix of %s is not a rotation: its columns are not at right angles",
            f->path, who);
    if (rotation_determinant(r) < 0)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s': the matrix of %s is a reflection; was an axis negated once too often?", f->path,
            who);
    f->n_normalised += scaled;
    return KILN_OK;
}

kiln_status kiln_camera_pose(kiln_camera_file *f, kiln_camera *c, const double r[9],
                             const double t[3], const char *who, kiln_error *err)
{
    KILN_TRY(check_rotation(f, r, t, c->r, who, err));
    memcpy(c->t, t, sizeof c->t);
    return KILN_OK;
}

kiln_status kiln_camera_pose_of_body(kiln_camera_file *f, kiln_camera *c, const double r[9],
                                     const double centre[3], const char *who, kiln_error *err)
{
    double body[9];
    KILN_TRY(check_rotation(f, r, centre, body, who, err));
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) c->r[3 * i + k] = body[3 * k + i];
    kiln_pose_translation(c->r, centre, c->t);
    return KILN_OK;
}

kiln_status kiln_camera_pose_of_quat(kiln_camera_file *f, kiln_camera *c, const double q[4],
                                     const double t[3], const char *who, kiln_error *err)
{
    const double n = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    if (!isfinite(n) || !isfinite(t[0]) || !isfinite(t[1]) || !isfinite(t[2]))
        return kiln_fail(err, KILN_E_INPUT, "'%s': the pose of %s is not finite", f->path, who);
    if (!(n > 1e-12))
        return kiln_fail(err, KILN_E_INPUT, "'%s': the rotation of %s is zero", f->path, who);
    const double w = q[0] / n, x = q[1] / n, y = q[2] / n, z = q[3] / n;
    const double r[9] = {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
                         2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                         2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
    memcpy(c->r, r, sizeof r);
    memcpy(c->t, t, sizeof c->t);
    return KILN_OK;
}
