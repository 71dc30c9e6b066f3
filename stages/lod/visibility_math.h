/* visibility_math -- how much cameras see of a Gaussian, from its shares of their pictures, and the steps in which that is stored.
 * Pinned: only + - * / and square roots in double, so that all machines agree. */
#ifndef KILN_STAGES_LOD_VISIBILITY_MATH_H
#define KILN_STAGES_LOD_VISIBILITY_MATH_H

#include "kernels/project/project.h"

#include <math.h>
#include <stdint.h>

enum { KILN_SEEN_STEPS = 15 };

/* The share of a picture, in pixels, that a projected Gaussian would have if nothing stood in front of it and all of it were
 * inside: 2 pi sqrt(det(covariance)) times its opacity, blur and all as it is drawn. 0: it has none, or no covariance. */
static inline double kiln_seen_area(const kiln_splat2d *s)
{
    const double a = (double)s->conic[0], b = (double)s->conic[1], c = (double)s->conic[2], det = a * c - b * b;
    const double area = 6.283185307179586 * (double)s->opacity / sqrt(det); /* the conic is the inverse */
    return det > 0 && area > 0 && area < 0x1p100 ? area : 0;
}

/* 10^(-step/8). */
static inline float kiln_seen_value(unsigned step)
{
    static const float values[KILN_SEEN_STEPS] = {1.0f,         0.74989421f,  0.56234133f,  0.42169651f,  0.31622777f,
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

/* The step nearest to v, in logarithms: v is clamped to [0.02, 1], and what lies between two steps goes to the one above 10^(-1/16)
 * of it. share: what cameras saw of it, in pixels; area: of all of it. No area, as no camera has it: the last step. */
static inline unsigned kiln_seen_step(double share, double area)
{
    static const double half = 0.8659643233600653; /* 10^(-1/16) */
    unsigned step = 0;
    if (!(area > 0)) return KILN_SEEN_STEPS - 1;
    while (step < KILN_SEEN_STEPS - 1 && share < (double)kiln_seen_value(step) * half * area) step++;
    return step;
}

#endif
