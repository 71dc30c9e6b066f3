/* tile_miss_math -- proves that a tile is missed without looking at its pixel rows: by the least
 * value of the exact quadratic over the rectangle of the tile's pixel centres.
 *
 * With Q = (A dx^2 + 2B dx dy + C dy^2) / 2 and det >= 2^-12 AC the pinned power is within Q / 512
 * of -Q at the rounded dx and dy (reach_math.h). These differ from the exact ones by a factor of 1
 * + d, |d| <= 2^-24, and the terms of Q, together at most 4 Q AC/det in size, change by at most
 * twice that: Q changes by less than Q / 512. So a pixel that reaches t has Q (1 - 2^-9)^2 <=
 * |t|, and where Q > |t| (1 + 2^-7) none does. Q is convex with its least value 0 at the centre, so from the centre straight to any
 * point of the rectangle it rises: its least value there is on an edge that faces the centre, and
 * on an edge it is a parabola.
 */
#ifndef KILN_KERNELS_TILE_MISS_MATH_H
#define KILN_KERNELS_TILE_MISS_MATH_H

#include "base/hd.h"
#include "base/minmax.h"

#include <math.h>
#include <stdbool.h>

/* The conic in double; limit is |t| (1 + 2^-7). If `proven` is false, nothing can be said. */
typedef struct {
    double a, b, c, limit, b_over_a, b_over_c;
    bool proven;
} kiln_miss_test;

static inline KILN_HD kiln_miss_test kiln_miss_test_of(float a, float b, float c, float t)
{
    kiln_miss_test m;
    m.a = (double)a;
    m.b = (double)b;
    m.c = (double)c;
    m.limit = fabs((double)t) * 1.0078125; /* 1 + 2^-7 */
    m.b_over_a = m.b / m.a;
    m.b_over_c = m.b / m.c;
    m.proven = a >= 1e-15f && c >= 1e-15f && a <= 1e15f && c <= 1e15f && fabsf(t) <= 1e30f &&
               m.a * m.c - m.b * m.b >= 0.000244140625 * (m.a * m.c); /* 2^-12 */
    return m;
}

/* Returns the least of twice Q on an edge: u is fixed, v is in [lo, hi]. p u^2 + 2 b u v + r v^2 is
 * least at v = -(b/r) u. */
static inline KILN_HD double kiln_least_on_edge(double p, double b, double r, double b_over_r,
                                                double u, double lo, double hi)
{
    const double v = kiln_clamp_f64(-b_over_r * u, lo, hi);
    return p * u * u + (2.0 * b * u + r * v) * v;
}

/* Returns true if no pixel is reached whose centre is at an offset in [dx0, dx1] x [dy0, dy1] from
 * the Gaussian's; false says nothing. */
static inline KILN_HD bool kiln_tile_missed(const kiln_miss_test *m, double dx0, double dx1,
                                            double dy0, double dy1)
{
    const double dx = kiln_clamp_f64(0.0, dx0, dx1),
                 dy = kiln_clamp_f64(0.0, dy0, dy1); /* not 0 for an edge that faces the centre */
    const double on_x = kiln_least_on_edge(m->a, m->b, m->c, m->b_over_c, dx, dy0, dy1);
    const double on_y = kiln_least_on_edge(m->c, m->b, m->a, m->b_over_a, dy, dx0, dx1);
    const double least = dx != 0.0 ? dy != 0.0 ? (on_x < on_y ? on_x : on_y) : on_x : on_y;
    return m->proven && (dx != 0.0 || dy != 0.0) && least > 2.0 * m->limit;
}

#endif
