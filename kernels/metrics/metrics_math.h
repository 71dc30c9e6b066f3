/* metrics_math -- the arithmetic of SSIM and PSNR, shared by both siblings.
 *
 * SSIM is filtered in the sum s = x + y and the difference d = x - y: the means and variances of
 * the two say what five quantities of x and y would, var x + var y = (var s + var d) / 2 and 2 cov
 * = (var s - var d) / 2. What is summed is how much the map falls short of 1,
 *
 *   1 - map = 2 (p var d + mu_d^2 (var s - var d + 2 c2)) / (p (var s + var d + 2 c2)),  p = mu_s^2 + mu_d^2 + 2 c1
 *
 * which is 0 where pictures are equal and loses nothing where they are close.
 *
 * All of it is float32, because no variance is the difference of two large numbers: neighbours are
 * filtered in runs of eight, as distances from the run's fifth value. First down the column, then
 * along the row:
 *
 *   down    t = v - centre:                 mean = sum w t + centre,        var = sum w t^2 - (sum w t)^2
 *   along   u = mean of a column - centre:  mean = sum w u + W^2 centre,    var = sum w (var of a column + u^2) - (sum w u)^2
 *
 * Runs begin where y, or x, is a multiple of 8 in the picture; what is outside the picture is 0.
 * The eleven taps are taken in their order, one fused operation each. The weights add up to W = 1 -
 * 3.1e-8, and a variance as fused-ssim defines it has (1 - W^2) mean^2 in it, which is put back at
 * the end.
 */
#ifndef KILN_KERNELS_METRICS_MATH_H
#define KILN_KERNELS_METRICS_MATH_H

#include "kernels/math/fma_math.h"
#include "kernels/metrics/metrics.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
    KILN_SSIM_RADIUS = 5,
    KILN_SSIM_TAPS = 11,
    KILN_SSIM_RUN = 8,    /* neighbours with one centre */
    KILN_SSIM_CENTRE = 4, /* which of them */
    KILN_FIXED_BITS = 48, /* |value| <= 1 becomes round(value * 2^48) */
    KILN_METRICS_PIECE_ROWS = 64,
    KILN_METRICS_PIECE_COLUMNS = 128,
};

/* Sums of fixed-point values. One piece of 2^13 values fits 64 bits (13 + 48 < 63); the totals of
 * up to 3 * 2^40 values take 128. */
__extension__ typedef __int128 kiln_fixed_total;

/* What is summed: squared differences, the map's (1 - map) / 2, the channels' values. */
enum {
    KILN_METRICS_CHANNELS = 3,
    KILN_METRICS_MSE = 0,
    KILN_METRICS_SAME,
    KILN_METRICS_VALID,
    KILN_METRICS_A,
    KILN_METRICS_B = KILN_METRICS_A + KILN_METRICS_CHANNELS,
    KILN_METRICS_TOTALS = KILN_METRICS_B + KILN_METRICS_CHANNELS,
};

/* A picture is cut into pieces of one channel; a side is at most 2^20, so there are less than
 * 2^29. */
typedef struct {
    uint32_t channel;
    int64_t x0, x1, y0, y1; /* ends exclusive, inside the picture */
} kiln_metrics_piece;

static inline KILN_HD int64_t kiln_metrics_across(uint32_t width)
{
    return ((int64_t)width + KILN_METRICS_PIECE_COLUMNS - 1) / KILN_METRICS_PIECE_COLUMNS;
}

static inline KILN_HD int64_t kiln_metrics_down(uint32_t height)
{
    return ((int64_t)height + KILN_METRICS_PIECE_ROWS - 1) / KILN_METRICS_PIECE_ROWS;
}

static inline KILN_HD int64_t kiln_metrics_pieces(uint32_t width, uint32_t height)
{
    return 3 * kiln_metrics_across(width) * kiln_metrics_down(height);
}

