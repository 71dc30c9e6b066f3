/* tile_pairs_math -- which pixels of a pixel row a Gaussian reaches, with proof, and which rows and
 * columns must be examined. Both siblings share it.
 *
 * On a pixel row the pinned power is a polynomial in dx with float coefficients (power_math.h):
 *
 *   P(dx) = (half_a dx + slope) dx + base            computed: p = fl(fl(half_a dx + slope) dx +
 *                                                    base)
 *
 * How far p is from P. With w = (half_a dx + slope) dx and u = 2^-24, p = fl(w (1 + d) + base), |d|
 * <= u, and
 * |w| <= |P| + |base|. Rounding is monotonic, so
 *   P >= T + E gives p >= T,  and  P <= T - E gives p < T,  for every E >= 2u (|T| + |base|) + what
 *                                                           denormals lose;
 * it holds far from the threshold too, as P grows faster than its error. E here is twice that,
 * which also covers the double arithmetic below (2^-48 of the largest term). dx itself is rounded:
 * at most u |dx| from where the pixel is.
 *
 * With half_a < 0 the row is a parabola that opens downwards, and what it reaches is an interval
 * around its vertex: one square root at T + E gives the pixels that are certainly reached, one at T
 * - E those that may be reached. Between the two (about 1e-5 px wide for ordinary Gaussians) the
 * caller evaluates kiln_power itself.
 */
#ifndef KILN_KERNELS_TILE_PAIRS_MATH_H
#define KILN_KERNELS_TILE_PAIRS_MATH_H

#include "kernels/math/power_math.h"
#include "kernels/math/reach_math.h"
#include "kernels/project/project.h"

#include <stdbool.h>

/* A row of at most so many tiles is decided pixel by pixel, the nearest pixel first. */
enum { KILN_FEW_TILES = 4 };

/* Pixel columns that are certainly reached (sure) and that may be reached (may), ends included;
 * empty if first > last. sure is within may. */
typedef struct {
    int32_t sure_first, sure_last, may_first, may_last;
} kiln_row_span;

typedef enum {
    KILN_REACH_NONE,     /* no pixel can be reached */
    KILN_REACH_INTERVAL, /* kiln_row_reach is proven */
    KILN_REACH_ENDS,     /* not concave along a row: kiln_ends_miss is proven */
    KILN_REACH_UNKNOWN,  /* infinities or near overflow: every pixel must be evaluated */
} kiln_pair_reach;

static inline KILN_HD kiln_pair_reach kiln_splat_reach(const kiln_splat2d *s)
{
    /* no product of theirs overflows: 1e15 * 1e9^2 < 3e38 */
    const float largest = 1e15f, farthest = 1e9f;
    const float a = s->conic[0], b = s->conic[1], c = s->conic[2], t = s->power_min;
    /* a power that is NaN */
    if (a != a || b != b || c != c || t != t || s->x != s->x || s->y != s->y)
        return KILN_REACH_NONE;
    if (!(fabsf(a) <= largest && fabsf(b) <= largest && fabsf(c) <= largest &&
          fabsf(s->x) <= farthest && fabsf(s->y) <= farthest))
        return KILN_REACH_UNKNOWN;
    if (t > 1e38f) return KILN_REACH_NONE; /* powers are below 1e34 here */
    if (t < -1e30f) return KILN_REACH_UNKNOWN;
    return a >= 1e-20f ? KILN_REACH_INTERVAL : KILN_REACH_ENDS;
}

/* Return the first whole number at or above v, and the last at or below, within [first, last].
 * Truncation of double to int32 vectorises on any x86-64; ceil and floor do not. */
static inline KILN_HD int32_t kiln_first_at(double v, int32_t first, int32_t last)
{
    double w = v > (double)first ? v : (double)first;
    w = w < (double)last + 1.0 ? w : (double)last + 1.0;
    int32_t i = (int32_t)w;
    return i + ((double)i < w);
}

static inline KILN_HD int32_t kiln_last_at(double v, int32_t first, int32_t last)
{
    double w = v < (double)last ? v : (double)last;
    w = w > (double)first - 1.0 ? w : (double)first - 1.0;
    int32_t i = (int32_t)(w + 1.0); /* first >= 0: not negative, so truncation is floor */
    return i - 1;
}

/* For KILN_REACH_INTERVAL: finds the columns of [first, last] that reach `t` on a pixel row with
 * these coefficients. */
static inline KILN_HD kiln_row_span kiln_row_reach(float x, float half_a, float slope, float base,
                                                   float t, int32_t first, int32_t last)
{
    const double over = -1.0 / (double)half_a, s = (double)slope, p0 = (double)base;
    /* the vertex is this much above the base */
    const double vertex = 0.5 * s * over, lift = 0.5 * s * vertex;
    const double above = (p0 + lift) - (double)t;
    const double e = 2.384185791015625e-7 * (fabs(p0) + fabs((double)t)) /* 2^-22 */
                     + 3.552713678800501e-15 * lift + 1e-30;             /* 2^-48; denormals */
    const double in2 = above - e, out2 = above + e;
    const double in = sqrt((in2 > 0.0 ? in2 : 0.0) * over),
                 out = sqrt((out2 > 0.0 ? out2 : 0.0) * over);
    const double centre = ((double)x - 0.5) - vertex;
    /* 2^-46 */
    const double slack = 2.384185791015625e-7 * (fabs(vertex) + out) +
                         1.4210854715202004e-14 * fabs((double)x) + 1e-6;
    const double inner = in2 >= 0.0 ? in - slack : -1.0, outer = out2 >= 0.0 ? out + slack : -1.0;
    kiln_row_span r;
    r.sure_first = kiln_first_at(centre - inner, first, last);
    r.sure_last = kiln_last_at(centre + inner, first, last);
    r.may_first = kiln_first_at(centre - outer, first, last);
    r.may_last = kiln_last_at(centre + outer, first, last);
    return r;
}

