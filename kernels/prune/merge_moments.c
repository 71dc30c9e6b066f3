/* merge_moments -- one Gaussian with the mean and covariance of several. Covariances are added in
 * double; the axes of the sum come from Jacobi rotations (ellipsoid_math.h): the same bits on every
 * machine. */
#include "kernels/prune/merge.h"

#include "kernels/math/ellipsoid_math.h"
#include "kernels/math/real.h"

#include <math.h>

enum { SWEEPS = 12 }; /* of kiln_jacobi_axes: stored bits depend on it */

static void add_covariance(const kiln_merge_gaussian *g, double weight, double sum[9])
{
    const double quat[4] = {g->quat[0], g->quat[1], g->quat[2], g->quat[3]};
    double r[9], s2[3];
    kiln_rotation_of(quat, r);
    for (int k = 0; k < 3; k++) {
        const double s = (double)kiln_expf(g->log_scale[k]);
        s2[k] = s * s;
    }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++)
                sum[3 * i + j] += weight * r[3 * i + k] * s2[k] * r[3 * j + k];
}

static float log_scale_of(double variance)
{
    const double least = 1e-76; /* e^-87 squared: the least scale that import keeps */
    return kiln_logf((float)sqrt(variance > least ? variance : least));
}

void kiln_merge_moments(const kiln_merge_gaussian *g, uint32_t n, double *weights,
                        kiln_merge_gaussian *out)
{
    double total = 0, through = 1, mean[3] = {0, 0, 0}, covariance[9] = {0}, axes[9], quat[4];
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
    kiln_jacobi_axes(covariance, axes, SWEEPS);
    for (int a = 0; a < 3; a++) {
        out->mean[a] = (float)mean[a];
        out->log_scale[a] = log_scale_of(covariance[4 * a]);
    }
    kiln_either_quat_of_rotation(axes, quat);
    for (int i = 0; i < 4; i++) out->quat[i] = (float)quat[i];
    const double most = 254.75 / 255;
    out->opacity_logit = kiln_logitf((float)(1 - through < most ? 1 - through : most));
}
