/* tile_span_math -- which tiles of a tile row a Gaussian reaches, as one interval, without asking
 * tile by tile; for the CPU. Nearly always the interval is proven to be the set of tile_pairs.h. If
 * it is not, the row is open, and its tiles must be asked (tile_ask_math.h).
 *
 * Let e be a pixel centre less the mean, b = B/A, q = det/A^2, X^2 = 2|t|/A. A pixel at e has
 * Q(e) <= |t| exactly if (ex + b ey)^2 <= D = X^2 - q ey^2: on a pixel row, an interval around
 * -b ey of half width sqrt(D).
 *
 * Outer bound. Over the rows of a tile row the right end is largest at y* = -(B/C) hx, where the
 * whole ellipse is widest, if that lies between them, and is hx; else on the first or the last of
 * the rows, whichever is nearer to y*. The left end is its mirror image.
 * Inner bound. The pixels between the ends on the pixel row that is nearest to y* are reached.
 * If both give the same last tile it is right, and there is nothing behind it; on the left likewise.
 * Between those tiles all are reached if the two pixel rows' intervals leave out no tile.
 *
 * Rounding. u = 2^-24, x = u AC/det: at least u, at most 2^-13. The terms of Q are at most Q AC/det
 * (of A and of C) and 2 Q AC/det (of B) in size. The pinned power rounds each at most five times,
 * the offsets included, so it is within 21 x Q of -Q: what reaches t has Q (1 - 21 x) <= |t|, and
 * what has Q (1 + 21 x) <= |t| reaches it. As computed, det is within 3 x of itself, q ey^2 within
 * 15 x, X^2 within 4 u. So where q ey^2 <= 2 X^2, D is within 57 x X^2 of the one that decides;
 * elsewhere it is below -X^2/2. The margin is 64 x X^2.
 *   D < -margin          no pixel of the row is reached.
 *   D >= least           X^2/256 and two margins: sqrt(D) is within 0.6 margin / sqrt(D), at most
 *                        615 x hx.
 *   between              open.
 * y* is within 20 x of itself. As the end's slope is 0 there, the end is then within 50 x hx of the
 * largest. hx is within 16 x of itself. Placing an end takes a few roundings, together at most
 * u (4 |mean| + 12 hx + 5). So eps = 1024 x hx + 8 u (|mean| + hx) + 16 u covers everything.
 *
 * Ends are kept plus 1, as truncation is the only rounding that all machines do in vectors: the
 * pixels of [v - 1, w - 1] are those of [trunc(v), trunc(w)), but for pixels at v - 1 and w - 1
 * themselves, which eps excludes. What is 1 long has a pixel; `least` sees to that. Tiles between
 * two intervals are all reached if fewer than 16 pixels are between them.
 */
#ifndef KILN_KERNELS_TILE_PAIRS_TILE_SPAN_MATH_H
#define KILN_KERNELS_TILE_PAIRS_TILE_SPAN_MATH_H

#include "base/minmax.h"
#include "kernels/math/reach_math.h"
#include "kernels/tile_pairs/tile_ask_math.h"

#include <math.h>

/* One Gaussian, prepared. */
typedef struct {
    float y;
    float centre;                   /* the mean, in pixels from the first pixel's centre, plus 1 */
    float left, right;              /* what the whole ellipse cannot go beyond */
    float eps;                      /* what an end may be wrong by */
    float widest;                   /* y* of the right end */
    float minus_ratio, minus_q, x2; /* -b, -q, X^2 */
    float minus_margin, least;      /* of D; from `least` on the interval has a pixel, too */
    float px0, px_end;              /* pixel columns [px0, px_end) count */
} kiln_span_form;

/* Tile columns [first, first + n). open: as a mask, nothing is known. */
typedef struct {
    int32_t first, n;
    uint32_t open;
} kiln_tile_span;

/* As masks: gcc makes branches of ?: here at -O2 and then does not vectorise. */
static inline uint32_t kiln_span_mask(int truth) { return 0u - (uint32_t)truth; }