/* For KILN_REACH_ENDS: returns true if the pixels at dx0 and dx1, in one tile, and all between them
 * are below t; false says nothing. A parabola that opens upwards, or a line, is highest at an end.
 * One that opens downwards with a curvature below 1e-20 rises above its ends by less than 1e-15
 * within a tile. */
static inline KILN_HD int kiln_ends_miss(float half_a, float slope, float base, float t, float dx0,
                                         float dx1)
{
    const double h = (double)half_a, s = (double)slope, p0 = (double)base;
    const double q0 = h * (double)dx0 * (double)dx0, q1 = h * (double)dx1 * (double)dx1;
    const double l0 = s * (double)dx0, l1 = s * (double)dx1;
    const double e = 2.384185791015625e-7 * (fabs(p0) + fabs((double)t)) +
                     3.552713678800501e-15 * (fabs(q0) + fabs(q1) + fabs(l0) + fabs(l1)) + 1e-15;
    const double limit = (double)t - e;
    return (q0 + l0) + p0 < limit && (q1 + l1) + p0 < limit;
}

/* What is known of a Gaussian before its tile rows are examined. */
typedef struct {
    kiln_pair_reach reach;
    /* pixel rows that may be reached, ends included; the picture may end before */
    int32_t py_first, py_last;
    uint32_t row_first, row_end; /* their tile rows */
} kiln_splat_extent;

/* Finds the part of rows [row0, row1) inside the Gaussian's own bounds that may be reached. Returns
 * false if there is none. */
static inline KILN_HD bool kiln_find_extent(const kiln_splat2d *s, uint32_t row0, uint32_t row1,
                                            kiln_splat_extent *e)
{
    if (s->tile_y1 <= 0 || s->tile_x1 <= 0 || s->tile_x0 >= s->tile_x1) return false;
    const int32_t first = s->tile_y0 > (int32_t)row0 ? s->tile_y0 : (int32_t)row0;
    const int32_t end = s->tile_y1 < (int32_t)row1 ? s->tile_y1 : (int32_t)row1;
    if (first >= end) return false;
    e->reach = kiln_splat_reach(s);
    if (e->reach == KILN_REACH_NONE) return false;
    e->py_first = first * KILN_TILE;
    e->py_last = end * KILN_TILE - 1;
    if (e->reach == KILN_REACH_INTERVAL) {
        const double half = kiln_half_reach(s->conic[0], s->conic[1], s->conic[2], s->power_min);
        kiln_reach_range(s->y, half, e->py_first, e->py_last, &e->py_first, &e->py_last);
        if (e->py_first > e->py_last) return false;
    }
    e->row_first = (uint32_t)e->py_first / KILN_TILE;
    e->row_end = (uint32_t)e->py_last / KILN_TILE + 1;
    return true;
}

/* The part of one tile row that must be examined for one Gaussian. */
typedef struct {
    kiln_pair_reach reach;
    /* first pixel row of the tile row; pixel rows [begin, end) of it, from py0 */
    uint32_t py0, begin, end;
    /* tile columns [column, column + n); n == 0: nothing can be reached, the rest says nothing */
    int32_t column, n;
    int32_t px1; /* last pixel column; the first is the first of its tile */
} kiln_tile_row;

static inline KILN_HD kiln_tile_row kiln_find_tile_row(const kiln_splat2d *s,
                                                       const kiln_splat_extent *e,
                                                       const kiln_view *v, uint32_t row)
{
    const int32_t tiles_x = (int32_t)kiln_view_tiles_x(v), py0 = (int32_t)row * KILN_TILE;
    const int32_t end = s->tile_x1 < tiles_x ? s->tile_x1 : tiles_x;
    int32_t py_end = py0 + KILN_TILE;
    if (py_end > (int32_t)v->height) py_end = (int32_t)v->height;
    if (py_end > e->py_last + 1) py_end = e->py_last + 1;
    kiln_tile_row r;
    r.reach = e->reach;
    r.py0 = (uint32_t)py0;
    r.begin = e->py_first > py0 ? (uint32_t)(e->py_first - py0) : 0;
    r.end = py_end > py0 ? (uint32_t)(py_end - py0) : 0;
    r.column = s->tile_x0 > 0 ? s->tile_x0 : 0;
    r.n = end > r.column && r.end > r.begin ? end - r.column : 0;
    r.px1 = (int32_t)v->width < end * KILN_TILE ? (int32_t)v->width - 1 : end * KILN_TILE - 1;
    return r;
}

/* For KILN_REACH_INTERVAL and n > 0: returns true if the pixel of the tile nearest to the centre is
 * reached, which usually decides a tile. */
static inline KILN_HD bool kiln_nearest_reached(const kiln_splat2d *s, const kiln_tile_row *r,
                                                int32_t column)
{
    const int32_t px0 = r->column * KILN_TILE, first = column * KILN_TILE,
                  last = first + KILN_TILE - 1;
    const int32_t x = s->x > (float)px0 ? s->x < (float)r->px1 ? (int32_t)s->x : r->px1 : px0;
    const float low = (float)(r->py0 + r->begin), high = (float)(r->py0 + r->end - 1);
    const uint32_t py = (uint32_t)(s->y > low ? s->y < high ? s->y : high : low);
    const uint32_t px = (uint32_t)(x < first ? first : x > last ? last : x);
    const float dx = kiln_power_offset(s->x, px), dy = kiln_power_offset(s->y, py);
    return kiln_power(s->conic[0], s->conic[1], s->conic[2], dx, dy) >= s->power_min;
}

#endif
