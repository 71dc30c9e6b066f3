/* merge_moments -- one Gaussian with the mean and covariance of several. Covariances are added in double; the axes of the
 * sum come from Jacobi rotations, which need nothing but + - * / and sqrt: the same bits on every machine. */
#include "kernels/prune/merge.h"

#include "kernels/math/real.h"

#include <math.h>
#include <string.h>

/* Rotation matrix, row-major, of a quaternion w, x, y, z of any length. */
static void rotation_of(const float quat[4], double r[9])
{
    double q[4], norm2 = 0;
    for (int i = 0; i < 4; i++) norm2 += (double)quat[i] * (double)quat[i];
    const double scale = norm2 > 0 ? 1 / sqrt(norm2) : 0;
    for (int i = 0; i < 4; i++) q[i] = (double)quat[i] * scale;
    const double w = q[0], x = q[1], y = q[2], z = q[3];
    const double m[9] = {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
                         2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                         2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
    memcpy(r, m, sizeof m);
}

static void add_covariance(const kiln_merge_gaussian *g, double weight, double sum[9])
{
    double r[9], s2[3];
    rotation_of(g->quat, r);
    for (int k = 0; k < 3; k++) {
        const double s = (double)kiln_expf(g->log_scale[k]);
        s2[k] = s * s;
    }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++) sum[3 * i + j] += weight * r[3 * i + k] * s2[k] * r[3 * j + k];
}

/* One Jacobi rotation that makes a[p][q] zero; the columns of v turn along. */
static void rotate(double a[9], double v[9], int p, int q)
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

static void eigen(double a[9], double v[9])
{
    static const double identity[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    memcpy(v, identity, sizeof identity);
    for (int sweep = 0; sweep < 12; sweep++) { /* converges quadratically: 6 are enough for any 3 x 3 */
        rotate(a, v, 0, 1);
        rotate(a, v, 0, 2);
        rotate(a, v, 1, 2);
    }
}

/* Quaternion of a rotation matrix, through its largest component (Shepperd, 1978). v is a product of rotations: its
 * determinant is 1. */
static void quaternion_of(const double r[9], float quat[4])
{
    const double trace = r[0] + r[4] + r[8];
    double q[4];
    if (trace > r[0] && trace > r[4] && trace > r[8]) {
        q[0] = 1 + trace;
        q[1] = r[7] - r[5];
        q[2] = r[2] - r[6];
        q[3] = r[3] - r[1];
    } else {
        const int i = r[4] > r[0] ? (r[8] > r[4] ? 2 : 1) : (r[8] > r[0] ? 2 : 0), j = (i + 1) % 3, k = (i + 2) % 3;
        q[0] = r[3 * k + j] - r[3 * j + k];
        q[1 + i] = 1 + r[4 * i] - r[4 * j] - r[4 * k];
        q[1 + j] = r[3 * j + i] + r[3 * i + j];
        q[1 + k] = r[3 * k + i] + r[3 * i + k];
    }
    const double norm = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    for (int i = 0; i < 4; i++) quat[i] = (float)(q[i] / norm);
}

static float log_scale_of(double variance)
{
    const double least = 1e-76; /* e^-87 squared: the least scale that import keeps */
    return kiln_logf((float)sqrt(variance > least ? variance : least));
}

void kiln_merge_moments(const kiln_merge_gaussian *g, uint32_t n, double *weights, kiln_merge_gaussian *out)
{
    double total = 0, through = 1, mean[3] = {0, 0, 0}, covariance[9] = {0}, axes[9];
    for (uint32_t i = 0; i < n; i++) {
        const double opacity = (double)kiln_sigmoidf(g[i].opacity_logit);
        weights[i] = opacity;
        total += opacity;
        through *= 1 - opacity;
    }
    for (uint32_t i = 0; i < n; i++) {
        weights[i] = total > 0 ? weights[i] / total : 1.0 / n;
        for (int a = 0; a < 3; a++) mean[a] += weights[i] * (double)g[i].mean[a];
    }
    for (uint32_t i = 0; i < n; i++) {
        double d[3];
        add_covariance(&g[i], weights[i], covariance);
        for (int a = 0; a < 3; a++) d[a] = (double)g[i].mean[a] - mean[a];
        for (int a = 0; a < 9; a++) covariance[a] += weights[i] * d[a / 3] * d[a % 3];
    }
    eigen(covariance, axes);
    for (int a = 0; a < 3; a++) {
        out->mean[a] = (float)mean[a];
        out->log_scale[a] = log_scale_of(covariance[4 * a]);
    }
    quaternion_of(axes, out->quat);
    const double most = 254.75 / 255;
    out->opacity_logit = kiln_logitf((float)(1 - through < most ? 1 - through : most));
}
