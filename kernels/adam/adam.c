/* What both siblings ask of their arguments, and the numbers of a step. */
#include "kernels/adam/adam.h"

#include "kernels/math/real64.h"
#include "kernels/project/sh_math.h"

kiln_status kiln_adam_check(const kiln_adam_args *a, kiln_error *err)
{
    if (a->n > UINT32_MAX - 1)
        return kiln_fail(err, KILN_E_INPUT, "adam: %llu rows; at most 2^32 - 2 are possible",
                         (unsigned long long)a->n);
    if (a->sh_degree > KILN_SH_DEGREE_MAX)
        return kiln_fail(
            err, KILN_E_INPUT,
            "adam: the spherical harmonics have degree %u; the highest known degree is %d",
            a->sh_degree, KILN_SH_DEGREE_MAX);
    return KILN_OK;
}

static double power_of(double base, uint32_t exponent)
{
    double p = 1;
    for (uint32_t i = 0; i < exponent && p > 1e-20; i++) p *= base;
    return p;
}

void kiln_adam_at(kiln_adam_args *a, const kiln_adam_steps *full, uint32_t t, uint32_t steps)
{
    double sine, cosine;
    kiln_sincos_degrees(steps > 1 ? 180.0 * t / (steps - 1) : 0.0, &sine, &cosine);
    const double part = 0.1 + 0.9 * (0.5 * (1.0 + cosine));
    a->steps = (kiln_adam_steps){.mean = (float)(full->mean * part),
                                 .log_scale = (float)(full->log_scale * part),
                                 .half_angle = (float)(full->half_angle * part),
                                 .opacity_logit = (float)(full->opacity_logit * part),
                                 .sh0 = (float)(full->sh0 * part),
                                 .shN = (float)(full->shN * part)};
    a->correct1 = (float)(1.0 / (1.0 - power_of(0.9, t + 1)));
    a->correct2 = (float)(1.0 / (1.0 - power_of(0.99, t + 1)));
}
