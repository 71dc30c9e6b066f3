/* ssim_math -- the arithmetic of SSIM as a loss, shared by both siblings. The filter is that of
 * kernels/metrics/metrics_math.h: in the sum s = a + b and the difference d = a - b, in runs of
 * eight neighbours as distances from the fifth.
 *
 * With p = mu_s^2 + mu_d^2 + 2 c1, r = mu_s^2 - mu_d^2 + 2 c1, u = var s + var d + 2 c2 and v = var
 * s - var d + 2 c2 the map is r v / (p u). Its derivatives are written in s and d, where none of
 * them is the difference of large numbers when a and b are close:
 *
 *   q_s = 2 dm/dvar s =  4 (r/p) var d / u^2            q_d = 2 dm/dvar d = -4 (r/p) (var s + 2 c2)
 *                                                       / u^2
 *   g = dm/dmu_s + dm/dmu_d = 4 v mu_d (mu_s mu_d - mu_s^2 - 2 c1) / (u p^2)
 *
 * Since da = ds + dd, the gradient at pixel j is a sum over the windows i that it lies in:
 *
 *   sum w_ij (g_i + q_s,i (s_j - mu_s,i) + q_d,i (d_j - mu_d,i))
 *
 * As three plain convolutions it would cancel: q is up to 2200 where a picture is flat, and float32
 * then has errors of 1e-4. So what is stored counts from the window's own pixel, f_i = g_i + q_s,i
 * (s_i - mu_s,i) + q_d,i (d_i - mu_d,i), and the filter moves that to the fifth pixel of its run,
 * first down, then along, and at the end to j. Means as a fourth and fifth stored plane would do
 * the same with more bytes. Against double (tests/unit/ssim_test.c): the mean 5e-8, the gradient
 * 4e-7 of its largest; 8e-6 where values of twenty have means near 0.
 */
#ifndef KILN_KERNELS_SSIM_MATH_H
#define KILN_KERNELS_SSIM_MATH_H

#include "kernels/metrics/metrics_math.h"
#include "kernels/ssim/ssim.h"

enum {
    KILN_SSIM_SPAN = KILN_SSIM_RUN + 2 * KILN_SSIM_RADIUS, /* what the windows of a run cover */
    KILN_SSIM_FIFTH = KILN_SSIM_RADIUS + KILN_SSIM_CENTRE, /* the run's centre in its span */
    KILN_SSIM_PARTIALS = 3,
};

/* Of one pixel: how much the map falls short of 1, halved, and the three derivatives. */
typedef struct {
    float falls_short, g, q_s, q_d;
} kiln_ssim_pixel;

static inline KILN_HD kiln_ssim_pixel kiln_ssim_pixel_of(kiln_ssim_moments s, kiln_ssim_moments d)
{
    const float c1 = 0.0002f, c2 = 0.0018f; /* twice 0.01^2 and 0.03^2 */
    const float mean2_s = s.mean * s.mean + c1, mean2_d = d.mean * d.mean;
    const float p = mean2_s + mean2_d, r = mean2_s - mean2_d, var_s = s.var + c2, u = var_s + d.var,
                v = var_s - d.var;
    const float one = 1.0f / (p * u), four_u = 4.0f * one * one * p; /* 4 / (p u^2) */
    kiln_ssim_pixel out;
    out.falls_short = kiln_fmaf(p, d.var, mean2_d * v) * one;
    out.g = 4.0f * v * d.mean * kiln_fmaf(s.mean, d.mean, -mean2_s) * (one * one * u);
    out.q_s = r * d.var * four_u;
    out.q_d = -(r * var_s * four_u);
    return out;
}

/* It is between 0 and 1, but for rounding; else the pictures have values that are no numbers, or
 * too large for float32. */
static inline KILN_HD bool kiln_ssim_is_number(float falls_short)
{
    return falls_short > -1.0f && falls_short < 2.0f;
}

/* What is stored: [0] from the window's own pixel, [1] and [2] the slopes. */
typedef struct {
    float at, by_s, by_d;
} kiln_ssim_slope;

static inline KILN_HD kiln_ssim_slope kiln_ssim_slope_of(kiln_ssim_pixel p, float from_mean_s,
                                                         float from_mean_d)
{
    const kiln_ssim_slope f = {kiln_fmaf(p.q_d, from_mean_d, kiln_fmaf(p.q_s, from_mean_s, p.g)),
                               p.q_s, p.q_d};
    return f;
}

/* The value of a slope so far from where it was. */
static inline KILN_HD float kiln_ssim_moved(kiln_ssim_slope f, float by_s, float by_d)
{
    return kiln_fmaf(f.by_d, by_d, kiln_fmaf(f.by_s, by_s, f.at));
}

/* Pixels that count. */
static inline KILN_HD uint64_t kiln_ssim_count(uint64_t planes, uint32_t width, uint32_t height,
                                               bool valid)
{
    const kiln_metrics_pixels n = kiln_metrics_all_pixels(width, height);
    return planes * (valid ? n.valid : n.same);
}

/* What each gradient is multiplied by; 0 where nothing counts, as the gradient of a mean of
 * nothing. */
static inline KILN_HD float kiln_ssim_scale(float upstream, uint64_t count)
{
    return count == 0 ? 0.0f : (float)((double)upstream / (double)count);
}

/* The mean of the map from the sum of what it falls short; bad: some value was no number. NAN by
 * its bits, because a conversion of NAN gives other ones on a GPU. */
static inline KILN_HD float kiln_ssim_mean(kiln_fixed_total sum, uint64_t count, bool bad)
{
    const uint32_t nan_bits = 0x7fc00000;
    float mean;
    if (!bad && count > 0) return (float)kiln_ssim_of(kiln_fixed_mean(sum, count));
    memcpy(&mean, &nan_bits, sizeof mean);
    return mean;
}

#endif
