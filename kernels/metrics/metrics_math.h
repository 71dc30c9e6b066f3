/* metrics_math -- the arithmetic of SSIM and PSNR, shared by both siblings (KERNELS 1.6).
 *
 * Everything is double, in a fixed order and without fused operations, so the same bits come out everywhere and
 * need no libm: float loses up to 1e-4 of a map value to cancellation in G*X^2 - mu^2 where a picture is flat.
 * Order of the filter: along the row first, then down the column; each time the middle tap first, then outwards, the
 * two values of equal weight added before the product.
 */
#ifndef KILN_KERNELS_METRICS_MATH_H
#define KILN_KERNELS_METRICS_MATH_H

#include "base/hd.h"
#include "kernels/metrics/metrics.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
    KILN_SSIM_RADIUS = 5,
    KILN_SSIM_TAPS = 11,
    KILN_FIXED_BITS = 48, /* |value| <= 1 becomes round(value * 2^48) */
    KILN_METRICS_PIECE_ROWS = 64,
    KILN_METRICS_PIECE_COLUMNS = 128,
};

/* Sums of fixed-point values. One piece of 2^13 values fits 64 bits (13 + 48 < 63); the totals of up to
 * 3 * 2^40 values take 128. */
__extension__ typedef __int128 kiln_fixed_total;

typedef struct {
    kiln_fixed_total mse, same, valid, a[3], b[3];
} kiln_metrics_totals;

/* A picture is cut into pieces of one channel; a side is at most 2^20, so there are less than 2^29. */
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

static inline KILN_HD kiln_metrics_piece kiln_metrics_piece_at(uint32_t width, uint32_t height, int64_t i)
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
static inline KILN_HD double kiln_metrics_clamp(float v)
{
    float low = v > 0.0f ? v : 0.0f;
    return (double)(low < 1.0f ? low : 1.0f);
}

/* One filter pass: the middle value, and the sums of the two values one to five away. The weights are fused-ssim's float32 ones
 * (a Gaussian of sigma 1.5 over 11 taps, divided by its sum); they add up to 0.99999997. */
static inline KILN_HD double kiln_ssim_filter(double mid, double two1, double two2, double two3, double two4, double two5)
{
    double sum = mid * (double)0.2660117149f;
    sum = sum + two1 * (double)0.2130055279f;
    sum = sum + two2 * (double)0.1093606874f;
    sum = sum + two3 * (double)0.0360007733f;
    sum = sum + two4 * (double)0.0075987582f;
    sum = sum + two5 * (double)0.0010283801f;
    return sum;
}

/* The map at one pixel from the filtered x, y, x^2, y^2 and xy. */
static inline KILN_HD double kiln_ssim_value(double mu1, double mu2, double e11, double e22, double e12)
{
    const double c1 = 0.0001, c2 = 0.0009; /* 0.01^2 and 0.03^2 for a range of 1 */
    double m11 = mu1 * mu1, m22 = mu2 * mu2, m12 = mu1 * mu2;
    double s1 = e11 - m11, s2 = e22 - m22, s12 = e12 - m12;
    s1 = s1 > 0.0 ? s1 : 0.0;
    s2 = s2 > 0.0 ? s2 : 0.0;
    double top = (2.0 * m12 + c1) * (2.0 * s12 + c2);
    double v = top / (((m11 + m22) + c1) * ((s1 + s2) + c2));
    v = v < 1.0 ? v : 1.0;
    return v > -1.0 ? v : -1.0;
}

/* round(v * 2^48), ties to even, for |v| <= 1: the addition does the rounding, as the unit of the last place of
 * 1.5 * 2^52 is 1. Unlike llrint it vectorises on any x86-64. */
static inline KILN_HD int64_t kiln_fixed(double v)
{
    const double magic = 6755399441055744.0;        /* 1.5 * 2^52 */
    double shifted = v * 281474976710656.0 + magic; /* 2^48: exact; one rounding, in the sum */
    int64_t bits, zero;
    memcpy(&bits, &shifted, sizeof bits);
    memcpy(&zero, &magic, sizeof zero);
    return bits - zero;
}

/* The double nearest to v, ties to even. Halving keeps in the last bit whether anything was lost, so that the conversion
 * of the 64 bits that are left is the only rounding; written out because a device's own conversion promises none. */
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

/* Natural logarithm of a positive normal number, within 1e-15 of its size: x = m 2^e with m near 1, then
 * 2 atanh((m - 1)/(m + 1)) by its series. Here because a stored number may not depend on the machine's libm. */
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
    return -4.342944819032518 * kiln_metrics_log(mse); /* 10 / ln 10 */
}

static inline KILN_HD kiln_metrics kiln_metrics_finish(uint32_t width, uint32_t height, const kiln_metrics_totals *t)
{
    const uint64_t margin = 2 * KILN_SSIM_RADIUS, w = width, h = height;
    const uint64_t inner = w > margin && h > margin ? (w - margin) * (h - margin) : 0;
    kiln_metrics m;
    m.mse = kiln_fixed_mean(t->mse, 3 * w * h);
    m.psnr = kiln_psnr(m.mse);
    m.ssim_same = kiln_fixed_mean(t->same, 3 * w * h);
    m.ssim_valid = kiln_fixed_mean(t->valid, 3 * inner);
    for (int c = 0; c < 3; c++) {
        m.mean_a[c] = kiln_fixed_mean(t->a[c], w * h);
        m.mean_b[c] = kiln_fixed_mean(t->b[c], w * h);
    }
    return m;
}

#endif
