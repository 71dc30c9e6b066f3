/* raster_math -- what one Gaussian does to one pixel, shared by both siblings.
 *
 * The power comes from kernels/math/power_math.h, and only this much of the rest differs between
 * profiles: the largest alpha, and whether a transmittance of exactly 1e-4 stops. Colour is summed
 * by product and sum, each rounded.
 */
#ifndef KILN_KERNELS_RASTER_MATH_H
#define KILN_KERNELS_RASTER_MATH_H

#include "kernels/violation.h"
#include "kernels/math/power_math.h"
#include "kernels/profiles/profiles.h"

typedef struct {
    float max_alpha, stop_below; /* as in kiln_profile */
} kiln_blend_rule;

static inline kiln_blend_rule kiln_blend_rule_of(kiln_profile_id profile)
{
    kiln_blend_rule r;
    r.max_alpha = kiln_profiles[profile].max_alpha;
    r.stop_below = kiln_profiles[profile].stop_below;
    return r;
}

/* Below this power a pixel is skipped. Listed powers are at least power_min; with an opacity of at
 * most 1 that is above -6, and the lower limit, which keeps kiln_expf_normal in its range, never
 * acts. */
static inline KILN_HD float kiln_least_power(float power_min)
{
    return power_min < -87.0f ? -87.0f : power_min;
}

/* The alpha of a pixel whose power is in [-87, 0]. */
static inline KILN_HD float kiln_alpha(float opacity, float power, float max_alpha)
{
    const float alpha = opacity * kiln_expf_normal(power); /* the bits of kiln_expf */
    return alpha > max_alpha ? max_alpha : alpha;          /* keeps NaN, which never shows */
}

/* kiln_raster_state.left as a transmittance, and back. */
static inline KILN_HD float kiln_state_left(float left)
{
    return left == 0.0f ? 1.0f : left < 0.0f ? -left : left;
}
static inline KILN_HD int kiln_state_stopped(float left) { return left < 0.0f; }
static inline KILN_HD float kiln_state_of(float left, int stopped)
{
    return stopped ? -left : left;
}

static inline KILN_HD float kiln_expected_depth(float weight, float depth)
{
    return depth / (weight > 1e-10f ? weight : 1e-10f);
}

static inline KILN_HD int kiln_alpha_shows(float alpha) { return alpha >= 1.0f / 255.0f; }

#endif