/* a b + c, rounded once or twice: proofs have room for both. */
static inline float kiln_span_fma(float a, float b, float c)
{
#ifdef __FMA__
    return fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/* Prepares all but px0 and px_end, and finds half the height of the ellipse. Returns whether all
 * is proven, without a branch. */
static inline int kiln_span_prepare(float x, float y, float a, float b, float c, float t,
                                    kiln_span_form *f, float *half_y)
{
    const float all = a * c, det = all - b * b, size = fabsf(t);
    const float over_det = 1.0f / det, over_all = 1.0f / all;
    const float k = 2.0f * size * over_det, flat = all * over_det;
    const float over_a = c * over_all, over_c = a * over_all;
    const float half = sqrtf(k * c), half_other = sqrtf(k * a);
    /* 1024 * 2^-24, 2^-21, 2^-20 */
    const float eps = half * (flat * 6.103515625e-5f + 4.76837158203125e-7f) +
                      (4.76837158203125e-7f * fabsf(x) + 9.5367431640625e-7f);
    f->y = y;
    f->centre = x + 0.5f;
    f->left = f->centre - (half + eps);
    f->right = f->centre + (half + eps);
    f->eps = eps;
    f->widest = -(b * over_c) * half;
    f->minus_ratio = -(b * over_a);
    f->minus_q = -(det * over_a * over_a);
    f->x2 = 2.0f * size * over_a;
    f->minus_margin = f->x2 * flat * -3.814697265625e-6f; /* 64 * 2^-24 */
    /* 1/256 */
    f->least = kiln_max_f32(kiln_max_f32(f->x2 * 0.00390625f, -2.0f * f->minus_margin),
                            (0.5f + eps) * (0.5f + eps));
    *half_y = half_other;
    return kiln_reach_is_proven(a, c, t, det, all) & (t <= -1e-6f) & (half <= 1e6f) &
           (half_other <= 1e6f) & (fabsf(x) <= 1e9f) & (fabsf(y) <= 2097152.0f); /* 2^21 */
}

/* first: centre of the tile row's first pixel row; end: of the last pixel row of the picture. The
 * order of the additions keeps chains short. */
static inline kiln_tile_span kiln_span_of(const kiln_span_form *f, float first, float end)
{
    const float from = first - f->y, to = kiln_min_f32(first + (KILN_TILE - 1), end) - f->y;
    const float up = f->widest, down = -up, low_y = f->y - 0.5f;
    /* Rounds to the nearest centre: 2^23, and that less 1/2 */
    const float row_r = ((kiln_clamp_f32(up, from, to) + low_y) + 8388608.0f) - 8388607.5f,
                row_l = ((kiln_clamp_f32(down, from, to) + low_y) + 8388608.0f) - 8388607.5f;
    const float dy_r = row_r - f->y, dy_l = row_l - f->y;
    const float d_r = kiln_span_fma(f->minus_q * dy_r, dy_r, f->x2),
                d_l = kiln_span_fma(f->minus_q * dy_l, dy_l, f->x2);
    const float root_r = sqrtf(kiln_max_f32(d_r, 0.0f)), root_l = sqrtf(kiln_max_f32(d_l, 0.0f));
    const float at_r = kiln_span_fma(f->minus_ratio, dy_r, f->centre),
                at_l = kiln_span_fma(f->minus_ratio, dy_l, f->centre);
    const uint32_t inside_r = kiln_span_mask(up > from) & kiln_span_mask(up < to),
                   inside_l = kiln_span_mask(down > from) & kiln_span_mask(down < to);
    /* ends that are surely reached, of both pixel rows */
    const float r0 = (at_r + f->eps) - root_r, r1 = (at_r - f->eps) + root_r;
    const float l0 = (at_l + f->eps) - root_l, l1 = (at_l - f->eps) + root_l;
    const float most_r = inside_r ? f->right : (at_r + f->eps) + root_r,
                most_l = inside_l ? f->left : (at_l - f->eps) - root_l;
    const int32_t px_last = (int32_t)kiln_clamp_f32(most_r, f->px0, f->px_end) - 1,
                  px_first = (int32_t)kiln_clamp_f32(most_l, f->px0, f->px_end);
    const int32_t tile0 = px_first >> 4, tile1 = px_last >> 4;
    const uint32_t known = kiln_span_mask(d_r >= f->least) & kiln_span_mask(d_l >= f->least);
    const uint32_t reached_r = kiln_span_mask(r1 >= (float)(tile1 * KILN_TILE + 1)) &
                               kiln_span_mask(r0 < f->px_end),
                   reached_l = kiln_span_mask(l0 < (float)((tile0 + 1) * KILN_TILE)) &
                               kiln_span_mask(l0 < f->px_end) & kiln_span_mask(l1 >= f->px0 + 1.0f),
                   between = kiln_span_mask(r0 <= l1 + (KILN_TILE - 1));
    const uint32_t none = (~inside_r & kiln_span_mask(d_r < f->minus_margin)) |
                          (known & kiln_span_mask(px_first > px_last));
    kiln_tile_span s;
    s.first = tile0;
    s.n = (int32_t)((uint32_t)(tile1 - tile0 + 1) & ~none);
    s.open = ~none & ~(known & reached_r & reached_l & between);
    return s;
}

#endif
