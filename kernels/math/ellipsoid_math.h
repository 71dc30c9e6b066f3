/* ellipsoid_math -- what a Gaussian's axes say, in doubles with the same bits on every machine: its
 * covariance, the axes of a covariance, and the surface of its 1-sigma ellipsoid.
 *
 * Only + - * /, sqrt and the exp and log of real64.h. Covariances are xx, xy, xz, yy, yz, zz.
 *
 *   kiln_ellipsoid_area  relative error below 1e-14, so 0.51 ulp once rounded to float
 *                        (tests/unit/coarsen_test.c)
 *   kiln_covar_axes      eigenvalues within 4e-15 of the largest one
 *
 * Source of the surface: Knud Thomsen's formula, 4 pi (((ab)^p + (ac)^p + (bc)^p) / 3)^(1/p), p =
 * 1.6075, within 1.1 % of the true one. Axes: Jacobi rotations.
 */
#ifndef KILN_KERNELS_MATH_ELLIPSOID_MATH_H
#define KILN_KERNELS_MATH_ELLIPSOID_MATH_H

#include "kernels/math/real64.h"

/* log_scales finite. Scales to the largest of the three products, so that nothing overflows before
 * the result does. */
static inline double kiln_ellipsoid_area(const double log_scales[3])
{
    const double p = 1.6075;
    double pair[3] = {log_scales[0] + log_scales[1], log_scales[0] + log_scales[2],
                      log_scales[1] + log_scales[2]};
    double most = pair[0], sum = 0;
    for (int i = 1; i < 3; i++) most = pair[i] > most ? pair[i] : most;
    for (int i = 0; i < 3; i++) sum += kiln_exp_f64(p * (pair[i] - most));
    return 12.566370614359173 /* 4 pi */ * kiln_exp_f64(most + kiln_log_f64(sum / 3) / p);
}

/* The rotation of a quaternion w, x, y, z of any length, row-major; of length 0 it turns
 * nothing. */
static inline void kiln_rotation_of(const double quat[4], double r[9])
{
    const double norm2 =
        quat[0] * quat[0] + quat[1] * quat[1] + quat[2] * quat[2] + quat[3] * quat[3];
    const double scale = norm2 > 0 ? 1 / sqrt(norm2) : 0;
    const double w = quat[0] * scale, x = quat[1] * scale, y = quat[2] * scale, z = quat[3] * scale;
    r[0] = 1 - 2 * (y * y + z * z);
    r[1] = 2 * (x * y - w * z);
    r[2] = 2 * (x * z + w * y);
    r[3] = 2 * (x * y + w * z);
    r[4] = 1 - 2 * (x * x + z * z);
    r[5] = 2 * (y * z - w * x);
    r[6] = 2 * (x * z - w * y);
    r[7] = 2 * (y * z + w * x);
    r[8] = 1 - 2 * (x * x + y * y);
}

/* quat: as in kiln_rotation_of. */
static inline void kiln_covar_of(const double log_scales[3], const double quat[4], double covar[6])
{
    double r[9];
    kiln_rotation_of(quat, r);
    double s2[3];
    for (int k = 0; k < 3; k++) s2[k] = kiln_exp_f64(2 * log_scales[k]);
    for (int i = 0, at = 0; i < 3; i++)
        for (int j = i; j < 3; j++, at++)
            covar[at] = r[3 * i] * r[3 * j] * s2[0] + r[3 * i + 1] * r[3 * j + 1] * s2[1] +
                        r[3 * i + 2] * r[3 * j + 2] * s2[2];
}

/* One Jacobi rotation that makes a[p][q] zero; the columns of v turn along. */
static inline void kiln_jacobi_rotate(double a[9], double v[9], int p, int q)
{
    const double off = a[3 * p + q];
    if (off == 0) return;
    const double theta = (a[3 * q + q] - a[3 * p + p]) / (2 * off);
    const double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
    const double c = 1 / sqrt(t * t + 1), s = t * c;
    for (int k = 0; k < 3; k++) {
        const double x = a[3 * k + p], y = a[3 * k + q];
        a[3 * k + p] = c * x - s * y;
        a[3 * k + q] = s * x + c * y;
    }
    for (int k = 0; k < 3; k++) {
        const double x = a[3 * p + k], y = a[3 * q + k];
        a[3 * p + k] = c * x - s * y;
        a[3 * q + k] = s * x + c * y;
    }
    for (int k = 0; k < 3; k++) {
        const double x = v[3 * k + p], y = v[3 * k + q];
        v[3 * k + p] = c * x - s * y;
        v[3 * k + q] = s * x + c * y;
    }
}

/* Turns a symmetric matrix into a diagonal one, of its eigenvalues in no order. The columns of axes
 * are its axes: a rotation, row-major, of determinant 1. Converges quadratically: 6 sweeps are
 * enough for any matrix. Later sweeps still change the last bit of some, so a caller whose bits are
 * stored must keep its number. */
static inline void kiln_jacobi_axes(double a[9], double axes[9], int sweeps)
{
    for (int i = 0; i < 9; i++) axes[i] = i % 4 == 0;
    for (int sweep = 0; sweep < sweeps; sweep++) {
        kiln_jacobi_rotate(a, axes, 0, 1);
        kiln_jacobi_rotate(a, axes, 0, 2);
        kiln_jacobi_rotate(a, axes, 1, 2);
    }
}

/* The eigenvalues of a covariance, in no order, and the rotation whose columns are its axes. */
static inline void kiln_covar_axes(const double covar[6], double values[3], double axes[9])
{
    double a[9] = {covar[0], covar[1], covar[2], covar[1], covar[3],
                   covar[4], covar[2], covar[4], covar[5]};
    kiln_jacobi_axes(a, axes, 8);
    for (int i = 0; i < 3; i++) values[i] = a[4 * i];
}

/* A quaternion w, x, y, z of a rotation matrix, through its largest component, which is positive
 * (Shepperd, 1978). */
static inline void kiln_either_quat_of_rotation(const double r[9], double quat[4])
{
    const double trace = r[0] + r[4] + r[8];
    double q[4];
    if (trace > r[0] && trace > r[4] && trace > r[8]) {
        q[0] = 1 + trace;
        q[1] = r[7] - r[5];
        q[2] = r[2] - r[6];
        q[3] = r[3] - r[1];
    } else {
        const int i = r[4] > r[0] ? (r[8] > r[4] ? 2 : 1) : (r[8] > r[0] ? 2 : 0), j = (i + 1) % 3,
                  k = (i + 2) % 3;
        q[0] = r[3 * k + j] - r[3 * j + k];
        q[1 + i] = 1 + r[4 * i] - r[4 * j] - r[4 * k];
        q[1 + j] = r[3 * j + i] + r[3 * i + j];
        q[1 + k] = r[3 * k + i] + r[3 * i + k];
    }
    const double norm = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    for (int i = 0; i < 4; i++) quat[i] = q[i] / norm;
}

/* The one with w >= 0. */
static inline void kiln_quat_of_rotation(const double r[9], double quat[4])
{
    kiln_either_quat_of_rotation(r, quat);
    if (quat[0] < 0)
        for (int i = 0; i < 4; i++) quat[i] = -quat[i];
}

#endif
