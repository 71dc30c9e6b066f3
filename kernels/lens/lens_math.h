/* lens_math -- a ray's pixel and how it moves, for both siblings.
 *
 * A lens bends in three steps, each of which knows its derivatives:
 *   onto the plane   (u, v) = f(s) (x, y), s = x^2 + y^2; or by longitude and latitude
 *   radially         (u, v) times a polynomial, or a quotient of two, in q = u^2 + v^2
 *   sideways         tangential and prism terms, of the point before the radial step, or after it
 *                    (kiln_lens.after)
 * For (x, y) f(s) the Jacobian is f I + 2 f'(s) (x, y)^T (x, y).
 */
#ifndef KILN_KERNELS_LENS_MATH_H
#define KILN_KERNELS_LENS_MATH_H

#include "kernels/lens/lens.h"
#include "kernels/lens/trig_math.h"

/* atan(sqrt s) / sqrt s and its derivative, for s >= 0. */
static inline KILN_HD void kiln_lens_angle(double s, double *f, double *df)
{
    /* where the quotient's derivative loses digits; what is left out is below 2^-53 */
    if (s < 1e-5) {
        *f = 1.0 + s * (-1.0 / 3.0 + s * (1.0 / 5.0 - s * (1.0 / 7.0)));
        *df = -1.0 / 3.0 + s * (2.0 / 5.0 - s * (3.0 / 7.0 - s * (4.0 / 9.0)));
        return;
    }
    const double r = sqrt(s);
    *f = kiln_atan(r) / r;
    *df = (1.0 / (1.0 + s) - *f) / (2.0 * s);
}

/* The factor onto the plane and its derivative by s. Returns 0 for a ray that the lens does not
 * show. */
static inline KILN_HD int kiln_lens_onto_plane(const kiln_lens *l, double s, double *f, double *df)
{
    const double a = l->shape[0], b = l->shape[1];
    switch (l->projection) {
    case KILN_LENS_FISHEYE:
        kiln_lens_angle(s, f, df);
        return 1;
    case KILN_LENS_FOV: { /* atan(a r) / (b r) */
        kiln_lens_angle(a * a * s, f, df);
        *f = *f * (a / b);
        *df = *df * (a * a * (a / b));
        return 1;
    }
    case KILN_LENS_DIVISION: { /* 2 / (1 + sqrt(1 - 4 a s)) */
        const double under = 1.0 - 4.0 * a * s;
        if (!(under > 0.0)) return 0;
        const double root = sqrt(under), d = 1.0 + root;
        *f = 2.0 / d;
        *df = 4.0 * a / (d * d * root);
        return 1;
    }
    case KILN_LENS_EUCM: { /* 1 / (a sqrt(b s + 1) + 1 - a) */
        const double under = b * s + 1.0;
        if (!(under > 0.0)) return 0;
        const double root = sqrt(under), d = a * root + (1.0 - a);
        if (!(d > 0.0)) return 0;
        *f = 1.0 / d;
        *df = -a * b / (2.0 * root * d * d);
        return 1;
    }
    default:
        *f = 1.0;
        *df = 0.0;
        return 1;
    }
}

/* The radial factor and its derivative by q. Returns 0 where it has a pole. */
static inline KILN_HD int kiln_lens_radial(const kiln_lens *l, double q, double *g, double *dg)
{
    double up = 0.0, dup = 0.0, under = 0.0, dunder = 0.0;
    for (int i = 5; i >= 0; i--) {
        dup = dup * q + up;
        up = up * q + l->radial[i];
    }
    dup = dup * q + up;
    up = up * q + 1.0;
    for (int i = 2; i >= 0; i--) {
        dunder = dunder * q + under;
        under = under * q + l->under[i];
    }
    dunder = dunder * q + under;
    under = under * q + 1.0;
    if (under == 0.0) return 0;
    *g = up / under;
    *dg = (dup - *g * dunder) / under;
    return 1;
}