static inline KILN_HD kiln_metrics_piece kiln_metrics_piece_at(uint32_t width, uint32_t height,
                                                               int64_t i)
{
    const int64_t across = kiln_metrics_across(width), down = kiln_metrics_down(height);
    kiln_metrics_piece p;
    p.channel = (uint32_t)(i / across / down);
    p.x0 = i % across * KILN_METRICS_PIECE_COLUMNS;
    p.y0 = i / across % down * KILN_METRICS_PIECE_ROWS;
    p.x1 = p.x0 + KILN_METRICS_PIECE_COLUMNS < width ? p.x0 + KILN_METRICS_PIECE_COLUMNS : width;
    p.y1 = p.y0 + KILN_METRICS_PIECE_ROWS < height ? p.y0 + KILN_METRICS_PIECE_ROWS : height;
    return p;
}

/* Into [0,1]; what is not a number counts as 0. */
static inline KILN_HD float kiln_metrics_clamp(float v)
{
#ifdef __CUDA_ARCH__
    return __saturatef(v); /* the same in one instruction */
#else
    const float low = v > 0.0f ? v : 0.0f;
    return low < 1.0f ? low : 1.0f;
#endif
}

/* fused-ssim's float32 weights: a Gaussian of sigma 1.5 over 11 taps, divided by its sum; they add
 * up to 0.99999997. */
static inline KILN_HD float kiln_ssim_weight(int tap)
{
    const float from_middle[KILN_SSIM_RADIUS + 1] = {0.2660117149f, 0.2130055279f, 0.1093606874f,
                                                     0.0360007733f, 0.0075987582f, 0.0010283801f};
    return from_middle[tap < KILN_SSIM_RADIUS ? KILN_SSIM_RADIUS - tap : tap - KILN_SSIM_RADIUS];
}

/* 1/v rounded once, for v from 2^-60 to 2^60. On a GPU this is its estimate and one step of
 * Newton's method. nvcc makes the same of 1.0f/v, but adds a branch for the other numbers. */
static inline KILN_HD float kiln_ssim_reciprocal(float v)
{
#ifdef __CUDA_ARCH__
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return fmaf(fmaf(-v, r, 1.0f), r, r);
#else
    return 1.0f / v;
#endif
}

/* Mean and variance under the filter, as far as it has come. */
typedef struct {
    float mean, var;
} kiln_ssim_moments;

/* Of a column, from sum w t and sum w t^2. */
static inline KILN_HD kiln_ssim_moments kiln_ssim_down(float sum, float sum2, float centre)
{
    const kiln_ssim_moments m = {sum + centre, kiln_fmaf(-sum, sum, sum2)};
    return m;
}

/* Of the window, from sum w u and sum w (var + u^2). Variances of less than nothing are 0, as for
 * fused-ssim. */
static inline KILN_HD kiln_ssim_moments kiln_ssim_along(float sum, float sum2, float centre)
{
    const float mean = kiln_fmaf(0.99999994f /* W^2 */, centre, sum);
    const float var =
        kiln_fmaf(6.239861e-8f /* 1 - W^2 */, mean * mean, kiln_fmaf(-sum, sum, sum2));
    const kiln_ssim_moments m = {mean, var > 0.0f ? var : 0.0f};
    return m;
}

/* (1 - map) / 2 at one pixel, 0 to 1, of sum and difference. */
static inline KILN_HD float kiln_ssim_short(kiln_ssim_moments s, kiln_ssim_moments d)
{
    const float c1 = 0.0002f, c2 = 0.0018f; /* twice 0.01^2 and 0.03^2, for a range of 1 */
    const float mean2_d = d.mean * d.mean, p = kiln_fmaf(s.mean, s.mean, mean2_d) + c1,
                q = s.var + c2;
    return kiln_fmaf(p, d.var, mean2_d * (q - d.var)) * kiln_ssim_reciprocal(p * (q + d.var));
}

/* round(v * 2^48), ties to even, for |v| <= 1: the addition does the rounding, as the unit of the
 * last place of 1.5 * 2^52 is 1. Unlike llrint it vectorises on any x86-64. */
static inline KILN_HD int64_t kiln_fixed(double v)
{
    const double magic = 6755399441055744.0; /* 1.5 * 2^52 */
#ifdef __CUDA_ARCH__
    const double shifted = fma(v, 281474976710656.0, magic); /* one instruction for two */
#else
    /* 2^48: exact; one rounding, in the sum */
    const double shifted = v * 281474976710656.0 + magic;
#endif
    int64_t bits, zero;
    memcpy(&bits, &shifted, sizeof bits);
    memcpy(&zero, &magic, sizeof zero);
    return bits - zero;
}

