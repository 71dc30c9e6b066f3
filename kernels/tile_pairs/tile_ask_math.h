/* tile_ask_math -- does a Gaussian reach a tile? The answer is found in float for nearly all tiles;
 * the others need their pixels evaluated.
 *
 *   MISSED   proven: no pixel centre of the tile has kiln_power() >= power_min
 *   REACHED  one such pixel was found with kiln_power() itself
 *   UNSURE   neither: the ellipse ends between pixel centres, or comes too near the threshold. Few
 *            tiles of a thousand.
 *
 * The proof. Q(e) = (A ex^2 + C ey^2) / 2 + B ex ey over e = pixel centre - mean is convex, so over
 * the rectangle of a tile's pixel centres it is least at the mean, if that lies within, else on an
 * edge that faces the mean: on the edge at ex where ey = -(B / C) ex, on the one at ey where ex =
 * -(B / A) ey, cut to the edge. Both points are tried; the one that does not count is within the
 * rectangle as well.
 *
 * In float each coordinate of such a point is within 6 * 2^-24 of its own size from the true one:
 * differences of a pixel centre (exact) and the mean are rounded once, the ratio is within 2^-22
 * (tile_near_math.h), its product is rounded once, and cutting keeps relative errors. So each of
 * Q's terms is within 16 * 2^-24 of its size, its own rounding included; together they are at most
 * 4 AC/det Q (reach_math.h): with x = 2^-24 AC/det, Q as computed is at most Q (1 + 64 x). What
 * reaches t has Q (1 - 6 x) <= |t| (reach_math.h), so it has Q <= |t| (1 + 71 x) as computed, as
 * det >= 2^-11 AC and x <= 2^-13. A limit of |t| (1 + 128 x) has room for its own rounding and for
 * that of AC/det = 1 / (1 - B/A B/C): the product of the ratios is within 2^-20 and the difference
 * above 2^-11, so that it is within 2^-8 of itself.
 */
#ifndef KILN_KERNELS_TILE_ASK_MATH_H
#define KILN_KERNELS_TILE_ASK_MATH_H

#include "base/minmax.h"
#include "kernels/tile_pairs/tile_near_math.h"
#include "kernels/math/power_math.h"
#include "kernels/math/reach_math.h"
#include "kernels/project/project.h"

#include <stdbool.h>

/* Tile columns [column, column + w) and rows [row, row + h). */
typedef struct {
    int32_t column, row, w, h;
} kiln_tile_box;

typedef enum {
    KILN_BOX_EMPTY,  /* nothing is reached */
    KILN_BOX_PROVEN, /* nothing is reached outside of the box; kiln_ask_tile answers */
    /* nothing is proven: needles, conics that are not finite or not positive definite; the box is
     * the splat's bounds */
    KILN_BOX_ODD,
} kiln_box_kind;

typedef enum { KILN_TILE_MISSED, KILN_TILE_REACHED, KILN_TILE_UNSURE } kiln_tile_answer;

/* One Gaussian, prepared for kiln_ask_tile. */
typedef struct {
    float x, y, a, b, c, t;
    float b_a, b_c; /* B / A, B / C */
    float limit;    /* Q of what reaches t is not above it */
} kiln_asked;

/* Sets [*from, *to] to the pixels p of [first, last] with |mean - (p + 0.5)| <= half, and a few
 * more to cover rounding; *from > *to if there is none. half may be infinite. No view has 2^20 + 1
 * pixels. */
static inline KILN_HD void kiln_ask_range(float mean, float half, int32_t first, int32_t last,
                                          int32_t *from, int32_t *to)
{
    /* 2^-21; 2^20 + 1 */
    const float reach = half + 4.76837158203125e-7f * fabsf(mean), behind = 1048577.0f;
    const int32_t lo =
        (int32_t)ceilf(kiln_min_f32(kiln_max_f32((mean - 0.5f) - reach, -1.0f), behind));
    const int32_t hi =
        (int32_t)floorf(kiln_min_f32(kiln_max_f32((mean - 0.5f) + reach, -1.0f), behind));
    *from = lo > first ? lo : first;
    *to = hi < last ? hi : last;
}

/* Sets *out to the tiles of rows [row0, row1), inside the picture and the Gaussian's own bounds,
 * that must be asked. */
