/* project_reference -- projection and colour once more, in double and in matrix form, written from
 * the definitions and not from kernels/project: EWA with 3x3 products, spherical harmonics from
 * associated Legendre functions. */
#ifndef KILN_TESTS_PROJECT_REFERENCE_H
#define KILN_TESTS_PROJECT_REFERENCE_H

#include "tests/unit/project_planes.h"

#include <math.h>
#include <stdlib.h>

typedef struct {
    int visible;
    /* relative distance of the nearest decision from its threshold: below 1e-4 float32 may
     * differ */
    double margin;
    double condition; /* how much of the determinant cancels: a c / det */
    double x, y, conic[3], opacity, depth, rgb[3], radius[2];
} reference;

static void multiply(const double a[9], const double b[9], double out[9])
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            out[3 * i + j] = 0.0;
            for (int k = 0; k < 3; k++) out[3 * i + j] += a[3 * i + k] * b[3 * k + j];
        }
}

static void transpose(const double a[9], double out[9])
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) out[3 * j + i] = a[3 * i + j];
}

/* m a m^T */
static void sandwich(const double m[9], const double a[9], double out[9])
{
    double t[9], mt[9];
    transpose(m, mt);
    multiply(m, a, t);
    multiply(t, mt, out);
}

static void covariance3(const gaussian *g, double out[9])
{
    double q[4], n = 0.0, s2[9] = {0};
    for (int i = 0; i < 4; i++) n += (double)g->quat[i] * g->quat[i];
    for (int i = 0; i < 4; i++) q[i] = g->quat[i] / sqrt(n);
    const double w = q[0], x = q[1], y = q[2], z = q[3];
    const double r[9] = {w * w + x * x - y * y - z * z, 2 * (x * y - w * z),
                         2 * (x * z + w * y),           2 * (x * y + w * z),
                         w * w - x * x + y * y - z * z, 2 * (y * z - w * x),
                         2 * (x * z - w * y),           2 * (y * z + w * x),
                         w * w - x * x - y * y + z * z};
    for (int i = 0; i < 3; i++) s2[4 * i] = exp(2.0 * g->log_scale[i]);
    sandwich(r, s2, out);
}

/* P_l^m(c), Condon-Shortley phase included, m >= 0, by the usual recurrences. */
static double legendre(int l, int m, double c)
{
    double pmm = 1.0;
    for (int k = 1; k <= m; k++) pmm *= -(2 * k - 1) * sqrt(fmax(0.0, 1 - c * c));
    if (l == m) return pmm;
    double before = pmm, p = c * (2 * m + 1) * pmm;
    for (int k = m + 2; k <= l; k++) {
        const double next = ((2 * k - 1) * c * p - (k + m - 1) * before) / (k - m);
        before = p;
        p = next;
    }
    return p;
}

static double harmonic(int l, int m, const double d[3])
{
    const int n = abs(m);
    const double phi = atan2(d[1], d[0]);
    double ratio = 1.0; /* (l - n)! / (l + n)! */
    for (int k = l - n + 1; k <= l + n; k++) ratio /= k;
    const double k = sqrt((2 * l + 1) / (4.0 * acos(-1.0)) * ratio) * legendre(l, n, d[2]);
    return m == 0 ? k : sqrt(2.0) * k * (m > 0 ? cos(n * phi) : sin(n * phi));
}

static void reference_colour(const gaussian *g, const kiln_view *v, unsigned degree, double rgb[3])
{
    double d[3], n = 0.0;
    for (int i = 0; i < 3; i++) {
        d[i] = (double)g->mean[i] - v->centre[i];
        n += d[i] * d[i];
    }
    for (int i = 0; i < 3; i++) d[i] /= sqrt(n);
    for (int c = 0; c < 3; c++) {
        rgb[c] = 0.5;
        for (int l = 0; l <= (int)degree; l++)
            for (int m = -l; m <= l; m++) rgb[c] += harmonic(l, m, d) * g->sh[l * l + l + m][c];
        rgb[c] = fmax(rgb[c], 0.0);
    }
}

static void decide(reference *o, double value, double threshold)
{
    o->visible &= value > threshold;
    o->margin = fmin(o->margin, fabs(value - threshold) / (1.0 + fabs(threshold)));
}