/* The double nearest to v, ties to even. Halving keeps in the last bit whether anything was lost,
 * so that the conversion of the 64 bits that are left is the only rounding; written out because a
 * device's own conversion promises none. */
static inline KILN_HD double kiln_fixed_to_double(kiln_fixed_total v)
{
    kiln_fixed_total size = v < 0 ? -v : v;
    double unit = 1.0;
    while (size >> 64) {
        size = size >> 1 | (size & 1);
        unit = unit * 2.0;
    }
    const double d = (double)(uint64_t)size * unit;
    return v < 0 ? -d : d;
}

/* Mean of `count` values summed by kiln_fixed; NAN when there are none. */
static inline KILN_HD double kiln_fixed_mean(kiln_fixed_total sum, uint64_t count)
{
    if (count == 0) return (double)NAN;
    return (kiln_fixed_to_double(sum) / 281474976710656.0) / (double)count;
}

/* Natural logarithm of a positive normal number, within 1e-15 of its size: x = m 2^e with m near 1,
 * then 2 atanh((m - 1)/(m + 1)) by its series. Here because a stored number may not depend on the
 * machine's libm. */
static inline KILN_HD double kiln_metrics_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffull) | 0x3ff0000000000000ull;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) { /* sqrt 2: keeps |s| below 0.1716 */
        m = m * 0.5;
        e = e + 1;
    }
    double s = (m - 1.0) / (m + 1.0), s2 = s * s, p = 0.0;
    for (int k = 23; k >= 1; k -= 2) p = p * s2 + 1.0 / (double)k;
    return (double)e * 0.693147180559945309 + 2.0 * (s * p); /* ln 2 */
}

static inline KILN_HD double kiln_psnr(double mse)
{
    if (mse == 0.0) return (double)INFINITY;
    if (mse != mse) return (double)NAN;
    return -4.342944819032518 * kiln_metrics_log(mse); /* 10 / ln 10 */
}

/* How many pixels count: of the picture, and of those in [5:-5, 5:-5]. */
typedef struct {
    uint64_t same, valid;
} kiln_metrics_pixels;

/* Of a picture without a mask. */
static inline KILN_HD kiln_metrics_pixels kiln_metrics_all_pixels(uint32_t width, uint32_t height)
{
    const uint64_t margin = 2 * KILN_SSIM_RADIUS, w = width, h = height;
    const kiln_metrics_pixels n = {w * h,
                                   w > margin && h > margin ? (w - margin) * (h - margin) : 0};
    return n;
}

/* Of a row's pixel that counts: is it in [5:-5, 5:-5]? */
static inline KILN_HD bool kiln_metrics_in_valid(uint32_t width, uint32_t height, int64_t x,
                                                 int64_t y)
{
    return x >= KILN_SSIM_RADIUS && x < (int64_t)width - KILN_SSIM_RADIUS &&
           y >= KILN_SSIM_RADIUS && y < (int64_t)height - KILN_SSIM_RADIUS;
}

/* Values in one of the totals. */
static inline KILN_HD uint64_t kiln_metrics_values(kiln_metrics_pixels n, unsigned total)
{
    if (total >= KILN_METRICS_A) return n.same;
    return KILN_METRICS_CHANNELS * (total == KILN_METRICS_VALID ? n.valid : n.same);
}

/* SSIM of the mean by which its map falls short. */
static inline KILN_HD double kiln_ssim_of(double mean_short)
{
    return mean_short != mean_short ? (double)NAN : 1.0 - 2.0 * mean_short;
}

static inline KILN_HD kiln_metrics kiln_metrics_of_means(const double means[KILN_METRICS_TOTALS])
{
    kiln_metrics m;
    m.mse = means[KILN_METRICS_MSE];
    m.psnr = kiln_psnr(m.mse);
    m.ssim_same = kiln_ssim_of(means[KILN_METRICS_SAME]);
    m.ssim_valid = kiln_ssim_of(means[KILN_METRICS_VALID]);
    for (int c = 0; c < KILN_METRICS_CHANNELS; c++) {
        m.mean_a[c] = means[KILN_METRICS_A + c];
        m.mean_b[c] = means[KILN_METRICS_B + c];
    }
    return m;
}

#endif