static inline KILN_HD kiln_box_kind kiln_find_box(const kiln_splat2d *s, const kiln_view *v,
                                                  uint32_t row0, uint32_t row1, kiln_tile_box *out)
{
    const int32_t tiles_x = (int32_t)kiln_view_tiles_x(v);
    const int32_t x0 = s->tile_x0 > 0 ? s->tile_x0 : 0,
                  x1 = s->tile_x1 < tiles_x ? s->tile_x1 : tiles_x;
    const int32_t y0 = s->tile_y0 > (int32_t)row0 ? s->tile_y0 : (int32_t)row0;
    const int32_t y1 = s->tile_y1 < (int32_t)row1 ? s->tile_y1 : (int32_t)row1;
    if (x0 >= x1 || y0 >= y1) return KILN_BOX_EMPTY;
    const float a = s->conic[0], b = s->conic[1], c = s->conic[2], t = s->power_min;
    const float all = a * c, det = kiln_fmaf(a, c, -(b * b));
    *out = (kiln_tile_box){x0, y0, x1 - x0, y1 - y0};
    if (!kiln_reach_is_proven(a, c, t, det, all) || !(fabsf(s->x) <= 1e9f && fabsf(s->y) <= 1e9f))
        return KILN_BOX_ODD;
    /* As kiln_half_reach, in float: its factor has room for what is near, and for the rounding of
     * det, at most 2^-13 of det here.
     */
    const float k = kiln_near_div(2.0f * fabsf(t), det);
    int32_t px0, px1, py0, py1;
    kiln_ask_range(s->x, kiln_near_sqrt(k * c) * 1.00390625f + 1e-3f, x0 * KILN_TILE,
                   x1 * KILN_TILE - 1, &px0, &px1);
    kiln_ask_range(s->y, kiln_near_sqrt(k * a) * 1.00390625f + 1e-3f, y0 * KILN_TILE,
                   y1 * KILN_TILE - 1, &py0, &py1);
    if (px0 > px1 || py0 > py1) return KILN_BOX_EMPTY;
    const int32_t column = px0 / KILN_TILE, row = py0 / KILN_TILE;
    *out = (kiln_tile_box){column, row, px1 / KILN_TILE - column + 1, py1 / KILN_TILE - row + 1};
    return KILN_BOX_PROVEN;
}

/* What Q is not above where a pixel reaches t. 2^-17 and 1e-30, for denormals: see above. */
static inline KILN_HD float kiln_ask_limit(float t, float b_a, float b_c)
{
    const float size = fabsf(t);
    return size + kiln_near_div(size * 7.62939453125e-6f, 1.0f - b_a * b_c) + 1e-30f;
}

static inline KILN_HD kiln_asked kiln_ask_of(const kiln_splat2d *s)
{
    const float a = s->conic[0], b = s->conic[1], c = s->conic[2];
    const float b_a = kiln_near_div(b, a), b_c = kiln_near_div(b, c);
    const kiln_asked g = {
        s->x, s->y, a, b, c, s->power_min, b_a, b_c, kiln_ask_limit(s->power_min, b_a, b_c)};
    return g;
}

static inline KILN_HD float kiln_ask_form(const kiln_asked *g, float ex, float ey)
{
    return ex * (0.5f * g->a * ex + g->b * ey) + 0.5f * g->c * ey * ey;
}

/* Rounds to the nearest whole number, for 0 <= v < 2^22, without a conversion, which GPUs do at a
 * quarter of the rate. */
/* 2^23 */
static inline KILN_HD float kiln_ask_round(float v) { return (v + 8388608.0f) - 8388608.0f; }

/* Answers for one tile of a KILN_BOX_PROVEN. Its pixels are [px0, px1] x [py0, py1], ends included,
 * whole numbers. */
static inline KILN_HD kiln_tile_answer kiln_ask_tile(const kiln_asked *g, float px0, float px1,
                                                     float py0, float py1)
{
    const float left = (px0 + 0.5f) - g->x, right = (px1 + 0.5f) - g->x;
    const float top = (py0 + 0.5f) - g->y, bottom = (py1 + 0.5f) - g->y;
    float ex = kiln_clamp_f32(0.0f, left, right), ey = kiln_clamp_f32(0.0f, top, bottom);
    const float ey_beside = kiln_clamp_f32(-(g->b_c * ex), top, bottom),
                ex_across = kiln_clamp_f32(-(g->b_a * ey), left, right);
    const float beside = kiln_ask_form(g, ex, ey_beside), across = kiln_ask_form(g, ex_across, ey);
    const float least = beside < across ? beside : across;
    if (least > g->limit) return KILN_TILE_MISSED;
    ex = beside < across ? ex : ex_across;
    ey = beside < across ? ey_beside : ey;
    const float px = kiln_min_f32(px0 + kiln_ask_round(ex - left), px1),
                py = kiln_min_f32(py0 + kiln_ask_round(ey - top), py1);
    /* as kiln_power_offset, of whole numbers in float */
    const float dx = g->x - (px + 0.5f), dy = g->y - (py + 0.5f);
    return kiln_power(g->a, g->b, g->c, dx, dy) >= g->t ? KILN_TILE_REACHED : KILN_TILE_UNSURE;
}

#endif