/* A radius is rounded up to whole pixels, which is a decision too. */
static double round_up(reference *o, double v)
{
    o->margin = fmin(o->margin, fabs(v - round(v)) / (1.0 + v));
    return ceil(v);
}

/* What the profile's cull and outline come to. The tile rectangle of inria is left to the test that
 * counts by hand. */
static reference reference_project(const gaussian *g, const kiln_view *v, kiln_profile_id profile,
                                   bool aa, unsigned degree)
{
    const bool inria = profile == KILN_PROFILE_INRIA;
    reference o = {.visible = 1, .margin = 1.0};
    double cam[3], s3[9], r[9], in_camera[9], s2[9];
    for (int i = 0; i < 3; i++) {
        cam[i] = v->t[i];
        for (int k = 0; k < 3; k++) cam[i] += (double)v->r[3 * i + k] * g->mean[k];
    }
    const double x = cam[0], y = cam[1], z = cam[2];
    o.depth = z;
    decide(&o, z, v->near_m);
    if (!inria) decide(&o, v->far_m, z);
    if (!o.visible) return o;

    const double tan_x = v->width / (2.0 * v->fx), tan_y = v->height / (2.0 * v->fy);
    const double cx = inria ? v->width / 2.0 : v->cx, cy = inria ? v->height / 2.0 : v->cy;
    const double right = inria ? 1.3 * tan_x : (v->width - cx) / v->fx + 0.3 * tan_x,
                 left = inria ? right : cx / v->fx + 0.3 * tan_x;
    const double down = inria ? 1.3 * tan_y : (v->height - cy) / v->fy + 0.3 * tan_y,
                 up = inria ? down : cy / v->fy + 0.3 * tan_y;
    const double tx = z * fmax(-left, fmin(right, x / z)), ty = z * fmax(-up, fmin(down, y / z));
    const double jacobian[9] = {
        v->fx / z, 0, -v->fx * tx / (z * z), 0, v->fy / z, -v->fy * ty / (z * z), 0, 0, 0};
    for (int i = 0; i < 9; i++) r[i] = v->r[i];
    covariance3(g, s3);
    sandwich(r, s3, in_camera);
    sandwich(jacobian, in_camera, s2);

    const double a = s2[0] + 0.3, b = s2[1], c = s2[4] + 0.3, det0 = s2[0] * s2[4] - b * b,
                 det = a * c - b * b;
    o.x = v->fx * x / z + cx;
    o.y = v->fy * y / z + cy;
    o.condition = a * c / det;
    o.conic[0] = c / det;
    o.conic[1] = -b / det;
    o.conic[2] = a / det;
    o.opacity = 1.0 / (1.0 + exp(-(double)g->opacity_logit));
    if (aa) o.opacity *= sqrt(fmax(profile == KILN_PROFILE_GSPLAT_15 ? 0.0 : 0.000025, det0 / det));
    if (inria) {
        const double mid = (a + c) / 2, lambda = mid + sqrt(fmax(0.1, mid * mid - det));
        o.radius[0] = o.radius[1] = round_up(&o, 3 * sqrt(lambda));
        const double tiles_x = (v->width + 15) / 16, tiles_y = (v->height + 15) / 16;
        decide(&o, o.x - 0.5 + o.radius[0], 1.0);
        decide(&o, o.y - 0.5 + o.radius[1], 1.0);
        decide(&o, 16 * tiles_x, o.x - 0.5 - o.radius[0]);
        decide(&o, 16 * tiles_y, o.y - 0.5 - o.radius[1]);
    } else {
        decide(&o, 255.0 * o.opacity, 1.0);
        if (!o.visible) return o;
        const double k = fmin(3.33, sqrt(2 * log(255 * o.opacity)));
        o.radius[0] = round_up(&o, k * sqrt(a));
        o.radius[1] = round_up(&o, k * sqrt(c));
        decide(&o, o.x + o.radius[0], 0.0);
        decide(&o, o.y + o.radius[1], 0.0);
        decide(&o, v->width, o.x - o.radius[0]);
        decide(&o, v->height, o.y - o.radius[1]);
    }
    reference_colour(g, v, degree, o.rgb);
    return o;
}

#endif
