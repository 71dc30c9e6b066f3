/* ssim3d_math -- the arithmetic of SSIM of volumes, shared by both siblings. Formulas and what is
 * stored for the gradient are those of kernels/ssim/ssim_math.h; the filter is another one.
 *
 * Here it is plain: s, d, s^2 and d^2, with s = a + b and d = a - b, each summed over the 11 taps
 * along x, then y, then z, in their order, in double, by a product and an addition. What is outside
 * the volume is 0 and has its taps, too. A variance is then the difference of two large numbers, of
 * which double leaves nine digits where float32 leaves none; runs around a centre, as pictures have
 * them, would save the doubles but need a third axis of centres.
 *
 * backward: the three partials of a voxel are moved to the origin of values, at - by_s s - by_d d,
 * filtered alike, and the gradient is at' + by_s' s + by_d' d of its own voxel.
 */
#ifndef KILN_KERNELS_SSIM3D_MATH_H
#define KILN_KERNELS_SSIM3D_MATH_H

#include "kernels/ssim/ssim_math.h"
#include "kernels/ssim3d/ssim3d.h"

enum {
    KILN_SSIM3D_MOMENTS = 4, /* filtered by ssim3d: s, s^2, d, d^2 */
    KILN_SSIM3D_SLICES = 32, /* that a piece puts out; it reads ten more */
};

/* The filter's next tap. */
static inline KILN_HD double kiln_ssim3d_tap(double sum, int k, double value)
{
    return sum + (double)kiln_ssim_weight(k) * value;
}

static inline KILN_HD void kiln_ssim3d_moments(float a, float b, double out[KILN_SSIM3D_MOMENTS])
{
    const double s = (double)a + (double)b, d = (double)a - (double)b;
    out[0] = s;
    out[1] = s * s;
    out[2] = d;
    out[3] = d * d;
}

static inline KILN_HD kiln_ssim_moments kiln_ssim3d_of_sums(double mean, double square)
{
    const double var = square - mean * mean;
    const kiln_ssim_moments m = {(float)mean, var > 0.0 ? (float)var : 0.0f};
    return m;
}

static inline KILN_HD kiln_ssim_pixel kiln_ssim3d_pixel_of(const double m[KILN_SSIM3D_MOMENTS])
{
    return kiln_ssim_pixel_of(kiln_ssim3d_of_sums(m[0], m[1]), kiln_ssim3d_of_sums(m[2], m[3]));
}

/* m: the filtered moments at the voxel whose values are a and b. */
static inline KILN_HD kiln_ssim_slope kiln_ssim3d_slope_of(kiln_ssim_pixel p,
                                                           const double m[KILN_SSIM3D_MOMENTS],
                                                           float a, float b)
{
    double own[KILN_SSIM3D_MOMENTS];
    kiln_ssim3d_moments(a, b, own);
    return kiln_ssim_slope_of(p, (float)(own[0] - m[0]), (float)(own[2] - m[2]));
}

/* The partials of a voxel as they are filtered. */
static inline KILN_HD void kiln_ssim3d_to_origin(kiln_ssim_slope f, float a, float b,
                                                 double out[KILN_SSIM_PARTIALS])
{
    double own[KILN_SSIM3D_MOMENTS];
    kiln_ssim3d_moments(a, b, own);
    out[0] = (double)f.at - (double)f.by_s * own[0] - (double)f.by_d * own[2];
    out[1] = (double)f.by_s;
    out[2] = (double)f.by_d;
}

static inline KILN_HD float kiln_ssim3d_gradient(const double filtered[KILN_SSIM_PARTIALS], float a,
                                                 float b, float scale)
{
    double own[KILN_SSIM3D_MOMENTS];
    kiln_ssim3d_moments(a, b, own);
    return scale * (float)(filtered[0] + filtered[1] * own[0] + filtered[2] * own[2]);
}

/* Is a coordinate within what counts? margin: 0, or KILN_SSIM_RADIUS of valid. */
static inline KILN_HD bool kiln_ssim3d_counts(int64_t at, uint32_t side, int64_t margin)
{
    return at >= margin && at < (int64_t)side - margin;
}

/* Voxels that count. */
static inline KILN_HD uint64_t kiln_ssim3d_count(uint64_t planes, uint32_t width, uint32_t height,
                                                 uint32_t depth, bool valid)
{
    const uint64_t margin = valid ? 2 * KILN_SSIM_RADIUS : 0;
    if (width <= margin || height <= margin || depth <= margin) return 0;
    return planes * (width - margin) * (height - margin) * (depth - margin);
}

#endif
