/* sh_math -- real spherical harmonics of degree 0 to 4 at a unit direction, in the order and with
 * the signs of trained files: coefficient l^2 + l + m of degree l and order m, Condon-Shortley
 * phase included.
 *
 * Degrees 0 to 3 are the polynomials and constants of INRIA's forward.cu (computeColorFromSH);
 * degree 4 continues them with the constants of P.-P. Sloan, Stupid Spherical Harmonics Tricks
 * (2008), appendix A2. */
#ifndef KILN_KERNELS_SH_MATH_H
#define KILN_KERNELS_SH_MATH_H

#include "base/hd.h"

enum { KILN_SH_DEGREE_MAX = 4, KILN_SH_COEFFICIENTS_MAX = 25 };

#define KILN_SH_C0 0.28209479177387814f  /* 1/2 sqrt(1/pi) */
#define KILN_SH_C1 0.4886025119029199f   /* 1/2 sqrt(3/pi) */
#define KILN_SH_C2A 1.0925484305920792f  /* 1/2 sqrt(15/pi) */
#define KILN_SH_C2B 0.31539156525252005f /* 1/4 sqrt(5/pi) */
#define KILN_SH_C2C 0.5462742152960396f  /* 1/4 sqrt(15/pi) */
#define KILN_SH_C3A 0.5900435899266435f  /* 1/4 sqrt(35/(2 pi)) */
#define KILN_SH_C3B 2.890611442640554f   /* 1/2 sqrt(105/pi) */
#define KILN_SH_C3C 0.4570457994644658f  /* 1/4 sqrt(21/(2 pi)) */
#define KILN_SH_C3D 0.3731763325901154f  /* 1/4 sqrt(7/pi) */
#define KILN_SH_C3E 1.445305721320277f   /* 1/4 sqrt(105/pi) */
#define KILN_SH_C4A 2.5033429417967046f  /* 3/4 sqrt(35/pi) */
#define KILN_SH_C4B 1.7701307697799304f  /* 3/4 sqrt(35/(2 pi)) */
#define KILN_SH_C4C 0.9461746957575601f  /* 3/4 sqrt(5/pi) */
#define KILN_SH_C4D 0.6690465435572892f  /* 3/4 sqrt(5/(2 pi)) */
#define KILN_SH_C4E 0.10578554691520431f /* 3/16 sqrt(1/pi) */
#define KILN_SH_C4F 0.47308734787878004f /* 3/8 sqrt(5/pi) */
#define KILN_SH_C4G 0.6258357354491761f  /* 3/16 sqrt(35/pi) */

/* Each writes the basis functions of one degree; (x, y, z) has length 1. */
static inline KILN_HD void kiln_sh_basis1(float x, float y, float z, float b[3])
{
    b[0] = -KILN_SH_C1 * y;
    b[1] = KILN_SH_C1 * z;
    b[2] = -KILN_SH_C1 * x;
}

static inline KILN_HD void kiln_sh_basis2(float x, float y, float z, float b[5])
{
    const float xx = x * x, yy = y * y, zz = z * z;
    b[0] = KILN_SH_C2A * (x * y);
    b[1] = -KILN_SH_C2A * (y * z);
    b[2] = KILN_SH_C2B * (2.0f * zz - xx - yy);
    b[3] = -KILN_SH_C2A * (x * z);
    b[4] = KILN_SH_C2C * (xx - yy);
}

static inline KILN_HD void kiln_sh_basis3(float x, float y, float z, float b[7])
{
    const float xx = x * x, yy = y * y, zz = z * z;
    const float belt = 4.0f * zz - xx - yy;
    b[0] = -KILN_SH_C3A * y * (3.0f * xx - yy);
    b[1] = KILN_SH_C3B * (x * y) * z;
    b[2] = -KILN_SH_C3C * y * belt;
    b[3] = KILN_SH_C3D * z * (2.0f * zz - 3.0f * xx - 3.0f * yy);
    b[4] = -KILN_SH_C3C * x * belt;
    b[5] = KILN_SH_C3E * z * (xx - yy);
    b[6] = -KILN_SH_C3A * x * (xx - 3.0f * yy);
}

static inline KILN_HD void kiln_sh_basis4(float x, float y, float z, float b[9])
{
    const float xx = x * x, yy = y * y, zz = z * z;
    const float sevens = 7.0f * zz;
    b[0] = KILN_SH_C4A * (x * y) * (xx - yy);
    b[1] = -KILN_SH_C4B * (y * z) * (3.0f * xx - yy);
    b[2] = KILN_SH_C4C * (x * y) * (sevens - 1.0f);
    b[3] = -KILN_SH_C4D * (y * z) * (sevens - 3.0f);
    b[4] = KILN_SH_C4E * (zz * (35.0f * zz - 30.0f) + 3.0f);
    b[5] = -KILN_SH_C4D * (x * z) * (sevens - 3.0f);
    b[6] = KILN_SH_C4F * (xx - yy) * (sevens - 1.0f);
    b[7] = -KILN_SH_C4B * (x * z) * (xx - 3.0f * yy);
    b[8] = KILN_SH_C4G * (xx * (xx - 3.0f * yy) - yy * (3.0f * xx - yy));
}

/* The colour from the sum over coefficients: + 0.5, not below 0; no upper clamp, as in
 * computeColorFromSH. NaN gives 0. */
static inline KILN_HD float kiln_sh_colour(float sum)
{
    const float v = sum + 0.5f;
    return v > 0.0f ? v : 0.0f;
}

#endif
