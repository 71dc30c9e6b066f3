/* visibility_math -- how much cameras see of a Gaussian and how much it matters in their pictures,
 * from its shares of these, and the steps in which both are stored. Pinned: only + - * /, square
 * roots and our own exp in double, so that all machines agree. */
#ifndef KILN_STAGES_LOD_VISIBILITY_MATH_H
#define KILN_STAGES_LOD_VISIBILITY_MATH_H

#include "kernels/math/real64.h"
#include "kernels/project/project.h"

#include <math.h>
#include <stdint.h>

enum { KILN_SEEN_STEPS = 15 };

/* The share of a picture, in pixels, that a projected Gaussian would have if nothing stood in front
 * of it and all of it were inside: 2 pi sqrt(det(covariance)) times its opacity, blur and all as it
 * is drawn. 0: it has none, or no covariance. */
static inline double kiln_seen_area(const kiln_splat2d *s)
{
    const double a = (double)s->conic[0], b = (double)s->conic[1], c = (double)s->conic[2],
                 det = a * c - b * b;
    /* the conic is the inverse */
    const double area = 6.283185307179586 * (double)s->opacity / sqrt(det);
    return det > 0 && area > 0 && area < 0x1p100 ? area : 0;
}

/* The part of a normal distribution that lies below t standard deviations, within 2e-4 (Bowling et
 * al. 2009); past 4: none or all.
 */
static inline double kiln_normal_below(double t)
{
    if (!(t > -4 && t < 4)) return t > 0;
    return 1 / (1 + kiln_exp_f64(-t * (1.5976 + 0.07056 * t * t)));
}

/* The part of a projected Gaussian that falls into the picture, its extents along both sides taken
 * as independent. What lies beyond the border no camera could see: a large row of the background
 * would else count as hidden. */
static inline double kiln_seen_inside(const kiln_splat2d *s, uint32_t width, uint32_t height)
{
    const double a = (double)s->conic[0], b = (double)s->conic[1], c = (double)s->conic[2],
                 det = a * c - b * b;
    if (!(det > 0 && a > 0 && c > 0)) return 0;
    /* 1 / deviation */
    const double x = (double)s->x, y = (double)s->y, per_x = sqrt(det / c), per_y = sqrt(det / a);
    const double across = kiln_normal_below((width - x) * per_x) - kiln_normal_below(-x * per_x);
    const double down = kiln_normal_below((height - y) * per_y) - kiln_normal_below(-y * per_y);
    return across > 0 && down > 0 ? across * down : 0;
}

/* kiln_seen_area with a third of the blur (0.3 pixels squared) taken off: at twice the size, at
 * which levels are looked at too, blur is less of what is drawn. */
static inline double kiln_seen_bare_area(const kiln_splat2d *s)
{
    const double a = (double)s->conic[0], b = (double)s->conic[1], c = (double)s->conic[2],
                 det = a * c - b * b;
    if (!(det > 0)) return 0;
    const double xx = c / det - 0.1, yy = a / det - 0.1, xy = b / det, bare = xx * yy - xy * xy;
    const double area = bare > 0 ? 6.283185307179586 * (double)s->opacity * sqrt(bare) : 0;
    return area > 0 && area < 0x1p100 ? area : 0;
}

/* 10^(-step/8). */
static inline float kiln_seen_value(unsigned step)
{
    static const float values[KILN_SEEN_STEPS] = {
        1.0f,         0.74989421f,  0.56234133f,  0.42169651f,  0.31622777f,
        0.23713737f,  0.17782794f,  0.13335215f,  0.1f,         0.074989421f,
        0.056234133f, 0.042169651f, 0.031622777f, 0.023713737f, 0.017782794f};
    return values[step < KILN_SEEN_STEPS ? step : KILN_SEEN_STEPS - 1];
}

static inline int kiln_seen_is_step(float v)
{
    unsigned step = 0;
    while (step < KILN_SEEN_STEPS && v != kiln_seen_value(step)) step++;
    return step < KILN_SEEN_STEPS;
}

/* The step nearest to v, in logarithms: v is clamped to [0.02, 1], and what lies between two steps
 * goes to the one above 10^(-1/16) of it. share: what cameras saw of it, in pixels; area: of all of
 * it. No area, as no camera has it: the last step. */
static inline unsigned kiln_seen_step(double share, double area)
{
    static const double half = 0.8659643233600653; /* 10^(-1/16) */
    unsigned step = 0;
    if (!(area > 0)) return KILN_SEEN_STEPS - 1;
    while (step < KILN_SEEN_STEPS - 1 && share < (double)kiln_seen_value(step) * half * area)
        step++;
    return step;
}

/* ---- prominence ------------------------------------------------------------------------------ */
enum { KILN_PROMINENCE_STEPS = 64 };

/* 10^(step/8) / 2. */
static inline float kiln_prominence_value(unsigned step)
{
    static const double parts[8] = {0.5,
                                    0.66676071608166655,
                                    0.88913970501946144,
                                    1.1856868528308341,
                                    1.5811388300841898,
                                    2.1084825142929017,
                                    2.8117066259517456,
                                    3.7494710466621953};
    static const double tens[8] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7};
    const unsigned at = step < KILN_PROMINENCE_STEPS ? step : KILN_PROMINENCE_STEPS - 1;
    return (float)(parts[at % 8] * tens[at / 8]);
}

static inline int kiln_prominence_is_step(float p)
{
    unsigned step = 0;
    while (step < KILN_PROMINENCE_STEPS && p != kiln_prominence_value(step)) step++;
    return step < KILN_PROMINENCE_STEPS;
}

/* share: what cameras saw of a row, in pixels; area: what they would see if nothing stood in front,
 * less a part of the blur; alone: what they would see if each were turned towards it, too. Views
 * from where no camera stood may show what none of these saw. */
static inline double kiln_prominence(double share, double area, double alone)
{
    const double seen = sqrt(share * area), least = 0.00390625 * alone;
    return seen > least ? seen : least;
}

/* The step nearest to p pixels, in logarithms. */
static inline unsigned kiln_prominence_step(double p)
{
    static const double half = 1.1547819846894583; /* 10^(1/16) */
    unsigned step = 0;
    while (step < KILN_PROMINENCE_STEPS - 1 && p >= (double)kiln_prominence_value(step) * half)
        step++;
    return step;
}

#endif
