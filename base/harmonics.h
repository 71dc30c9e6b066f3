/* harmonics -- how many coefficients spherical harmonics have, and the first of them. In base,
 * because kernels, schema and stages all size arrays by it, and no one of them may include the
 * other two. */
#ifndef KILN_BASE_HARMONICS_H
#define KILN_BASE_HARMONICS_H

#include "base/hd.h"

#include <stdint.h>

#define KILN_SH_C0_F64 0.28209479177387814 /* 1 / (2 sqrt pi), Y_0^0 */

/* Coefficients above degree 0 of one colour channel: 0, 3, 8, 15, 24. degree: at most 4. */
static inline KILN_HD uint32_t kiln_sh_coefficients(uint32_t degree)
{
    return (degree + 1) * (degree + 1) - 1;
}
/* The same of all three channels: components of the plane shN. */
static inline KILN_HD uint32_t kiln_sh_components(uint32_t degree)
{
    return 3 * kiln_sh_coefficients(degree);
}
/* The component of shN that a PLY calls f_rest_N. INRIA's order has all coefficients of red, then
 * of green, then of blue; the plane has the colours of a coefficient side by side. rest: below
 * kiln_sh_components(degree). */
static inline KILN_HD uint32_t kiln_sh_component_of_rest(uint32_t degree, uint32_t rest)
{
    const uint32_t n = kiln_sh_coefficients(degree);
    return 3 * (rest % n) + rest / n;
}

#endif
