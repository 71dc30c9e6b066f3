/* png_rows_math -- a value's code, a pixel without its background, a byte's guess: shared by both
 * siblings. Without a branch, so that the CPU's loops become vector code. */
#ifndef KILN_KERNELS_PNG_ROWS_MATH_H
#define KILN_KERNELS_PNG_ROWS_MATH_H

#include "base/hd.h"

enum { KILN_PNG_PAETH = 4 }; /* the filter's number */

/* Round half up after a clamp; what is not a number becomes 0. */
static inline KILN_HD int kiln_png_code(float v, float top)
{
    const float c = v > 0.f ? (v < 1.f ? v : 1.f) : 0.f;
    return (int)(c * top + 0.5f);
}

/* A pixel over a background to one with straight alpha. What is not a number becomes 0 as a
 * code. */
static inline KILN_HD void kiln_png_straighten(const float src[4], const float over[3],
                                               float out[4])
{
    const float alpha = src[3], left = 1.f - alpha;
    for (int c = 0; c < 3; c++) out[c] = alpha > 0.f ? (src[c] - left * over[c]) / alpha : 0.f;
    out[3] = alpha;
}

static inline KILN_HD unsigned char kiln_png_distance(unsigned char a, unsigned char b)
{
    return (unsigned char)(a < b ? b - a : a - b);
}

/* a: left, b: above, c: above left. The guess is whichever is nearest to a + b - c, ties in this
 * order, as the specification has it. In bytes throughout, which are twice as many in a vector: if
 * a and b lie on the same side of c, the distance to c is the sum of the other two, so c is not
 * nearer than they are. Otherwise it is their difference. */
static inline KILN_HD unsigned char kiln_png_guess(unsigned char a, unsigned char b,
                                                   unsigned char c)
{
    const unsigned char to_a = kiln_png_distance(b, c), to_b = kiln_png_distance(a, c);
    const unsigned char same_side = (unsigned char)((a >= c) == (b >= c) ? 255 : 0);
    const unsigned char to_c = (unsigned char)(kiln_png_distance(to_a, to_b) | same_side);
    const unsigned char of_b_and_c = to_b <= to_c ? b : c, nearer = to_b < to_c ? to_b : to_c;
    return to_a <= nearer ? a : of_b_and_c;
}

#endif