/* What the tangential and prism terms add at (u, v), and the derivatives row by row. */
static inline KILN_HD void kiln_lens_sideways(const kiln_lens *l, double u, double v, double add[2],
                                              double j[4])
{
    const double q = u * u + v * v, a = l->tangential[0], b = l->tangential[1];
    const double prism_u = l->prism[0] + 2.0 * l->prism[1] * q,
                 prism_v = l->prism[2] + 2.0 * l->prism[3] * q;
    add[0] = 2.0 * a * (u * v) + b * (q + 2.0 * (u * u)) + (l->prism[0] + l->prism[1] * q) * q;
    add[1] = 2.0 * b * (u * v) + a * (q + 2.0 * (v * v)) + (l->prism[2] + l->prism[3] * q) * q;
    j[0] = 2.0 * a * v + 6.0 * b * u + 2.0 * u * prism_u;
    j[1] = 2.0 * a * u + 2.0 * b * v + 2.0 * v * prism_u;
    j[2] = 2.0 * b * v + 2.0 * a * u + 2.0 * u * prism_v;
    j[3] = 2.0 * b * u + 6.0 * a * v + 2.0 * v * prism_v;
}

/* out = a b, of 2 x 2 matrices; out may be b. */
static inline KILN_HD void kiln_lens_chain(const double a[4], const double b[4], double out[4])
{
    const double p = a[0] * b[0] + a[1] * b[2], q = a[0] * b[1] + a[1] * b[3];
    const double r = a[2] * b[0] + a[3] * b[2], s = a[2] * b[1] + a[3] * b[3];
    out[0] = p;
    out[1] = q;
    out[2] = r;
    out[3] = s;
}

/* j = factor I + 2 dfactor (x, y)^T (x, y) */
static inline KILN_HD void kiln_lens_scaling(double x, double y, double factor, double dfactor,
                                             double j[4])
{
    j[0] = factor + 2.0 * dfactor * (x * x);
    j[1] = j[2] = 2.0 * dfactor * (x * y);
    j[3] = factor + 2.0 * dfactor * (y * y);
}

/* Longitude and latitude in pixels. */
static inline KILN_HD void kiln_lens_panorama(const kiln_lens *l, double x, double y,
                                              double pixel[2], double j[4])
{
    const double level = sqrt(1.0 + x * x), wide = (double)l->width / (2.0 * KILN_PI),
                 high = (double)l->height / KILN_PI;
    const double far2 = 1.0 + x * x + y * y;
    pixel[0] = kiln_atan(x) * wide + 0.5 * (double)l->width;
    pixel[1] = kiln_atan(y / level) * high + 0.5 * (double)l->height;
    j[0] = wide / (level * level);
    j[1] = 0.0;
    j[2] = -high * (x * y) / (level * far2);
    j[3] = high * level / far2;
}

/* Where the lens shows the ray (x, y, 1), in pixels of the photo, and the derivatives by x and y,
 * row by row. Returns 0 if it does not show it; the position may be outside the photo. lens->limit
 * is not looked at. */
static inline KILN_HD int kiln_lens_bend(const kiln_lens *l, double x, double y, double pixel[2],
                                         double j[4])
{
    double f, df, g, dg, add[2], at[4], onto[4];
    if (l->projection == KILN_LENS_PANORAMA) {
        kiln_lens_panorama(l, x, y, pixel, j);
        return 1;
    }
    if (!kiln_lens_onto_plane(l, x * x + y * y, &f, &df)) return 0;
    kiln_lens_scaling(x, y, f, df, onto);
    const double u = f * x, v = f * y;
    if (!kiln_lens_radial(l, u * u + v * v, &g, &dg)) return 0;
    kiln_lens_scaling(u, v, g, dg, j);
    double p = g * u, q = g * v;
    if (l->after) {
        kiln_lens_sideways(l, p, q, add, at);
        at[0] += 1.0;
        at[3] += 1.0;
        kiln_lens_chain(at, j, j);
    } else {
        kiln_lens_sideways(l, u, v, add, at);
        for (int i = 0; i < 4; i++) j[i] += at[i];
    }
    p += add[0];
    q += add[1];
    kiln_lens_chain(j, onto, j);
    pixel[0] = l->fx * p + l->cx;
    pixel[1] = l->fy * q + l->cy;
    j[0] = l->fx * j[0];
    j[1] = l->fx * j[1];
    j[2] = l->fy * j[2];
    j[3] = l->fy * j[3];
    return 1;
}

#endif
