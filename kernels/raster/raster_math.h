/* raster_math -- what one Gaussian does to one pixel, shared by both siblings.
 *
 * The power comes from kernels/math/power_math.h, and only this much of the rest differs between profiles: the largest
 * alpha, and whether a transmittance of exactly 1e-4 stops. Colour is summed by product and sum, each rounded.
 */
#ifndef KILN_KERNELS_RASTER_MATH_H
#define KILN_KERNELS_RASTER_MATH_H

#include "kernels/fault.h"
#include "kernels/math/power_math.h"
#include "kernels/profiles/profiles.h"

typedef struct {
    float max_alpha;
    float stop_below; /* a Gaussian that would leave less transmittance than this is not drawn, and ends the pixel */
} kiln_blend_rule;

static inline KILN_HD kiln_blend_rule kiln_blend_rule_of(kiln_profile_id profile, float max_alpha)
{
    kiln_blend_rule r;
    r.max_alpha = max_alpha;
    r.stop_below = profile == KILN_PROFILE_INRIA ? 1e-4f : 0x1.a36e30p-14f; /* T' < 1e-4; T' <= 1e-4: the next float */
    return r;
}

/* Below this power a pixel is skipped. Listed powers are at least power_min; with an opacity of at most 1 that is
 * above -6, and the lower limit, which keeps kiln_expf_normal in its range, never acts. */
static inline KILN_HD float kiln_least_power(float power_min) { return power_min < -87.0f ? -87.0f : power_min; }

/* The alpha of a pixel whose power is in [-87, 0]. */
static inline KILN_HD float kiln_alpha(float opacity, float power, float max_alpha)
{
    const float alpha = opacity * kiln_expf_normal(power); /* the bits of kiln_expf */
    return alpha > max_alpha ? max_alpha : alpha;          /* keeps NaN, which never shows */
}

/* kiln_raster_state.left as a transmittance, and back. */
static inline KILN_HD float kiln_state_left(float left) { return left == 0.0f ? 1.0f : left < 0.0f ? -left : left; }
static inline KILN_HD int kiln_state_stopped(float left) { return left < 0.0f; }
static inline KILN_HD float kiln_state_of(float left, int stopped) { return stopped ? -left : left; }

static inline KILN_HD float kiln_expected_depth(float weight, float depth) { return depth / (weight > 1e-10f ? weight : 1e-10f); }

static inline KILN_HD int kiln_alpha_shows(float alpha) { return alpha >= 1.0f / 255.0f; }

#endif
